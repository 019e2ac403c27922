//! What is counted, and how the counts travel from a scenario's process to the supervisor.

use crate::names::name_of;
use clap::ValueEnum;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[repr(usize)]
pub(crate) enum Count {
    /// Steps that prove progress: a token taken, a wait finished. A wait that only timed out is
    /// none.
    Operations,
    /// Waits begun.
    Waits,
    /// Waits that returned Ok.
    Woken,
    /// The sum of the counts that wakes returned.
    Wakes,
    Timeouts,
    /// Waits ended by a signal.
    Interrupted,
    /// Waiters moved.
    Requeues,
    /// Signal handlers run.
    Signals,
    Forks,
    Kills,
    /// Threads started.
    Threads,
    Rounds,
    /// Deaths of robust-mutex holders that were announced.
    Deaths,
    /// Processes that executed another program.
    Execs,
    /// Faults injected, see [`crate::fault`].
    Holds,
    Shuffles,
    Priorities,
    Stutters,
    Stops,
    /// Calls for memory that were refused.
    Refusals,
    ClockSteps,
}

pub(crate) const COUNTS: usize = Count::ClockSteps as usize + 1;

/// All counts of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals(pub(crate) [u64; COUNTS]);

impl Totals {
    pub(crate) fn of(&self, what: Count) -> u64 {
        self.0[what as usize]
    }

    /// The change since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut change = *self;
        for (now, before) in change.0.iter_mut().zip(before.0) {
            *now -= before;
        }
        change
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (total, more) in self.0.iter_mut().zip(other.0) {
            *total += more;
        }
    }

    /// Formats the counts as a line for the supervisor.
    pub(crate) fn to_line(self) -> String {
        self.0.map(|count| count.to_string()).join(" ")
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let mut totals = Self::default();
        let mut numbers = line.split_whitespace();
        for total in &mut totals.0 {
            *total = numbers.next()?.parse().ok()?;
        }
        numbers.next().is_none().then_some(totals)
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = Count::value_variants().iter().zip(self.0);
        let words: Vec<_> = counts
            .filter(|&(_, count)| count > 0)
            .map(|(what, count)| format!("{count} {}", name_of(what)))
            .collect();
        f.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_come_back_from_a_line() {
        let mut totals = Totals::default();
        for (number, total) in totals.0.iter_mut().enumerate() {
            *total = number as u64 * 1000;
        }
        assert_eq!(Totals::from_line(&totals.to_line()), Some(totals));
        assert_eq!(Totals::from_line("1 2 3"), None);
    }
}
