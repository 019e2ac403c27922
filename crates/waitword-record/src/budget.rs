//! What recording may take of a program's CPUs.
//!
//! Some of what the recorder does costs more than the short critical section that it is about. Each
//! such kind of work has a budget: a hundredth of the process's CPUs, whatever the number of
//! threads.
//!
//! | work | where |
//! |---|---|
//! | looks at short holds | `recorder.rs` |
//! | records of waits | `sampling.rs` |
//! | the kernel's record of switches; while it rests, readings of `/proc` | `duty.rs`, `sums.rs` |

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The budget is one in so many: recording is to take 3 % at most, and there are three kinds of
/// work.
const SHARE: u64 = 100;
/// More is not taken for the cost of one piece of work, in nanoseconds: four times what a reading
/// of `/proc` takes (2.5 µs; a look takes 0.5 µs). The thread has lost its CPU meanwhile, or has
/// made its ring.
const MOST: u64 = 10_000;

/// When the next piece of work may be done. Accesses are Relaxed: it is a number to be compared. If
/// two threads work at the same time, the cost of one may be forgotten.
#[derive(Debug)]
pub(crate) struct Budget {
    next: AtomicU64,
}

impl Budget {
    pub(crate) const fn new() -> Self {
        Self { next: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn allows(&self, now: u64) -> bool {
        now >= self.next.load(Relaxed)
    }

    /// Work has been done between these times. Returns what it cost.
    pub(crate) fn spend(&self, began: u64, ended: u64) -> u64 {
        let cost = ended.saturating_sub(began).clamp(1, MOST);
        self.spend_on(cost, ended, cpus());
        cost
    }

    fn spend_on(&self, cost: u64, ended: u64, cpus: u64) {
        self.next.store(self.next.load(Relaxed).max(ended) + cost * SHARE / cpus, Relaxed);
    }
}

/// The number of CPUs that the process may use.
pub(crate) fn cpus() -> u64 {
    static CPUS: AtomicU64 = AtomicU64::new(0);
    let known = CPUS.load(Relaxed);
    if known != 0 {
        return known;
    }
    // SAFETY: `cpu_set_t` is an array of integers, so all zeros are valid. The call writes at most
    // the size that it is given.
    let count = unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        match libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) {
            0 => libc::CPU_COUNT(&set),
            _ => 1,
        }
    };
    let found = u64::try_from(count).unwrap_or(1).max(1);
    CPUS.store(found, Relaxed);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_a_hundredth_of_the_cpus() {
        let budget = Budget::new();
        assert!(budget.allows(0));
        budget.spend_on(300, 1_000_300, 2);
        assert!(!budget.allows(1_015_299) && budget.allows(1_015_300));
        // Long holds are looked at nevertheless: then others wait.
        budget.spend_on(1000, 1_002_000, 2);
        assert!(!budget.allows(1_065_299) && budget.allows(1_065_300));
        assert_eq!(budget.spend(2_000_000, 1_990_000), 1);
        assert_eq!(budget.spend(2_000_000, 9_000_000), MOST);
        assert!(cpus() > 0);
    }
}
