//! The word of a robust mutex without priority inheritance: how it is taken, how threads sleep on
//! it, and why no death leaves a sleeper stranded.
//!
//! The format is the kernel's, because the kernel writes the word too when a holder dies:
//!
//! | holder | `WAITERS` | `OWNER_DIED` | meaning |
//! |--------|-----------|--------------|---------|
//! | 0 | 0 | 0 | free, no waiters |
//! | 0 | 1 | 0 | free; threads may be asleep, and a thread that is awake is about to take it |
//! | 0 | any | 1 | free; the holder has died (written only by the kernel) |
//! | TID | 0 | 0 | held, no waiters |
//! | TID | 1 | 0 | held, threads may be asleep: unlock wakes one |
//! | TID | 1 | 1 | the same, *marked*: the holder is finding out whether any thread is asleep |
//!
//! # Invariants
//!
//! 1. **While any thread sleeps, `WAITERS` is set**, at every moment, through unlocks and
//!    takeovers. A sleep begins only if the word still has the bit (the kernel compares), a thread
//!    that takes the word keeps the bit, and unlock leaves it set. A thread clears it only after it
//!    has seen that no thread sleeps (below).
//! 2. **If a thread sleeps and the word is free, a thread that is awake is responsible for it**:
//!    either the one that has just unlocked and is about to wake a sleeper, or one that was woken
//!    and is about to take the word. Both have the mutex as their `list_op_pending`; if such a
//!    thread dies, the kernel finds the word without a holder and wakes the next sleeper.
//! 3. **If a thread sleeps and the word is held**, `WAITERS` is set (invariant 1), so the holder
//!    wakes one at unlock, or the kernel does when the holder dies.
//!
//! So no number of deaths, at whatever steps, leaves a thread asleep forever. The usual protocol
//! (glibc's), in which unlock writes 0 and only the woken thread remembers that others sleep, does
//! not guarantee this:
//!
//! ```text
//!   holder               woken W              barging P             sleeper S
//!   unlock: word = 0
//!   wake one ----------> awake
//!                                             lock: 0 -> P
//!                        killed: the kernel sees that P holds
//!                        the word, and leaves it to P
//!                                             unlock: no WAITERS,
//!                                             wakes no thread       sleeps forever
//! ```
//!
//! Here P finds `WAITERS` in the free word, keeps it, and wakes S when it unlocks.
//!
//! # How the bit is cleared
//!
//! No unlock clears the bit, so every later unlock would make a wake call for nothing. Therefore a
//! thread that takes a word with the bit set, without having slept itself, checks every few times
//! whether any thread sleeps ([`tidy`]). A bare "does a thread sleep? no: clear it" would miss a
//! thread that is about to sleep, and clearing first would leave sleepers without the bit if the
//! holder died at that point. So the holder first marks the word, with the bit that has no meaning
//! while there is a holder:
//!
//! ```text
//!   holder                                        thread that is about to sleep
//!   TID|WAITERS -> TID|WAITERS|mark
//!   kernel: any sleepers, word still marked?      expects TID|WAITERS: the kernel refuses,
//!     no                                            or: TID|WAITERS|mark -> TID|WAITERS, sleeps
//!   TID|WAITERS|mark -> TID  (fails if unmarked)
//! ```
//!
//! No thread goes to sleep on a marked word, so if the word is still marked, no thread has gone to
//! sleep on it since the kernel was asked.
//!
//! # Orderings
//!
//! Acquire to take, Release to free. The kernel's own change at a death is a full barrier after
//! everything that the dead thread did. All other accesses are Relaxed: the bits carry no data, and
//! every sleep and wake is ordered by the kernel's lock on the queue.

use super::error::RobustError;
use super::step::{Step, step};
use crate::atomic::{AtomicU32, Ordering, spin_loop};
use crate::lock::pi::{OWNER_DIED, TID_MASK, WAITERS};
use crate::park::spin;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;
use crate::sys::{Errno, robust};
use core::time::Duration;

/// No holder, no waiters.
pub(super) const FREE: u32 = 0;
/// In a held word: the holder is finding out whether any thread sleeps.
const MARK: u32 = OWNER_DIED;

/// The state of the word when it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// The previous holder died.
    pub(super) died: bool,
    /// A thread may sleep, and the taker has not slept itself: call [`tidy`] now and then.
    pub(super) untidy: bool,
}

