//! NPTL's reader-writer lock as it was until 2016 (glibc 2.24): several 32-bit words behind an
//! internal lock.
//!
//! **Reproduces** the "old" lock of Ulrich Drepper's mail of 2008 (64-bit futexes), which set out
//! to put all of its state into one word. That glibc cannot run next to today's, whose lock is a
//! different one. This code follows NPTL's protocol as of 2008, without the shortcuts that glibc
//! 2.19 and later added.
//!
//! **The protocol.** Every operation takes the internal lock (the [textbook one](super::futex)) to
//! check and update the counts: two atomic operations to lock, two to unlock, and readers block
//! each other there. A thread that has to wait counts itself as queued, remembers a word that
//! advances with each wake-up, and sleeps on it: readers on one word, writers on another. The last
//! to leave wakes a writer if one is queued, else all readers. With *prefer reader*, the default, a
//! reader waits only for a writer that holds the lock; with *prefer writer*, it also waits for
//! queued ones.
//!
//! Left out: the check that a writer does not relock. (There, the thread's id records that there is
//! a writer; here, a 1 does.)

use super::futex::{ALL, FUTEX, LowLevelLock};
use super::traits::BenchRwLock;
use crate::ops::Futexes;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The lock. All fields except `lock` are read and changed under it, so accesses are `Relaxed`, and
/// an increment is a load and a store.
#[derive(Debug)]
pub struct RwLock<const PREFER_WRITER: bool> {
    lock: LowLevelLock,
    readers: AtomicU32,
    /// 1 if there is a writer.
    writer: AtomicU32,
    readers_queued: AtomicU32,
    writers_queued: AtomicU32,
    /// The word that readers sleep on.
    readers_wakeup: AtomicU32,
    /// The word that writers sleep on.
    writer_wakeup: AtomicU32,
}

/// New readers overtake queued writers.
pub type PreferReader = RwLock<false>;
/// New readers queue behind queued writers.
pub type PreferWriter = RwLock<true>;

/// Only under the lock.
#[inline(always)]
fn add(counter: &AtomicU32, what: i32) {
    let sum = counter.load(Relaxed).wrapping_add_signed(what);
    counter.store(sum, Relaxed);
}

impl<const PREFER_WRITER: bool> RwLock<PREFER_WRITER> {
    /// Sleeps until the word advances; the lock is held before and after.
    fn sleep(&self, queued: &AtomicU32, word: &AtomicU32) {
        add(queued, 1);
        let seen = word.load(Relaxed);
        self.lock.unlock();
        FUTEX.wait(word, seen.into());
        self.lock.lock();
        add(queued, -1);
    }

    /// Advances the word, unlocks, and wakes up to `count` of its sleepers.
    fn unlock_and_wake(&self, word: &AtomicU32, count: u32) {
        add(word, 1);
        self.lock.unlock();
        FUTEX.wake(word, count as usize);
    }

    /// For readers and writers: if there is a writer, it is the caller.
    #[inline(always)]
    fn leave(&self) {
        self.lock.lock();
        if self.writer.load(Relaxed) != 0 {
            self.writer.store(0, Relaxed);
        } else {
            add(&self.readers, -1);
        }
        if self.readers.load(Relaxed) == 0 {
            if self.writers_queued.load(Relaxed) > 0 {
                return self.unlock_and_wake(&self.writer_wakeup, 1);
            }
            if self.readers_queued.load(Relaxed) > 0 {
                return self.unlock_and_wake(&self.readers_wakeup, ALL);
            }
        }
        self.lock.unlock();
    }
}

// SAFETY: a writer enters only if the lock is free, a reader only if there is no writer; both are
// checked and counted under the internal lock.
unsafe impl<const PREFER_WRITER: bool> BenchRwLock for RwLock<PREFER_WRITER> {
    const NAME: &'static str = if PREFER_WRITER { "nptl, prefer writer" } else { "nptl" };

    fn new() -> Self {
        Self {
            lock: LowLevelLock::new(),
            readers: AtomicU32::new(0),
            writer: AtomicU32::new(0),
            readers_queued: AtomicU32::new(0),
            writers_queued: AtomicU32::new(0),
            readers_wakeup: AtomicU32::new(0),
            writer_wakeup: AtomicU32::new(0),
        }
    }

    #[inline(never)]
    fn read_lock(&self) {
        self.lock.lock();
        while self.writer.load(Relaxed) != 0
            || (PREFER_WRITER && self.writers_queued.load(Relaxed) > 0)
        {
            self.sleep(&self.readers_queued, &self.readers_wakeup);
        }
        add(&self.readers, 1);
        self.lock.unlock();
    }

    #[inline(never)]
    unsafe fn read_unlock(&self) {
        self.leave();
    }

    #[inline(never)]
    fn write_lock(&self) {
        self.lock.lock();
        while self.writer.load(Relaxed) != 0 || self.readers.load(Relaxed) > 0 {
            self.sleep(&self.writers_queued, &self.writer_wakeup);
        }
        self.writer.store(1, Relaxed);
        self.lock.unlock();
    }

    #[inline(never)]
    unsafe fn write_unlock(&self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::asleep;
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;
    use waitword_testkit::watch;

    /// With a reader inside and a writer asleep, returns whether another reader has to sleep, too.
    fn a_reader_waits_behind_a_queued_writer<const PREFER_WRITER: bool>() -> bool {
        let lock = RwLock::<PREFER_WRITER>::new();
        let entered = AtomicU32::new(0);
        let mut waits = false;
        lock.read_lock();
        thread::scope(|scope| {
            scope.spawn(|| {
                lock.write_lock();
                // SAFETY: locked above.
                unsafe { lock.write_unlock() };
            });
            while asleep(&lock.writer_wakeup) < 1 {
                thread::yield_now();
            }
            scope.spawn(|| {
                lock.read_lock();
                entered.store(1, SeqCst);
                // SAFETY: locked above.
                unsafe { lock.read_unlock() };
            });
            while !waits && entered.load(SeqCst) == 0 {
                waits = asleep(&lock.readers_wakeup) == 1;
                thread::yield_now();
            }
            // SAFETY: locked above.
            unsafe { lock.read_unlock() };
        });
        let left = [&lock.readers, &lock.writer, &lock.readers_queued, &lock.writers_queued];
        assert_eq!(left.map(|count| count.load(SeqCst)), [0; 4]);
        waits
    }

    #[test]
    fn the_preference_is_whether_readers_wait_for_queued_writers() {
        let _guard = watch();
        assert!(!a_reader_waits_behind_a_queued_writer::<false>());
        assert!(a_reader_waits_behind_a_queued_writer::<true>());
    }

    /// A thread has counted itself as queued but not yet fallen asleep: the value it read must
    /// become stale.
    #[test]
    fn a_wake_up_moves_the_word_on() {
        let lock = PreferReader::new();
        for (queued, word) in [
            (&lock.writers_queued, &lock.writer_wakeup),
            (&lock.readers_queued, &lock.readers_wakeup),
        ] {
            lock.write_lock();
            queued.store(1, SeqCst);
            // SAFETY: locked above.
            unsafe { lock.write_unlock() };
            assert_eq!(word.load(SeqCst), 1);
            queued.store(0, SeqCst);
        }
    }
}
