//! The textbook's mutex: one word with three states, directly on futex(2).
//!
//! After Ulrich Drepper, "Futexes Are Tricky" (2011): free, held, held and perhaps waited for. It is the paper's last one
//! ("Mutex, Take 3"), which is its second with fewer steps when somebody waits; unlocking is one exchange, as in glibc's own
//! low-level lock, which is the same lock. A waiter sleeps at once; whoever comes first takes it; no fairness.
//!
//! It is what the [old ways](super) stand on, too: NPTL's internal lock was this one.

use super::BenchMutex;
use crate::ops::{Futexes, Kernel};
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use syscalls::{Errno, Sysno, syscall6};

/// The system call, for private words.
pub(super) const FUTEX: Kernel<true> = Kernel;

const CMP_REQUEUE_PRIVATE: usize = 4 | 128;

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// The lock itself, for those who have one inside of theirs. Only a mutex made of it is one to the outside.
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
        self.0
            .compare_exchange(FREE, HELD, Acquire, Relaxed)
            .is_ok()
    }

    /// Takes it as one that is waited for: who unlocks it will wake somebody. For those who have slept on it, or who know
    /// that others have been moved here.
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

    /// Unlocks, and wakes one whatever the state says: somebody has been moved here who is not in it.
    pub(super) fn unlock_and_wake(&self) {
        self.0.store(FREE, Release);
        FUTEX.wake(&self.0, 1);
    }

    /// What waiters sleep on.
    #[inline(always)]
    pub(super) fn word(&self) -> &AtomicU32 {
        &self.0
    }
}

/// Wakes up to `wake` of those who sleep on `from` and moves up to `moved` of the others to the word at `to`, if `from` holds
/// `expected`; how many that were. `None` if it holds something else.
pub(super) fn cmp_requeue(
    from: &AtomicU32,
    (wake, moved): (u32, u32),
    to: *const AtomicU32,
    expected: u32,
) -> Option<usize> {
    // SAFETY: `from` is borrowed; `to`, of which there may be nothing left, is a private word: its address is a key, nothing is
    // read or written there.
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

/// As many as there are; more is not a number to the kernel.
pub(super) const ALL: u32 = i32::MAX as u32;

/// The mutex.
#[derive(Debug)]
#[repr(transparent)]
pub struct Mutex(pub(super) LowLevelLock);

// SAFETY: who has changed the word from free holds it, and nobody else changes it to free.
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

/// How many sleep on a word: moved to where they are, nobody notices.
#[cfg(test)]
pub(super) fn asleep(word: &AtomicU32) -> usize {
    loop {
        let value = word.load(std::sync::atomic::Ordering::SeqCst);
        if let Some(count) = cmp_requeue(word, (0, ALL), word, value) {
            return count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watchdog;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    #[test]
    fn only_one_that_is_waited_for_is_contended() {
        let _guard = watchdog::guard("futex(2): states");
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
        let _guard = watchdog::guard("futex(2): cmp_requeue");
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
