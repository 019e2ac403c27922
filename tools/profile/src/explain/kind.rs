//! The kinds of findings: their names, and what was looked for where there are none.

use core::fmt;

/// A kind of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The holder slept, in a system call.
    Asleep,
    /// The holder ran: the section takes long.
    Computes,
    /// The holder waited for another lock.
    Chain,
    /// The holder was runnable and had no CPU.
    Preempted,
    /// The holder had a lower priority than the waiter, and no CPU.
    Inversion,
    /// A queue that does not drain, at a lock with short sections.
    Convoy,
    /// Some threads get the lock much more often than others.
    Unfair,
    /// An rwlock whose writers wait for writers.
    Writers,
    /// A writer that readers keep out.
    Starved,
    /// Threads that are woken together queue at one lock.
    Herd,
    /// Threads are woken and have nothing to do.
    InVain,
    /// Locks that are taken in different orders.
    Order,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Asleep,
        Self::Computes,
        Self::Chain,
        Self::Preempted,
        Self::Inversion,
        Self::Convoy,
        Self::Unfair,
        Self::Writers,
        Self::Starved,
        Self::Herd,
        Self::InVain,
        Self::Order,
    ];

    /// Whether it is known only if the kernel shows what the holders did.
    pub fn needs_causes(self) -> bool {
        matches!(self, Self::Asleep | Self::Computes | Self::Preempted | Self::Inversion)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asleep => "I/O or sleep under a lock",
            Self::Computes => "computation under a lock",
            Self::Chain => "holder waits for another lock",
            Self::Preempted => "preempted holders",
            Self::Inversion => "priority inversion",
            Self::Convoy => "lock convoy",
            Self::Unfair => "unfair lock",
            Self::Writers => "too many writers for an rwlock",
            Self::Starved => "starved writer",
            Self::Herd => "thundering herd",
            Self::InVain => "wake-ups in vain",
            Self::Order => "lock orders that can deadlock",
        })
    }
}
