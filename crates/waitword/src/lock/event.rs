//! An event that stays set until it is reset.
//!
//! | bits | meaning |
//! |------|---------|
//! | 0-31 | turns: sets and resets so far, modulo 2^32; odd while set; the kernel compares these |
//! | 32 | a thread may sleep |
//! | 63 | process-shared |
//!
//! # A set directly followed by a reset
//!
//! ```text
//!   waiter                                   another thread
//!   ──────                                   ──────────────
//!   turns == 4: not set; sleeps
//!                                            set: turns = 5, wakes all
//!                                            reset: turns = 6
//!   awake: turns != 4, so it was set
//! ```
//!
//! With a bit instead of the turns, the waiter would find the event reset and sleep again. A set
//! directly followed by a reset would then release only some of the waiters, or none.
//!
//! # Invariants
//!
//! 1. A sleeper has announced itself in the word, in the turn that it sleeps for. `set` clears the
//!    announcement in the step that ends the turn, and wakes all sleepers.
//! 2. `set` does not touch the word after that. A released waiter may free the memory at once.
//! 3. `set` and `reset` write the word even if nothing changes. Otherwise this would lose a
//!    wake-up:
//!
//! ```text
//!   consumer                                 producer
//!   ────────                                 ────────
//!                                            adds work
//!   reset        (the event was set)         set        (already set: nothing to do)
//!   any work? no: waits forever
//! ```
//!
//! One of the two changes of the word comes second. If it is `set`, the event ends up set. If it is
//! `reset`, it has acquired what the producer's change released, and the consumer sees the work.

use super::const_fn::const_fn;
use super::sleep::{self, Signals, Spot};
use crate::atomic::{AtomicU64, Ordering};
use crate::futex::Scope;
use crate::private::Awaited;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;
use core::fmt;
use core::time::Duration;

const TURNS: u64 = u32::MAX as u64;
const SLEEPERS: u64 = 1 << 32;
const SHARED: u64 = 1 << 63;

const fn turn(word: u64) -> u32 {
    (word & TURNS) as u32
}

const fn is_set(word: u64) -> bool {
    word & 1 != 0
}

const fn scope(word: u64) -> Scope {
    match word & SHARED {
        0 => Scope::Private,
        _ => Scope::Shared,
    }
}

/// The word, one turn later.
const fn turned(word: u64) -> u64 {
    word & !TURNS | turn(word).wrapping_add(1) as u64
}

/// An event: threads wait until it is set, and pass freely as long as it is set. It stays set until
/// it is [`reset`](Self::reset).
///
/// A [`set`](Self::set) releases every thread that waits at that moment, even if a reset follows at
/// once.
///
/// ```
/// use waitword::Event;
///
/// static READY: Event = Event::new();
///
/// let waiters = [(); 3].map(|()| std::thread::spawn(|| READY.wait()));
/// READY.set();
/// for waiter in waiters {
///     waiter.join().unwrap();
/// }
/// assert!(READY.is_set());
/// ```
///
/// 8 bytes; all zeros is a private event that is not set. [`AutoEvent`](crate::AutoEvent) is an
/// event that lets one thread pass at a time.
///
/// * **Memory.** What a thread did before a set is visible to all threads that pass. Once all waits
///   have returned, the event may be freed, even while the set is still returning.
/// * **Signal handlers** may call `set`, `reset` and `is_set`.
/// * **fork**: a private event is copied as it is. The parent's waiters do not exist in the child.
/// * **Process-shared** ([`Scope::Shared`]): may lie in memory that several processes map.
///
/// Source: Windows' manual-reset event, .NET's `ManualResetEvent`.
#[repr(C)]
pub struct Event {
    word: AtomicU64,
}

const _: () = assert!(cfg!(loom) || size_of::<Event>() == 8);

impl Event {
    const_fn! {
        /// Creates a private event that is not set.
        pub const fn new() -> Self {
            Self::with_scope(false, Scope::Private)
        }
    }

    const_fn! {
        /// Creates an event for the threads of one process, or of several, initially set or not.
        pub const fn with_scope(is_set: bool, scope: Scope) -> Self {
            let shared = match scope {
                Scope::Private => 0,
                Scope::Shared => SHARED,
            };
            Self {
                word: AtomicU64::new(is_set as u64 | shared),
            }
        }
    }

