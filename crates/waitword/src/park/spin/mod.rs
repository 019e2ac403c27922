//! Staying awake for a while before a sleep: one mechanism for every lock and every parker.
//!
//! | file | contents |
//! |---|---|
//! | `policy.rs` | how long a waiter stays awake, and how it spends the time; pure |
//! | `history.rs` | how earlier stays went, at each lock and in each parker |
//! | `limit.rs` | the limits (`WAITWORD_SPIN_NS`, CPUs); how many pause instructions a time takes |
//! | `throttling.rs` | whether the process uses up a CPU quota |
//! | `yielding.rs` | yielding the CPU, where that gives it to a thread of this process |

mod history;
mod limit;
mod policy;
mod throttling;
mod yielding;

pub(crate) use history::{History, LockHistory};
pub(crate) use limit::{budget, has_one_cpu, is_allowed, pauses, set_budget};
#[cfg(test)]
pub(crate) use limit::{cpus, pretend_to_have_one_cpu};
#[cfg(test)]
pub(crate) use policy::BETWEEN_YIELDS;
use policy::LONGEST_STAY_IF_THROTTLED;
pub(crate) use policy::{LONGEST_STAY, SpinPolicy};
#[cfg(any(test, loom))]
pub(crate) use yielding::pretend_to_be_beside_others;
pub(crate) use yielding::{is_worth_while as yields_are_worth_while, yield_cpu};

use crate::atomic::{process_static, spin_loop};
use crate::sys::clock::{nanoseconds, process_cpu_time};

/// Whether other processes compete for the CPUs, judging by how long yields took.
pub(crate) fn is_beside_others() -> bool {
    yielding::have_been_in_vain() && !yielding::is_worth_while(nanoseconds())
}

/// In a model: from now on in this execution, other processes compete for the CPUs.
#[cfg(loom)]
pub(crate) fn let_others_be_busy() {
    pretend_to_be_beside_others(u64::MAX);
}

/// Whether a thread that waits for this many other threads stays awake. It does not if it cannot
/// leave a CPU to each of them and a yield would give its own CPU to another process: while it
/// stays awake, one of those threads waits for that CPU.
pub(crate) fn is_worth_while_for(others: u32) -> bool {
    others < limit::cpus() || !is_beside_others()
}

process_static! {
    static THROTTLING: throttling::Throttling = throttling::Throttling::new();
}

/// Whether the process uses up a CPU quota, as far as waiters have detected.
#[inline]
pub(crate) fn is_throttled() -> bool {
    THROTTLING.is_on()
}

/// From now on in this process. For tests.
#[cfg(test)]
pub(crate) fn pretend_to_be_throttled() {
    THROTTLING.pretend_to_be_on();
}

/// Notes that the calling thread has wanted a CPU since the time `from`, and has one `now`.
#[inline]
pub(crate) fn wanted_cpu(from: u64, now: u64) {
    THROTTLING.wanted_cpu(from, now, || process_cpu_time().as_nanos() as u64);
}

fn pause(pauses: u32) {
    for _ in 0..pauses {
        spin_loop();
    }
}

/// Touches no memory for about this long.
pub(crate) fn pause_for(time: core::time::Duration) {
    pause(pauses(time));
}

/// The first looks of a new waiter, at growing intervals.
pub(crate) struct FirstLooks<'a> {
    history: &'a History,
    stage: Stage,
    paused: u32,
    pauses: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    First,
    Long,
    Over,
}

impl<'a> FirstLooks<'a> {
    pub(crate) fn begin(history: &'a History) -> Self {
        Self { history, stage: Stage::First, paused: 0, pauses: 2 }
    }

    /// Pauses before the next look; false if there is none.
    #[inline]
    pub(crate) fn pause(&mut self) -> bool {
        let longest = match self.stage {
            Stage::First => policy::FIRST_LOOKS,
            Stage::Long => policy::LONG_LOOKS,
            Stage::Over => return false,
        };
        if self.paused >= limit::pauses(longest) && !self.goes_on() {
            return false;
        }
        pause(self.pauses);
        self.paused += self.pauses;
        self.pauses *= 2;
        true
    }

    /// Ends the current stage; returns whether another one follows.
    #[cold]
    fn goes_on(&mut self) -> bool {
        self.stage = match self.stage {
            Stage::First if self.history.looks_long() => Stage::Long,
            Stage::Long => {
                self.history.looked_long(false);
                Stage::Over
            }
            _ => Stage::Over,
        };
        self.stage == Stage::Long
    }

    /// The waiter has what it looked for.
    #[inline]
    pub(crate) fn won(&self) {
        if self.stage == Stage::Long {
            self.history.looked_long(true);
        }
    }
}

