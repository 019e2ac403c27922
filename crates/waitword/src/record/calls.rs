//! What the locks call: around a wait, once they are taken, and before a release.

use super::{Object, is_on};
use crate::sys::generation::generation as process_number;
use waitword_record::format::Ended;
use waitword_record::{Began, What, undisturbed};

/// Calls `wait`, which waits for this object, and records that. Its error is that the deadline has
/// passed, if there is one.
#[inline(always)]
pub(crate) fn waiting<T, E>(
    object: Object,
    address: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    waiting_to_hold(object, address, has_deadline, wait, || false)
}

/// [`waiting`] for a lock that the caller then holds, which is noted if its release will come to
/// [`releasing`]. `sees_to_that` makes sure that it will; false: it may not.
#[inline(always)]
pub(crate) fn waiting_to_hold<T, E>(
    object: Object,
    address: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> Result<T, E>,
    sees_to_that: impl FnOnce() -> bool,
) -> Result<T, E> {
    if !is_on() {
        return wait();
    }
    let ended = |result: &Result<T, E>| ended(result.is_ok(), has_deadline);
    let holds = |result: &Result<T, E>| (result.is_ok() && sees_to_that()).then_some(address);
    recorded((object, address, has_deadline), wait, ended, waitword_record::end, holds)
}

/// [`waiting`] on a raw futex, whose error may have `timed_out` or not.
#[inline(always)]
pub(crate) fn waiting_on_futex<T, E>(
    address: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> Result<T, E>,
    timed_out: impl FnOnce(&E) -> bool,
) -> Result<T, E> {
    if !is_on() {
        return wait();
    }
    let ended =
        |result: &Result<T, E>| ended(result.is_ok(), result.as_ref().err().is_some_and(timed_out));
    recorded((Object::Futex, address, has_deadline), wait, ended, waitword_record::end, |_| None)
}

/// [`waiting`] at a condvar with this mutex, which the caller holds before and, if
/// `holds_again`, after it.
#[inline(always)]
pub(crate) fn waiting_with<R>(
    condvar: usize,
    mutex: usize,
    has_deadline: bool,
    wait: impl FnOnce() -> R,
    is_signalled: impl FnOnce(&R) -> bool,
    holds_again: impl FnOnce(&R) -> bool,
) -> R {
    if !is_on() {
        return wait();
    }
    recorded(
        (Object::Condvar, condvar, has_deadline),
        wait,
        |result| ended(is_signalled(result), has_deadline),
        |process, began, what| {
            waitword_record::end_at_condvar(process, began, what, mutex as u64);
        },
        |result| holds_again(result).then_some(mutex),
    )
}

/// `holds`: the lock that the caller holds from then on, if that is to be noted.
#[cold]
#[inline(never)]
fn recorded<R>(
    (object, address, has_deadline): (Object, usize, bool),
    wait: impl FnOnce() -> R,
    ended: impl FnOnce(&R) -> Ended,
    end: impl FnOnce(u32, Began, &What),
    holds: impl FnOnce(&R) -> Option<usize>,
) -> R {
    let address = address as u64;
    let began =
        undisturbed(|| waitword_record::begin(process_number(), object, address, has_deadline));
    let result = wait();
    if let Some(began) = began {
        let what = What { object, address, ended: ended(&result) };
        undisturbed(|| end(process_number(), began, &what));
    }
    if let Some(lock) = holds(&result) {
        note_hold(lock);
    }
    result
}

fn ended(is_got: bool, has_timed_out: bool) -> Ended {
    match (is_got, has_timed_out) {
        (true, _) => Ended::Got,
        (false, true) => Ended::TimedOut,
        (false, false) => Ended::Broken,
    }
}

/// The caller has taken a lock without waiting. That it holds it is noted as in
/// [`waiting_to_hold`].
#[inline(always)]
pub(crate) fn took(address: usize, sees_to_that: impl FnOnce() -> bool) {
    if is_on() && sees_to_that() {
        note_hold(address);
    }
}

/// Not as a turn: threads are compared by their turns, and those without contention do not come
/// here.
#[cold]
#[inline(never)]
fn note_hold(address: usize) {
    waitword_record::hold(process_number(), address as u64);
}

/// The caller is about to release a lock. `has_waiters`: threads wait for it. `hands_over`: it is
/// kept for one of them.
#[inline(always)]
pub(crate) fn releasing(
    address: usize,
    has_waiters: impl FnOnce() -> bool,
    hands_over: impl FnOnce() -> bool,
) {
    if is_on() {
        note_release(address, has_waiters().then(hands_over));
    }
}

/// The caller is about to signal a condvar that threads wait at.
#[inline(always)]
pub(crate) fn signalling(condvar: usize) {
    if is_on() {
        note_release(condvar, Some(false));
    }
}

/// `to_waiters`: whether the lock is kept for a waiter; `None`: there is none.
#[cold]
#[inline(never)]
fn note_release(address: usize, to_waiters: Option<bool>) {
    let (address, process) = (address as u64, process_number());
    let note_at_once =
        |hands_over| waitword_record::note_release_at_once(process, address, hands_over);
    match to_waiters {
        Some(hands_over) if !note_at_once(hands_over) => {
            undisturbed(|| waitword_record::note_release(process, address, hands_over));
        }
        _ => {}
    }
    waitword_record::release(process, address);
}
