//! The condition variable before and after the requeue of 2003: a broadcast that wakes all at once, and one that wakes one
//! and moves the others to the mutex. Both on the [textbook's mutex](super::futex).
//!
//! **Redraws** what Ingo Molnar's mail of 2003 compares (`FUTEX_REQUEUE`). The programs' libraries of that time are gone:
//! this is written here, as plainly as it can be.
//!
//! | | broadcast | a woken thread |
//! |---|---|---|
//! | `futex(2), wake all` | wakes all: a herd, of which all but one go back to sleep, on the mutex | takes the mutex as anybody does |
//! | `futex(2), requeue` | `FUTEX_CMP_REQUEUE`: wakes one, moves the others to where the mutex's waiters sleep | takes it as contended |
//!
//! Why as contended: who is moved has not noted in the mutex that it waits there. One that is woken knows that others may
//! have been moved, and takes the mutex so that its unlock wakes the next, who does the same. It costs a call in vain in
//! the end, and after each signal: that was so in glibc, too.
//!
//! A waiter sleeps on a sequence number, which each signal moves on: nothing is lost between the unlocking and the sleep,
//! short of 2³² signals in between. Who signals while nobody waits makes no call.

use super::BenchCondvar;
use super::futex::{ALL, FUTEX, Mutex, cmp_requeue};
use crate::ops::Futexes;
use core::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A condition variable; `REQUEUE`: whether its broadcast requeues.
///
/// Who changes what a waiter waits for holds the mutex meanwhile, and signals then or later: that orders the waiter's counting
/// before the signal's looking, and the sequence needs no order of its own. Who signals without ever having held the mutex
/// may find nobody; whom it does find has told where the mutex is (`Release`, `Acquire`).
#[derive(Debug)]
pub struct Condvar<const REQUEUE: bool> {
    sequence: AtomicU32,
    waiters: AtomicU32,
    /// Where the mutex's waiters sleep, once there was a waiter here.
    mutex: AtomicPtr<AtomicU32>,
}

/// Its broadcast wakes all.
pub type WakeAll = Condvar<false>;
/// Its broadcast moves all but one to the mutex.
pub type Requeue = Condvar<true>;

impl<const REQUEUE: bool> Condvar<REQUEUE> {
    /// Moves the sequence on, so that who is about to sleep does not; its new value. `None` if nobody waits.
    #[inline(always)]
    fn advance(&self) -> Option<u32> {
        if self.waiters.load(Acquire) == 0 {
            return None;
        }
        Some(self.sequence.fetch_add(1, Relaxed).wrapping_add(1))
    }
}

// SAFETY: the mutex is the textbook's; `wait` unlocks and locks it.
unsafe impl<const REQUEUE: bool> BenchCondvar for Condvar<REQUEUE> {
    type Mutex = Mutex;
    const NAME: &'static str = if REQUEUE {
        "futex(2), requeue"
    } else {
        "futex(2), wake all"
    };

    fn new() -> Self {
        Self {
            sequence: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
            mutex: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex) {
        self.mutex
            .store(ptr::from_ref(mutex.0.word()).cast_mut(), Relaxed);
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
        // Fails if another signal has moved the sequence on.
        while cmp_requeue(&self.sequence, (1, ALL), mutex, sequence).is_none() {
            sequence = self.sequence.load(Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::BenchMutex;
    use super::super::futex::asleep;
    use super::*;
    use crate::watchdog;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    #[test]
    fn a_broadcast_moves_all_but_one() {
        const THREADS: usize = 4;
        let _guard = watchdog::guard("futex(2), requeue: broadcast");
        let (condvar, mutex) = (Requeue::new(), Mutex::new());
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    mutex.lock();
                    // SAFETY: locked above.
                    unsafe { condvar.wait(&mutex) };
                    // SAFETY: `wait` has locked it.
                    unsafe { mutex.unlock() };
                });
            }
            while asleep(&condvar.sequence) < THREADS {
                thread::yield_now();
            }
            mutex.lock();
            condvar.broadcast();
            let moved = asleep(mutex.0.word());
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
            assert!(moved >= THREADS - 1, "{moved} of {THREADS}");
        });
        assert_eq!(condvar.waiters.load(SeqCst), 0);
    }

    #[test]
    fn who_signals_nobody_makes_no_call() {
        let condvar = Requeue::new();
        condvar.signal();
        condvar.broadcast();
        assert_eq!(condvar.sequence.load(SeqCst), 0);
    }
}
