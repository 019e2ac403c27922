//! The operations on private words, written on any [`WaiterTable`]: the process's own, or a model's.
//!
//! The caller passes what to look at as a check; it runs under the bucket lock and does no more than
//! compare the word.

use super::Error;
use crate::park::{Ended, Until};
use crate::private::{Claimed, Found, Key, Node, WaiterTable, is_inside, leave_note};

/// Waits on `key` if `as_expected` says so under the bucket's lock.
pub(crate) fn wait<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    as_expected: impl FnOnce() -> bool,
    mask: u64,
    until: impl Into<Until<'u>>,
) -> Result<(), Error> {
    let until = until.into();
    if is_inside() {
        // A handler that has interrupted its own thread inside a bucket cannot queue; futex(2) lets a
        // wait end so.
        return Err(Error::Interrupted);
    }
    let parker = waiter_table.take_parker();
    let node = Node::new(key, mask, parker.id(), crate::sys::sched::priority());
    let registration = waiter_table.register(key);
    if !as_expected() {
        registration.cancel();
        return Err(Error::Mismatch);
    }
    // SAFETY: the node is new and has the registered key. This frame is not left before it is
    // notified or withdrawn, or (`is_wiped`) in the child of a fork that a signal handler has made
    // here, where the table was wiped and no queue leads to it.
    unsafe { registration.push(&node) };
    match parker.park(&node.notice, until) {
        Ok(()) => Ok(()),
        Err(ended) if parker.is_wiped() || waiter_table.withdraw(&node) => {
            // Interrupted, too: the deadline was brought forward.
            let ended = match until.deadline {
                Some(deadline) if deadline.is_ended() => Ended::TimedOut,
                _ => ended,
            };
            Err(ended.into())
        }
        Err(_) => {
            // Claimed meanwhile: the waker has counted us, so we were woken.
            parker.park_uninterrupted(&node.notice);
            Ok(())
        }
    }
}

/// Wakes up to `count` of those who wait on `key` with a bit of `mask`.
#[inline]
pub(crate) fn wake(waiter_table: &WaiterTable, key: Key, count: usize, mask: u64) -> usize {
    match waiter_table.find_waiters(key) {
        None => 0,
        Some(found) => wake_waiters(waiter_table, key, found, count, mask),
    }
}

/// [`wake`] where there may be somebody.
#[cold]
fn wake_waiters(
    waiter_table: &WaiterTable,
    key: Key,
    found: Found<'_>,
    count: usize,
    mask: u64,
) -> usize {
    if count == 0 {
        return 0;
    }
    if is_inside() {
        leave_note(key, count, mask);
        return 0;
    }
    waiter_table
        .claim(key, found, count, mask)
        .notify(&waiter_table.parkers)
}

/// Wakes up to `wake` of those who wait on `from` and moves up to `moved` others behind those who wait on
/// `to`, if `as_expected` says so under the locks of both.
#[inline]
pub(crate) fn requeue(
    waiter_table: &WaiterTable,
    from: Key,
    to: Key,
    wake: usize,
    moved: usize,
    as_expected: impl FnOnce() -> bool,
) -> Result<usize, Error> {
    if waiter_table.find_waiters(from).is_none() {
        return as_expected().then_some(0).ok_or(Error::Mismatch);
    }
    requeue_waiters(waiter_table, from, to, wake, moved, as_expected)
}

#[cold]
fn requeue_waiters(
    waiter_table: &WaiterTable,
    from: Key,
    to: Key,
    wake: usize,
    moved: usize,
    as_expected: impl FnOnce() -> bool,
) -> Result<usize, Error> {
    if is_inside() {
        // From a handler inside a bucket nobody can be moved; woken, they look for themselves.
        if !as_expected() {
            return Err(Error::Mismatch);
        }
        leave_note(from, wake.saturating_add(moved), u64::MAX);
        return Ok(0);
    }
    let pair = waiter_table.lock_pair(from, to);
    if !as_expected() {
        return Err(Error::Mismatch);
    }
    let mut claimed = Claimed::new();
    pair.claim_from(wake, u64::MAX, &mut claimed);
    let moved = pair.move_over(moved);
    drop(pair);
    Ok(claimed.notify(&waiter_table.parkers) + moved)
}

/// Changes the word of `second` by `change`, which returns whether its waiters are to be woken too;
/// wakes up to `count` of those who wait on `first`, and then up to `second_count` of those on
/// `second`. Returns what `answer` makes of how many of each.
///
/// The change and the wakes are one step for all who were waiting before. While nobody waits on
/// either, no lock is taken; a thread that begins to wait just then may be woken as if it had come
/// before.
#[inline]
pub(crate) fn wake_op<R>(
    waiter_table: &WaiterTable,
    first: Key,
    count: usize,
    second: Key,
    second_count: usize,
    change: impl FnOnce() -> bool,
    answer: impl FnOnce(usize, usize) -> R,
) -> R {
    if !waiter_table.may_have_waiters(first, second) {
        let wake_second = change();
        if !waiter_table.may_have_waiters(first, second) {
            return answer(0, 0);
        }
        let changed = || wake_second;
        return wake_both(
            waiter_table,
            first,
            count,
            second,
            second_count,
            changed,
            answer,
        );
    }
    wake_both(
        waiter_table,
        first,
        count,
        second,
        second_count,
        change,
        answer,
    )
}

#[cold]
fn wake_both<R>(
    waiter_table: &WaiterTable,
    first: Key,
    count: usize,
    second: Key,
    second_count: usize,
    change: impl FnOnce() -> bool,
    answer: impl FnOnce(usize, usize) -> R,
) -> R {
    if is_inside() {
        if change() {
            leave_note(second, second_count, u64::MAX);
        }
        leave_note(first, count, u64::MAX);
        return answer(0, 0);
    }
    let pair = waiter_table.lock_pair(first, second);
    let wake_second = change();
    let mut claimed = Claimed::new();
    let of_first = pair.claim_from(count, u64::MAX, &mut claimed);
    let of_second = match wake_second {
        true => pair.claim_to(second_count, u64::MAX, &mut claimed),
        false => 0,
    };
    drop(pair);
    claimed.notify(&waiter_table.parkers);
    answer(of_first, of_second)
}
