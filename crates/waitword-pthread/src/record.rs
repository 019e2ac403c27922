//! Recording (`WAITWORD_RECORD`): how long threads wait, for what, and which thread kept it.
//!
//! Only a process that records comes here: its locks take the paths that are out of line
//! (`mode.rs`), so all other processes run the same instructions as without this file.

use crate::{call, mode};
use core::cell::Cell;
use core::ffi::c_int;
use libc::{pthread_cond_t, pthread_mutex_t};
use waitword::abi_support::process_number;
use waitword_record::format::{Ended, Object};
pub(crate) use waitword_record::is_on;
use waitword_record::{Began, Take, What};

/// Calls `wait`, which waits for this object, and records that. Not called if the object can be had
/// at once.
///
/// The thread may be unwound from `wait`. That wait is not recorded.
#[inline(always)]
pub(crate) fn waiting<T>(object: Object, pointer: *const T, wait: impl FnOnce() -> c_int) -> c_int {
    recorded((object, false), pointer, wait, waitword_record::end)
}

/// The same for a wait that ends at a deadline.
pub(crate) fn waiting_until<T>(
    object: Object,
    pointer: *const T,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    recorded((object, true), pointer, wait, waitword_record::end)
}

/// The same at a condition variable with this mutex, which the caller holds.
pub(crate) fn waiting_with(
    pointer: *const pthread_cond_t,
    mutex: *const pthread_mutex_t,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let mutex = mutex.addr() as u64;
    // A deadline does not matter: no thread holds a condition variable.
    recorded((Object::Condvar, false), pointer, wait, |process, began, what| {
        waitword_record::end_at_condvar(process, began, what, mutex);
    })
}

#[inline(always)]
fn recorded<T>(
    (object, has_deadline): (Object, bool),
    pointer: *const T,
    wait: impl FnOnce() -> c_int,
    end: impl Fn(u32, Began, &What),
) -> c_int {
    let address = pointer.addr() as u64;
    let began = Cell::new(None);
    if waitword_record::is_on() {
        through(|process| {
            began.set(waitword_record::begin(process, object, address, has_deadline));
        });
    }
    let number = wait();
    if let Some(began) = began.get() {
        let what = What { object, address, ended: ended(object, number) };
        through(|process| end(process, began, &what));
    }
    number
}

/// Calls the recorder, with the number of this process. That is a call: the thread must not leave
/// the recorder in the middle. (It may leave the functions of the recorder that do something "at
/// once", which need no call.)
fn through(work: impl Fn(u32)) {
    call::run_through(|| {
        work(process_number());
        0
    });
}

/// [`waiting`] in a process that records; otherwise it only calls `wait`. A function calls this if
/// [`mode::is_fast`] was false: in a process that records, or for an object of the C library's.
#[cold]
#[inline(never)]
pub(crate) extern "C-unwind" fn otherwise<T, F: Fn() -> c_int>(
    object: Object,
    pointer: *const T,
    wait: &F,
) -> c_int {
    match mode::is_watched() {
        true => waiting(object, pointer, wait),
        false => wait(),
    }
}

/// Whether threads wait for this lock, of those that are recorded.
pub(crate) fn is_wanted<T>(pointer: *const T) -> bool {
    waitword_record::is_wanted(pointer.addr() as u64)
}

/// The result of a call that takes a lock: if it did, the thread holds it.
#[inline]
pub(crate) fn taken<T>(number: c_int, pointer: *const T, how: Take) -> c_int {
    let address = pointer.addr() as u64;
    if waitword_record::is_on()
        && matches!(number, 0 | libc::EOWNERDEAD)
        && !waitword_record::take_at_once(process_number(), address, how)
    {
        through(|process| waitword_record::take(process, address, how));
    }
    number
}

/// How a wait ended, from the result of the C function.
fn ended(object: Object, number: c_int) -> Ended {
    let number = match (object, number) {
        // PTHREAD_BARRIER_SERIAL_THREAD.
        (Object::Barrier, -1) => 0,
        // SAFETY: the calling thread's own variable.
        (Object::Semaphore | Object::Futex, -1) => unsafe { *libc::__errno_location() },
        (_, number) => number,
    };
    match number {
        0 => Ended::Got,
        libc::ETIMEDOUT => Ended::TimedOut,
        _ => Ended::Broken,
    }
}

/// How a lock is released.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Release {
    /// No thread waits.
    Alone,
    /// Threads wait, and any thread may take it next.
    ToAny,
    /// Threads wait, and it is kept for one of them.
    HandOver,
}

/// Notes that the caller is about to release a lock. Returns whether it is known to hold it.
#[inline(always)]
pub(crate) fn releasing<T>(pointer: *const T, release: Release) -> bool {
    if !waitword_record::is_on() {
        return false;
    }
    let address = pointer.addr() as u64;
    let hands_over = (release != Release::Alone).then_some(release == Release::HandOver);
    waitword_record::release_at_once(process_number(), address, hands_over)
        || releasing_slowly(address, release)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn releasing_slowly(address: u64, release: Release) -> bool {
    let is_held = Cell::new(false);
    through(|process| {
        if release != Release::Alone {
            waitword_record::note_release(process, address, release == Release::HandOver);
        }
        is_held.set(waitword_record::release(process, address));
    });
    is_held.get()
}

/// Notes that the caller is about to signal a condition variable that threads wait on.
pub(crate) fn signalling(pointer: *const pthread_cond_t) {
    if waitword_record::is_on() {
        let address = pointer.addr() as u64;
        if !waitword_record::note_release_at_once(process_number(), address, false) {
            through(|process| waitword_record::note_release(process, address, false));
        }
    }
}

/// Run by the C library at the end of `exit`.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        waitword_record::finish(process_number());
    }
    at_exit
};
