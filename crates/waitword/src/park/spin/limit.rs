//! The limits: whether a waiter may stay awake at all, and for how long at most
//! (`WAITWORD_SPIN_NS`, [`set_budget`]). Also how many pause instructions a time takes
//! (`sys/cpu.rs` measures that, at first use).

use super::policy::LONGEST_STAY;
use crate::sys;
use crate::sys::cpu::{self, current_cpu};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

/// A larger budget is taken for a mistake and clamped to this.
const MOST_NANOSECONDS: u64 = 1_000_000_000;

const UNKNOWN: u64 = u64::MAX;

// Two threads may set these at first use at the same time: they reach the same result. The use
// of one does not depend on the value of another, so everything is Relaxed.
static NANOSECONDS: AtomicU64 = AtomicU64::new(UNKNOWN);
static PAUSES_IN_1024_NS: AtomicU64 = AtomicU64::new(UNKNOWN);
static CPUS: Cpus = Cpus::new();

/// How many CPUs the process has.
///
/// The first thread that contends determines the CPUs it may run on. If that is one CPU, other
/// threads may still be bound to other CPUs, as in programs that bind each thread to a CPU of
/// its own. So each waiter checks which CPU it runs on, until one runs elsewhere. Such CPUs
/// count as two.
struct Cpus {
    count: AtomicU32,
    /// The CPU that the first thread was bound to; [`Self::ANY`] if that is not known.
    only: AtomicU32,
}

impl Cpus {
    const ANY: u32 = u32::MAX;

    const fn new() -> Self {
        Self { count: AtomicU32::new(1), only: AtomicU32::new(Self::ANY) }
    }

    fn begin(&self, count: u32, current: Option<u32>) {
        self.only.store(current.unwrap_or(Self::ANY), Relaxed);
        self.count.store(count, Relaxed);
    }

    /// Whether the calling thread runs on another CPU than that one. If so, there are several.
    fn runs_elsewhere(&self, current: Option<u32>) -> bool {
        let only = self.only.load(Relaxed);
        let is_elsewhere = only != Self::ANY && current.is_some_and(|cpu| cpu != only);
        if is_elsewhere {
            self.count.store(2, Relaxed);
        }
        is_elsewhere
    }
}

pub(crate) fn budget() -> Duration {
    Duration::from_nanos(nanoseconds())
}

/// How long a waiter may stay awake, in nanoseconds; 0 if not at all.
#[inline]
pub(crate) fn nanoseconds() -> u64 {
    match NANOSECONDS.load(Relaxed) {
        UNKNOWN => initialise(),
        nanoseconds => nanoseconds,
    }
}

pub(crate) fn set_budget(budget: Duration) {
    let nanoseconds = u64::try_from(budget.as_nanos()).unwrap_or(MOST_NANOSECONDS);
    NANOSECONDS.store(nanoseconds.min(MOST_NANOSECONDS), Relaxed);
}

#[cold]
fn initialise() -> u64 {
    let wanted = sys::env::number(c"WAITWORD_SPIN_NS").unwrap_or(LONGEST_STAY);
    let wanted = wanted.min(MOST_NANOSECONDS);
    // A budget that was set meanwhile stays.
    match NANOSECONDS.compare_exchange(UNKNOWN, wanted, Relaxed, Relaxed) {
        Ok(_) => wanted,
        Err(set) => set,
    }
}

/// Whether a thread may stay awake to wait for another at all: there is a second CPU, and
/// staying awake has not been turned off.
#[inline]
pub(crate) fn is_allowed() -> bool {
    nanoseconds() != 0 && (has_another_cpu() || CPUS.runs_elsewhere(current_cpu()))
}

/// Whether no two threads of this process run at once, as far as is known. Also false if
/// staying awake has been turned off: then the number of CPUs is never determined.
#[inline]
pub(crate) fn has_one_cpu() -> bool {
    nanoseconds() != 0 && !has_another_cpu()
}

/// From now on in this process. For tests.
#[cfg(test)]
pub(crate) fn pretend_to_have_one_cpu() {
    pauses_in_1024_ns();
    CPUS.begin(1, None);
}

#[inline]
fn has_another_cpu() -> bool {
    cpus() > 1
}

/// How many CPUs the process has, as far as is known.
#[inline]
pub(crate) fn cpus() -> u32 {
    pauses_in_1024_ns();
    CPUS.count.load(Relaxed)
}

/// The number of pause instructions that take about that long; at least 1.
#[inline]
pub(crate) fn pauses(time: Duration) -> u32 {
    let nanoseconds = time.as_nanos() as u64;
    (nanoseconds * pauses_in_1024_ns() / 1024).clamp(1, u32::MAX.into()) as u32
}

#[inline]
fn pauses_in_1024_ns() -> u64 {
    match PAUSES_IN_1024_NS.load(Relaxed) {
        UNKNOWN => calibrate(),
        pauses => pauses,
    }
}

#[cold]
fn calibrate() -> u64 {
    let pauses = cpu::pauses_in_1024_ns();
    CPUS.begin(sys::sched::cpus(), current_cpu());
    PAUSES_IN_1024_NS.store(pauses, Relaxed);
    pauses
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn threads_that_are_each_bound_to_a_cpu_have_several_cpus() {
        let cpus = Cpus::new();
        cpus.begin(1, Some(3));
        assert!(!cpus.runs_elsewhere(Some(3)) && !cpus.runs_elsewhere(None));
        assert_eq!(cpus.count.load(Relaxed), 1);
        assert!(cpus.runs_elsewhere(Some(2)));
        assert_eq!(cpus.count.load(Relaxed), 2);
    }

    #[test]
    fn an_unknown_first_cpu_shows_nothing() {
        let cpus = Cpus::new();
        cpus.begin(1, None);
        assert!(!cpus.runs_elsewhere(Some(1)));
    }
}
