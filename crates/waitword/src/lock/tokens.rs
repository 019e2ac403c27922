//! Tokens that one thread leaves and another takes: what a [`Semaphore`](super::Semaphore) and an
//! [`AutoEvent`](super::AutoEvent) have in common. The word is that of glibc's `sem_t`.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0-31 | tokens that lie here, at most 2^31 - 1; the kernel compares these |
//! | 32-61 | waiters: threads that have found no token and are not back yet |
//! | 62 | a thread has waited for several at once; for good |
//! | 63 | process-shared |
//!
//! # Nobody sleeps beside a token
//!
//! ```text
//!   waiter                              giver
//!   ──────                              ─────
//!   waiters += 1                        tokens += n; old waiters?  (one step; its last touch)
//!   tokens? take one, waiters -= 1        none: done, no call
//!   sleep while tokens == 0               some: wake n
//!   ... once more
//! ```
//!
//! Both first steps change the one word, so one of them comes second. If it is the giver's, it finds the waiter
//! counted and wakes. If it is the waiter's, it finds the token. The wake and the sleep are ordered by the table, or
//! by the kernel.
//!
//! # Several at once
//!
//! A thread that wants several takes all of them in one step, or none: two that each had a part
//! would wait for each other. It sleeps while the number of tokens is the one that it found too
//! small. So it sleeps beside tokens, and a wake that was meant for "a waiter" and reached it
//! would be lost to another. Therefore these threads are a class of their own: they are not among
//! the waiters that are counted, and each giver that finds bit 62 wakes *all* of them, besides
//! those that it wakes for its tokens.
//!
//! ```text
//!   waiter for n                        giver
//!   ────────────                        ─────
//!   bit 62                              tokens += k; bit 62?
//!   tokens = t >= n? take n, done         wake all that want several, and k others
//!   sleep while tokens == t
//!   ... once more
//! ```
//!
//! Nothing clears the bit: a giver that did could pass by a thread that has set it and does not
//! sleep yet. So a word on which a thread has once waited for several costs its givers a look into
//! the table, or a system call if it is process-shared.
//!
//! # Invariants
//!
//! 1. Every giver wakes as many as it gives tokens, if *anybody* waits. "Only when tokens rise from zero" is the bug
//!    of libstdc++ and libc++ (GCC 98033, llvm #46357, #77659, #79265): of two givers in a row the second would wake
//!    nobody, and the second sleeper sleep on beside a token.
//! 2. A waiter that gives up takes a token if there is one, in the step in which it counts itself off ([`leave`]):
//!    the token may have been left for it, and an [`AutoEvent`](super::AutoEvent) must not keep it for another. (A
//!    wake-up is not lost either way: who has been chosen by one looks again, whatever the deadline says.)
//! 3. The giver does not touch the word after its change. Whoever takes that token may free the memory at once.
//! 4. Too many waiters counted (some were killed, or are the parent's and we a forked child) cost a semaphore a wake
//!    call each time, no more. (It is not known who is missing, so the number cannot be put right.)
//!
//! # Orderings
//!
//! Giving is Release and taking Acquire, so what the giver did before is visible to the taker; all changes of the
//! word are read-modify-writes, which carry a release on. Counting a waiter orders nothing: the table's fences do.

use super::sleep::{self, Signals, Spot};
use crate::atomic::{AtomicU64, Ordering};
use crate::futex::{Error, Scope};
use crate::park::Until;

const TOKEN: u64 = 1;
const TOKENS: u64 = u32::MAX as u64;
const WAITER: u64 = 1 << 32;
const WAITERS: u64 = SEVERAL - WAITER;
const SEVERAL: u64 = 1 << 62;
const SHARED: u64 = 1 << 63;

/// The classes of sleepers: those that want one token, and those that want several.
const FOR_ONE: u64 = 1;
const FOR_SEVERAL: u64 = 2;

/// No tokens.
const NONE: u32 = 0;

/// The word to begin with.
pub(super) const fn word(tokens: u32, scope: Scope) -> u64 {
    match scope {
        Scope::Private => tokens as u64,
        Scope::Shared => tokens as u64 | SHARED,
    }
}

/// How many tokens lie there.
#[inline]
pub(super) const fn tokens(word: u64) -> u32 {
    (word & TOKENS) as u32
}

/// How many wait, or once did.
#[inline]
pub(super) const fn waiters(word: u64) -> u32 {
    ((word & WAITERS) >> 32) as u32
}

#[inline]
pub(super) const fn scope(word: u64) -> Scope {
    match word & SHARED {
        0 => Scope::Private,
        _ => Scope::Shared,
    }
}

/// Leaves as many tokens as `how_many` says, which is shown the word, and wakes as many waiters. `None`: refuses.
///
/// The word is written even if no token is left: whoever changes it next must see what this giver did before.
#[inline]
pub(super) fn give(word: &AtomicU64, how_many: impl Fn(u64) -> Option<u32>) -> Option<()> {
    if let Some((was, count)) = give_at_once(word, how_many)? {
        wake(word, was, count);
    }
    Some(())
}

/// Somebody may wait for the token that was just left. The memory may be gone by now.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct PostedTo {
    word: *const AtomicU64,
    was: u64,
}

impl PostedTo {
    /// Wakes a waiter. Called once.
    pub fn wake(self) {
        wake(self.word, self.was, 1);
    }
}

/// [`give`] of one token, up to the wake-up.
#[inline(always)]
pub(super) fn give_one(
    word: &AtomicU64,
    may_give: impl Fn(u64) -> Option<u32>,
) -> Option<Option<PostedTo>> {
    let given = give_at_once(word, may_give)?;
    Some(given.map(|(was, _)| PostedTo { word, was }))
}