/// A policy for a waiter that has waited since `began`.
pub(crate) fn begin(began: u64, history: &History, adapts: bool) -> SpinPolicy {
    let longest = match is_throttled() {
        true => limit::nanoseconds().min(LONGEST_STAY_IF_THROTTLED),
        false => limit::nanoseconds(),
    };
    SpinPolicy::begin(began, history.budget(longest, adapts))
}

/// Leaves the word alone for a moment. Then yields the CPU, unless `enough` holds after the pause
/// or the yield would go to another process. Returns whether other threads ran.
pub(crate) fn linger(policy: &mut SpinPolicy, now: u64, enough: impl Fn() -> bool) -> bool {
    wanted_cpu(policy.looks(now), now);
    if policy.pauses() {
        pause(limit::pauses(policy::BETWEEN_YIELDS));
        if enough() {
            return false;
        }
    }
    if yielding::is_worth_while(now) {
        let from = nanoseconds();
        return policy.yielded(from, yielding::yield_cpu(from));
    }
    false
}

/// Notes how a stay ended, if that shows anything.
pub(crate) fn end(mut policy: SpinPolicy, history: &History, was_worth_while: bool) {
    if was_worth_while || !policy.is_short() {
        let now = nanoseconds();
        wanted_cpu(policy.looks(now), now);
        history.stayed(policy.spent(now), was_worth_while);
    }
}

/// One waiter's stay awake, step by step.
pub(crate) struct Spin<'a> {
    history: &'a History,
    looks: FirstLooks<'a>,
    policy: Option<SpinPolicy>,
    /// The stay is at a parker, not at a lock.
    is_of_parker: bool,
}

impl<'a> Spin<'a> {
    fn new(history: &'a History, is_of_parker: bool) -> Self {
        Self { history, looks: FirstLooks::begin(history), policy: None, is_of_parker }
    }

    /// At the lock at this address.
    pub(crate) fn at(address: usize) -> Spin<'static> {
        Spin::new(&LockHistory::at(address).stays, false)
    }

    /// At a parker with this history, before its thread sleeps.
    pub(crate) fn of_parker(history: &'a History) -> Self {
        Self::new(history, true)
    }

    /// Waits a little; false once the waiter has waited long enough.
    #[inline]
    pub(crate) fn again(&mut self) -> bool {
        is_allowed() && (self.looks.pause() || self.lingers())
    }

    fn lingers(&mut self) -> bool {
        let now = nanoseconds();
        let history = self.history;
        let policy = self.policy.get_or_insert_with(|| begin(now, history, true));
        let is_in_vain = self.is_of_parker && history.is_in_vain() && policy.ends_if_in_vain();
        if is_in_vain || policy.is_over(now) {
            self.ends(false);
            return false;
        }
        linger(policy, now, || false);
        true
    }

    /// The waiter has what it waited for.
    #[inline]
    pub(crate) fn won(&mut self) {
        self.looks.won();
        self.ends(true);
    }

    fn ends(&mut self, was_worth_while: bool) {
        if let Some(policy) = self.policy.take() {
            end(policy, self.history, was_worth_while);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sys::generation::ends_well;
    use std::time::Duration;

    #[test]
    fn where_stays_are_in_vain_a_parker_does_not_linger_and_a_waiter_at_a_lock_does() {
        let history = History::new();
        (0..20).for_each(|_| history.stayed(0, false));
        // Only the sixteenth stay would be a full one.
        for _ in 0..8 {
            assert!(!Spin::of_parker(&history).lingers());
        }
        assert!(Spin::new(&history, false).lingers());
        let history = History::new();
        assert!(Spin::of_parker(&history).lingers());
    }

    /// In a child, since the whole process then counts as throttled. The child has one thread:
    /// while that sleeps, the process stands still.
    #[test]
    fn a_waiter_that_finds_its_process_throttled_shortens_the_stays_of_all() {
        let history = History::new();
        let is_shorter = || {
            // The next stay may be longer, judging by what these took.
            (0..80).for_each(|_| history.stayed(30_000, true));
            let now = nanoseconds();
            let is_over = begin(now, &history, false).is_over(now + LONGEST_STAY_IF_THROTTLED);
            is_throttled() && is_over
        };
        let stands_still = || std::thread::sleep(Duration::from_millis(60));
        let looks_once = || {
            // By then the parent's stamp is out of date.
            stands_still();
            let mut policy = begin(nanoseconds(), &history, false);
            linger(&mut policy, nanoseconds(), || true);
            policy
        };
        let in_linger = || {
            let mut policy = looks_once();
            stands_still();
            linger(&mut policy, nanoseconds(), || true);
            is_shorter()
        };
        let at_the_end = || {
            let policy = looks_once();
            stands_still();
            end(policy, &history, true);
            is_shorter()
        };
        assert!(ends_well(in_linger));
        assert!(ends_well(at_the_end));
    }
}
