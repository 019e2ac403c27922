//! How another process of the same user begins and ends a recording here: `waitword profile --pid`.
//!
//! There is no thread and no signal for that. The other process finds this block by its magic
//! number, in the data of the program or a library, and writes into it (`/proc/PID/mem`, which the
//! kernel opens to whom it allows to debug). Then it changes the switches: bytes that the locks
//! read anyway. The next thread that takes a path through one of them finds the request.
//!
//! ```text
//!   other process                              this process
//!   directory, threshold, beats; state = BEGIN
//!   each switch = its value "asked"
//!                                              a lock reads the switch: "asked"
//!                                              follow(): STARTING, then ON, or FAILED and why
//!   ... reads the files; beats + 1, each second
//!   state = END; the switches again
//!                                              follow(): OFF
//! ```
//!
//! # No request is lost
//!
//! The other process can only write, not compare and swap. So it writes the state first and the
//! switches after it; [`follow`] sets the switches first and reads the state after them. Whichever
//! wrote a switch last: either the switch still says "asked", or `follow` finds the new state. One
//! thread follows at a time. One that finds another at it leaves the switch as it is, for the next.
//! A request is taken back by END, which is right whether it was followed or not: `follow` sees,
//! when it has begun a recording, that its end is wanted.
//!
//! # The other process is killed
//!
//! Then the beats stop. A wait that finds that they have not changed for [`PATIENCE`] asks for the
//! end itself.

use crate::recording::{self, Refused};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{
    AtomicI32, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};

/// What the block begins with once it can be used. In memory only, so that no copy of the file is
/// taken for it.
pub const MAGIC: [u8; 16] = *b"waitword control";
/// The layout of the block.
pub const VERSION: u32 = 1;
/// The most bytes of a directory's name.
pub const LONGEST_NAME: usize = 4000;
/// The most switches.
pub const MOST_SWITCHES: usize = 4;
/// For how long a recording goes on without a beat, in nanoseconds.
pub const PATIENCE: u64 = 10_000_000_000;

/// A state: there is no recording.
pub const OFF: u32 = 0;
/// A state: waits are recorded, in [`Control::directory`].
pub const ON: u32 = 1;
/// A state: a recording is asked for.
pub const BEGIN: u32 = 2;
/// A state: its end is asked for.
pub const END: u32 = 3;
/// A state: it could not begin. [`Control::failure`] says why.
pub const FAILED: u32 = 4;
/// A state: a thread is beginning it.
pub const STARTING: u32 = 5;

/// A byte that the locks read. All zeros: none.
#[repr(C)]
#[derive(Debug)]
pub struct Switch {
    /// Its address.
    pub address: AtomicU64,
    /// The value that says that something is asked for.
    pub asked: AtomicU64,
}

/// The block.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Control {
    /// [`MAGIC`], once the block is complete.
    pub magic: [AtomicU8; 16],
    /// [`VERSION`].
    pub version: AtomicU32,
    /// One of the states.
    pub state: AtomicU32,
    /// Shorter waits are not to be recorded, in nanoseconds.
    pub threshold: AtomicU64,
    /// A number that another process changes as long as it wants the recording; 0: the process has
    /// begun it by itself.
    pub beats: AtomicU64,
    /// Why it failed: 1: the directory's name; 2: its files; 3: another thread was busy; 4:
    /// the size of this kernel's pages.
    pub failure: AtomicU32,
    /// The error number of the call that failed.
    pub errno: AtomicI32,
    /// The switches.
    pub switches: [Switch; MOST_SWITCHES],
    /// The length of the directory's name.
    pub directory_len: AtomicU32,
    /// The directory's name, absolute.
    pub directory: [AtomicU8; LONGEST_NAME],
}

static CONTROL: Control = Control {
    magic: [const { AtomicU8::new(0) }; 16],
    version: AtomicU32::new(VERSION),
    state: AtomicU32::new(OFF),
    threshold: AtomicU64::new(recording::USUAL_THRESHOLD),
    beats: AtomicU64::new(0),
    failure: AtomicU32::new(0),
    errno: AtomicI32::new(0),
    switches: [const { Switch { address: AtomicU64::new(0), asked: AtomicU64::new(0) } };
        MOST_SWITCHES],
    directory_len: AtomicU32::new(0),
    directory: [const { AtomicU8::new(0) }; LONGEST_NAME],
};

