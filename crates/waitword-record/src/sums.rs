//! How long the calling thread ran and waited for a CPU in total: where the kernel shows no
//! switches (`switches.rs`).
//!
//! `/proc/thread-self/schedstat` has two sums in nanoseconds: the time on a CPU, and the time
//! runnable without one. Reading it takes some microseconds, so it is read where a lock is released
//! that other threads wait for, and where a wait for a lock ends, as far as its budget allows. The
//! difference between two readings is taken for the time in between, whatever part of it matters:
//! that is coarse.

use crate::budget::Budget;
use crate::files::{begin_of, time};
use crate::switches::Spent;
use core::cell::Cell;

/// A hold that lasted so many times as long as a reading ends with one in any case: that is a
/// hundredth of the hold.
const LONG: u64 = 100;

static READINGS: Budget = Budget::new();

/// A reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    at: u64,
    ran: u64,
    waited: u64,
}

/// The last reading of a thread.
#[derive(Debug)]
pub(crate) struct Sums {
    last: Cell<Option<Reading>>,
    /// What it cost.
    cost: Cell<u64>,
}

impl Sums {
    pub(crate) const fn new() -> Self {
        Self { last: Cell::new(None), cost: Cell::new(0) }
    }

    /// Reads the sums, if the budget allows it or the thread has not done it before. `None` if
    /// there are none.
    pub(crate) fn read(&self, now: u64) -> Option<()> {
        if self.last.get().is_none() || READINGS.allows(now) {
            self.read_now(now);
        }
        self.last.get().map(|_| ())
    }

    fn read_now(&self, now: u64) {
        self.last.set(reading(now));
        self.cost.set(READINGS.spend(now, time(libc::CLOCK_MONOTONIC)));
    }

    /// How the thread spent the time from `since` until `now`, about: reads the sums. `None` if the
    /// last reading is much older than `since`, there is none, or the budget does not allow it.
    pub(crate) fn since(&self, since: u64, now: u64) -> Option<Spent> {
        let last = self.last.get();
        let is_long = now.saturating_sub(since) >= LONG * self.cost.get();
        if !is_long && !READINGS.allows(now) {
            return None;
        }
        self.read_now(now);
        between(last?, self.last.get()?, since)
    }
}

fn between(first: Reading, last: Reading, since: u64) -> Option<Spent> {
    let all = last.at.saturating_sub(first.at);
    if all > 4 * last.at.saturating_sub(since) {
        return None;
    }
    let running = last.ran.saturating_sub(first.ran).min(all);
    let preempted = last.waited.saturating_sub(first.waited).min(all - running);
    // The number of sleeps is not known.
    Some(Spent { running, preempted, asleep: all - running - preempted, sleeps: 0 })
}

fn reading(at: u64) -> Option<Reading> {
    let mut text = [0; 64];
    let text = begin_of(c"/proc/thread-self/schedstat", &mut text)?;
    let mut fields = text.split(|&byte| byte == b' ');
    let mut field = || core::str::from_utf8(fields.next()?).ok()?.parse().ok();
    Some(Reading { at, ran: field()?, waited: field()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_difference_of_two_readings_is_what_was_spent() {
        let first = Reading { at: 1000, ran: 50, waited: 7 };
        let last = Reading { at: 2000, ran: 250, waited: 107 };
        let spent = Spent { running: 200, preempted: 100, asleep: 700, sleeps: 0 };
        assert_eq!(between(first, last, 1000), Some(spent));
        assert_eq!(between(first, last, 1700), Some(spent));
        assert_eq!(between(first, last, 1800), None);
        // Sums that cannot be.
        let odd = Reading { at: 2000, ran: 9000, waited: 0 };
        let spent = Spent { running: 1000, preempted: 0, asleep: 0, sleeps: 0 };
        assert_eq!(between(first, odd, 1000), Some(spent));
    }

    #[test]
    fn a_sleeping_thread_sleeps() {
        let now = || time(libc::CLOCK_MONOTONIC);
        let (sums, began) = (Sums::new(), now());
        if sums.read(began).is_none() {
            println!("the kernel keeps no such sums");
            return;
        }
        std::thread::sleep(Duration::from_millis(30));
        let spent = sums.since(began, now()).unwrap();
        assert!(spent.asleep > 2 * spent.running, "{spent:?}");
    }
}