    /// Sets the event and releases all waiters.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    pub fn set(&self) {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let set = match is_set(now) {
                true => now,
                false => turned(now) & !SLEEPERS,
            };
            // Release: what we did before is visible to threads that pass, and to a thread that
            // resets the event.
            match self.word.compare_exchange_weak(now, set, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(changed) => now = changed,
            }
        }
        if now & SLEEPERS != 0 {
            // From here on the memory may be gone.
            Spot::of(&self.word, scope(now)).wake(usize::MAX);
        }
    }

    /// Resets the event: threads that arrive from now on wait.
    ///
    /// Does not block. Async-signal-safe.
    #[inline]
    pub fn reset(&self) {
        // Acquire: invariant 3. Release: carries earlier sets on to threads that acquire from here.
        let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| {
            Some(if is_set(word) { turned(word) } else { word })
        });
    }

    /// Whether the event is set.
    #[inline]
    pub fn is_set(&self) -> bool {
        // Acquire: what the setter did is visible.
        is_set(self.word.load(Ordering::Acquire))
    }

    /// Waits until the event is set, or has been set for a moment. Signal handlers do not end the
    /// wait.
    ///
    /// Blocks.
    #[inline]
    pub fn wait(&self) {
        let _ = self.is_set() || self.wait_for_turn(None);
    }

    /// [`wait`](Self::wait), but until `deadline` at the latest. Returns whether the event was set.
    /// If it is set already, the deadline is not checked.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_until(&self, deadline: Deadline) -> bool {
        self.is_set() || self.wait_for_turn(Some(&deadline))
    }

    /// [`wait`](Self::wait), but for at most `timeout`. Returns whether the event was set.
    ///
    /// Blocks.
    #[inline]
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.is_set() || self.wait_for_turn(Some(&Deadline::after(timeout)))
    }

    /// Whether a thread has announced that it is about to sleep.
    #[cfg(loom)]
    pub(crate) fn may_have_sleepers(&self) -> bool {
        self.word.load(Ordering::Relaxed) & SLEEPERS != 0
    }

    #[cold]
    fn wait_for_turn(&self, deadline: Option<&Deadline>) -> bool {
        let address = core::ptr::from_ref(self).addr();
        let waited = record::waiting(Object::Semaphore, address, deadline.is_some(), || {
            self.wait_for_turn_unrecorded(deadline).then_some(()).ok_or(())
        });
        waited.is_ok()
    }

    #[inline(always)]
    fn wait_for_turn_unrecorded(&self, deadline: Option<&Deadline>) -> bool {
        // Acquire here and below: as in `is_set`.
        let mut now = self.word.load(Ordering::Acquire);
        let found = turn(now);
        let mut timed_out = false;
        loop {
            if is_set(now) || turn(now) != found {
                return true;
            }
            if timed_out {
                return false;
            }
            if now & SLEEPERS == 0 {
                // Acquire: a failure may find the event set. (A success does not end the wait.)
                if let Err(changed) = self.word.compare_exchange_weak(
                    now,
                    now | SLEEPERS,
                    Ordering::Acquire,
                    Ordering::Acquire,
                ) {
                    now = changed;
                    continue;
                }
            }
            let waited = sleep::wait(
                Awaited::Event,
                &self.word,
                scope(now),
                found,
                deadline,
                Signals::Ignored,
            );
            timed_out = waited.is_err();
            now = self.word.load(Ordering::Acquire);
        }
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Event").field("is_set", &is_set(word)).field("scope", &scope(word)).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn turns_wrap_around() {
        let event = Event { word: AtomicU64::new(SHARED | SLEEPERS | (TURNS - 1)) };
        event.set();
        assert_eq!(event.word.load(Ordering::Relaxed), SHARED | TURNS);
        event.set();
        assert!(event.is_set());
        event.reset();
        assert_eq!(event.word.load(Ordering::Relaxed), SHARED);
        event.reset();
        assert!(!event.is_set());
        event.set();
        assert!(event.wait_for(Duration::ZERO));
    }

    #[test]
    fn a_waiter_is_released_although_turns_wrap_around() {
        for shared in [0, SHARED] {
            let event = Event { word: AtomicU64::new(shared | (TURNS - 5)) };
            for _ in 0..6 {
                std::thread::scope(|threads| {
                    let waiter = threads.spawn(|| event.wait_for(Duration::from_secs(60)));
                    while event.word.load(Ordering::Relaxed) & SLEEPERS == 0 {
                        std::thread::yield_now();
                    }
                    // Set and reset in a row: the waiter can only tell by the turn.
                    event.set();
                    event.reset();
                    assert!(waiter.join().unwrap());
                });
            }
            assert_eq!(event.word.load(Ordering::Relaxed), shared | 6);
        }
    }
}
