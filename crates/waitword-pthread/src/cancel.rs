//! Cancellation: `pthread_cancel`, and what our cancellation points need of it.
//!
//! The C library acts on a cancellation request inside its own system calls. Ours are not known to it, so the waits here end by
//! themselves when the thread is cancelled, take the mutex back, and then ask the C library whether to act (`pthread_testcancel`), which
//! unwinds the thread from there. So no thread is ever unwound from the middle of our code, whatever its cancellation type:
//!
//! ```text
//!   waiter                                       canceller
//!   ──────                                       ─────────
//!   record.interrupter cleared                   the C library's pthread_cancel: the request stands
//!   pthread_testcancel: a request? unwound       record of that thread? interrupt
//!   wait, interruptible
//!   interrupted: mutex, pthread_testcancel
//! ```
//!
//! A request that stands before the first look is found there; one that comes later interrupts. If the thread was signalled at the
//! same time, the wait returns as signalled and the request stands until the next cancellation point: so no signal is lost with a
//! cancelled thread.
//!
//! A wait with a priority-inheriting mutex sleeps in the kernel, on the condition variable itself.
//! There the interrupter also sends the thread the C library's cancellation signal, which ends its
//! system call (`waitword`'s `lock/interrupter.rs`).
//!
//! # Records
//!
//! One for each thread that has reached a cancellation point of ours, found by its `pthread_t`. They lie in memory that is never freed,
//! and are given back as a thread ends (a key's destructor). In a child of fork those of the parent's threads stay behind; they cost
//! a needless wake-up if a thread of the same number is cancelled.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::{pthread_key_t, pthread_t};
use waitword::abi_support::Interrupter;

mod glibc {
    use super::{c_int, pthread_t};

    crate::real::real! {
        fn pthread_cancel(thread: pthread_t) -> c_int;
    }
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
    fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int;
}

const DEFERRED: c_int = 0;

/// A thread that can be cancelled in one of our waits.
struct Record {
    /// 0: nobody's.
    thread: AtomicUsize,
    interrupter: Interrupter,
}

const _: () = assert!(size_of::<pthread_t>() == size_of::<usize>());

impl Record {
    const fn new() -> Self {
        Self {
            thread: AtomicUsize::new(0),
            interrupter: Interrupter::signalled(),
        }
    }

    /// Ends the thread's wait.
    fn interrupt(&self) {
        self.interrupter.interrupt_with(signal_for_cancellation);
    }
}

/// Interrupts the system call in which a thread waits with a priority-inheriting mutex, by the signal that the C library keeps for
/// cancellation. Its handler does nothing to a thread whose cancellation is deferred, as in all our waits, and was installed by the
/// C library's `pthread_cancel` before this is called.
fn signal_for_cancellation(tid: u32) {
    /// The first real-time signal, which programs cannot block, catch or send by the C library's functions.
    const SIGCANCEL: c_int = 32;
    /// The kernel's `struct sigaction` and its signal sets.
    const ACTION_WORDS: usize = 4;
    const SET_BYTES: usize = 8;
    let mut action = [0_usize; ACTION_WORDS];
    // SAFETY: the kernel writes an action, no larger than this, to `action`, and reads none. The
    // handler stands first in it on all machines that this is built for.
    let answer = unsafe {
        syscalls::syscall4(
            syscalls::Sysno::rt_sigaction,
            SIGCANCEL as usize,
            0,
            action.as_mut_ptr().expose_provenance(),
            SET_BYTES,
        )
    };
    if answer.is_err() || action[0] == libc::SIG_DFL {
        // A C library that does otherwise: the signal would end the process. The thread stops when it next wakes.
        return;
    }
    // SAFETY: no memory is passed. The signal goes to a thread of this process, and has a handler,
    // as was seen above.
    let _ = unsafe {
        syscalls::syscall3(
            syscalls::Sysno::tgkill,
            libc::getpid() as usize,
            tid as usize,
            SIGCANCEL as usize,
        )
    };
}

const FIRST: usize = 128;
/// Each chunk is twice as long as the one before: 2^31 threads.
const CHUNKS: usize = 24;

