//! The kinds of faults.

use crate::count::Count;
use crate::names::name_of;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Each kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Fault {
    /// Locks are held, and threads dawdle, for anything from a nanosecond to milliseconds, awake or
    /// asleep
    Hold,
    /// All threads are moved to one CPU, each to some CPU, or back to all CPUs, in random order
    Shuffle,
    /// Some threads get another priority or policy for a while: nice, batch, idle, FIFO, round
    /// robin
    Priority,
    /// All threads pause for some milliseconds and go on at the same moment
    Stutter,
    /// The process, or one of a scenario's processes, is stopped by SIGSTOP for a while
    Stop,
    /// The library's calls for memory (mmap, mremap, madvise) fail: the n-th, every n-th, all
    Memory,
    /// The system clock is set some seconds forwards and back (needs --clock-steps)
    Clock,
}

impl Fault {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    pub(crate) fn name(self) -> String {
        name_of(&self)
    }

    /// Its description in the list.
    pub(crate) fn about(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map_or(String::new(), ToString::to_string)
    }

    /// The count in which it is counted.
    pub(crate) fn count(self) -> Count {
        match self {
            Self::Hold => Count::Holds,
            Self::Shuffle => Count::Shuffles,
            Self::Priority => Count::Priorities,
            Self::Stutter => Count::Stutters,
            Self::Stop => Count::Stops,
            Self::Memory => Count::Refusals,
            Self::Clock => Count::ClockSteps,
        }
    }
}
