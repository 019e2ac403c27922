//! The textbook mutex: one word with three states, directly on futex(2).
//!
//! After Ulrich Drepper, "Futexes Are Tricky" (2011): free, held, held with possible waiters. This
//! is the paper's last version ("Mutex, Take 3"), which is its second version with fewer steps
//! under contention. Unlocking is one exchange, as in glibc's low-level lock, which is the same
//! lock. A waiter sleeps at once; the first thread to arrive takes a free lock; there is no
//! fairness.
//!
//! The [historical implementations](super) are built on it, too: NPTL's internal lock was this one.

#[cfg(test)]
use super::traits::BenchCondvar;
use super::traits::BenchMutex;
use crate::ops::{Futexes, Kernel};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use syscalls::{Errno, Sysno, syscall6};

/// The system call, on private words.
pub(super) const FUTEX: Kernel<true> = Kernel;

const CMP_REQUEUE_PRIVATE: usize = 4 | 128;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// The lock itself, for use inside other locks; [`Mutex`] makes it a contender.
#[derive(Debug)]
#[repr(transparent)]
pub struct LowLevelLock(AtomicU32);

impl LowLevelLock {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline(always)]
    pub(super) fn lock(&self) {
        if let Err(state) = self.0.compare_exchange(FREE, HELD, Acquire, Relaxed) {
            self.wait(state);
        }
    }

    #[cold]
    fn wait(&self, state: u32) {
        if state == CONTENDED {
            FUTEX.wait(&self.0, CONTENDED.into());
        }
        self.lock_contended();
    }

    #[inline(always)]
    pub(super) fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok()
    }

    /// Takes the lock in the contended state, so that its unlock wakes a waiter. For threads that
    /// have slept on it, or that know that waiters may have been requeued here.
    #[cold]
    pub(super) fn lock_contended(&self) {
        while self.0.swap(CONTENDED, Acquire) != FREE {
            FUTEX.wait(&self.0, CONTENDED.into());
        }
    }

    #[inline(always)]
    pub(super) fn unlock(&self) {
        if self.0.swap(FREE, Release) == CONTENDED {
            FUTEX.wake(&self.0, 1);
        }
    }

    /// Unlocks and wakes one waiter whatever the state is: a waiter was requeued here, which the
    /// state does not record.
    pub(super) fn unlock_and_wake(&self) {
        self.0.store(FREE, Release);
        FUTEX.wake(&self.0, 1);
    }

    /// The word that waiters sleep on.
    #[inline(always)]
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

/// If `from` holds `expected`, wakes up to `wake` of its sleepers and moves up to `moved` of the
/// rest to the word at `to`. Returns how many were woken or moved, or `None` if `from` holds
/// another value.
pub(super) fn cmp_requeue(
    from: &AtomicU32,
    (wake, moved): (u32, u32),
    to: *const AtomicU32,
    expected: u32,
) -> Option<usize> {
    // SAFETY: `from` is borrowed. `to` may dangle, but it is a private word whose address serves
    // only as a key; the call neither reads nor writes it.
    let result = unsafe {
        syscall6(
            Sysno::futex,
            from.as_ptr().addr(),
            CMP_REQUEUE_PRIVATE,
            wake as usize,
            moved as usize,
            to.addr(),
            expected as usize,
        )
    };
    match result {
        Ok(count) => Some(count),
        Err(Errno::EAGAIN) => None,
        Err(error) => panic!("futex(2), cmp_requeue: {error}"),
    }
}

/// No limit: the kernel accepts no larger number.
pub(super) const ALL: u32 = i32::MAX as u32;

/// The mutex.
#[derive(Debug)]
#[repr(transparent)]
pub struct Mutex(pub(super) LowLevelLock);

// SAFETY: the thread that changed the word from free holds the lock, and only it sets the word to
// free.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = "futex(2)";

    fn new() -> Self {
        Self(LowLevelLock::new())
    }

    #[inline(never)]
    fn lock(&self) {
        self.0.lock();
    }

    #[inline(never)]
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    #[inline(never)]
    unsafe fn unlock(&self) {
        self.0.unlock();
    }
}

/// Counts the sleepers on a word by moving them to the word itself, which they cannot notice.
#[cfg(test)]
pub(super) fn asleep(word: &AtomicU32) -> usize {
    loop {
        let value = word.load(std::sync::atomic::Ordering::SeqCst);
        if let Some(count) = cmp_requeue(word, (0, ALL), word, value) {
            return count;
        }
    }
}

/// Fails unless a broadcast moves all but one of the waiters, which sleep on `word`, to the mutex.
#[cfg(test)]
pub(super) fn moves_all_but_one<C: BenchCondvar<Mutex = Mutex>>(condvar: &C, word: &AtomicU32) {
    const THREADS: usize = 4;
    let mutex = Mutex::new();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                mutex.lock();
                // SAFETY: locked above.
                unsafe { condvar.wait(&mutex) };
                // SAFETY: `wait` has locked it.
                unsafe { mutex.unlock() };
            });
        }
        while asleep(word) < THREADS {
            std::thread::yield_now();
        }
        mutex.lock();
        condvar.broadcast();
        let moved = asleep(mutex.0.word());
        // SAFETY: locked above.
        unsafe { mutex.unlock() };
        assert!(moved >= THREADS - 1, "{moved} of {THREADS}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;
    use waitword_testkit::watch;

    #[test]
    fn only_one_that_is_waited_for_is_contended() {
        let _guard = watch();
        let lock = LowLevelLock::new();
        lock.lock();
        assert_eq!(lock.word().load(SeqCst), HELD);
        lock.unlock();
        assert_eq!(lock.word().load(SeqCst), FREE);
        lock.lock_contended();
        assert_eq!(lock.word().load(SeqCst), CONTENDED);
        lock.unlock();
        assert_eq!(lock.word().load(SeqCst), FREE);
        lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.lock();
                assert_eq!(lock.word().load(SeqCst), CONTENDED, "others may wait");
                lock.unlock();
            });
            while lock.word().load(SeqCst) != CONTENDED {
                thread::yield_now();
            }
            lock.unlock();
        });
    }

    #[test]
    fn a_requeue_looks_at_the_value_first() {
        let _guard = watch();
        let (from, to) = (AtomicU32::new(7), AtomicU32::new(0));
        assert_eq!(cmp_requeue(&from, (1, ALL), &to, 6), None);
        assert_eq!(cmp_requeue(&from, (1, ALL), &to, 7), Some(0));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| FUTEX.wait(&from, 7));
            }
            while asleep(&from) < 2 {
                thread::yield_now();
            }
            assert_eq!(cmp_requeue(&from, (0, ALL), &to, 7), Some(2));
            assert_eq!(asleep(&from), 0);
            assert_eq!(FUTEX.wake(&to, 2), 2, "both are there");
        });
    }
}
