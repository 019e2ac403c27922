//! Parking: the wait and the wake that locks are built from. Like `wait` and `wake`, but the lock
//! changes its own word *under the bucket lock*, in one step with the change of the queue.
//!
//! So a lock's "has waiters" bit can be exact, and a lock can be handed off to the very thread that
//! is woken. An unlock touches the word last when it releases it: the next holder may free the
//! lock's memory at once (glibc bug 13690).
//!
//! # The contract of every callback except [`park`]'s `queued`
//!
//! It runs at most once, with one bucket locked (two for [`unpark_requeue`]). It may load and
//! change the lock's own words. It makes no system call, does not allocate, touches no other lock,
//! does not panic and does not call back into this crate. The word's page is present: the caller
//! has touched it just before. (`choose`, `takes` and `rank` may run once for each waiter.)
//!
//! None of these functions is for signal handlers. A handler must not lock, and what it may do
//! (post a semaphore, set an event) is built on `wake`.

use crate::park::{Ended, Parker, Until};
use crate::private::{
    Awaited, Choice, Claimed, Key, Node, Queue, Unparked, is_inside, waiter_table,
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
        Self { first: token, others: token }
    }
}

impl Tokens {
    #[inline]
    fn leave_in(self, claimed: &Claimed) {
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
    pub(crate) awaited: Awaited,
    /// What wakers choose by: any bits, but not 0.
    pub(crate) kind: u64,
    /// A waiter is queued in front of those with a lower place. For a real-time thread this is its
    /// priority and for all others 0, unless the lock has its own order.
    pub(crate) place: u8,
}

impl Entry {
    /// For the calling thread, ordered by real-time priority.
    #[inline]
    pub(crate) fn of_this_thread(awaited: Awaited, kind: u64) -> Self {
        let place = crate::sys::sched::priority();
        Self { awaited, kind, place }
    }
}

/// A waiter that is about to park: where it queues, and for how long it may sleep.
#[derive(Clone, Copy)]
pub(crate) struct Request<'u> {
    key: Key,
    entry: Entry,
    until: Until<'u>,
    is_in_front: bool,
    mutex: Option<usize>,
}

impl<'u> Request<'u> {
    /// Queues on `key` as this `entry`, behind the waiters of the same and of higher places.
    #[inline]
    pub(crate) fn new(key: Key, entry: Entry, until: impl Into<Until<'u>>) -> Self {
        Self { key, entry, until: until.into(), is_in_front: false, mutex: None }
    }

    /// If the condition holds, queues in front of the waiters of the same place: for a thread that
    /// has waited before.
    #[inline]
    pub(crate) fn in_front_if(self, is_in_front: bool) -> Self {
        Self { is_in_front, ..self }
    }

    /// For a waiter of a condvar: [`unpark_requeue`] may move it to the mutex at this address.
    #[inline]
    pub(crate) fn bound_to(self, mutex: usize) -> Self {
        Self { mutex: Some(mutex), ..self }
    }

    #[inline]
    fn node(&self, parker: &Parker<'_>) -> Node {
        let Entry { awaited, kind, place } = self.entry;
        debug_assert!(kind != 0);
        let node = Node::new(self.key, awaited, kind, parker.id(), place);
        match self.mutex {
            Some(mutex) => node.bound_to(mutex, parker),
            None => node,
        }
    }
}

