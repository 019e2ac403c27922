//! Tokens that one thread leaves and another takes: the common part of
//! [`Semaphore`](super::Semaphore) and [`AutoEvent`](super::AutoEvent). The word is that of glibc's
//! `sem_t`.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0-31 | tokens available, at most 2^31 - 1; the kernel compares these |
//! | 32-61 | waiters: threads that have found no token and are not back yet |
//! | 62 | a thread has waited for several at once; never cleared |
//! | 63 | process-shared |
//!
//! # No waiter sleeps while there is a token
//!
//! ```text
//!   waiter                              giver
//!   ──────                              ─────
//!   waiters += 1                        tokens += n; any waiters?  (one step, the last touch)
//!   tokens? take one, waiters -= 1        no: done, without a system call
//!   sleep while tokens == 0               yes: wake n
//!   ... from the second step
//! ```
//!
//! Both first steps change the same word, so one of them comes second. If it is the giver's, it
//! finds the waiter counted and wakes it. If it is the waiter's, it finds the token. The wake and
//! the sleep are ordered by the waiter table or by the kernel.
//!
//! # Several at once
//!
//! A thread that wants several tokens takes all of them in one step, or none: two threads that each
//! held a part would wait for each other. It sleeps while the number of tokens is the one that it
//! found too small. So it sleeps although there are tokens, and a wake-up that was meant for any
//! waiter and reached it would be lost to another. Therefore these threads form a class of their
//! own. They are not counted as waiters, and each giver that finds bit 62 set wakes *all* of them,
//! in addition to the waiters that it wakes for its tokens.
//!
//! ```text
//!   waiter for n                        giver
//!   ────────────                        ─────
//!   bit 62                              tokens += k; bit 62?
//!   tokens = t >= n? take n, done         wake all that want several, and k others
//!   sleep while tokens == t
//!   ... from the second step
//! ```
//!
//! Nothing clears the bit: a giver that cleared it could miss a thread that has set it and does not
//! sleep yet. So once a thread has waited for several on a word, each giver pays for a look into
//! the waiter table, or for a system call if the word is process-shared.
//!
//! # Invariants
//!
//! 1. Every giver wakes as many waiters as it gives tokens, if there are *any* waiters. Waking only
//!    when the tokens rise from zero is the bug of libstdc++ and libc++ (GCC 98033, llvm #46357,
//!    #77659, #79265): of two givers in a row, the second would wake no waiter, and the second
//!    sleeper would sleep on although there is a token.
//! 2. A waiter that gives up takes a token if there is one, in the step in which it counts itself
//!    off ([`leave`]). The token may have been left for it, and an [`AutoEvent`](super::AutoEvent)
//!    must not keep it for another thread. (No wake-up is lost in either case: a waiter that a wake
//!    has chosen looks again, whatever its deadline.)
//! 3. The giver does not touch the word after its change. The thread that takes the token may free
//!    the memory at once.
//! 4. The count of waiters may be too high: some were killed, or exist only in the parent of this
//!    forked child. A semaphore then makes a wake call with every post, and nothing worse. (It is
//!    not known which waiters are missing, so the number cannot be corrected.)
//!
//! # Orderings
//!
//! Giving is Release and taking is Acquire, so the taker sees what the giver did before. All
//! changes of the word are read-modify-writes, which carry a release on. Counting a waiter orders
//! nothing; the waiter table's fences do.

use super::sleep::{self, Signals, Spot};
use crate::atomic::{AtomicU64, Ordering};
use crate::futex::{Error, Scope};
use crate::park::Until;
use crate::private::Awaited;
use crate::record::{self, Object};

const TOKEN: u64 = 1;
const TOKENS: u64 = u32::MAX as u64;
const WAITER: u64 = 1 << 32;
const WAITERS: u64 = SEVERAL - WAITER;
const SEVERAL: u64 = 1 << 62;
const SHARED: u64 = 1 << 63;

/// The classes of sleepers: those that want one token and those that want several.
const FOR_ONE: u64 = 1;
const FOR_SEVERAL: u64 = 2;

/// No tokens.
const NONE: u32 = 0;

