//! NPTL's condition variable as it was from 2003 to 2016 (glibc 2.3.3 to 2.24): an internal lock,
//! and three variants of a signal.
//!
//! **Reproduces** the three columns of Jakub Jelinek's mail of 2005 (`FUTEX_WAKE_OP`), under their
//! names there. His glibc patches and his benchmark are lost, and that glibc cannot run next to
//! today's. This code follows the mail's text and what is known of NPTL's protocol.
//!
//! | | a signal |
//! |---|---|
//! | `nptl-orig` | locks, wakes a waiter, unlocks: it blocks on the lock and is woken again |
//! | `nptl-requeue` | moves a waiter to the internal lock, whose unlock wakes it |
//! | `nptl-wake_op` | one call unlocks the internal lock and wakes the waiter |
//!
//! With requeue, the moved waiter has not recorded in the lock that it waits there. So the unlock
//! wakes a thread whatever the lock's state is, and every thread that has slept takes the lock as
//! contended: one more call for every wait, as the mail says.
//!
//! **The protocol**, in all three. Four counters, under the lock: how many waits have begun
//! (`total`), how many of these have been released (`wakeup`), how many have returned (`woken`),
//! and the number of broadcasts. Waiters sleep on a word that advances with each wait and each
//! signal. A broadcast releases all waiters, wakes one and moves the rest to the mutex; a thread
//! that has waited takes the mutex as contended. Left out, because nothing here needs it: the
//! counting for `pthread_cond_destroy`, clocks, cancellation.
//!
//! Like the original, it may let a thread that has only just begun to wait take the place of one
//! that was signalled earlier (glibc bug 13165). This is harmless if threads wait in a loop for a
//! condition that any waiter may consume, as all do here.

use super::futex::{ALL, FUTEX, LowLevelLock, Mutex, cmp_requeue};
use super::traits::BenchCondvar;
use crate::ops::Futexes;
use core::marker::PhantomData;
use core::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed};

/// How a signal wakes a waiter and unlocks.
pub trait Manner: Send + Sync + 'static {
    /// Its name in the mail.
    const NAME: &'static str;
    /// Whether a thread that has slept may have been moved to the internal lock.
    const MOVES_TO_LOCK: bool;
    /// Wakes one sleeper on `word`, and unlocks `lock`, which the caller holds.
    fn wake_and_unlock(word: &AtomicU32, lock: &LowLevelLock);
}

/// A wake call, then the unlock.
#[derive(Debug)]
pub struct Orig;
/// A requeue call, then an unlock that wakes.
#[derive(Debug)]
pub struct Requeue;
/// One call.
#[derive(Debug)]
pub struct WakeOp;

impl Manner for Orig {
    const NAME: &'static str = "nptl-orig";
    const MOVES_TO_LOCK: bool = false;

    fn wake_and_unlock(word: &AtomicU32, lock: &LowLevelLock) {
        FUTEX.wake(word, 1);
        lock.unlock();
    }
}

impl Manner for Requeue {
    const NAME: &'static str = "nptl-requeue";
    const MOVES_TO_LOCK: bool = true;

    fn wake_and_unlock(word: &AtomicU32, lock: &LowLevelLock) {
        if FUTEX.requeue(word, lock.word(), 0, 1) > 0 {
            lock.unlock_and_wake();
        } else {
            // No thread sleeps yet: one that is about to will find that the word has advanced.
            lock.unlock();
        }
    }
}

impl Manner for WakeOp {
    const NAME: &'static str = "nptl-wake_op";
    const MOVES_TO_LOCK: bool = false;

    fn wake_and_unlock(word: &AtomicU32, lock: &LowLevelLock) {
        // Frees the lock, wakes one sleeper on the word and, if the lock was contended, one on the
        // lock.
        FUTEX.wake_op(word, lock.word());
    }
}

/// The condition variable.
///
/// All fields except `lock` are read and changed under it, so accesses are `Relaxed`, and an
/// increment is a load and a store.
#[derive(Debug)]
pub struct Condvar<M> {
    lock: LowLevelLock,
    /// The word that waiters sleep on.
    word: AtomicU32,
    total: AtomicU64,
    wakeup: AtomicU64,
    woken: AtomicU64,
    broadcasts: AtomicU32,
    /// The word that the mutex's waiters sleep on, once a thread has waited here.
    mutex: AtomicPtr<AtomicU32>,
    manner: PhantomData<M>,
}

/// Only under the lock.
#[inline(always)]
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
}

impl<M: Manner> Condvar<M> {
    /// Only under the lock.
    #[inline(always)]
    fn move_on(&self) {
        let next = self.word.load(Relaxed).wrapping_add(1);
        self.word.store(next, Relaxed);
    }

    /// Whether there is a waiter that no signal has released.
    #[inline(always)]
    fn has_waiters(&self) -> bool {
        self.total.load(Relaxed) > self.wakeup.load(Relaxed)
    }
}

// SAFETY: the mutex is the textbook one; `wait` unlocks and relocks it.
unsafe impl<M: Manner> BenchCondvar for Condvar<M> {
    type Mutex = Mutex;
    const NAME: &'static str = M::NAME;

