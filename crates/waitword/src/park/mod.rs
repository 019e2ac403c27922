//! Putting one thread to sleep, and waking one thread or a batch. This module knows no addresses
//! and no queues.
//!
//! # Why not one kernel word per thread
//!
//! With a kernel futex per sleeper, waking n threads costs n FUTEX_WAKE calls. Here up to 32
//! parkers form a [`Group`] that sleeps on *one* kernel word, each with its own bit in the kernel's
//! bitset. One FUTEX_WAKE_BITSET then wakes any subset of the group ([`WakeCalls`]).
//!
//! ```text
//!   Group   calls ── the word that all 32 sleep on; counts the wake calls made, by two
//!           parker 0 ─ bit 0 of the kernel's bitset
//!           parker 1 ─ bit 1
//!           ...
//! ```
//!
//! # What a sleeper waits for
//!
//! A [`Notice`]. It lies in memory that its waker has to write anyway (the waiter's node). So the
//! waker of one thread touches the parker's memory only to count the call:
//!
//! | state  | meaning | set by |
//! |--------|---------|--------|
//! | AWAKE  | the thread reads the notice itself: it has not slept yet, or it spins | its maker |
//! | ASLEEP | the thread sleeps, or is about to, on its group's word | its thread |
//! | ALONE  | the thread sleeps, or is about to, on its parker's own word | its thread |
//! | GIVEN  | the wait is over; the giver does not touch the notice again | a waker, once |
//!
//! ALONE is for `futex_waitv`, which has no bitsets. A thread may wait for several notices with one
//! parker (`wait_any`): it announces its sleep in each.
//!
//! # Why no wake-up is lost
//!
//! ```text
//!   sleeper                                      waker
//!   ───────                                      ─────
//!   seen = calls              (Acquire)          notice → GIVEN; was ASLEEP?  (AcqRel)
//!   notice: AWAKE → ASLEEP    (AcqRel)           calls += 2                   (Release)
//!     (or GIVEN: done)                           FUTEX_WAKE(calls, bit)
//!   FUTEX_WAIT(calls, seen, bit)
//!   GIVEN? done; else seen = calls
//!   GIVEN? done; else wait again
//! ```
//!
//! Both change the notice by a read-modify-write, so one of them comes second. If it is the
//! sleeper, it finds GIVEN. If it is the waker, it finds ASLEEP and makes the call. Then either
//! `calls` has changed before the kernel compares it, and FUTEX_WAIT returns, or the sleeper is
//! queued before FUTEX_WAKE looks. To break this, `calls` would have to wrap around (2^31 wake
//! calls between two instructions of the sleeper).
//!
//! The wake call may come late, when the sleeper is long gone and its bit belongs to another
//! thread. That thread wakes up, finds that its notice was not given, and sleeps again.
//!
//! # Invariants
//!
//! 1. The memory of a group is mapped once and never unmapped or used for anything else. A late
//!    wake call reaches a parker, at worst the wrong one.
//! 2. Only the user of a parker frees it.
//! 3. All zeros is a group of free parkers. A forked child, whose copy the kernel wipes, needs no
//!    repair. A thread that was forked in the middle of a wait (by a signal handler) finds its own
//!    parker free and gives up. It does not fall asleep, since the words are zero there and never
//!    are while a thread sleeps.

mod batch;
pub(crate) mod idle_cpus;
pub(crate) mod interrupt;
mod notice;
mod pool;
pub(crate) mod spin;

pub(crate) use batch::WakeCalls;
pub(crate) use notice::{Notice, Notices, Sleeps};
pub(crate) use pool::{GROUP, Group, ParkerId, Pool, Slot};
pub(crate) use spin::{budget, set_budget};

use crate::atomic::{AtomicU32, Ordering};
use crate::stats::{self, Event};
use crate::sys;
use crate::sys::Errno;
use crate::sys::clock::Deadline;
use crate::sys::futex::KernelWord;
use core::num::NonZeroU32;
use interrupt::{Interruptible, Interrupts};
use spin::Spin;

/// How a sleep ended without a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    TimedOut,
    Interrupted,
}

