//! Parking: the wait and the wake that locks are built from. Like `wait` and `wake`, but the lock
//! changes its own word *under the bucket lock*, in one step with the change of the queue.
//!
//! So a lock's "has waiters" bit can be exact, and a lock can be handed off to the very thread that
//! is woken. An unlock touches the word last when it releases it: the next holder may free the
//! lock's memory at once (glibc bug 13690).
//!
//! # The contract of every callback
//!
//! It runs at most once, with one bucket locked (two for [`unpark_requeue`]). It may load and
//! change the lock's own words. It makes no system call, does not allocate, touches no other lock,
//! does not panic and does not call back into this crate. The word's page is present: the caller
//! has touched it just before.
//!
//! None of these functions is for signal handlers. A handler must not lock, and what it may do
//! (post a semaphore, set an event) is built on `wake`.

use crate::park::{Ended, Parker, Until};
use crate::private::{
    Choice, Claimed, Key, Node, Queue, Registration, Unparked, WaiterTable, is_inside,
};
use crate::sys::clock::Deadline;
use core::cell::Cell;

/// What a waker tells the waiters it wakes. 0 means "look again"; each lock defines the other
/// values.
pub(crate) type Token = u8;

/// The tokens for waiters that are woken together: one for the first and one for the others.
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
    /// Woken, with this token.
    Woken(Token),
    /// `validate` returned false: the thread did not sleep.
    Invalid,
    /// The deadline has passed. The waiter has left the queue; it was not woken and will not be.
    TimedOut,
    /// Another thread interrupted the wait (`park/interrupt.rs`), or this is a handler that
    /// interrupted a bucket section and cannot queue, or this is a child forked by a handler in the
    /// middle of the wait. The waiter is not in the queue.
    Interrupted,
}

/// A waiter's properties in its queue.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// What wakers choose by: any bits, but not 0.
    pub(crate) kind: u64,
    /// A waiter is queued in front of those with a lower place. For a real-time thread this is its
    /// priority and for all others 0, unless the lock has its own order.
    pub(crate) place: u8,
}

impl Entry {
    /// For the calling thread, ordered by real-time priority.
    #[inline]
    pub(crate) fn of_this_thread(kind: u64) -> Self {
        let place = crate::sys::sched::priority();
        Self { kind, place }
    }
}

/// If `validate` returns true, queues on `key` as this `entry`, behind the waiters of the same and
/// of higher places, and sleeps.
///
/// * `validate` runs under the bucket lock. It announces the waiter in the lock's word, or returns
///   false.
/// * `left` runs under the bucket lock if the waiter gives up (deadline, signal). Its argument is
///   whether other threads still wait on the key.
///
/// A waiter that [`unpark_requeue`] has moved to another key stays there whatever the deadline: it
/// was signalled, and a wake of the other key will wake it.
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
        // SAFETY: `park_node` makes the node with the key that it registers, so the node is new and
        // has the registered key. It keeps the node in its frame until the node is notified or
        // withdrawn (`sleep`).
        unsafe { registration.push(node) };
    };
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    park_queued(waiter_table, key, entry, until, validate, queue, left)
}

/// [`park`] at a condvar, from which [`unpark_requeue`] may move the waiter to the mutex at this
/// address. `before_sleep` runs with no bucket locked, after the waiter is queued: a waker can find
/// it from then on. It may do anything but park.
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
        // SAFETY: `park_node` makes the node with the key that it registers (both are passed on
        // from here), so the node is new and has the registered key. It keeps the node in its frame
        // until the node is notified or withdrawn (`sleep`).
        unsafe { registration.push(node) };
        before_sleep();
    };
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    let node = |parker: &Parker<'_>| node(key, entry, parker).bound_to(mutex, parker);
    park_node(waiter_table, key, node, until, validate, queue, left)
}

/// [`park`] in front of the waiters of the same place, for a thread that has waited before.
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
        // SAFETY: `park_node` makes the node with the key that it registers, so the node is new and
        // has the registered key. It keeps the node in its frame until the node is notified or
        // withdrawn (`sleep`).
        unsafe { registration.push_in_front(node) };
    };
    let left = |queue: &Queue<'_>| left(queue.has_waiters());
    park_queued(waiter_table, key, entry, until, validate, queue, left)
}

/// [`park`] where `left` receives *which* waiters remain on the key: their kinds, or-ed together; 0
/// if there are none. It walks the whole queue.
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
        // SAFETY: `park_node` makes the node with the key that it registers, so the node is new and
        // has the registered key. It keeps the node in its frame until the node is notified or
        // withdrawn (`sleep`).
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

/// Replaces another waiter in the queue of `key`: if `choose` takes a waiter, that waiter is woken
/// with `token` and the caller sleeps, all in one step. If it takes none, returns
/// [`Parked::Invalid`].
///
/// The rest is as for [`park`].
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
    // SAFETY: the node is new and has the registered key. `sleep`, below, returns only after it is
    // notified or withdrawn, and this frame is left only after that.
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
    // Claimed or moved in the meantime: a notice will come.
    parker.park_uninterrupted(&node.notice);
    Parked::Woken(node.token())
}

/// Wakes those waiters of `key` that `choose` takes, in queue order, and gives them the tokens that
/// `change` returns. Returns the number woken.
///
/// `choose` receives each waiter's kind and `change` the outcome; both run under the bucket lock.
/// `change` runs even if there are no waiters. It may be the last access to the lock's memory.
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

/// [`unpark`] of the first waiter in the queue, if there is one and `takes` accepts its kind.
/// `change` receives the kind of the woken waiter and whether other threads still wait.
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

/// [`unpark`] of the waiter whose kind `rank` ranks highest among the first `look_through`; of
/// equals, the first.
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

/// What to do with the waiters of a word: how many to wake, and how many of the others to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) wake: usize,
    pub(crate) moved: usize,
}

/// The outcome of a [`Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requeued {
    pub(crate) woken: usize,
    pub(crate) moved: usize,
    /// Whether other threads still wait on the first key.
    pub(crate) more: bool,
}

/// Of the waiters of the condvar `from` that are [bound to](park_bound_to) `mutex`, wakes some and
/// moves some behind the waiters of `to`, that mutex's key. Returns the outcome.
///
/// `plan` and `change` run under the locks of both buckets, before and after the queues are
/// changed. `plan` receives the kind of the first such waiter. If there is none, only `change`
/// runs. The woken waiters get the tokens that `change` returns.
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