/// [`give`], up to the wake-up: what the word was, and how many tokens were left.
#[inline(always)]
fn give_at_once(
    word: &AtomicU64,
    how_many: impl Fn(u64) -> Option<u32>,
) -> Option<Option<(u64, u32)>> {
    let mut now = word.load(Ordering::Relaxed);
    let count = loop {
        let count = how_many(now)?;
        let given = now + u64::from(count) * TOKEN;
        match word.compare_exchange_weak(now, given, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => break count,
            Err(changed) => now = changed,
        }
    };
    if now & (WAITERS | SEVERAL) != 0 && count != 0 {
        return Some(Some((now, count)));
    }
    Some(None)
}

/// The memory may be gone by now: only its address is used.
///
/// `extern "C"`: it does not unwind, so that the calls that give need no frame for that.
#[cold]
#[inline(never)]
extern "C" fn wake(word: *const AtomicU64, was: u64, count: u32) {
    let spot = Spot::at(word, scope(was));
    if was & WAITERS != 0 {
        spot.wake_class(FOR_ONE, count as usize);
    }
    if was & SEVERAL != 0 {
        spot.wake_class(FOR_SEVERAL, usize::MAX);
    }
}

/// Takes a token if there is one.
#[inline]
pub(super) fn try_take(word: &AtomicU64) -> bool {
    let mut now = word.load(Ordering::Relaxed);
    while tokens(now) != NONE {
        match word.compare_exchange_weak(now, now - TOKEN, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(changed) => now = changed,
        }
    }
    false
}

/// Takes as many tokens in one step, if there are so many.
#[inline]
pub(super) fn try_take_several(word: &AtomicU64, count: u32) -> bool {
    let fits = |now| (tokens(now) >= count).then(|| now - u64::from(count) * TOKEN);
    // Acquire: what was done before each of them was given.
    word.fetch_update(Ordering::Acquire, Ordering::Relaxed, fits)
        .is_ok()
}

/// Takes as many tokens in one step, or waits until it can.
///
/// # Errors
/// [`Error::TimedOut`].
#[inline]
pub(super) fn take_several<'u>(
    word: &AtomicU64,
    count: u32,
    until: impl Into<Until<'u>>,
) -> Result<(), Error> {
    if try_take_several(word, count) {
        return Ok(());
    }
    wait_for_several(word, count, until.into())
}

#[cold]
fn wait_for_several(word: &AtomicU64, count: u32, until: Until<'_>) -> Result<(), Error> {
    // Relaxed: a giver that does not see the bit comes before, and the loads below see its tokens.
    // The table's fences, or the kernel's, order it before the sleep.
    let scope = scope(word.fetch_or(SEVERAL, Ordering::Relaxed));
    let mut ended = Ok(());
    loop {
        let found = tokens(word.load(Ordering::Relaxed));
        if found >= count {
            if try_take_several(word, count) {
                return Ok(());
            }
            continue;
        }
        ended?;
        ended = sleep::wait_as(FOR_SEVERAL, word, scope, found, until, Signals::Ignored);
    }
}

/// Takes a token, or waits for one.
///
/// # Errors
/// [`Error::TimedOut`]; [`Error::Interrupted`] if that is to be reported.
#[inline]
pub(super) fn take<'u>(
    word: &AtomicU64,
    until: impl Into<Until<'u>>,
    signals: Signals,
) -> Result<(), Error> {
    if try_take(word) {
        return Ok(());
    }
    wait(word, until.into(), signals)
}

#[cold]
fn wait(word: &AtomicU64, until: Until<'_>, signals: Signals) -> Result<(), Error> {
    // Relaxed: one word has one order of changes, so a giver that does not count this waiter comes
    // before, and `leave` sees its token. The table's fences, or the kernel's, order it before the
    // sleep.
    let scope = scope(word.fetch_add(WAITER, Ordering::Relaxed));
    loop {
        if leave(word, false) {
            return Ok(());
        }
        if let Err(ended) = sleep::wait_as(FOR_ONE, word, scope, NONE, until, signals) {
            return match leave(word, true) {
                true => Ok(()),
                false => Err(ended),
            };
        }
    }
}

/// A waiter takes a token and counts itself off, in one step. If there is none, it stays, or counts itself off all
/// the same if it has `given_up`. Whether it has a token.
fn leave(word: &AtomicU64, given_up: bool) -> bool {
    let mut now = word.load(Ordering::Relaxed);
    loop {
        // Wrapping: another process may have written nonsense into a shared word.
        let (left, has_token) = match tokens(now) {
            NONE if !given_up => return false,
            NONE => (now.wrapping_sub(WAITER), false),
            _ => (now.wrapping_sub(WAITER) - TOKEN, true),
        };
        match word.compare_exchange_weak(now, left, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return has_token,
            Err(changed) => now = changed,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_that_of_glibc_s_sem_t() {
        assert_eq!(word(0, Scope::Private), 0);
        assert_eq!(word(5, Scope::Private), 5);
        let shared = word(5, Scope::Shared) + 3 * WAITER;
        assert_eq!((tokens(shared), waiters(shared)), (5, 3));
        assert_eq!(scope(shared), Scope::Shared);
        assert_eq!(scope(word(5, Scope::Private) + WAITERS), Scope::Private);
    }

    /// What another process may have written into a shared word leads nowhere, but not to a panic.
    #[test]
    fn nonsense_in_the_word() {
        for nonsense in [u64::MAX, SHARED | u64::from(u32::MAX), WAITERS, TOKENS] {
            let word = AtomicU64::new(nonsense | SHARED);
            let _ = give(&word, |_| Some(0));
            let _ = try_take(&word);
            let _ = leave(&word, true);
        }
    }
}
