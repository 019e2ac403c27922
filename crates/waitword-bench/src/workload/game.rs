//! Two players, one mutex, a condition variable a direction: what `pp` and `signal` play.
//!
//! ```text
//! player 0                              player 1
//! --------                              --------
//! lock                                  lock
//! while it is not 0's turn: wait        while it is not 1's turn: wait
//! give the turn; signal 1               give the turn; signal 0
//! unlock                                unlock
//! ```
//!
//! Invariants: there is one waiter at most on either condition variable, and whoever waits holds the mutex until it
//! does: a signal has one thread to wake, or none. The C library's lost wake-up (glibc bug 25847, in 2.25 to 2.40),
//! for which a later waiter must take the signal of an earlier one, has no two waiters to strike here. A wake-up
//! for no reason is harmless.

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
    /// How many turns were taken: whose turn it is, is its last bit.
    turns: AtomicU64,
}

impl<C: BenchCondvar> Game<C> {
    /// Of which nothing has been played: it is player 0's turn.
    pub(super) fn new() -> Self {
        Self {
            mutex: C::Mutex::new(),
            condvars: [C::new(), C::new()],
            turns: AtomicU64::new(0),
        }
    }

    /// So many turns of this player, each of which waits for one of the other.
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
        // Relaxed, and a store and no atomic addition: the mutex brings the order.
        while self.turns() % 2 != me as u64 {
            // SAFETY: locked above, and again whenever this returns; borrowed all the while, it does not move.
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

    /// Turns taken so far, by both; exact when nobody plays.
    #[inline(always)]
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::every_condvar;
    use crate::watchdog;

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
        let _guard = watchdog::guard("game");
        for signal in [Signal::Held, Signal::Unlocked] {
            every_condvar!(turn_by_turn(signal));
        }
    }
}