/// The number of the process of which a thread follows; 0, or a parent's number: none.
static FOLLOWING: AtomicU32 = AtomicU32::new(0);
/// The last beat that a wait has seen, and when.
static SEEN: AtomicU64 = AtomicU64::new(0);
static SEEN_AT: AtomicU64 = AtomicU64::new(0);

/// Registers a byte that the locks read, with the value that makes them call [`follow`]. From then
/// on other processes can find the block.
pub fn register(switch: &'static AtomicU8, asked: u8) {
    let address = switch.as_ptr().expose_provenance() as u64;
    for place in &CONTROL.switches {
        let taken = place.address.compare_exchange(0, address, Relaxed, Relaxed);
        if taken.is_ok() || taken == Err(address) {
            place.asked.store(u64::from(asked), Relaxed);
            break;
        }
    }
    for (byte, value) in CONTROL.magic.iter().zip(MAGIC) {
        // Release: a reader that finds the last one finds the switch.
        byte.store(value, Release);
    }
}

/// Begins to record the waits of this process, into files in this directory. Waits that are shorter
/// than `threshold` (nanoseconds) are not recorded. A recording that the process has begun before
/// ends.
///
/// # Errors
/// See [`Refused`]. Nothing is recorded then.
pub fn start(process: u32, directory: &[u8], threshold: u64) -> Result<(), Refused> {
    recording::start(process, directory.iter().copied(), threshold)?;
    for (byte, &value) in CONTROL.directory.iter().zip(directory) {
        byte.store(value, Relaxed);
    }
    CONTROL.directory_len.store(directory.len().min(LONGEST_NAME) as u32, Relaxed);
    CONTROL.threshold.store(threshold, Relaxed);
    CONTROL.beats.store(0, Relaxed);
    // Release: a reader that finds the state finds the directory.
    CONTROL.state.store(ON, Release);
    Ok(())
}

/// Ends the recording.
pub fn stop(process: u32) {
    recording::stop(process);
    CONTROL.state.store(OFF, Release);
}

/// Does what another process asks for. `switch` sets the switches to what they are while waits are
/// recorded, or are not; it may be called several times. Async-signal-safe; may take some
/// milliseconds.
///
/// Call it when a switch has its value "asked".
#[cold]
pub fn follow(process: u32, switch: impl Fn(bool)) {
    let before = disturb_not();
    let seen = FOLLOWING.load(Relaxed);
    let is_mine =
        seen != process && FOLLOWING.compare_exchange(seen, process, Acquire, Relaxed).is_ok();
    if is_mine {
        while step(process, &switch) {}
        FOLLOWING.store(0, Release);
    }
    disturb_again(&before);
}

/// Returns whether to look again.
fn step(process: u32, switch: &impl Fn(bool)) -> bool {
    switch(recording::is_on());
    // Between the write of a switch and the look at the state: see the header.
    fence(SeqCst);
    // Acquire: the other process has written the rest before.
    let change = |from, to| CONTROL.state.compare_exchange(from, to, AcqRel, Acquire).is_ok();
    if change(BEGIN, STARTING) {
        let failure = begin(process);
        CONTROL.failure.store(failure, Relaxed);
        switch(recording::is_on());
        fence(SeqCst);
        // Otherwise the request was taken back meanwhile.
        return !change(STARTING, if failure == 0 { ON } else { FAILED });
    }
    if CONTROL.state.load(Acquire) == END {
        recording::stop(process);
        switch(false);
        fence(SeqCst);
        return !change(END, OFF);
    }
    false
}

/// Returns why it failed; 0: it did not.
fn begin(process: u32) -> u32 {
    let len = (CONTROL.directory_len.load(Relaxed) as usize).min(LONGEST_NAME);
    let name = CONTROL.directory[..len].iter().map(|byte| byte.load(Relaxed));
    let begun = recording::start(process, name, CONTROL.threshold.load(Relaxed));
    match begun {
        Ok(()) => 0,
        Err(refused) => {
            // SAFETY: the calling thread's own variable.
            CONTROL.errno.store(unsafe { *libc::__errno_location() }, Relaxed);
            match refused {
                Refused::Name => 1,
                Refused::Files => 2,
                Refused::Busy => 3,
                Refused::Pages => 4,
            }
        }
    }
}

