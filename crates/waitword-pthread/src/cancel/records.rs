//! The records of threads that may be interrupted in one of our waits, found by their `pthread_t`.
//!
//! There is one for each thread that has reached one of our cancellation points, or set the
//! asynchronous cancellation type. They lie in memory that is never freed, and a record is released
//! when its thread ends (by a key's destructor). In a forked child the records of the parent's
//! threads remain; they cost a needless wake-up if a thread of the same number is cancelled.

use crate::call::Call;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::{pthread_key_t, pthread_t};
use waitword::abi_support::Interrupter;

/// A thread that can be cancelled in one of our waits.
struct Record {
    /// 0: unused.
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

/// Interrupts the system call in which a thread waits with a priority-inheriting mutex, by the
/// signal that the C library reserves for cancellation. Its handler does nothing to a thread whose
/// cancellation is deferred, as in all our waits, and was installed by the C library's
/// `pthread_cancel` before this is called.
fn signal_for_cancellation(tid: u32) {
    /// The first real-time signal, which programs cannot block, catch or send with the C library's
    /// functions.
    const SIGCANCEL: c_int = 32;
    /// The kernel's `struct sigaction` and its signal sets.
    const ACTION_WORDS: usize = 4;
    const SET_BYTES: usize = 8;
    let mut action = [0_usize; ACTION_WORDS];
    // SAFETY: the kernel writes an action, no larger than this, to `action`, and reads none. The
    // handler comes first in it on all machines that this is built for.
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
        // A C library that works differently: the signal would end the process. The thread stops
        // when it next wakes.
        return;
    }
    // SAFETY: no memory is passed. The signal is sent to a thread of this process, and has a
    // handler, as was seen above.
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
/// No record before this one is known to be free.
static FIRST_FREE: AtomicUsize = AtomicUsize::new(0);

/// The records of a chunk, if it exists. All zeros are free records, whose threads would be
/// interrupted by a signal.
fn chunk(index: usize) -> Option<&'static [Record]> {
    if index == 0 {
        return Some(&FIRST_CHUNK);
    }
    // Acquire: the memory is there.
    let records = CHUNK.get(index)?.load(Ordering::Acquire);
    // SAFETY: `make_chunk` has published a mapping for this many records, which is never unmapped
    // and was zeroed at first. All zeros is a valid record; everything in one is atomic, or never
    // changes.
    (!records.is_null()).then(|| unsafe { core::slice::from_raw_parts(records, FIRST << index) })
}

/// Creates a chunk that does not exist yet; returns whether it exists now.
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
    // Release: see `chunk`. The mapping happens before its use in any thread.
    let made = place.compare_exchange(
        null_mut(),
        memory.cast(),
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    if made.is_err() {
        // SAFETY: `memory` is the mapping created above, of this length. The exchange that would
        // have published it has failed, so no other thread has its address.
        unsafe { libc::munmap(memory, length) };
    }
    true
}

/// All records that exist.
fn records() -> impl Iterator<Item = (usize, &'static Record)> {
    (0..CHUNKS)
        .map_while(chunk)
        .flat_map(|chunk| chunk.iter())
        .enumerate()
}

/// All that is known about the calling thread, in one place: finding it costs a call.
pub(crate) struct Thread {
    record: Cell<Option<&'static Record>>,
    /// The interrupter of a thread that has no record: only its own signal handlers find it.
    unlisted: Interrupter,
    /// The call that the thread is in the middle of.
    pub(crate) call: Cell<*const Call>,
}

thread_local! {
    // No destructor and a constant initialiser: usable at any point of a thread's life.
    static THREAD: Thread = const {
        Thread {
            record: Cell::new(None),
            unlisted: Interrupter::signalled(),
            call: Cell::new(null()),
        }
    };
}

impl Thread {
    /// The calling thread. Must not be passed to another.
    #[inline]
    pub(crate) fn this() -> *const Self {
        THREAD.with(core::ptr::from_ref)
    }

    /// The interrupter by which other threads can interrupt this one (unless there is no memory for
    /// a record).
    #[inline]
    pub(crate) fn interrupter(&self) -> &Interrupter {
        match self.record.get() {
            Some(record) => &record.interrupter,
            None => self.first(),
        }
    }

    /// The same for a function that may run under an allocator: creates no record.
    #[inline]
    pub(crate) fn interrupter_if_any(&self) -> &Interrupter {
        match self.record.get() {
            Some(record) => &record.interrupter,
            None => &self.unlisted,
        }
    }

    #[cold]
    fn first(&self) -> &Interrupter {
        // SAFETY: `pthread_self` has no preconditions.
        let thread = unsafe { libc::pthread_self() } as usize;
        let Some((index, record)) = take_record(thread) else {
            return &self.unlisted;
        };
        self.record.set(Some(record));
        give_back_at_the_end(index);
        &record.interrupter
    }
}

/// Ensures that other threads can interrupt the calling thread.
pub(crate) fn make_record() {
    THREAD.with(|thread| {
        thread.interrupter();
    });
}

/// Interrupts the thread, if it has a record.
pub(crate) fn interrupt(thread: pthread_t) {
    let of_thread = |record: &&Record| record.thread.load(Ordering::Relaxed) == thread as usize;
    for record in records().map(|(_, record)| record).filter(of_thread) {
        record.interrupt();
    }
}

fn take_record(thread: usize) -> Option<(usize, &'static Record)> {
    let begin = FIRST_FREE.load(Ordering::Relaxed);
    for next_chunk in 1..=CHUNKS {
        for (index, record) in records().skip(begin) {
            // Acquire: the record's last thread has finished with it.
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

/// Ensures that the record of this number is released when the thread ends.
fn give_back_at_the_end(index: usize) {
    const NO_KEY: u32 = 0;
    /// The key's number plus one.
    static KEY: AtomicU32 = AtomicU32::new(NO_KEY);
    let mut key = KEY.load(Ordering::Relaxed);
    if key == NO_KEY {
        let mut made: pthread_key_t = 0;
        // SAFETY: `made` is a place for a key. The destructor follows no pointer, and always
        // exists: the library is linked with `nodelete`.
        if unsafe { libc::pthread_key_create(&mut made, Some(give_back)) } != 0 {
            // There are too many keys. The record is not used again.
            return;
        }
        key = match KEY.compare_exchange(NO_KEY, made + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => made + 1,
            Err(theirs) => {
                // SAFETY: `made` was created above, and is known to no other thread: the exchange
                // that would have published it has failed.
                unsafe { libc::pthread_key_delete(made) };
                theirs
            }
        };
    }
    let value = core::ptr::without_provenance::<c_void>(index + 1);
    // SAFETY: the key was created by this function, in this thread or another, and is not deleted.
    // The value is a number for `give_back`, which no code follows as a pointer.
    unsafe { libc::pthread_setspecific(key - 1, value) };
}

unsafe extern "C" fn give_back(value: *mut c_void) {
    let index = value.addr() - 1;
    // Other destructors may still wait: they take a new record.
    THREAD.with(|thread| thread.record.set(None));
    if let Some((_, record)) = records().nth(index) {
        // Release: see `take_record`.
        record.thread.store(0, Ordering::Release);
        FIRST_FREE.fetch_min(index, Ordering::Relaxed);
    }
}
