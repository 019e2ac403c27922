//! Putting one thread to sleep, and waking it or a batch of them. Knows no addresses and no queues.
//!
//! # Why not one kernel word per thread
//!
//! A kernel futex per sleeper costs one FUTEX_WAKE per thread to be woken. Here up to 32 parkers form a
//! [`Group`] that sleeps on *one* kernel word, each with a bit of its own as the kernel's bitset, so that
//! one FUTEX_WAKE_BITSET wakes any subset of the group ([`WakeCalls`]).
//!
//! ```text
//!   Group   calls ── the word that all 32 sleep on; counts the wake calls made
//!           parker 0   state ─ bit 0 of the kernel's bitset
//!           parker 1   state ─ bit 1
//!           ...
//! ```
//!
//! # A parker's state
//!
//! | state  | meaning | set by |
//! |--------|---------|--------|
//! | FREE   | belongs to nobody | its user, as it leaves |
//! | EMPTY  | in use; its user is awake | its user |
//! | ASLEEP | its user sleeps, or is about to, on the group's word | its user |
//! | ALONE  | its user sleeps, or is about to, on this very word (`futex_waitv`, which has no bitsets) | its user |
//! | TOKEN  | somebody unparked it since it was last EMPTY | a waker |
//!
//! A token is a hint, not a message: a parker changes hands between waits, and the wake call for an
//! earlier user may come late, so its user may find a token that was meant for another. Whether the wait is
//! over is for the caller's own `notified` to say; the token only guarantees that it is asked again.
//!
//! # Why no wake-up is lost
//!
//! ```text
//!   sleeper                                      waker
//!   ───────                                      ─────
//!   seen = calls            (Acquire)            notified = true             (Release)
//!   state: EMPTY → ASLEEP   (or TOKEN: ask)      state → TOKEN; was ASLEEP?  (AcqRel)
//!   state is TOKEN? → ask                        calls += 1                  (Release)
//!   FUTEX_WAIT(calls, seen, bit)                 FUTEX_WAKE(calls, bit)
//! ```
//!
//! Both change `state` by read-modify-write, so one of them comes second. If it is the sleeper, it finds the
//! TOKEN. If it is the waker, it finds ASLEEP and makes the call: then either `calls` has changed before the
//! kernel compares it, and FUTEX_WAIT returns, or the sleeper is queued before FUTEX_WAKE looks.
//! `calls` would have to wrap (2^32 wake calls between two instructions of the sleeper) to break this.
//!
//! # Invariants
//!
//! 1. Memory of a group is mapped once and never unmapped or used for anything else: a late wake call
//!    reaches a parker, at worst the wrong one.
//! 2. Only its user moves a parker out of FREE, and back.
//! 3. All zeros is a group of free parkers: a forked child, whose copy the kernel wipes, needs no repair. A
//!    thread that was forked in the middle of a wait (by a signal handler) finds its own parker FREE and
//!    gives up; it does not fall asleep, since `calls` is zero there and never is while somebody sleeps.

mod batch;
mod pool;
mod spin;

pub(crate) use batch::WakeCalls;
pub(crate) use pool::{ParkerId, Pool};
#[cfg(not(loom))]
pub(crate) use spin::{budget, set_budget};

use crate::atomic::{AtomicU32, Ordering};
use crate::sys;
use crate::sys::clock::Deadline;
use core::num::NonZeroU32;
use pool::Group;
use rustix::io::Errno;
use spin::SpinHistory;

const FREE: u32 = 0;
const EMPTY: u32 = 1;
const ASLEEP: u32 = 2;
const ALONE: u32 = 3;
const TOKEN: u32 = 4;

/// What `calls` holds before anybody sleeps, and in a forked child.
const NO_CALLS: u32 = 0;

/// One place to sleep in, on a cache line of its own.
#[repr(align(64))]
pub(crate) struct Slot {
    state: AtomicU32,
    spins: SpinHistory,
}

/// How a sleep ended without a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    TimedOut,
    Interrupted,
}

impl From<Ended> for Errno {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::TimedOut => Errno::TIMEDOUT,
            Ended::Interrupted => Errno::INTR,
        }
    }
}

/// A parker in the hands of one thread for the length of one wait.
pub(crate) struct Parker<'a> {
    pool: &'a Pool,
    /// `None` when memory was too short for one: then the thread polls. Slow, but nothing is lost.
    place: Option<Place<'a>>,
}

#[derive(Clone, Copy)]
struct Place<'a> {
    id: ParkerId,
    group: &'a Group,
    slot: &'a Slot,
    bit: NonZeroU32,
}

