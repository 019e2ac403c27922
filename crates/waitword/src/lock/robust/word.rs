//! The word of a robust mutex without priority inheritance: who takes it, who sleeps on it, and why no death leaves
//! a sleeper behind.
//!
//! The format is the kernel's, since the kernel writes it too, when a holder dies:
//!
//! | holder | `WAITERS` | `OWNER_DIED` | meaning |
//! |--------|-----------|--------------|---------|
//! | 0 | 0 | 0 | free, nobody waits |
//! | 0 | 1 | 0 | free; somebody may be asleep, and somebody awake is on the way to take it |
//! | 0 | any | 1 | free; the holder has died (written by the kernel only) |
//! | TID | 0 | 0 | held, nobody waits |
//! | TID | 1 | 0 | held, somebody may be asleep: unlock wakes one |
//! | TID | 1 | 1 | the same, *marked*: the holder is finding out whether anybody is asleep |
//!
//! # What always holds
//!
//! 1. **Whoever sleeps, `WAITERS` is set**, at every moment, through unlocks and takeovers. A sleep begins only if the
//!    word still has the bit (the kernel compares), whoever takes the word keeps the bit, and unlock leaves it set.
//!    The one who clears it has seen that nobody sleeps (below).
//! 2. **If somebody sleeps and the word is free, somebody awake answers for it**: the one who has just unlocked and is
//!    about to wake, or one who has been woken and is about to take it. Both have the mutex as their
//!    `list_op_pending`, and if such a one dies, the kernel finds the word without a holder and wakes the next.
//! 3. **If somebody sleeps and the word is held**, its holder wakes one at unlock, or by 1 the kernel at its death.
//!
//! So one death, or many at whatever step, leave nobody asleep for ever. The usual protocol (glibc's), in which
//! unlock writes 0 and only the woken one remembers that others sleep, does not have this:
//!
//! ```text
//!   holder               woken W              passer-by P           sleeper S
//!   unlock: word = 0
//!   wake one ----------> awake
//!                                             lock: 0 -> P
//!                        killed: the kernel sees that P holds
//!                        it, and leaves it to P
//!                                             unlock: no WAITERS,
//!                                             wakes nobody          sleeps for ever
//! ```
//!
//! Here P finds `WAITERS` in the free word, takes it along, and wakes S when it unlocks.
//!
//! # How the bit goes away again
//!
//! Since no unlock clears it, it would cost each unlock a wake for nobody, for ever. So a thread that takes a
//! word with the bit, not having slept, every few times looks whether anybody sleeps ([`tidy`]). A bare "is somebody
//! there? no: clear it" would lose one who was just about to sleep, and clearing first would leave sleepers without the
//! bit if the holder died then. So the holder marks the word first, by the bit that means nothing while there is a
//! holder:
//!
//! ```text
//!   holder                                             one who wants to sleep
//!   TID|WAITERS -> TID|WAITERS|mark
//!   kernel: anybody asleep, word still marked?         expects TID|WAITERS: the kernel says no,
//!     no                                                 or: TID|WAITERS|mark -> TID|WAITERS, sleeps
//!   TID|WAITERS|mark -> TID  (fails if unmarked)
//! ```
//!
//! Nobody sleeps on a marked word, and a word that is still marked has not been slept on since it was asked about.
//!
//! # Orderings
//!
//! Acquire to take, Release to free; the kernel's own change at a death is a full barrier after all that the dead
//! thread did. All else is Relaxed: the bits carry no data, and every sleep and wake is ordered by the kernel's
//! lock on the queue.

use super::error::RobustError;
use super::step::{Step, step};
use crate::atomic::{AtomicU32, Ordering};
use crate::lock::pi::{OWNER_DIED, TID_MASK, WAITERS};
use crate::sys::clock::Deadline;
use crate::sys::{Errno, robust};

/// Nobody holds it, nobody waits.
pub(super) const FREE: u32 = 0;
/// While somebody holds it: the holder is finding out whether anybody sleeps.
const MARK: u32 = OWNER_DIED;

/// How the word was as it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// The holder before has died.
    pub(super) died: bool,
    /// Somebody may sleep, and the taker has not slept itself: [`tidy`] now and then.
    pub(super) untidy: bool,
}

