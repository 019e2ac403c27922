//! The operations on private words, for any [`WaiterTable`]: the process's own or a model's.
//!
//! The caller passes a check of the word. It runs under the bucket lock and only compares the word.

use crate::error::Error;
use crate::park::{Ended, Until};
use crate::private::{Awaited, Claimed, Found, Key, Node, WaiterTable, is_inside, leave_note};

/// Waits on `key` if `as_expected` returns true under the bucket's lock.
pub(crate) fn wait<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    awaited: Awaited,
    as_expected: impl FnOnce() -> bool,
    mask: u64,
    until: impl Into<Until<'u>>,
) -> Result<(), Error> {
    let until = until.into();
    if is_inside() {
        // A handler that has interrupted its own thread in a bucket section cannot queue. futex(2)
        // allows a wait to end this way.
        return Err(Error::Interrupted);
    }
    let parker = waiter_table.take_parker();
    let node = Node::new(key, awaited, mask, parker.id(), crate::sys::sched::priority());
    let registration = waiter_table.register(key);
    if !as_expected() {
        registration.cancel();
        return Err(Error::Mismatch);
    }
    // SAFETY: the node is new and has the registered key. This function does not return before the
    // node is notified or withdrawn. The exception (`is_wiped`) is the child of a fork made by a
    // signal handler during this wait: there the table was wiped and no queue links to the node.
    unsafe { registration.push(&node) };
    match parker.park(&node.notice, until) {
        Ok(()) => Ok(()),
        Err(ended) if parker.is_wiped() || waiter_table.withdraw(&node) => {
            // Interrupted, too, counts as a timeout if the deadline was brought forward.
            let ended = match until.deadline {
                Some(deadline) if deadline.is_ended() => Ended::TimedOut,
                _ => ended,
            };
            Err(ended.into())
        }
        Err(_) => {
            // Claimed in the meantime: the waker has counted this thread, so it was woken.
            parker.park_uninterrupted(&node.notice);
            Ok(())
        }
    }
}

/// Wakes up to `count` waiters of `key` whose mask shares a bit with `mask`.
#[inline]
pub(crate) fn wake(waiter_table: &WaiterTable, key: Key, count: usize, mask: u64) -> usize {
    match waiter_table.find_waiters(key) {
        None => 0,
        Some(found) => wake_waiters(waiter_table, key, found, count, mask),
    }
}

/// [`wake`] if there may be a waiter.
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
    waiter_table.claim(key, found, count, mask).notify(&waiter_table.parkers)
}

/// If `as_expected` returns true under the locks of both buckets: wakes up to `wake` waiters of
/// `from`, then moves up to `moved` of the remaining ones behind the waiters of `to`.
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
        // A handler that interrupted a bucket section cannot move waiters. Wake them instead; they
        // look at the word themselves.
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
    let moved = pair.move_waiters(moved);
    drop(pair);
    Ok(claimed.notify(&waiter_table.parkers) + moved)
}

/// Changes the second word by `change`, which returns whether its waiters are to be woken too. Then
/// wakes up to the given number of waiters of the first word and, in that case, of the second.
/// Returns `answer` of the two numbers woken.
///
/// The change and the wakes are one step for all threads that were waiting before. If neither word
/// has waiters, no lock is taken. A thread that begins to wait at that moment may then be woken as
/// if it had come before.
#[inline]
pub(crate) fn wake_op<R>(
    waiter_table: &WaiterTable,
    words: [(Key, usize); 2],
    change: impl FnOnce() -> bool,
    answer: impl FnOnce(usize, usize) -> R,
) -> R {
    let [(first, _), (second, _)] = words;
    if !waiter_table.may_have_waiters(first, second) {
        let wake_second = change();
        if !waiter_table.may_have_waiters(first, second) {
            return answer(0, 0);
        }
        return wake_both(waiter_table, words, || wake_second, answer);
    }
    wake_both(waiter_table, words, change, answer)
}

#[cold]
fn wake_both<R>(
    waiter_table: &WaiterTable,
    words: [(Key, usize); 2],
    change: impl FnOnce() -> bool,
    answer: impl FnOnce(usize, usize) -> R,
) -> R {
    let [(first, count), (second, second_count)] = words;
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