/// A wait has ended at this time, in a process that records. If the process that wants the
/// recording seems to be gone, asks for the end.
#[inline]
pub(crate) fn look_for_beats(now: u64) {
    let beats = CONTROL.beats.load(Relaxed);
    if beats == 0 {
        return;
    }
    // Acquire, and Release below: a thread that finds the beat finds that it is new. (The greatest
    // time: another thread may have looked long before it writes.)
    if beats != SEEN.load(Acquire) {
        SEEN_AT.fetch_max(now, Relaxed);
        SEEN.store(beats, Release);
    } else if now.saturating_sub(SEEN_AT.load(Relaxed)) > PATIENCE {
        ask_for_end();
    }
}

#[cold]
fn ask_for_end() {
    if CONTROL.state.compare_exchange(ON, END, Relaxed, Relaxed).is_err() {
        return;
    }
    // As the other process does: the switches after the state.
    fence(SeqCst);
    for switch in &CONTROL.switches {
        let byte = ptr::with_exposed_provenance::<AtomicU8>(switch.address.load(Relaxed) as usize);
        // SAFETY: null, or the address of a byte that was registered and exists for ever. (Another
        // process that may write into this one could change it, and all else.)
        if let Some(byte) = unsafe { byte.as_ref() } {
            byte.store(switch.asked.load(Relaxed) as u8, Relaxed);
        }
    }
}

/// What [`disturb_not`] has changed.
struct Before {
    mask: MaybeUninit<libc::sigset_t>,
    state: c_int,
}

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Calls the recorder in a thread that may be cancelled, with deferred cancellation: the C
/// library's `open` would act on a request.
#[inline]
pub fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    let mut state = 0;
    // SAFETY: the place is the state's. It cannot unwind.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut state) };
    let result = work();
    // SAFETY: the state that was found. With deferred cancellation it does not unwind.
    unsafe { pthread_setcancelstate(state, ptr::null_mut()) };
    result
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// From here on the calling thread handles no signals and is not cancelled: a handler that leaves
/// by a jump, or a cancellation in the C library's `open`, would leave the work half done.
fn disturb_not() -> Before {
    let mut before = Before { mask: MaybeUninit::uninit(), state: 0 };
    let mut all = MaybeUninit::uninit();
    // SAFETY: both sets have room; the first is filled in before it is read. No call can fail with
    // these arguments, or unwind.
    unsafe {
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before.state);
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.mask.as_mut_ptr());
    }
    before
}

