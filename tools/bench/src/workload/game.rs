//! Two players, one mutex, one condition variable per direction: the game that `pp` and `signal`
//! play.
//!
//! ```text
//! player 0                              player 1
//! --------                              --------
//! lock                                  lock
//! while it is not 0's turn: wait        while it is not 1's turn: wait
//! pass the turn; signal 1               pass the turn; signal 0
//! unlock                                unlock
//! ```
//!
//! Invariants: each condition variable has at most one waiter, and a waiter holds the mutex until
//! it waits, so a signal has one thread to wake, or none. The C library's lost wake-up (glibc bug
//! 25847, in 2.25 to 2.40) needs a later waiter that takes an earlier waiter's signal, so it cannot
//! occur here. A spurious wake-up is harmless.

use crate::locks::{BenchCondvar, BenchMutex};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// When a player signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// With the mutex held.
    Held,
    /// After having unlocked it.
    Unlocked,
}

/// One game.
#[repr(align(128))]
pub(super) struct Game<C: BenchCondvar> {
    mutex: C::Mutex,
    condvars: [C; 2],
    /// Turns taken. The lowest bit is the player whose turn it is.
    turns: AtomicU64,
}

impl<C: BenchCondvar> Game<C> {
    /// A game in which it is player 0's first turn.
    pub(super) fn new() -> Self {
        Self { mutex: C::Mutex::new(), condvars: [C::new(), C::new()], turns: AtomicU64::new(0) }
    }

    /// Plays this many turns of this player; each waits for one of the other player's.
    #[inline(never)]
    pub(super) fn play(&self, player: usize, turns: u64, signal: Signal) {
        match signal {
            Signal::Held => (0..turns).for_each(|_| self.take_turn::<true>(player)),
            Signal::Unlocked => (0..turns).for_each(|_| self.take_turn::<false>(player)),
        }
    }

    #[inline(always)]
    fn take_turn<const HELD: bool>(&self, me: usize) {
        let (mutex, other) = (&self.mutex, 1 - me);
        mutex.lock();
        // Relaxed, and a store instead of an atomic addition: the mutex provides the ordering.
        while self.turns() % 2 != me as u64 {
            // SAFETY: locked above, and again each time this returns; it stays borrowed, so it does
            // not move.
            unsafe { self.condvars[me].wait(mutex) };
        }
        self.turns.store(self.turns() + 1, Relaxed);
        if HELD {
            self.condvars[other].signal();
        }
        // SAFETY: locked above.
        unsafe { mutex.unlock() };
        if !HELD {
            self.condvars[other].signal();
        }
    }

    /// Turns taken by both players so far; exact when no game is running.
    #[inline(always)]
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::every_condvar;
    use waitword_testkit::watch;

    fn turn_by_turn<C: BenchCondvar>(signal: Signal) {
        let game = Game::<C>::new();
        std::thread::scope(|scope| {
            for player in 0..2 {
                let game = &game;
                scope.spawn(move || game.play(player, 300, signal));
            }
        });
        assert_eq!(game.turns(), 600, "{}", C::NAME);
    }

    #[test]
    fn every_contender_plays_to_the_end() {
        let _guard = watch();
        for signal in [Signal::Held, Signal::Unlocked] {
            every_condvar!(turn_by_turn(signal));
        }
    }
}
