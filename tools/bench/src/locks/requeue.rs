//! The condition variable before and after the requeue patch of 2003: one broadcast wakes all
//! waiters at once, the other wakes one and moves the rest to the mutex. Both use the [textbook
//! mutex](super::futex).
//!
//! **Reproduces** the comparison in Ingo Molnar's mail of 2003 (`FUTEX_REQUEUE`). The libraries of
//! that time are gone; this is as simple an implementation as possible.
//!
//! | | broadcast | a woken thread takes the mutex |
//! |---|---|---|
//! | `futex(2), wake all` | wakes a herd: all but one go back to sleep on the mutex | as usual |
//! | `futex(2), requeue` | `CMP_REQUEUE`: wakes one, moves the rest to the mutex | as contended |
//!
//! Why as contended: a moved waiter has not recorded in the mutex that it waits there. A woken
//! thread knows that other waiters may have been moved, so it takes the mutex in a state whose
//! unlock wakes the next, which does the same. This costs one useless call at the end of the chain
//! and after each signal, as it did in glibc.
//!
//! A waiter sleeps on a sequence number that each signal advances, so no wake-up is lost between
//! the unlock and the sleep unless 2³² signals come in between. A signal without waiters makes no
//! call.

use super::futex::{ALL, FUTEX, Mutex, cmp_requeue};
use super::traits::BenchCondvar;
use crate::ops::Futexes;
use core::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A condition variable; `REQUEUE` selects whether its broadcast requeues.
///
/// A thread that changes the waiter's condition holds the mutex meanwhile, and signals then or
/// later. This orders the waiter's increment of `waiters` before the signaller's load, and the
/// sequence needs no ordering of its own. A thread that signals without ever having held the mutex
/// may miss a waiter; if it sees one, it also sees the mutex's address (`Release`, `Acquire`).
#[derive(Debug)]
pub struct Condvar<const REQUEUE: bool> {
    sequence: AtomicU32,
    waiters: AtomicU32,
    /// The word that the mutex's waiters sleep on, once a thread has waited here.
    mutex: AtomicPtr<AtomicU32>,
}

/// Its broadcast wakes all waiters.
pub type WakeAll = Condvar<false>;
/// Its broadcast moves all but one waiter to the mutex.
pub type Requeue = Condvar<true>;

impl<const REQUEUE: bool> Condvar<REQUEUE> {
    /// Advances the sequence, so that a thread that is about to sleep does not. Returns the new
    /// value, or `None` if no thread waits.
    #[inline(always)]
    fn advance(&self) -> Option<u32> {
        if self.waiters.load(Acquire) == 0 {
            return None;
        }
        Some(self.sequence.fetch_add(1, Relaxed).wrapping_add(1))
    }
}

// SAFETY: the mutex is the textbook one; `wait` unlocks and relocks it.
unsafe impl<const REQUEUE: bool> BenchCondvar for Condvar<REQUEUE> {
    type Mutex = Mutex;
    const NAME: &'static str = if REQUEUE { "futex(2), requeue" } else { "futex(2), wake all" };

    fn new() -> Self {
        Self {
            sequence: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            mutex: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex) {
        self.mutex.store(ptr::from_ref(mutex.0.word()).cast_mut(), Relaxed);
        self.waiters.fetch_add(1, Release);
        let seen = self.sequence.load(Relaxed);
        mutex.0.unlock();
        FUTEX.wait(&self.sequence, seen.into());
        if REQUEUE {
            mutex.0.lock_contended();
        } else {
            mutex.0.lock();
        }
        self.waiters.fetch_sub(1, Relaxed);
    }

    #[inline(never)]
    fn signal(&self) {
        if self.advance().is_some() {
            FUTEX.wake(&self.sequence, 1);
        }
    }

    #[inline(never)]
    fn broadcast(&self) {
        let Some(mut sequence) = self.advance() else {
            return;
        };
        if !REQUEUE {
            FUTEX.wake(&self.sequence, ALL as usize);
            return;
        }
        let mutex = self.mutex.load(Relaxed);
        // Fails if another signal has advanced the sequence.
        while cmp_requeue(&self.sequence, (1, ALL), mutex, sequence).is_none() {
            sequence = self.sequence.load(Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::moves_all_but_one;
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn a_broadcast_moves_all_but_one() {
        let _guard = waitword_testkit::watch();
        let condvar = Requeue::new();
        moves_all_but_one(&condvar, &condvar.sequence);
        assert_eq!(condvar.waiters.load(SeqCst), 0);
    }

    #[test]
    fn a_signal_without_waiters_makes_no_call() {
        let condvar = Requeue::new();
        condvar.signal();
        condvar.broadcast();
        assert_eq!(condvar.sequence.load(SeqCst), 0);
    }
}