/// The initial word.
pub(super) const fn word(tokens: u32, scope: Scope) -> u64 {
    match scope {
        Scope::Private => tokens as u64,
        Scope::Shared => tokens as u64 | SHARED,
    }
}

/// The number of tokens available.
#[inline]
pub(super) const fn tokens(word: u64) -> u32 {
    (word & TOKENS) as u32
}

/// The number of threads that wait, or once did.
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

/// Adds tokens, and wakes as many waiters. `how_many` gets the word and returns the number of
/// tokens, or `None` to refuse.
///
/// The word is written even if no token is added: the next thread that changes it must see what
/// this giver did before.
#[inline]
pub(super) fn give(word: &AtomicU64, how_many: impl Fn(u64) -> Option<u32>) -> Option<()> {
    if let Some((was, count)) = give_at_once(word, how_many)? {
        wake(word, was, count);
    }
    Some(())
}

/// A thread may wait for the token that was just left. The memory may be gone by now.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct PostedTo {
    word: *const AtomicU64,
    was: u64,
}

impl PostedTo {
    /// Wakes a waiter. Call it once.
    pub fn wake(self) {
        wake(self.word, self.was, 1);
    }
}

/// [`give`] of one token, without the wake-up.
#[inline(always)]
pub(super) fn give_one(
    word: &AtomicU64,
    may_give: impl Fn(u64) -> Option<u32>,
) -> Option<Option<PostedTo>> {
    let given = give_at_once(word, may_give)?;
    Some(given.map(|(was, _)| PostedTo { word, was }))
}

/// [`give`] without the wake-up. Returns the previous word and the number of tokens added if there
/// may be a waiter to wake.
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

/// The memory may be gone by now, so only its address is used.
///
/// `extern "C"`: it does not unwind, so its callers need no frame for that.
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

/// Takes `count` tokens in one step if there are that many.
#[inline]
pub(super) fn try_take_several(word: &AtomicU64, count: u32) -> bool {
    let fits = |now| (tokens(now) >= count).then(|| now - u64::from(count) * TOKEN);
    // Acquire: what was done before each of the tokens was given.
    word.fetch_update(Ordering::Acquire, Ordering::Relaxed, fits).is_ok()
}

/// Takes `count` tokens in one step, waiting until it can.
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
    let address = core::ptr::from_ref(word).addr();
    record::waiting(Object::Semaphore, address, until.deadline.is_some(), || {
        wait_for_several_unrecorded(word, count, until)
    })
}

#[inline(always)]
fn wait_for_several_unrecorded(
    word: &AtomicU64,
    count: u32,
    until: Until<'_>,
) -> Result<(), Error> {
    // Relaxed: a giver that does not see the bit comes before, and the loads below see its tokens.
    // The fences of the waiter table, or the kernel's, order the bit before the sleep.
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
        ended = sleep::wait_as(
            FOR_SEVERAL,
            Awaited::Tokens,
            word,
            scope,
            found,
            until,
            Signals::Ignored,
        );
    }
}

/// Takes a token, waiting until there is one.
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
    let address = core::ptr::from_ref(word).addr();
    record::waiting(Object::Semaphore, address, until.deadline.is_some(), || {
        wait_unrecorded(word, until, signals)
    })
}

#[inline(always)]
fn wait_unrecorded(word: &AtomicU64, until: Until<'_>, signals: Signals) -> Result<(), Error> {
    // Relaxed: a single word has a single modification order, so a giver that does not count this
    // waiter comes before, and `leave` sees its token. The fences of the waiter table, or the
    // kernel's, order the count before the sleep.
    let scope = scope(word.fetch_add(WAITER, Ordering::Relaxed));
    loop {
        if leave(word, false) {
            return Ok(());
        }
        if let Err(ended) =
            sleep::wait_as(FOR_ONE, Awaited::Tokens, word, scope, NONE, until, signals)
        {
            return match leave(word, true) {
                true => Ok(()),
                false => Err(ended),
            };
        }
    }
}

/// Takes a token and counts the waiter off, in one step. Without a token, the waiter stays counted
/// unless it has `given_up`. Returns whether it has a token.
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

    /// Nonsense that another process may have written into a shared word does not cause a panic.
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
