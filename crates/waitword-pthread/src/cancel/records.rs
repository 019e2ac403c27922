//! The records of threads that may be interrupted in a wait of ours, found by their `pthread_t`.
//!
//! One for each thread that has reached a cancellation point of ours, or asked for the asynchronous
//! cancellation type. They lie in memory that is never freed, and are given back as a thread ends
//! (a key's destructor). In a child of fork those of the parent's threads stay behind; they cost a
//! needless wake-up if a thread of the same number is cancelled.

use crate::call::Call;
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use libc::{pthread_key_t, pthread_t};
use waitword::abi_support::Interrupter;

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

/// Interrupts the system call in which a thread waits with a priority-inheriting mutex, by the
/// signal that the C library keeps for cancellation. Its handler does nothing to a thread whose
/// cancellation is deferred, as in all our waits, and was installed by the C library's
/// `pthread_cancel` before this is called.
fn signal_for_cancellation(tid: u32) {
    /// The first real-time signal, which programs cannot block, catch or send by the C library's
    /// functions.
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
        // A C library that does otherwise: the signal would end the process. The thread stops when
        // it next wakes.
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

/// The records of a chunk, if there is one. All zeros are free records, of threads that are
/// signalled.
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

/// What is known of the calling thread, in one place: to find it costs a call.
pub(crate) struct Thread {
    record: Cell<Option<&'static Record>>,
    /// Where the thread is interrupted while it has no record: only its own signal handlers find
    /// it.
    unlisted: Interrupter,
    /// The call that it is in the middle of.
    pub(crate) call: Cell<*const Call>,
}

thread_local! {
    // No destructor and a constant start: usable at any moment of a thread's life.
    static THREAD: Thread = const {
        Thread {
            record: Cell::new(None),
            unlisted: Interrupter::signalled(),
            call: Cell::new(null()),
        }
    };
}

impl Thread {
    /// The calling thread. Not to be passed to another.
    #[inline]
    pub(crate) fn this() -> *const Self {
        THREAD.with(core::ptr::from_ref)
    }

    /// By what others can interrupt it (unless memory is too short for a record).
    #[inline]
    pub(crate) fn interrupter(&self) -> &Interrupter {
        match self.record.get() {
            Some(record) => &record.interrupter,
            None => self.first(),
        }
    }

    /// The same for a function that may run under an allocator: makes no record.
    #[inline]
    pub(crate) fn interrupter_if_any(&self) -> &Interrupter {
        match self.record.get() {
            Some(record) => &record.interrupter,
            None => &self.unlisted,
        }
    }

    #[cold]
    fn first(&self) -> &Interrupter {
        // SAFETY: `pthread_self` asks for nothing.
        let thread = unsafe { libc::pthread_self() } as usize;
        let Some((index, record)) = take_record(thread) else {
            return &self.unlisted;
        };
        self.record.set(Some(record));
        give_back_at_the_end(index);
        &record.interrupter
    }
}

/// Sees to it that others can interrupt the calling thread.
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
    THREAD.with(|thread| thread.record.set(None));
    if let Some((_, record)) = records().nth(index) {
        // Release: see `take_record`.
        record.thread.store(0, Ordering::Release);
        FIRST_FREE.fetch_min(index, Ordering::Relaxed);
    }
}