/// Undoes it. A signal that has arrived meanwhile is handled here, and a request to cancel is acted
/// on, if the thread's type is asynchronous.
fn disturb_again(before: &Before) {
    // SAFETY: the set and the state that were found. If the thread is unwound from here, its frames
    // have nothing to be dropped.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.mask.as_ptr(), ptr::null_mut());
        pthread_setcancelstate(before.state, ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;

    const ASKED: u8 = 9;
    static SWITCH: AtomicU8 = AtomicU8::new(0);

    fn switch(is_on: bool) {
        SWITCH.store(u8::from(is_on), Relaxed);
    }

    fn ask_for(state: u32) {
        CONTROL.state.store(state, Release);
        SWITCH.store(ASKED, Relaxed);
        follow(3, switch);
    }

    fn begin_in(directory: &[u8], beats: u64) {
        for (byte, &value) in CONTROL.directory.iter().zip(directory) {
            byte.store(value, Relaxed);
        }
        CONTROL.directory_len.store(directory.len() as u32, Relaxed);
        CONTROL.beats.store(beats, Relaxed);
        ask_for(BEGIN);
    }

    fn now() -> (u32, u32, u8) {
        (CONTROL.state.load(Relaxed), CONTROL.failure.load(Relaxed), SWITCH.load(Relaxed))
    }

    /// One test, because a process has one block; in a process of its own, because it keeps the
    /// unwinder's tables from other threads for a while.
    #[test]
    fn a_recording_begins_and_ends_when_it_is_asked_for() {
        waitword_testkit::in_fresh_process(begin_and_end);
    }

    fn begin_and_end() {
        register(&SWITCH, ASKED);
        register(&SWITCH, ASKED);
        assert_eq!(CONTROL.switches[0].asked.load(Relaxed), ASKED.into());
        assert_eq!(CONTROL.switches[1].address.load(Relaxed), 0);
        assert_eq!(CONTROL.magic.each_ref().map(|byte| byte.load(Relaxed)), MAGIC);

        begin_in(b"relative", 1);
        assert_eq!(now(), (FAILED, 1, 0));
        begin_in(b"/no/such/directory", 1);
        assert_eq!(now(), (FAILED, 2, 0));
        assert_eq!(CONTROL.errno.load(Relaxed), libc::ENOENT);

        let place = tempfile::tempdir().unwrap();
        let directory = place.path().as_os_str().as_encoded_bytes();
        begin_in(directory, 1);
        assert_eq!(now(), (ON, 0, 1));
        // Nothing is asked for.
        SWITCH.store(ASKED, Relaxed);
        follow(3, switch);
        assert_eq!(now(), (ON, 0, 1));
        ask_for(END);
        assert_eq!((now(), recording::is_on()), ((OFF, 0, 0), false));
        assert!(std::fs::read_dir(place.path()).unwrap().count() >= 2);

        // The tool's beats continue, and then stop.
        begin_in(directory, 2);
        look_for_beats(PATIENCE);
        look_for_beats(2 * PATIENCE);
        assert_eq!(now(), (ON, 0, 1));
        CONTROL.beats.store(3, Relaxed);
        look_for_beats(3 * PATIENCE);
        assert_eq!(now(), (ON, 0, 1));
        look_for_beats(4 * PATIENCE + 1);
        assert_eq!(now(), (END, 0, ASKED));
        follow(3, switch);
        assert_eq!((now(), recording::is_on()), ((OFF, 0, 0), false));

        // A thread still looks up its last stack of the recording before.
        crate::unwind::while_in_use(|| begin_in(directory, 3));
        assert_eq!(now(), (ON, 0, 1));
        ask_for(END);

        // Taken back while it begins.
        let is_taken_back = AtomicBool::new(false);
        CONTROL.state.store(BEGIN, Release);
        follow(3, |is_on| {
            switch(is_on);
            if is_on && !is_taken_back.swap(true, Relaxed) {
                CONTROL.state.store(END, Release);
                SWITCH.store(ASKED, Relaxed);
            }
        });
        assert_eq!((now(), recording::is_on()), ((OFF, 0, 0), false));

        // A recording that the process has begun itself needs no beats.
        start(3, directory, 5).unwrap();
        look_for_beats(u64::MAX);
        assert_eq!(CONTROL.state.load(Relaxed), ON);
        // A forked child finds no follower of its parent's in its way.
        FOLLOWING.store(3, Relaxed);
        CONTROL.state.store(END, Release);
        follow(3, switch);
        assert_eq!(CONTROL.state.load(Relaxed), END);
        follow(4, switch);
        assert_eq!(CONTROL.state.load(Relaxed), OFF);

        no_request_is_lost(directory);
    }

    /// Another process asks once each time, at any moment, and threads follow at any moment.
    fn no_request_is_lost(directory: &[u8]) {
        const ROUNDS: u32 = 100;
        const FOLLOWERS: u32 = 3;
        let is_over = AtomicBool::new(false);
        let until = |what: &str, is_it: &dyn Fn(u32) -> bool| {
            let began = std::time::Instant::now();
            while !is_it(CONTROL.state.load(Acquire)) {
                assert!(began.elapsed().as_secs() < 60, "{what}: {:?}", now());
                std::thread::yield_now();
            }
        };
        let ask = |state| {
            CONTROL.state.store(state, SeqCst);
            SWITCH.store(ASKED, SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..FOLLOWERS {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        if SWITCH.load(Relaxed) == ASKED {
                            follow(5, switch);
                        }
                        std::thread::yield_now();
                    }
                });
            }
            CONTROL.directory_len.store(directory.len() as u32, Relaxed);
            for round in 0..ROUNDS {
                ask(BEGIN);
                match round % 3 {
                    0 => {
                        until("begins", &|state| state == ON);
                        assert!(recording::is_on());
                    }
                    1 => until("starts", &|state| state != BEGIN),
                    _ => {}
                }
                ask(END);
                until("ends", &|state| state == OFF);
                assert!(!recording::is_on());
            }
            is_over.store(true, Relaxed);
        });
        assert_ne!(SWITCH.load(Relaxed), 1);
    }
}