    fn new() -> Self {
        Self {
            lock: LowLevelLock::new(),
            word: AtomicU32::new(0),
            total: AtomicU64::new(0),
            wakeup: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            broadcasts: AtomicU32::new(0),
            mutex: AtomicPtr::new(ptr::null_mut()),
            manner: PhantomData,
        }
    }

    #[inline(never)]
    unsafe fn wait(&self, mutex: &Mutex) {
        self.lock.lock();
        mutex.0.unlock();
        add_one(&self.total);
        self.move_on();
        self.mutex.store(ptr::from_ref(mutex.0.word()).cast_mut(), Relaxed);
        let before = self.wakeup.load(Relaxed);
        let broadcasts = self.broadcasts.load(Relaxed);
        loop {
            let seen = self.word.load(Relaxed);
            self.lock.unlock();
            FUTEX.wait(&self.word, seen.into());
            if M::MOVES_TO_LOCK {
                self.lock.lock_contended();
            } else {
                self.lock.lock();
            }
            if self.broadcasts.load(Relaxed) != broadcasts {
                break;
            }
            let wakeup = self.wakeup.load(Relaxed);
            if wakeup != before && wakeup != self.woken.load(Relaxed) {
                add_one(&self.woken);
                break;
            }
        }
        self.lock.unlock();
        // A broadcast may have moved other waiters to the mutex.
        mutex.0.lock_contended();
    }

    #[inline(never)]
    fn signal(&self) {
        self.lock.lock();
        if self.has_waiters() {
            add_one(&self.wakeup);
            self.move_on();
            M::wake_and_unlock(&self.word, &self.lock);
        } else {
            self.lock.unlock();
        }
    }

    #[inline(never)]
    fn broadcast(&self) {
        self.lock.lock();
        if !self.has_waiters() {
            self.lock.unlock();
            return;
        }
        let total = self.total.load(Relaxed);
        self.wakeup.store(total, Relaxed);
        self.woken.store(total, Relaxed);
        self.move_on();
        let word = self.word.load(Relaxed);
        let broadcasts = self.broadcasts.load(Relaxed).wrapping_add(1);
        self.broadcasts.store(broadcasts, Relaxed);
        let mutex = self.mutex.load(Relaxed);
        self.lock.unlock();
        // Fails if another thread has begun to wait or has signalled in the meantime.
        if cmp_requeue(&self.word, (1, ALL), mutex, word).is_none() {
            FUTEX.wake(&self.word, ALL as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::{asleep, moves_all_but_one};
    use super::super::traits::BenchMutex;
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    /// The state that a signal leaves behind, with one sleeping waiter and no other thread.
    fn one_is_woken<M: Manner>() {
        let (condvar, mutex) = (Condvar::<M>::new(), Mutex::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                mutex.lock();
                // SAFETY: locked above.
                unsafe { condvar.wait(&mutex) };
                // SAFETY: `wait` has locked it.
                unsafe { mutex.unlock() };
            });
            while asleep(&condvar.word) < 1 {
                thread::yield_now();
            }
            condvar.signal();
        });
        let counts = [&condvar.total, &condvar.wakeup, &condvar.woken];
        assert_eq!(counts.map(|count| count.load(SeqCst)), [1; 3], "{}", M::NAME);
        assert_eq!(condvar.lock.word().load(SeqCst), 0, "{}", M::NAME);
        condvar.signal();
        assert_eq!(condvar.wakeup.load(SeqCst), 1, "{}: no thread waits", M::NAME);
    }

    #[test]
    fn a_signal_frees_one_and_unlocks() {
        let _guard = waitword_testkit::watch();
        one_is_woken::<Orig>();
        one_is_woken::<Requeue>();
        one_is_woken::<WakeOp>();
    }

    /// Another thread has blocked on the internal lock after the waiter was moved there, and sleeps
    /// behind it.
    #[test]
    fn a_waiter_moved_to_the_lock_wakes_the_next() {
        let _guard = waitword_testkit::watch();
        let (condvar, mutex) = (Condvar::<Requeue>::new(), Mutex::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                mutex.lock();
                // SAFETY: locked above.
                unsafe { condvar.wait(&mutex) };
                // SAFETY: `wait` has locked it.
                unsafe { mutex.unlock() };
            });
            while asleep(&condvar.word) < 1 {
                thread::yield_now();
            }
            condvar.lock.lock();
            add_one(&condvar.wakeup);
            condvar.move_on();
            assert_eq!(FUTEX.requeue(&condvar.word, condvar.lock.word(), 0, 1), 1);
            scope.spawn(|| condvar.signal());
            while asleep(condvar.lock.word()) < 2 {
                thread::yield_now();
            }
            condvar.lock.unlock_and_wake();
        });
        assert_eq!(condvar.woken.load(SeqCst), 1);
    }

    #[test]
    fn a_broadcast_moves_all_but_one_to_the_mutex() {
        let _guard = waitword_testkit::watch();
        let condvar = Condvar::<WakeOp>::new();
        moves_all_but_one(&condvar, &condvar.word);
    }
}