/// If `validate` returns true, queues as `request` specifies, calls `queued`, and sleeps.
///
/// * `validate` runs under the bucket lock. It announces the waiter in the lock's word, or returns
///   false.
/// * `queued` runs with no bucket locked. A waker can find the waiter from then on. The callback
///   may do anything but park or panic.
/// * `left` runs under the bucket lock if the waiter gives up (deadline, interruption). Its
///   argument is the queue without this waiter.
///
/// A waiter that [`unpark_requeue`] has moved to another key stays there whatever the deadline: it
/// was signalled, and a wake of the other key will wake it.
#[inline]
pub(crate) fn park(
    request: Request<'_>,
    validate: impl FnOnce() -> bool,
    queued: impl FnOnce(),
    left: impl FnOnce(&Queue<'_>),
) -> Parked {
    if is_inside() {
        return Parked::Interrupted;
    }
    let parker = waiter_table().take_parker();
    let node = request.node(&parker);
    let registration = waiter_table().register(request.key);
    if !validate() {
        registration.cancel();
        return Parked::Invalid;
    }
    // SAFETY: the node is new and has the registered key. `sleep`, below, returns only after it is
    // notified or withdrawn, and this frame is left only after that: `queued` does not panic, by
    // this function's contract. The exception (`is_wiped`) is the child of a fork made by a signal
    // handler during this wait: there the table was wiped and no queue links to the node.
    unsafe {
        match request.is_in_front {
            true => registration.push_in_front(&node),
            false => registration.push(&node),
        }
    }
    queued();
    sleep(&request, &parker, &node, left)
}

/// Replaces another waiter in the queue: if `choose` takes a waiter, that waiter is woken with
/// `token` and the caller sleeps, all in one step. If it takes none, returns [`Parked::Invalid`].
///
/// The rest is as for [`park`]. The caller always queues behind the waiters of the same place.
#[inline]
pub(crate) fn park_instead_of(
    request: Request<'_>,
    choose: impl FnMut(u64) -> Choice,
    token: Token,
    left: impl FnOnce(&Queue<'_>),
) -> Parked {
    if is_inside() {
        return Parked::Interrupted;
    }
    let parker = waiter_table().take_parker();
    let node = request.node(&parker);
    let registration = waiter_table().register(request.key);
    let mut claimed = Claimed::new();
    let chosen = registration.claim_chosen(request.key, choose, &mut claimed);
    if chosen.woken == 0 {
        registration.cancel();
        return Parked::Invalid;
    }
    Tokens::from(token).leave_in(&claimed);
    // SAFETY: the node is new and has the registered key. `sleep`, below, returns only after it is
    // notified or withdrawn, and this frame is left only after that. The exception is that of
    // `park`: a forked child.
    unsafe { registration.push(&node) };
    claimed.notify(&waiter_table().parkers);
    sleep(&request, &parker, &node, left)
}

/// The second half of [`park`]: the node is queued.
#[inline]
fn sleep(
    request: &Request<'_>,
    parker: &Parker<'_>,
    node: &Node,
    left: impl FnOnce(&Queue<'_>),
) -> Parked {
    let until = request.until;
    let ended = loop {
        match parker.park(&node.notice, until) {
            Ok(()) => return Parked::Woken(node.token()),
            // A signal handler ran. The waiter keeps its place in the queue.
            Err(Ended::Interrupted) if !parker.is_wiped() && !until.is_asked() => {}
            Err(ended) => break ended,
        }
    };
    if parker.is_wiped() || waiter_table().withdraw_from(request.key, node, left) {
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
    key: Key,
    choose: impl FnMut(u64) -> Choice,
    change: impl FnOnce(Unparked) -> T,
) -> usize {
    let queue = waiter_table().lock_queue(key);
    let mut claimed = Claimed::new();
    let unparked = queue.claim_chosen(choose, &mut claimed);
    change(unparked).into().leave_in(&claimed);
    drop(queue);
    claimed.notify(&waiter_table().parkers)
}

/// [`unpark`] of the first waiter in the queue, if there is one and `takes` accepts its kind.
/// `change` receives the kind of the woken waiter and whether other threads still wait.
#[inline]
pub(crate) fn unpark_one(
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
    unpark(key, choose, change)
}

/// [`unpark`] of the waiter whose kind `rank` ranks highest among the first `look_through`; of
/// equals, the first.
pub(crate) fn unpark_highest(
    key: Key,
    look_through: usize,
    rank: impl Fn(u64) -> u64,
    change: impl FnOnce(Unparked) -> Token,
) -> usize {
    let queue = waiter_table().lock_queue(key);
    let mut claimed = Claimed::new();
    let (mut seen, mut highest, mut best) = (0, None, 0);
    let look = |kind| {
        let rank = Some(rank(kind));
        if rank > highest {
            (highest, best) = (rank, seen);
        }
        seen += 1;
        if seen < look_through { Choice::Pass } else { Choice::Stop }
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
    Tokens::from(change(unparked)).leave_in(&claimed);
    drop(queue);
    claimed.notify(&waiter_table().parkers)
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

/// Of the waiters of the condvar `from` that are [bound to](Request::bound_to) `mutex`, wakes some
/// and moves some behind the waiters of `to`, that mutex's key. Returns the outcome.
///
/// `plan` and `change` run under the locks of both buckets, before and after the queues are
/// changed. `plan` receives the kind of the first such waiter. If there is none, only `change`
/// runs. The woken waiters get the tokens that `change` returns.
#[inline]
pub(crate) fn unpark_requeue<T: Into<Tokens>>(
    from: Key,
    (mutex, to): (usize, Key),
    plan: impl FnOnce(u64) -> Plan,
    change: impl FnOnce(Requeued) -> T,
) -> Requeued {
    const NO_WAITERS: Requeued = Requeued { woken: 0, moved: 0, more: false };
    let pair = waiter_table().lock_pair(from, to);
    let Some(first) = pair.first_bound_to(mutex) else {
        change(NO_WAITERS);
        return NO_WAITERS;
    };
    let Plan { wake, moved } = plan(first);
    let mut claimed = Claimed::new();
    let woken = pair.claim_bound_to(mutex, wake, &mut claimed);
    let moved = pair.move_bound_to(mutex, moved);
    let requeued = Requeued { woken, moved, more: pair.has_waiters() };
    change(requeued).into().leave_in(&claimed);
    drop(pair);
    claimed.notify(&waiter_table().parkers);
    requeued
}
