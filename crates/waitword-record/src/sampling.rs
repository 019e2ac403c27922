//! How many of a thread's waits are recorded.
//!
//! Up to a rate all of them. Beyond, one in 2, 4, 8, ... is recorded, chosen at random, and counts
//! that many times. So the totals are right on average, whatever the waits have in common.

use crate::budget::cpus;
use core::cell::Cell;

/// The time over which waits are counted.
const PERIOD: u64 = 50_000_000;
/// The most records of a process in a period, on average, for each of its CPUs: 20,000 a second. At
/// half a microsecond for each, that is a hundredth of the CPU (`budget.rs`).
const MOST: u64 = 1000;
/// A thread may have so many in any case.
const FEWEST: u64 = 50;
/// At most one in 2^20 is recorded.
const MOST_SHIFT: u8 = 20;

/// The sampling of one thread.
#[derive(Debug)]
pub(crate) struct Sampling {
    began: Cell<u64>,
    waits: Cell<u64>,
    shift: Cell<u8>,
    random: Cell<u64>,
}

impl Sampling {
    pub(crate) const fn new() -> Self {
        Self { began: Cell::new(0), waits: Cell::new(0), shift: Cell::new(0), random: Cell::new(0) }
    }

    /// Counts a wait that ends `now`. Returns how many it stands for, as a power of two; `None` if
    /// it is not recorded.
    pub(crate) fn takes(&self, now: u64, threads: u64) -> Option<u8> {
        let most = most(threads, cpus());
        if now.wrapping_sub(self.began.get()) >= PERIOD {
            // What the last period would have needed.
            let needed = self.waits.get().div_ceil(most).max(1).next_power_of_two();
            self.shift.set((needed.ilog2() as u8).min(MOST_SHIFT));
            self.began.set(now);
            self.waits.set(0);
        }
        self.waits.set(self.waits.get() + 1);
        let shift =
            match self.waits.get() > most << self.shift.get() && self.shift.get() < MOST_SHIFT {
                // Faster than the last period.
                true => {
                    self.shift.set(self.shift.get() + 1);
                    self.shift.get()
                }
                false => self.shift.get(),
            };
        (self.draw(now) & ((1 << shift) - 1) == 0).then_some(shift)
    }

    /// xorshift.
    fn draw(&self, seed: u64) -> u64 {
        let mut x = match self.random.get() {
            0 => seed | 1,
            x => x,
        };
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        x >> 11
    }
}

/// How many records a thread may write in a period, of a process with so many threads.
fn most(threads: u64, cpus: u64) -> u64 {
    (MOST * cpus / threads.max(1)).clamp(FEWEST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of records, and the number of waits that they stand for.
    fn record(waits: u64, apart: u64) -> (u64, u64) {
        let sampling = Sampling::new();
        let taken = (0..waits).filter_map(|n| sampling.takes(1_000_000_000 + n * apart, 1));
        taken.fold((0, 0), |(records, sum), shift| (records + 1, sum + (1 << shift)))
    }

    #[test]
    fn below_the_rate_every_wait_is_recorded() {
        assert_eq!(record(50_000, PERIOD / MOST + 1), (50_000, 50_000));
    }

    #[test]
    fn many_threads_share_the_rate() {
        assert_eq!((most(0, 2), most(2, 2), most(16, 2)), (MOST, MOST, MOST / 8));
        assert_eq!(most(1000, 2), FEWEST);
    }

    #[test]
    fn above_it_the_records_stand_for_all_waits() {
        for apart in [25_000, 5_000, 1_000, 100] {
            let waits = 2_000_000;
            let (records, sum) = record(waits, apart);
            let error = (sum as f64 / waits as f64 - 1.0).abs();
            // Ten standard errors of so many records.
            assert!(error < 10.0 / (records as f64).sqrt(), "{apart}: {records}, {sum}");
            let seconds = (waits * apart) as f64 / 1e9;
            let rate = records as f64 / seconds.max(0.05);
            assert!(rate < 50_000.0, "{apart}: {rate}");
        }
    }
}
