//! How long a waiter stays awake: the policy of every lock and of every sleep.
//!
//! # Why stay awake
//!
//! Parking and waking a thread costs 5 to 10 µs of CPU time. If its CPU has gone idle, it takes 60
//! µs until the thread runs again. Most waits are shorter. But a waiter that reads a word all the
//! time takes its cache line from the thread that is about to change it. And a waiter that keeps
//! its CPU may keep it from the very thread that it waits for.
//!
//! So a waiter
//!
//! 1. looks a few times, at growing intervals, for [`FIRST_LOOKS`]; then for [`LONG_LOOKS`], where
//!    that ends most waits that last longer than the first looks ([`LooksRecord`]);
//! 2. **lingers**: it yields its CPU and looks once, again and again. If threads of this process
//!    are runnable, they run: threads with work to do, and a holder that has lost its CPU. If none
//!    is, a yield returns at once;
//! 3. parks, once it has spent its **budget**.
//!
//! # What is spent
//!
//! While other threads run on its CPU, a waiter costs nothing. But switching to them and back costs
//! about an eighth of what it costs to stay awake for too long. So a yield that switched counts as
//! [`SWITCH`], however long it took, and all other time counts as it is. The budget is four times
//! what recent worthwhile stays spent (`history.rs`), and at most `WAITWORD_SPIN_NS`, which
//! defaults to [`LONGEST_STAY`]. In a process that uses up a CPU quota it is at most
//! [`LONGEST_STAY_IF_THROTTLED`]. If less than a quarter of the stays were worthwhile, it is
//! [`STAY_IN_VAIN`], except for one stay in sixteen.
//!
//! A parker is stricter then: it skips the short stays, and ends the one in sixteen once another
//! thread has run. A lock may become free at any moment, but what a parker waits for often takes as
//! long as all those other threads run. (200 threads that a broadcast woke yielded to each other
//! before they slept again: 2.4 switches a thread, now 1.2.)
//!
//! This file knows no lock and reads no clock: its tests run the whole policy with times of their
//! own.

use core::time::Duration;

// Where the constants come from: two CPUs (a virtual machine, Linux 6.18). There a thread that is
// woken on an idle CPU runs after 67 µs; parking and waking it costs 5 to 10 µs of CPU; a yield
// that finds no other thread takes 0.3 to 0.5 µs; and a cache line moves in 0.1 to 0.15 µs. "Tried"
// values were compared on loads drawn at random from seeds below 1000.

/// How long a waiter looks at the word before it does anything else: three looks, about as many as
/// the sections and line transfers that fit into the time.
pub(crate) const FIRST_LOOKS: Duration = Duration::from_nanos(300);
/// How long it looks where that pays: a section or two of a lock whose sections are short. Tried
/// for every waiter, also where it does not pay: 1 and 3 µs lost 5 to 20 % of the throughput on
/// some loads and gained as much on others.
pub(crate) const LONG_LOOKS: Duration = Duration::from_nanos(1000);
/// Between two yields. Tried: 10, 30 and 400 ns, within the noise.
pub(crate) const BETWEEN_YIELDS: Duration = Duration::from_nanos(100);
/// The shortest budget where stays are worthwhile: a few yields.
const SHORTEST_STAY: u64 = 2_000;
/// The longest: about the time until a thread that is woken runs. Tried: 15, 25 and 30 µs, which
/// lose 1 to 4 % of the throughput and save 3 to 5 % of the CPU. Tried when other processes compete
/// for the CPUs, where no thread yields: 5 µs, 1.06 of the throughput on 48 loads, 1.00 on 132
/// others (mutexes 0.98).
pub(crate) const LONGEST_STAY: u64 = 60_000;
/// The longest in a process that uses up a CPU quota (`throttling.rs`): the cost of parking and
/// being woken ("competitive spinning", Karlin et al. 1991). Tried: 4 µs, 0.99 of the throughput of
/// mutexes and 0.87 of that of queues.
pub(crate) const LONGEST_STAY_IF_THROTTLED: u64 = 10_000;
/// The budget where stays are not worthwhile: one yield.
pub(crate) const STAY_IN_VAIN: u64 = 500;
/// A stay that spent more was not worthwhile, even if it ended well: half of the time until a
/// thread that is woken runs. Tried, on nine loads: with 20 µs 0.80 of the best peer's throughput,
/// with 35 µs 0.92, with 60 µs 0.88.
const PARKING_COSTS: u64 = 35_000;
/// What a switch to another thread and back counts as: about the cost of parking. Tried: 20 µs, 3 %
/// less throughput.
const SWITCH: u64 = LONGEST_STAY / 8;
/// A yield that took longer has switched: three times the duration of one that finds no other
/// thread.
const SWITCHES_TAKE: u64 = 1_500;