static FIRST_CHUNK: [Record; FIRST] = [const { Record::new() }; FIRST];
static CHUNK: [AtomicPtr<Record>; CHUNKS] = [const { AtomicPtr::new(null_mut()) }; CHUNKS];
/// No record before this one is free, as far as anybody knows.
static FIRST_FREE: AtomicUsize = AtomicUsize::new(0);

/// The records of a chunk, if there is one. All zeros are free records, of threads that are signalled.
fn chunk(index: usize) -> Option<&'static [Record]> {
    if index == 0 {
        return Some(&FIRST_CHUNK);
    }
    // Acquire: the memory is there.
    let records = CHUNK.get(index)?.load(Ordering::Acquire);
    // SAFETY: `make_chunk` has published a mapping for so many records, which is never unmapped and
    // was zeroed at first. All zeros is a record; everything in one is atomic, or never changes.
    (!records.is_null()).then(|| unsafe { core::slice::from_raw_parts(records, FIRST << index) })
}

/// Makes a chunk that is not there yet; whether it is there now.
fn make_chunk(index: usize) -> bool {
    let Some(place) = CHUNK.get(index) else {
        return false;
    };
    let length = size_of::<Record>() * (FIRST << index);
    // SAFETY: a new private anonymous mapping at an address of the kernel's choice: no memory that
    // is in use changes.
    let memory = unsafe {
        libc::mmap(
            null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return false;
    }
    // Release: see `chunk`. The mapping happened before for all threads.
    let made = place.compare_exchange(
        null_mut(),
        memory.cast(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    if made.is_err() {
        // SAFETY: `memory` is the mapping made above, of this length. The exchange that would have
        // published it has failed, so no other thread has its address.
        unsafe { libc::munmap(memory, length) };
    }
    true
}

/// All records, as far as there are any.
fn records() -> impl Iterator<Item = (usize, &'static Record)> {
    (0..CHUNKS)
        .map_while(chunk)
        .flat_map(|chunk| chunk.iter())
        .enumerate()
}

thread_local! {
    // No destructor and a constant start: usable at any moment of a thread's life.
    static MINE: Cell<Option<&'static Record>> = const { Cell::new(None) };
}

/// Where a thread is interrupted that has no record, since memory was short: nobody finds it.
static NOBODYS: Interrupter = Interrupter::signalled();

/// The calling thread's.
#[inline]
fn interrupter() -> &'static Interrupter {
    match MINE.get() {
        Some(record) => &record.interrupter,
        None => first(),
    }
}

#[cold]
fn first() -> &'static Interrupter {
    // SAFETY: `pthread_self` asks for nothing.
    let thread = unsafe { libc::pthread_self() } as usize;
    let Some((index, record)) = take_record(thread) else {
        return &NOBODYS;
    };
    MINE.set(Some(record));
    give_back_at_the_end(index);
    &record.interrupter
}

fn take_record(thread: usize) -> Option<(usize, &'static Record)> {
    let begin = FIRST_FREE.load(Ordering::Relaxed);
    for next_chunk in 1..=CHUNKS {
        for (index, record) in records().skip(begin) {
            // Acquire: what the record's last thread did with it is over.
            let taken =
                record
                    .thread
                    .compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                FIRST_FREE.fetch_max(index, Ordering::Relaxed);
                return Some((index, record));
            }
        }
        if !make_chunk(next_chunk) {
            break;
        }
    }
    None
}

/// Sees to it that the record of this number is free when the thread ends.
fn give_back_at_the_end(index: usize) {
    const NO_KEY: u32 = 0;
    /// The key's number, and one more.
    static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
    let mut key = KEY.load(Ordering::Relaxed);
    if key == NO_KEY {
        let mut made: pthread_key_t = 0;
        // SAFETY: `made` is a place for a key. The destructor follows no pointer, and is always
        // there: the library is linked with `nodelete`.
        if unsafe { libc::pthread_key_create(&mut made, Some(give_back)) } != 0 {
            // There are too many keys. The record is not used again.
            return;
        }
        key = match KEY.compare_exchange(NO_KEY, made + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => made + 1,
            Err(theirs) => {
                // SAFETY: `made` was made above, and is known to no other thread: the exchange that
                // would have published it has failed.
                unsafe { libc::pthread_key_delete(made) };
                theirs
            }
        };
    }
    let value = core::ptr::without_provenance::<c_void>(index + 1);
    // SAFETY: the key was made by this function, in this thread or another, and is not deleted. The
    // value is a number for `give_back`, which no one follows.
    unsafe { libc::pthread_setspecific(key - 1, value) };
}

