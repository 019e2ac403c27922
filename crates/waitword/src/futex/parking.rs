//! Parking: the wait and the wake that locks are built from. As `wait` and `wake`, but what the lock changes in
//! its own word is changed *under the bucket's lock*, in one step with the queue.
//!
//! So a lock's "somebody waits" bit can be exact, a lock can be handed over to the very thread that is woken, and
//! the last thing that an unlock does to the word is to release it: whoever takes the lock next may
//! free its memory at once (glibc bug 13690).
//!
//! # The contract of every callback
//!
//! It runs at most once, with one bucket locked (for [`unpark_requeue`], two). It may load and change the lock's
//! own words. It makes no system call, allocates nothing, touches no other lock, does not panic and does not
//! come back into this crate. The word's page is at hand: the caller has touched it just before.
//!
//! None of these functions is for signal handlers: a handler must not lock, and what it may do (post a
//! semaphore, set an event) is built on `wake`.

use crate::park::{Ended, Parker, Until};
use crate::private::{
    Choice, Claimed, Key, Node, Queue, Registration, Unparked, WaiterTable, is_inside,
};
use crate::sys::clock::Deadline;
use core::cell::Cell;

/// What a waker tells those whom it wakes. 0 is "look again"; the rest is each lock's own.
pub(crate) type Token = u8;

/// What is told to those who are woken together: all the same, or the first of them something else.
#[derive(Clone, Copy)]
pub(crate) struct Tokens {
    pub(crate) first: Token,
    pub(crate) others: Token,
}

impl From<Token> for Tokens {
    #[inline]
    fn from(token: Token) -> Self {
        Self {
            first: token,
            others: token,
        }
    }
}

impl Tokens {
    #[inline]
    fn tell(self, claimed: &Claimed) {
        claimed.set_tokens(self.first, self.others);
    }
}

/// How [`park`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// Woken, and told this.
    Woken(Token),
    /// `validate` said no: it did not sleep.
    Invalid,
    /// The deadline has passed. It has left the queue; nobody has woken it or will.
    TimedOut,
    /// Somebody asked for it (`park/interrupt.rs`), or nobody can queue here (from a handler that interrupted a bucket
    /// section), or this is a child that was forked by a handler in the middle of the wait. It is not in the queue.
    Interrupted,
}

/// What a waiter is in its queue.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// What wakers choose by: any bits but none.
    pub(crate) kind: u64,
    /// Which waiters it stands in front of: those of a lower place. Of a real-time thread its
    /// priority, of all others 0, unless the lock has its own order.
    pub(crate) place: u8,
}

impl Entry {
    /// The calling thread, in the order of real-time priorities.
    #[inline]
    pub(crate) fn of_this_thread(kind: u64) -> Self {
        let place = crate::sys::sched::priority();
        Self { kind, place }
    }
}

/// Queues on `key` as this `entry` if `validate` says so, behind those of the same and of higher
/// places, and sleeps.
///
/// * `validate` runs under the bucket's lock: announce the waiter in the lock's word, or say no.
/// * `left` runs under the bucket's lock if the waiter gives up (deadline, signal); it is told whether others
///   still wait on the key.
///
/// A waiter that [`unpark_requeue`] has moved to another key stays there whatever the deadline says: it was
/// signalled, and whoever wakes the other key's waiters wakes it.
#[inline]
pub(crate) fn park<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    entry: Entry,
    until: impl Into<Until<'u>>,
    validate: impl FnOnce() -> bool,
    left: impl FnOnce(bool),
) -> Parked {
    let queue = |registration: Registration<'_>, node: &Node| {
        // SAFETY: the node is new and has the registered key: `park_node` makes it and registers.
        // It keeps it in its frame until it is notified or withdrawn (`sleep`).
        unsafe { registration.push(node) };
    };
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    park_queued(waiter_table, key, entry, until, validate, queue, left)
}

/// [`park`] at a condvar, from which [`unpark_requeue`] may move it to the mutex at this address. `before_sleep` runs with no bucket locked, once
/// the waiter is queued: from here on a waker finds it. It may do anything but park.
#[inline]
#[expect(clippy::too_many_arguments, reason = "each is a step of its own")]
pub(crate) fn park_bound_to<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    mutex: usize,
    entry: Entry,
    until: impl Into<Until<'u>>,
    validate: impl FnOnce() -> bool,
    before_sleep: impl FnOnce(),
    left: impl FnOnce(bool),
) -> Parked {
    let queue = |registration: Registration<'_>, node: &Node| {
        // SAFETY: the node is new and has the registered key: `park_node` makes it, with the key
        // that is passed on here to both. It keeps it in its frame until it is notified or
        // withdrawn (`sleep`).
        unsafe { registration.push(node) };
        before_sleep();
    };
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    let node = |parker: &Parker<'_>| node(key, entry, parker).bound_to(mutex, parker);
    park_node(waiter_table, key, node, until, validate, queue, left)
}

