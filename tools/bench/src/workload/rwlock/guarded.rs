//! A rwlock and the numbers that it guards, so that the workload can check its lock.

use crate::harness::{Failure, check};
use crate::locks::BenchRwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A lock and two numbers under it, on a separate cache line: the lock's size must not decide
/// whether they disturb it.
#[repr(C, align(128))]
pub(super) struct Guarded<L> {
    pub(super) lock: L,
    numbers: Numbers,
}

#[derive(Default)]
#[repr(align(128))]
struct Numbers([AtomicU64; 2]);

impl<L: BenchRwLock> Guarded<L> {
    pub(super) fn new() -> Self {
        Self { lock: L::new(), numbers: Numbers::default() }
    }

    /// A read section. Returns whether it saw a half-done write.
    #[inline(always)]
    pub(super) fn read(&self) -> bool {
        // Relaxed, here and below: the lock must provide the ordering.
        let [first, second] = &self.numbers.0;
        first.load(Relaxed) != second.load(Relaxed)
    }

    /// A write section. Loads and stores instead of atomic steps: if two writers hold the lock at
    /// once, an increment is lost.
    #[inline(always)]
    pub(super) fn write(&self) {
        for number in &self.numbers.0 {
            let so_far = number.load(Relaxed);
            number.store(so_far + 1, Relaxed);
        }
    }

    /// The number of write sections, by each number. Takes the lock.
    pub(super) fn writes(&self) -> [u64; 2] {
        self.lock.read_lock();
        let writes = self.numbers.0.each_ref().map(|number| number.load(Relaxed));
        // SAFETY: locked above; `&self` keeps it in place; this thread holds no other.
        unsafe { self.lock.read_unlock() };
        writes
    }
}

/// Fails unless each writer was alone. `writes` write sections were done since the numbers were
/// `before`, and `torn` read sections saw a half-done one.
pub(super) fn check_writes<L: BenchRwLock>(
    guarded: &Guarded<L>,
    before: [u64; 2],
    writes: u64,
    torn: u64,
) -> Result<(), Failure> {
    let now = guarded.writes();
    let counted = [now[0] - before[0], now[1] - before[1]];
    check(counted == [writes; 2] && torn == 0, || {
        format!(
            "a writer was not alone: {writes} writes were done, {counted:?} counted; {torn} reads \
             saw a half-done write"
        )
    })
}
