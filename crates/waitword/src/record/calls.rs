//! What the locks call: around a wait, and before a release that another thread waits for.

use super::{Object, is_on};
use crate::sys::generation::generation as process_number;
use waitword_record::format::Ended;
use waitword_record::{What, undisturbed};

/// Calls `wait`, which waits for this object, and records that. Its error is that the deadline has
/// passed, if there is one.
#[inline(always)]
pub(crate) fn waiting<T, E>(
    object: Object,
    address: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    if !is_on() {
        return wait();
    }
    recorded(object, address, has_deadline, wait)
}

#[cold]
#[inline(never)]
fn recorded<T, E>(
    object: Object,
    address: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let address = address as u64;
    let began =
        undisturbed(|| waitword_record::begin(process_number(), object, address, has_deadline));
    let result = wait();
    if let Some(began) = began {
        let what = What { object, address, ended: ended(result.is_ok(), has_deadline) };
        undisturbed(|| waitword_record::end(process_number(), began, &what));
    }
    result
}

/// The same for a wait at a condvar with this mutex, which the caller holds before and after it.
#[inline(always)]
pub(crate) fn waiting_with<R>(
    condvar: usize,
    mutex: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> R,
    is_signalled: impl FnOnce(&R) -> bool,
) -> R {
    if !is_on() {
        return wait();
    }
    recorded_with(condvar, mutex, has_deadline, wait, is_signalled)
}

#[cold]
#[inline(never)]
fn recorded_with<R>(
    condvar: usize,
    mutex: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> R,
    is_signalled: impl FnOnce(&R) -> bool,
) -> R {
    let (object, address, mutex) = (Object::Condvar, condvar as u64, mutex as u64);
    let began =
        undisturbed(|| waitword_record::begin(process_number(), object, address, has_deadline));
    let result = wait();
    if let Some(began) = began {
        let what = What { object, address, ended: ended(is_signalled(&result), has_deadline) };
        undisturbed(|| waitword_record::end_at_condvar(process_number(), began, &what, mutex));
    }
    result
}

fn ended(is_got: bool, has_deadline: bool) -> Ended {
    match (is_got, has_deadline) {
        (true, _) => Ended::Got,
        (false, true) => Ended::TimedOut,
        (false, false) => Ended::Broken,
    }
}

/// The caller is about to release a lock. `has_waiters`: threads wait for it. `hands_over`: it is
/// kept for one of them.
#[inline(always)]
pub(crate) fn releasing(
    address: usize,
    has_waiters: impl FnOnce() -> bool,
    hands_over: impl FnOnce() -> bool,
) {
    if is_on() && has_waiters() {
        note(address, hands_over());
    }
}

/// The caller is about to signal a condvar that threads wait at.
#[inline(always)]
pub(crate) fn signalling(condvar: usize) {
    if is_on() {
        note(condvar, false);
    }
}

#[cold]
#[inline(never)]
fn note(address: usize, hands_over: bool) {
    undisturbed(|| waitword_record::note_release(process_number(), address as u64, hands_over));
}