/// [`park`] in front of those of the same place, for one that has waited before.
#[inline]
pub(crate) fn park_in_front<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    entry: Entry,
    until: impl Into<Until<'u>>,
    validate: impl FnOnce() -> bool,
    left: impl FnOnce(bool),
) -> Parked {
    let queue = |registration: Registration<'_>, node: &Node| {
        // SAFETY: the node is new and has the registered key: `park_node` makes it and registers.
        // It keeps it in its frame until it is notified or withdrawn (`sleep`).
        unsafe { registration.push_in_front(node) };
    };
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    park_queued(waiter_table, key, entry, until, validate, queue, left)
}

/// [`park`] where `left` is told *which* waiters remain on the key: their kinds, or-ed; 0 if there
/// is none. It passes the whole queue.
#[inline]
pub(crate) fn park_among_kinds<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    entry: Entry,
    until: impl Into<Until<'u>>,
    validate: impl FnOnce() -> bool,
    left: impl FnOnce(u64),
) -> Parked {
    let queue = |registration: Registration<'_>, node: &Node| {
        // SAFETY: the node is new and has the registered key: `park_node` makes it and registers.
        // It keeps it in its frame until it is notified or withdrawn (`sleep`).
        unsafe { registration.push(node) };
    };
    let left = |queue: &Queue<'_>| left(queue.kinds());
    park_queued(waiter_table, key, entry, until, validate, queue, left)
}

#[inline]
fn park_queued<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    entry: Entry,
    until: impl Into<Until<'u>>,
    validate: impl FnOnce() -> bool,
    queue: impl FnOnce(Registration<'_>, &Node),
    left: impl FnOnce(&Queue<'_>),
) -> Parked {
    let node = |parker: &Parker<'_>| node(key, entry, parker);
    park_node(waiter_table, key, node, until, validate, queue, left)
}

#[inline]
fn node(key: Key, entry: Entry, parker: &Parker<'_>) -> Node {
    debug_assert!(entry.kind != 0);
    Node::new(key, entry.kind, parker.id(), entry.place)
}

#[inline]
fn park_node<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    node: impl FnOnce(&Parker<'_>) -> Node,
    until: impl Into<Until<'u>>,
    validate: impl FnOnce() -> bool,
    queue: impl FnOnce(Registration<'_>, &Node),
    left: impl FnOnce(&Queue<'_>),
) -> Parked {
    if is_inside() {
        return Parked::Interrupted;
    }
    let parker = waiter_table.take_parker();
    let node = node(&parker);
    let registration = waiter_table.register(key);
    if !validate() {
        registration.cancel();
        return Parked::Invalid;
    }
    queue(registration, &node);
    sleep(waiter_table, &parker, &node, key, until, left)
}

/// Queues on `key` in the place of another: if `choose` takes somebody of those who wait there, that one is woken
/// with `token`, and the caller sleeps, all in one step. If it takes nobody, the answer is [`Parked::Invalid`].
///
/// The rest is as [`park`] has it.
#[inline]
pub(crate) fn park_instead_of<'u>(
    waiter_table: &WaiterTable,
    key: Key,
    entry: Entry,
    until: impl Into<Until<'u>>,
    choose: impl FnMut(u64) -> Choice,
    token: Token,
    left: impl FnOnce(bool),
) -> Parked {
    if is_inside() {
        return Parked::Interrupted;
    }
    let parker = waiter_table.take_parker();
    let node = node(key, entry, &parker);
    let registration = waiter_table.register(key);
    let mut claimed = Claimed::new();
    if registration.claim_chosen(key, choose, &mut claimed).woken == 0 {
        registration.cancel();
        return Parked::Invalid;
    }
    Tokens::from(token).tell(&claimed);
    // SAFETY: the node is new and has the registered key. `sleep`, below, returns once it is
    // notified or withdrawn, and only then is this frame left.
    unsafe { registration.push(&node) };
    claimed.notify(&waiter_table.parkers);
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    sleep(waiter_table, &parker, &node, key, until, left)
}

/// The second half of [`park`]: the node is queued.
#[inline]
fn sleep<'u>(
    waiter_table: &WaiterTable,
    parker: &Parker<'_>,
    node: &Node,
    key: Key,
    until: impl Into<Until<'u>>,
    left: impl FnOnce(&Queue<'_>),
) -> Parked {
    let until = until.into();
    let ended = loop {
        match parker.park(&node.notice, until) {
            Ok(()) => return Parked::Woken(node.token()),
            // A signal handler ran. The waiter keeps its place in the queue.
            Err(Ended::Interrupted) if !parker.is_wiped() && !until.is_asked() => {}
            Err(ended) => break ended,
        }
    };
    if parker.is_wiped() || waiter_table.withdraw_from(key, node, left) {
        return match ended {
            Ended::TimedOut => Parked::TimedOut,
            // The deadline was brought forward.
            Ended::Interrupted if until.deadline.is_some_and(Deadline::is_ended) => {
                Parked::TimedOut
            }
            Ended::Interrupted => Parked::Interrupted,
        };
    }
    // Claimed or moved meanwhile: notice comes.
    parker.park_uninterrupted(&node.notice);
    Parked::Woken(node.token())
}

/// Wakes those of `key`'s waiters, in the order of the queue, whom `choose` takes, and tells them the
/// tokens that `change` returns; how many.
///
/// `choose` is given each waiter's kind, and `change` what came of it: both under the bucket's lock. `change`
/// runs even if nobody waits, and may be the last to touch the lock's memory.
#[inline]
pub(crate) fn unpark<T: Into<Tokens>>(
    waiter_table: &WaiterTable,
    key: Key,
    choose: impl FnMut(u64) -> Choice,
    change: impl FnOnce(Unparked) -> T,
) -> usize {
    let queue = waiter_table.lock_queue(key);
    let mut claimed = Claimed::new();
    let unparked = queue.claim_chosen(choose, &mut claimed);
    change(unparked).into().tell(&claimed);
    drop(queue);
    claimed.notify(&waiter_table.parkers)
}

/// [`unpark`] of the first in the queue, if there is one and `takes` takes its kind. `change` is
/// told the kind of the one that is woken, and whether others still wait.
#[inline]
pub(crate) fn unpark_one(
    waiter_table: &WaiterTable,
    key: Key,
    takes: impl Fn(u64) -> bool,
    change: impl FnOnce(Option<u64>, bool) -> Token,
) -> usize {
    let woken = Cell::new(None);
    let choose = |kind| {
        if woken.get().is_some() || !takes(kind) {
            return Choice::Stop;
        }
        woken.set(Some(kind));
        Choice::Take
    };
    let change = |unparked: Unparked| change(woken.get(), unparked.more);
    unpark(waiter_table, key, choose, change)
}

/// [`unpark`] of the one, among the first `look_through`, whose kind `rank` ranks highest; the first of equals.
pub(crate) fn unpark_highest(
    waiter_table: &WaiterTable,
    key: Key,
    look_through: usize,
    rank: impl Fn(u64) -> u64,
    change: impl FnOnce(Unparked) -> Token,
) -> usize {
    let queue = waiter_table.lock_queue(key);
    let mut claimed = Claimed::new();
    let (mut seen, mut highest, mut best) = (0, None, 0);
    let look = |kind| {
        let rank = Some(rank(kind));
        if rank > highest {
            (highest, best) = (rank, seen);
        }
        seen += 1;
        if seen < look_through {
            Choice::Pass
        } else {
            Choice::Stop
        }
    };
    queue.claim_chosen(look, &mut claimed);
    let mut seen = 0;
    let take = |_| {
        let choice = match best.cmp(&seen) {
            core::cmp::Ordering::Greater => Choice::Pass,
            core::cmp::Ordering::Equal => Choice::Take,
            core::cmp::Ordering::Less => Choice::Stop,
        };
        seen += 1;
        choice
    };
    let unparked = queue.claim_chosen(take, &mut claimed);
    Tokens::from(change(unparked)).tell(&claimed);
    drop(queue);
    claimed.notify(&waiter_table.parkers)
}

/// What to do with the waiters of a word: wake so many, move so many of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) wake: usize,
    pub(crate) moved: usize,
}

/// What came of a [`Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requeued {
    pub(crate) woken: usize,
    pub(crate) moved: usize,
    /// Whether others still wait on the first key.
    pub(crate) more: bool,
}