/// What ends a sleep besides a notice and a signal handler.
#[derive(Clone, Copy)]
pub(crate) struct Until<'a> {
    pub(crate) deadline: Option<&'a Deadline>,
    pub(crate) by: Option<&'a Interrupts>,
    /// Sleep without spinning first: the thread has been awake for long enough.
    pub(crate) at_once: bool,
}

impl<'a> Until<'a> {
    /// Without a spin.
    #[inline]
    pub(crate) fn asleep(deadline: Option<&'a Deadline>) -> Self {
        Self { at_once: true, ..deadline.into() }
    }

    /// The [`Interrupts`] that reach the sleeper. (A deadline that can be brought forward is
    /// brought forward by the same ones.)
    #[inline]
    fn reached_by(self) -> Option<&'a Interrupts> {
        let of_deadline = || Some(self.deadline?.ender?.by);
        self.by.or_else(of_deadline)
    }

    /// Whether its end has been requested.
    #[inline]
    pub(crate) fn is_asked(self) -> bool {
        self.by.is_some_and(Interrupts::is_requested)
            || self.deadline.is_some_and(Deadline::is_ended)
    }
}

impl<'a> From<Option<&'a Deadline>> for Until<'a> {
    #[inline]
    fn from(deadline: Option<&'a Deadline>) -> Self {
        Self { deadline, by: None, at_once: false }
    }
}

/// A parker, used by one thread for the length of one wait.
pub(crate) struct Parker<'a> {
    /// `None` if memory was too short for one. Then the thread polls: slow, but no wake-up is lost.
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
    /// The id that a waker needs to reach this parker ([`WakeCalls::add`]).
    pub(crate) fn id(&self) -> Option<ParkerId> {
        self.place.map(|place| place.id)
    }

    /// Records which thread uses it, for debugging a program that hangs.
    pub(crate) fn note_thread(&self, thread: usize) {
        if let Some(place) = self.place {
            place.slot.thread.store(thread, Ordering::Relaxed);
        }
    }

    /// Sleeps, after a short spin, until one of `notices` is given.
    ///
    /// # Errors
    /// The deadline has passed, a signal handler ran, or the wait was interrupted, and none of the
    /// notices had been given at the last look.
    #[inline]
    pub(crate) fn park<'u>(
        &self,
        notices: &impl Notices,
        until: impl Into<Until<'u>>,
    ) -> Result<(), Ended> {
        let until = until.into();
        let deadline = until.deadline.and_then(Deadline::in_time);
        let interruptible = Interruptible::begin(until, self);
        let Some(place) = self.place else {
            return poll(notices, deadline, &interruptible);
        };
        let may_stay_awake = !until.at_once && spin::is_allowed();
        if may_stay_awake && stay_awake(notices, deadline, &interruptible, place) {
            return Ok(());
        }
        let mut seen = see(&place.group.calls);
        if !notices.announce(Sleeps::InGroup) {
            return Ok(());
        }
        stats::count(Event::Sleeps);
        loop {
            if interruptible.is_requested() {
                return Err(Ended::Interrupted);
            }
            let result = sys::futex::wait(&place.group.calls, seen, place.bit, deadline);
            // Usually the wake-up was for this thread. Then the group's line is not touched again.
            if notices.any_given() {
                return Ok(());
            }
            match result {
                Err(Errno::TIMEDOUT) => return Err(Ended::TimedOut),
                Err(Errno::INTR) => return Err(Ended::Interrupted),
                _ if place.is_wiped() => return Err(Ended::Interrupted),
                // Another parker of the group was woken as this thread fell asleep, or it was a
                // late call. A notice that is given after this load changes `calls` again.
                _ => seen = see(&place.group.calls),
            }
            if notices.any_given() {
                return Ok(());
            }
        }
    }

    /// Sleeps until one of `notices` is given, regardless of signals. For the time between a
    /// waker's decision and its notice, which is a few instructions long.
    pub(crate) fn park_uninterrupted(&self, notices: &impl Notices) {
        while self.park(notices, None).is_err() && !self.is_wiped() {}
    }

    /// Whether this is a child that a signal handler forked in the middle of this wait. The kernel
    /// has wiped the parker, and the table with it, so no thread will ever give the notice.
    pub(crate) fn is_wiped(&self) -> bool {
        self.place.is_some_and(|place| place.is_wiped())
    }

    /// Sleeps until one of `notices` is given, or until the kernel wakes one of `entries` from
    /// index 1 on. Entry 0 is the parker's own and is filled in here.
    ///
    /// Returns the index of the entry that was woken; 0 means to look at the notices.
    ///
    /// # Errors
    /// The errors of futex_waitv(2): `EAGAIN` if a word differs, `ETIMEDOUT`, `EINTR`, `ENOSYS`;
    /// and `ENOMEM` without a parker.
    ///
    /// # Safety
    /// Every entry from index 1 on names a mapped, aligned word.
    pub(crate) unsafe fn park_with_words(
        &self,
        notices: &impl Notices,
        entries: &mut [sys::futex_raw::Waitv],
        deadline: Option<&Deadline>,
    ) -> Result<usize, Errno> {
        const SIZE_U32_PRIVATE: u32 = 2 | 128;
        let place = self.place.ok_or(Errno::NOMEM)?;
        let alone = &place.slot.alone;
        let seen = see(alone);
        if !notices.announce(Sleeps::Alone) {
            return Ok(0);
        }
        stats::count(Event::Sleeps);
        entries[0] = sys::futex_raw::Waitv {
            val: seen.into(),
            uaddr: KernelWord::address(alone).expose_provenance() as u64,
            flags: SIZE_U32_PRIVATE,
            reserved: 0,
        };
        // SAFETY: `entries[0]` names a word of a parker in the pool, which is never unmapped; the
        // other entries are mapped and aligned, by this function's contract.
        match unsafe { sys::futex_raw::waitv(entries, deadline) } {
            _ if place.is_wiped() => Err(Errno::INTR),
            // Our own word changed; the caller need not know.
            Err(Errno::AGAIN) if alone.load(Ordering::Acquire) != seen => Ok(0),
            woken => woken,
        }
    }
}