impl Parker<'_> {
    /// What a waker needs to reach this parker ([`Pool::unpark`]).
    #[inline]
    pub(crate) fn id(&self) -> Option<ParkerId> {
        self.place.map(|place| place.id)
    }

    /// Sleeps, after a short spin, until `notified`. A waker makes `notified` true (Release) and then unparks.
    ///
    /// # Errors
    /// The deadline has passed, or a signal handler ran, and `notified` was still false when last asked.
    #[inline]
    pub(crate) fn park(
        &self,
        notified: impl Fn() -> bool,
        deadline: Option<&Deadline>,
    ) -> Result<(), Ended> {
        let Some(place) = self.place else {
            return poll(notified, deadline);
        };
        if place
            .slot
            .spins
            .spin_until(self.pool.spinners(place), &notified)
        {
            return Ok(());
        }
        while !notified() {
            // Acquire: the load of `calls` must not sink below the look at the state.
            let mut seen = place.group.calls.load(Ordering::Acquire);
            if seen == NO_CALLS {
                place.group.begin_calls();
                continue;
            }
            if !place.announce(ASLEEP) {
                if place.is_wiped() {
                    return Err(Ended::Interrupted);
                }
                continue;
            }
            let ended = loop {
                match place.slot.state.load(Ordering::Acquire) {
                    TOKEN => break None,
                    FREE => return Err(Ended::Interrupted),
                    _ => {}
                }
                match sys::futex::wait(&place.group.calls, seen, place.bit, deadline) {
                    Err(Errno::TIMEDOUT) => break Some(Ended::TimedOut),
                    Err(Errno::INTR) => break Some(Ended::Interrupted),
                    // Woken, or another of the group was while we were lying down: look again.
                    _ => seen = place.group.calls.load(Ordering::Acquire),
                }
            };
            place.rise();
            if let Some(ended) = ended
                && !notified()
            {
                return Err(ended);
            }
        }
        Ok(())
    }

    /// Sleeps until `notified`, whatever deadlines and signals say: for the moment between a waker's
    /// decision and its notification, which is a few instructions long.
    pub(crate) fn park_uninterrupted(&self, notified: impl Fn() -> bool) {
        while self.park(&notified, None).is_err() && !self.is_wiped() {}
    }

    /// Whether we are in a child that was forked, by a signal handler, in the middle of this wait: the kernel
    /// has wiped the parker, and the table with it. Nobody will ever notify us.
    pub(crate) fn is_wiped(&self) -> bool {
        self.place.is_some_and(|place| place.is_wiped())
    }

    /// Sleeps until `notified`, or until the kernel wakes one of `entries` from index 1 on. Entry 0 is the
    /// parker's own and is filled in here.
    ///
    /// Returns the index of the entry that was woken; 0 means to look whether `notified` holds.
    ///
    /// # Errors
    /// futex_waitv(2)'s: `EAGAIN` if a word differs, `ETIMEDOUT`, `EINTR`, `ENOSYS`.
    ///
    /// # Safety
    /// Every entry from index 1 on names a mapped word.
    #[cfg(not(loom))]
    pub(crate) unsafe fn park_with_words(
        &self,
        notified: impl Fn() -> bool,
        entries: &mut [sys::futex::Waitv],
        deadline: Option<&Deadline>,
    ) -> Result<usize, Errno> {
        const SIZE_U32_PRIVATE: u32 = 2 | 128;
        let place = self.place.ok_or(Errno::NOMEM)?;
        if notified() || !place.announce(ALONE) {
            return Ok(0);
        }
        entries[0] = sys::futex::Waitv {
            val: ALONE.into(),
            uaddr: place.slot.state.as_ptr().expose_provenance() as u64,
            flags: SIZE_U32_PRIVATE,
            reserved: 0,
        };
        // SAFETY: entry 0 is a parker's word, never unmapped; the others by the caller's promise.
        let woken = unsafe { sys::futex::waitv(entries, deadline) };
        let unparked = place.rise();
        match woken {
            // Our own word no longer held ALONE: not for the caller to see.
            Err(Errno::AGAIN) if unparked => Ok(0),
            woken => woken,
        }
    }
}

impl Place<'_> {
    /// Says that we are about to sleep; false if a token lay there, which is taken.
    #[inline]
    fn announce(&self, how: u32) -> bool {
        // AcqRel: Release is for the next user of a stale token; Acquire pairs with the waker's, so that
        // what made `notified` true is seen when we ask.
        let announced =
            self.slot
                .state
                .compare_exchange(EMPTY, how, Ordering::AcqRel, Ordering::Acquire);
        if announced.is_err() {
            self.rise();
        }
        announced.is_ok()
    }

    /// Says that we are awake; true if a token lay there, which is taken.
    #[inline]
    fn rise(&self) -> bool {
        !self.is_wiped() && self.slot.state.swap(EMPTY, Ordering::AcqRel) == TOKEN
    }

    /// See [`Parker::is_wiped`]. Only the user of a parker sets it FREE; so if it finds that, it is a copy of
    /// the user in another process.
    #[inline]
    fn is_wiped(&self) -> bool {
        self.slot.state.load(Ordering::Relaxed) == FREE
    }
}

impl Drop for Parker<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.pool.release(place);
        }
    }
}

/// A wait without a parker: looks, sleeps a little, looks again.
#[cold]
fn poll(notified: impl Fn() -> bool, deadline: Option<&Deadline>) -> Result<(), Ended> {
    const FIRST_NAP: i64 = 50_000;
    const LONGEST_NAP: i64 = 1_000_000;
    let mut nap = FIRST_NAP;
    while !notified() {
        if deadline.is_some_and(Deadline::has_passed) {
            return if notified() {
                Ok(())
            } else {
                Err(Ended::TimedOut)
            };
        }
        sys::sched::sleep_nanoseconds(nap);
        nap = (nap * 2).min(LONGEST_NAP);
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests;