/// Wakes some of the waiters of `from`, a condvar, who are [bound to](park_bound_to) `mutex`, and moves some behind those of `to`, that mutex's
/// key; what came of it.
///
/// `plan` and `change` run under the locks of both buckets: before and after the queues are
/// changed. `plan` is given the kind of the first of those waiters. If there is none, `change`
/// alone runs; those who are woken are told the tokens that it returns.
#[inline]
pub(crate) fn unpark_requeue<T: Into<Tokens>>(
    waiter_table: &WaiterTable,
    from: Key,
    (mutex, to): (usize, Key),
    plan: impl FnOnce(u64) -> Plan,
    change: impl FnOnce(Requeued) -> T,
) -> Requeued {
    const NOBODY: Requeued = Requeued {
        woken: 0,
        moved: 0,
        more: false,
    };
    let pair = waiter_table.lock_pair(from, to);
    let Some(first) = pair.first_bound_to(mutex) else {
        change(NOBODY);
        return NOBODY;
    };
    let Plan { wake, moved } = plan(first);
    let mut claimed = Claimed::new();
    let woken = pair.claim_bound_to(mutex, wake, &mut claimed);
    let moved = pair.move_bound_to(mutex, moved);
    let requeued = Requeued {
        woken,
        moved,
        more: pair.has_waiters(),
    };
    change(requeued).into().tell(&claimed);
    drop(pair);
    claimed.notify(&waiter_table.parkers);
    requeued
}