/// The value of the word that this thread is going to sleep on. Never zero, which is what a forked
/// child finds. Acquire: the announcement and the look at the notices come after this load.
#[inline]
fn see(word: &AtomicU32) -> u32 {
    match word.load(Ordering::Acquire) {
        0 => begin(word),
        seen => seen,
    }
}

#[cold]
fn begin(word: &AtomicU32) -> u32 {
    match word.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => 1,
        Err(seen) => seen,
    }
}

impl Drop for Parker<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.place {
            place.slot.release();
        }
    }
}

impl Place<'_> {
    /// See [`Parker::is_wiped`]. Only the user of a parker frees it. So if the user finds it free,
    /// this is a copy of the user in another process.
    #[inline]
    fn is_wiped(&self) -> bool {
        self.slot.is_free()
    }
}

/// Stays awake for a while, as far as that has paid off with this parker lately; returns whether a
/// notice was given.
#[inline(never)]
fn stay_awake(
    notices: &impl Notices,
    deadline: Option<&Deadline>,
    interruptible: &Interruptible<'_>,
    place: Place<'_>,
) -> bool {
    let mut spin = Spin::of_parker(&place.slot.spins);
    loop {
        if notices.any_given() {
            spin.won();
            return true;
        }
        let is_over = deadline.is_some_and(Deadline::has_passed) || interruptible.is_requested();
        if is_over || !spin.again() {
            return false;
        }
    }
}

/// A wait without a parker: looks, sleeps a little, looks again.
#[cold]
fn poll(
    notices: &impl Notices,
    deadline: Option<&Deadline>,
    interruptible: &Interruptible<'_>,
) -> Result<(), Ended> {
    const FIRST_NAP: i64 = 50_000;
    const LONGEST_NAP: i64 = 1_000_000;
    let mut nap = FIRST_NAP;
    while !notices.any_given() {
        if interruptible.is_requested() {
            return Err(Ended::Interrupted);
        }
        if deadline.is_some_and(Deadline::has_passed) {
            return if notices.any_given() { Ok(()) } else { Err(Ended::TimedOut) };
        }
        sys::sched::sleep_nanoseconds(nap);
        nap = (nap * 2).min(LONGEST_NAP);
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests;