/// One waiter's stay awake, from when it begins to wait until it parks or no longer needs to. Times
/// are in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct SpinPolicy {
    began: u64,
    looked: u64,
    budget: u64,
    yields: u32,
    /// What its switches count as, minus the time they took.
    switches: u64,
    has_just_switched: bool,
}

impl SpinPolicy {
    pub(crate) fn begin(now: u64, budget: u64) -> Self {
        Self { began: now, looked: now, budget, yields: 0, switches: 0, has_just_switched: false }
    }

    /// What has been spent by now.
    pub(crate) fn spent(&self, now: u64) -> u64 {
        now.wrapping_sub(self.began).wrapping_add(self.switches)
    }

    /// Whether it has spent its budget.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.spent(now) >= self.budget
    }

    /// Whether its budget was no more than [`STAY_IN_VAIN`], so that spending it shows nothing.
    pub(crate) fn is_short(&self) -> bool {
        self.budget <= STAY_IN_VAIN
    }

    /// Whether a parker whose stays are in vain sleeps now: at once in a short stay, in a full one
    /// as soon as another thread has run.
    pub(crate) fn ends_if_in_vain(&self) -> bool {
        self.is_short() || self.has_just_switched
    }

    /// Notes a look `now`; returns the time of the last one.
    pub(crate) fn looks(&mut self, now: u64) -> u64 {
        core::mem::replace(&mut self.looked, now)
    }

    /// How often it has yielded.
    pub(crate) fn yields(&self) -> u32 {
        self.yields
    }

    /// Notes a yield of the CPU; returns whether other threads ran.
    pub(crate) fn yielded(&mut self, from: u64, to: u64) -> bool {
        let took = to.saturating_sub(from);
        self.yields += 1;
        self.has_just_switched = took > SWITCHES_TAKE;
        if self.has_just_switched {
            self.switches = self.switches.wrapping_add(SWITCH).wrapping_sub(took);
        }
        self.has_just_switched
    }

    /// Whether to pause before the next yield. Not if other threads ran: this waiter has then left
    /// the word alone for long enough.
    pub(crate) fn pauses(&mut self) -> bool {
        !core::mem::take(&mut self.has_just_switched)
    }
}

/// How those waits at one place went that the first looks did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LooksRecord {
    /// The share of them that ended within long looks, of 255.
    pub(crate) ended: u8,
    /// Waits without long looks since the last one with long looks.
    pub(crate) short: u8,
}

impl LooksRecord {
    /// For a place about which nothing is known.
    pub(crate) const NEW: Self = Self { ended: 255, short: 0 };
    /// Long looks are used where they end half of the waits: a yield costs about twice what they
    /// cost.
    const HALF: u8 = 128;
    /// Elsewhere, one in this many waits uses them.
    const TRY_EVERY: u8 = 16;

    /// Whether the next wait uses long looks, and the record after that.
    pub(crate) fn looks_long(self) -> (bool, Self) {
        if self.ended >= Self::HALF {
            return (true, self);
        }
        let short = (self.short + 1) % Self::TRY_EVERY;
        (short == 0, Self { short, ..self })
    }

    /// The record after one more wait, which counts for an eighth.
    pub(crate) fn with(self, has_ended: bool) -> Self {
        let was = self.ended;
        let ended = match has_ended {
            true => was + (255 - was).div_ceil(8),
            false => was - was.div_ceil(8),
        };
        Self { ended, ..self }
    }
}

/// How stays at one place went: the share that was worthwhile, and how long those took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpinRecord {
    /// Of 255.
    pub(crate) worth_while: u8,
    /// In units of 16 ns.
    pub(crate) took: u16,
    /// Short stays since the last full one.
    pub(crate) short: u8,
}

impl SpinRecord {
    /// For a place about which nothing is known.
    pub(crate) const NEW: Self = Self { worth_while: 255, took: 64, short: 0 };
    /// If less than this share of stays, of 255, is worthwhile, stays are short,
    const SELDOM: u8 = 64;
    /// except for one in this many.
    const TRY_EVERY: u8 = 16;

    /// Whether stays are seldom worthwhile.
    pub(crate) fn is_in_vain(self) -> bool {
        self.worth_while < Self::SELDOM
    }

    /// The budget of a full stay; at most `longest`.
    pub(crate) fn in_full(self, longest: u64) -> u64 {
        (u64::from(self.took) * 16 * 4).max(SHORTEST_STAY).min(longest)
    }