/// Takes the word if it is free.
///
/// # Errors
/// [`RobustError::Busy`].
#[inline]
pub(super) fn try_take(word: &AtomicU32, me: u32) -> Result<Taken, RobustError> {
    match word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Taken { died: false, untidy: false }),
        Err(seen) => try_take_unclean(word, me, seen),
    }
}

#[cold]
fn try_take_unclean(word: &AtomicU32, me: u32, mut seen: u32) -> Result<Taken, RobustError> {
    while seen & TID_MASK == 0 {
        let taken = me | seen & WAITERS;
        match word.compare_exchange(seen, taken, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                return Ok(Taken { died: seen & OWNER_DIED != 0, untidy: seen & WAITERS != 0 });
            }
            Err(now) => seen = now,
        }
    }
    Err(RobustError::Busy)
}

/// Takes the word; sleeps until it can.
///
/// # Errors
/// [`RobustError::TimedOut`].
#[cold]
pub(super) fn take(
    word: &AtomicU32,
    me: u32,
    deadline: Option<&Deadline>,
) -> Result<Taken, RobustError> {
    record::waiting(Object::Mutex, address(word), deadline.is_some(), || {
        take_unrecorded(word, me, deadline)
    })
}

/// The mutex's: the word is its first field.
fn address(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}

#[inline(always)]
fn take_unrecorded(
    word: &AtomicU32,
    me: u32,
    deadline: Option<&Deadline>,
) -> Result<Taken, RobustError> {
    spin_while_held(word);
    let mut slept = false;
    loop {
        if let Ok(taken) = try_take(word, me) {
            return Ok(Taken { untidy: taken.untidy && !slept, ..taken });
        }
        let Some(expected) = announce(word) else {
            continue;
        };
        step(Step::Announced);
        let ended = robust::wait(word, expected, deadline);
        step(Step::Woken);
        match ended {
            Ok(()) => slept = true,
            // No thread has woken us: the kernel returns this only for a sleeper that it finds
            // still queued.
            Err(Errno::TIMEDOUT) => return Err(RobustError::TimedOut),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(other) => return Err(RobustError::Kernel(other.raw_os_error())),
        }
    }
}

/// Makes the held word record a waiter, unmarked, and returns its new value. `None` if the word is
/// free or changed meanwhile.
fn announce(word: &AtomicU32) -> Option<u32> {
    let seen = word.load(Ordering::Relaxed);
    let holder = seen & TID_MASK;
    let announced = holder | WAITERS;
    if holder == 0 {
        return None;
    }
    if seen != announced {
        word.compare_exchange(seen, announced, Ordering::Relaxed, Ordering::Relaxed).ok()?;
    }
    Some(announced)
}

/// Frees the word, which the caller holds, and wakes one waiter. Once the word is free, only its
/// address is used.
#[inline]
pub(super) fn release(word: &AtomicU32, me: u32) {
    let freed = word.compare_exchange(me, FREE, Ordering::Release, Ordering::Relaxed);
    if freed.is_err() {
        release_and_wake(word);
    } else {
        step(Step::Released);
    }
}

#[cold]
fn release_and_wake(word: &AtomicU32) {
    record::releasing(address(word), || true, || false);
    // A swap: whatever the bits were, a thread may wait.
    word.swap(WAITERS, Ordering::Release);
    step(Step::Released);
    robust::wake_one(word);
    step(Step::WokeOne);
}

/// Clears `WAITERS` in the word, which the caller holds, if no thread sleeps. See above.
#[cold]
pub(super) fn tidy(word: &AtomicU32, me: u32) {
    let (untidy, marked) = (me | WAITERS, me | WAITERS | MARK);
    let change = |from, to| word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    if change(untidy, marked).is_err() {
        return;
    }
    step(Step::Marked);
    let tidied = match robust::has_sleepers(word, marked) {
        Ok(false) => me,
        // Also if the kernel call failed.
        Ok(true) | Err(_) => untidy,
    };
    // Fails if another thread is about to sleep and has unmarked the word.
    let _ = change(marked, tidied);
}

/// Spins briefly while the word shows no waiters: most holders finish soon.
fn spin_while_held(word: &AtomicU32) {
    const LONGEST: Duration = Duration::from_micros(1);
    if !spin::is_allowed() {
        return;
    }
    for _ in 0..spin::pauses(spin::budget().min(LONGEST)) {
        let seen = word.load(Ordering::Relaxed);
        if seen & TID_MASK == 0 || seen & WAITERS != 0 {
            return;
        }
        spin_loop();
    }
}
