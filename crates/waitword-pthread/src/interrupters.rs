//! The records of threads that may be interrupted in one of our waits, found by their `pthread_t`.
//!
//! There is one for each thread that has reached one of our cancellation points, or set the
//! asynchronous cancellation type. They lie in memory that is never freed, and a record is released
//! when its thread ends (`thread.rs`). In a forked child the records of the parent's threads
//! remain; they cost a needless wake-up if a thread of the same number is cancelled.

use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use libc::pthread_t;
use waitword::abi_support::Interrupter;

/// A thread that can be cancelled in one of our waits.
pub(crate) struct Record {
    /// 0: unused.
    thread: AtomicUsize,
    pub(crate) interrupter: Interrupter,
}

const _: () = assert!(size_of::<pthread_t>() == size_of::<usize>());

impl Record {
    const fn new() -> Self {
        Self { thread: AtomicUsize::new(0), interrupter: Interrupter::signalled() }
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
    let made =
        place.compare_exchange(null_mut(), memory.cast(), Ordering::AcqRel, Ordering::Acquire);
    if made.is_err() {
        // SAFETY: `memory` is the mapping created above, of this length. The exchange that would
        // have published it has failed, so no other thread has its address.
        unsafe { libc::munmap(memory, length) };
    }
    true
}

/// All records that exist.
fn records() -> impl Iterator<Item = (usize, &'static Record)> {
    (0..CHUNKS).map_while(chunk).flat_map(|chunk| chunk.iter()).enumerate()
}

/// Interrupts the thread, if it has a record.
pub(crate) fn interrupt(thread: pthread_t) {
    let of_thread = |record: &&Record| record.thread.load(Ordering::Relaxed) == thread as usize;
    for record in records().map(|(_, record)| record).filter(of_thread) {
        record.interrupt();
    }
}

/// Takes a free record for the thread; returns its number too. `None`: there is no memory for one.
pub(crate) fn take(thread: pthread_t) -> Option<(usize, &'static Record)> {
    let thread = thread as usize;
    let begin = FIRST_FREE.load(Ordering::Relaxed);
    for next_chunk in 1..=CHUNKS {
        for (index, record) in records().skip(begin) {
            // Acquire: the record's last thread has finished with it.
            let taken =
                record.thread.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed);
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

/// Releases the record of this number.
pub(crate) fn give_back(index: usize) {
    if let Some((_, record)) = records().nth(index) {
        // Release: see `take`.
        record.thread.store(0, Ordering::Release);
        FIRST_FREE.fetch_min(index, Ordering::Relaxed);
    }
}