unsafe extern "C" fn give_back(value: *mut c_void) {
    let index = value.addr() - 1;
    // Other destructors may still wait: they take a record anew.
    MINE.set(None);
    if let Some((_, record)) = records().nth(index) {
        // Release: see `take_record`.
        record.thread.store(0, Ordering::Release);
        FIRST_FREE.fetch_min(index, Ordering::Relaxed);
    }
}

/// A cancellation point of ours, from its first look to its end.
pub(crate) struct CancellationPoint {
    interrupter: &'static Interrupter,
    /// The thread's own cancellation type. Here it is deferred.
    own_type: c_int,
}

impl CancellationPoint {
    /// Acts on a request that stands.
    pub(crate) fn enter() -> Self {
        let interrupter = interrupter();
        interrupter.clear();
        let mut own_type = DEFERRED;
        // SAFETY: `own_type` is a place for the type. If `pthread_testcancel` unwinds the thread,
        // no frame of ours between here and C's caller has anything to be dropped.
        unsafe {
            pthread_setcanceltype(DEFERRED, &mut own_type);
            pthread_testcancel();
        }
        Self {
            interrupter,
            own_type,
        }
    }

    /// What the wait is interruptible by.
    pub(crate) fn interrupter(&self) -> &'static Interrupter {
        self.interrupter
    }

    /// The wait was interrupted, or its deadline has passed: acts on a request that stands. If there is none, the caller goes
    /// on, and may wait again.
    pub(crate) fn act(&self) {
        self.interrupter.clear();
        self.change_type(self.own_type);
        // SAFETY: if it unwinds the thread, no frame of ours between here and C's caller has
        // anything to be dropped: the wait is over, and the mutex is held.
        unsafe { pthread_testcancel() };
        self.change_type(DEFERRED);
    }

    /// The wait is over.
    pub(crate) fn leave(self) {
        self.change_type(self.own_type);
    }

    /// For cleanup handlers, which find the thread as it was. With the asynchronous type a request that stands is acted on at
    /// once.
    fn change_type(&self, to: c_int) {
        if self.own_type != DEFERRED {
            let mut old = 0;
            // SAFETY: `old` is a place for the type, and `to` is a type. If the thread is unwound,
            // no frame of ours between here and C's caller has anything to be dropped.
            unsafe { pthread_setcanceltype(to, &mut old) };
        }
    }
}

/// Whether any thread of this process has ever been asked to end: most often none has, and then there is nothing to test.
static EVER_ASKED: AtomicBool = AtomicBool::new(false);

/// Acts on a request that stands: for a cancellation point that need not wait.
#[inline]
pub(crate) fn test() {
    // Relaxed: a request that must be seen here was made before something else that this thread has seen.
    if EVER_ASKED.load(Ordering::Relaxed) {
        // SAFETY: if it unwinds the thread, no frame of ours between here and C's caller has
        // anything to be dropped.
        unsafe { pthread_testcancel() };
    }
}

/// Asks a thread to end. Source: POSIX `pthread_cancel`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: pthread_t) -> c_int {
    EVER_ASKED.store(true, Ordering::Relaxed);
    // SAFETY: forwards this function's own contract. It may be the calling thread, which is unwound
    // from here if its type is asynchronous: this frame has nothing to be dropped.
    let answer = unsafe { glibc::pthread_cancel(thread) };
    if answer == 0 {
        let of_thread = |record: &&Record| record.thread.load(Ordering::Relaxed) == thread as usize;
        for record in records().map(|(_, record)| record).filter(of_thread) {
            record.interrupt();
        }
    }
    answer
}