/// Takes the word if nobody holds it.
///
/// # Errors
/// [`RobustError::Busy`].
#[inline]
pub(super) fn try_take(word: &AtomicU32, me: u32) -> Result<Taken, RobustError> {
    match word.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(Taken {
            died: false,
            untidy: false,
        }),
        Err(seen) => try_take_unclean(word, me, seen),
    }
}

#[cold]
fn try_take_unclean(word: &AtomicU32, me: u32, mut seen: u32) -> Result<Taken, RobustError> {
    while seen & TID_MASK == 0 {
        let taken = me | seen & WAITERS;
        match word.compare_exchange(seen, taken, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                return Ok(Taken {
                    died: seen & OWNER_DIED != 0,
                    untidy: seen & WAITERS != 0,
                });
            }
            Err(now) => seen = now,
        }
    }
    Err(RobustError::Busy)
}

/// Takes the word, and sleeps until it can.
///
/// # Errors
/// [`RobustError::TimedOut`].
#[cold]
pub(super) fn take(
    word: &AtomicU32,
    me: u32,
    deadline: Option<&Deadline>,
) -> Result<Taken, RobustError> {
    spin_while_held(word);
    let mut slept = false;
    loop {
        if let Ok(taken) = try_take(word, me) {
            return Ok(Taken {
                untidy: taken.untidy && !slept,
                ..taken
            });
        }
        let Some(expected) = announce(word) else {
            continue;
        };
        step(Step::Announced);
        let ended = robust::wait(word, expected, deadline);
        step(Step::Woken);
        match ended {
            Ok(()) => slept = true,
            // Nobody has woken us: the kernel says this of a sleeper that it finds still queued.
            Err(Errno::TIMEDOUT) => return Err(RobustError::TimedOut),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(other) => return Err(RobustError::Kernel(other.raw_os_error())),
        }
    }
}

/// Sees to it that the held word says that somebody waits, and is not marked; what it then holds. `None` if it has
/// changed meanwhile.
fn announce(word: &AtomicU32) -> Option<u32> {
    let seen = word.load(Ordering::Relaxed);
    let holder = seen & TID_MASK;
    let announced = holder | WAITERS;
    if holder == 0 {
        return None;
    }
    if seen != announced {
        word.compare_exchange(seen, announced, Ordering::Relaxed, Ordering::Relaxed)
            .ok()?;
    }
    Some(announced)
}

/// Frees the word that the caller holds, and wakes one who waits. Once it is free, only its address is used.
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
    // A swap: whatever bits there were, somebody may wait.
    word.swap(WAITERS, Ordering::Release);
    step(Step::Released);
    robust::wake_one(word);
    step(Step::WokeOne);
}

/// Clears `WAITERS` in the word that the caller holds, if nobody sleeps. See above.
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
        // Also if the kernel refused to say.
        Ok(true) | Err(_) => untidy,
    };
    // Fails if somebody wants to sleep and has unmarked it.
    let _ = change(marked, tidied);
}

/// A short spin, while the holder is not known to keep others waiting: most holders are soon done.
#[cfg(not(loom))]
fn spin_while_held(word: &AtomicU32) {
    /// About a microsecond.
    const LOOKS: u32 = 100;
    if !may_spin() {
        return;
    }
    for _ in 0..LOOKS {
        let seen = word.load(Ordering::Relaxed);
        if seen & TID_MASK == 0 || seen & WAITERS != 0 {
            return;
        }
        core::hint::spin_loop();
    }
}

/// Whether there is a second CPU, and spinning is not turned off.
#[cfg(not(loom))]
fn may_spin() -> bool {
    /// How many CPUs there are; 0 is unknown. Relaxed: all who ask are told the same.
    static CPUS: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    let cpus = match CPUS.load(Ordering::Relaxed) {
        0 => {
            let cpus = crate::sys::sched::cpus();
            CPUS.store(cpus, Ordering::Relaxed);
            cpus
        }
        known => known,
    };
    cpus > 1 && !crate::park::budget().is_zero()
}

#[cfg(loom)]
fn spin_while_held(_: &AtomicU32) {}