    /// The next stay's budget, and the record after that.
    pub(crate) fn budget(self, longest: u64) -> (u64, Self) {
        if !self.is_in_vain() {
            return (self.in_full(longest), self);
        }
        let short = (self.short + 1) % Self::TRY_EVERY;
        let budget = match short {
            0 => self.in_full(longest),
            _ => STAY_IN_VAIN.min(longest),
        };
        (budget, Self { short, ..self })
    }

    /// The record after one more stay, which counts for an eighth. The stay spent `spent` and ended
    /// with or without what it waited for (`had_it`).
    pub(crate) fn with(self, spent: u64, had_it: bool) -> Self {
        let was = self.worth_while;
        if !had_it || spent > PARKING_COSTS {
            return Self { worth_while: was - was.div_ceil(8), ..self };
        }
        let spent = u16::try_from(spent / 16).unwrap_or(u16::MAX);
        Self {
            worth_while: was + (255 - was).div_ceil(8),
            took: self.took - self.took / 8 + spent / 8,
            ..self
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn stays_in_vain_become_short_but_for_one_in_sixteen_and_one_success_after_another_ends_that() {
        let mut record = SpinRecord::NEW;
        let in_vain = (0..)
            .take_while(|_| {
                let (budget, next) = record.budget(LONGEST_STAY);
                record = next.with(budget, false);
                budget > STAY_IN_VAIN
            })
            .count();
        assert!((8..=16).contains(&in_vain), "{in_vain}");
        let budgets: Vec<u64> = (0..32)
            .map(|_| {
                let (budget, next) = record.budget(LONGEST_STAY);
                record = next;
                budget
            })
            .collect();
        let in_full = budgets.iter().filter(|&&budget| budget > STAY_IN_VAIN);
        assert_eq!(in_full.count(), 2);
        assert!(record.in_full(LONGEST_STAY) > STAY_IN_VAIN);
        for _ in 0..3 {
            record = record.with(2_000, true);
        }
        assert!(record.budget(LONGEST_STAY).0 > STAY_IN_VAIN);
    }

    #[test]
    fn looks_are_long_while_they_end_half_of_the_waits_and_otherwise_now_and_then() {
        let mut record = LooksRecord::NEW;
        let mut long = 0;
        for wait in 0..160 {
            let (is_long, next) = record.looks_long();
            assert!(is_long || wait > 4);
            record = if is_long { next.with(false) } else { next };
            long += u32::from(is_long);
        }
        assert!((12..24).contains(&long), "{long}");
        for _ in 0..8 {
            record = record.with(true);
        }
        assert!(record.looks_long().0);
        // Two in three.
        for wait in 0..99 {
            record = record.with(wait % 3 != 0);
            assert!(record.looks_long().0, "{record:?}");
        }
    }

    #[test]
    fn a_parker_whose_stays_are_in_vain_ends_a_short_one_and_one_that_has_switched() {
        assert!(SpinPolicy::begin(0, STAY_IN_VAIN).ends_if_in_vain());
        let mut stay = SpinPolicy::begin(0, LONGEST_STAY);
        assert!(!stay.yielded(0, SWITCHES_TAKE) && !stay.ends_if_in_vain());
        assert!(stay.yielded(0, SWITCHES_TAKE + 1) && stay.ends_if_in_vain());
        let mut record = SpinRecord::NEW;
        assert!(!record.is_in_vain());
        (0..20).for_each(|_| record = record.with(0, false));
        assert!(record.is_in_vain());
    }

    #[test]
    fn a_stay_that_cost_more_than_parking_was_not_worth_while() {
        let record = SpinRecord::NEW;
        assert_eq!(record.with(PARKING_COSTS + 1, true), record.with(0, false));
    }

    #[test]
    fn a_budget_follows_the_length_of_stays() {
        let mut record = SpinRecord::NEW;
        assert_eq!(record.budget(LONGEST_STAY).0, 4096);
        for _ in 0..40 {
            record = record.with(10_000, true);
        }
        let (budget, _) = record.budget(LONGEST_STAY);
        assert!((30_000..=40_000).contains(&budget), "{budget}");
        for _ in 0..40 {
            record = record.with(PARKING_COSTS, true);
        }
        assert_eq!(record.budget(LONGEST_STAY).0, LONGEST_STAY);
        for _ in 0..80 {
            record = record.with(0, true);
        }
        assert_eq!(record.budget(LONGEST_STAY).0, SHORTEST_STAY);
    }
}
