//! What a cell is: a load that was drawn, and what goes on beside it.

use super::durations::Durations;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// One mutex.
    Mutex,
    /// Several mutexes, of which a thread takes one, or two, one inside the other.
    ManyMutexes,
    /// One reader/writer lock.
    RwLock,
    /// A bounded queue: a mutex and two condition variables.
    Queue,
    /// A semaphore of some permits.
    Pool,
    /// Parts of a job, between two barriers.
    ForkJoin,
    /// One mutex that is left alone for a while, and then wanted by all at once.
    Burst,
}

impl Family {
    /// Each of them.
    pub const ALL: [Self; 7] = [
        Self::Mutex,
        Self::ManyMutexes,
        Self::RwLock,
        Self::Queue,
        Self::Pool,
        Self::ForkJoin,
        Self::Burst,
    ];

    /// As the user calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::ManyMutexes => "many-mutexes",
            Self::RwLock => "rwlock",
            Self::Queue => "queue",
            Self::Pool => "pool",
            Self::ForkJoin => "fork-join",
            Self::Burst => "burst",
        }
    }
}

/// What else the machine does, and what the process may use of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// Nothing; the threads run where the kernel puts them.
    Quiet,
    /// Nothing; each thread is bound to a CPU.
    Pinned,
    /// Nothing; all threads are on one CPU, and the process is given no other.
    OneCpu,
    /// A busy process on one CPU.
    BusyOne,
    /// A busy process on each CPU.
    BusyAll,
    /// The process gets half of a CPU's time: of each 100 ms, 50 ms.
    HalfQuota,
}

impl Beside {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Quiet,
        Self::Pinned,
        Self::OneCpu,
        Self::BusyOne,
        Self::BusyAll,
        Self::HalfQuota,
    ];

    /// As the user calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Pinned => "pinned",
            Self::OneCpu => "one-cpu",
            Self::BusyOne => "busy-one",
            Self::BusyAll => "busy-all",
            Self::HalfQuota => "half-quota",
        }
    }
}

macro_rules! by_name {
    ($type:ident, $what:literal) => {
        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.into_iter().find(|each| each.name() == text);
                found.ok_or_else(|| {
                    let names = Self::ALL.map(Self::name).join(", ");
                    format!("`{text}` is no {}: there are {names}", $what)
                })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

by_name!(Family, "family");
by_name!(Beside, "surroundings");

/// Which cell: it is drawn anew from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CellId {
    /// Of which family.
    pub family: Family,
    /// What the user gave.
    pub seed: u64,
    /// Which of that seed's, from 0.
    pub number: u32,
    /// Beside what.
    pub beside: Beside,
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            family,
            seed,
            number,
            beside,
        } = self;
        f.pad(&format!("{family}/{beside}/{seed}/{number}"))
    }
}

impl FromStr for CellId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [family, beside, seed, number] = parts[..] else {
            return Err(format!(
                "`{text}` is no cell: a cell is FAMILY/SURROUNDINGS/SEED/NUMBER, such as mutex/quiet/7/12"
            ));
        };
        let number_of = |text: &str| {
            text.parse::<u64>()
                .map_err(|error| format!("`{text}`: {error}"))
        };
        Ok(Self {
            family: family.parse()?,
            beside: beside.parse()?,
            seed: number_of(seed)?,
            number: u32::try_from(number_of(number)?).map_err(|error| error.to_string())?,
        })
    }
}

/// What a holder does now and then in place of the section's work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interlude {
    /// `sched_yield`.
    Yield,
    /// Sleeps for 50 µs.
    Sleep,
    /// Writes a page to a file, and reads it back.
    Io,
}

/// How the one who has put something into a queue, or taken something out, tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// One signal, with the mutex held.
    Held,
    /// One signal, after unlocking.
    Unlocked,
    /// A broadcast, with the mutex held.
    Broadcast,
}

/// What is particular to the family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing.
    Mutex,
    /// See [`Family::ManyMutexes`].
    ManyMutexes {
        /// How many.
        locks: u32,
        /// The exponent of the zipf distribution by which they are chosen; 0: uniformly.
        skew: f64,
        /// Whether a section takes a second one inside the first.
        nested: bool,
    },
    /// See [`Family::RwLock`].
    RwLock {
        /// The part of the operations that write.
        writes: f64,
        /// Whether some threads do nothing but write, and the others nothing but read.
        dedicated: bool,
    },
    /// See [`Family::Queue`]. Sections are of the lengths inside; the work on an item, of those outside.
    Queue {
        /// Threads that put in.
        producers: u32,
        /// Threads that take out.
        consumers: u32,
        /// Items there is room for.
        capacity: u32,
        /// How they tell each other.
        signal: Signal,
    },
    /// See [`Family::Pool`].
    Pool {
        /// How many may be inside at a time.
        permits: u32,
    },
    /// See [`Family::ForkJoin`]. A part is as long as inside; what one thread does between two rounds, as outside.
    ForkJoin,
    /// See [`Family::Burst`].
    Burst {
        /// Sections of each thread in a burst.
        sections: u32,
        /// Microseconds between two bursts.
        idle: f64,
    },
}

/// A load, all of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which.
    pub id: CellId,
    /// How many threads.
    pub threads: u32,
    /// How long a section takes.
    pub inside: Durations,
    /// How long a thread works between two sections.
    pub outside: Durations,
    /// What holders do now and then, and in which part of the sections.
    pub interlude: Option<(Interlude, f64)>,
    /// The family's own.
    pub load: Load,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            threads,
            inside,
            outside,
            ..
        } = self;
        match self.load {
            Load::Queue {
                producers,
                consumers,
                capacity,
                signal,
            } => write!(
                f,
                "{producers} to {consumers}, room for {capacity}, {}",
                match signal {
                    Signal::Held => "signal with the mutex held",
                    Signal::Unlocked => "signal after unlocking",
                    Signal::Broadcast => "broadcast",
                }
            )?,
            _ => write!(f, "{threads} threads")?,
        }
        write!(f, ", {inside} inside, {outside} outside")?;
        match self.load {
            Load::ManyMutexes {
                locks,
                skew,
                nested,
            } => {
                write!(f, ", {locks} mutexes")?;
                if skew > 0.0 {
                    write!(f, " by zipf {skew:.1}")?;
                }
                if nested {
                    write!(f, ", nested")?;
                }
            }
            Load::RwLock { writes, dedicated } => {
                write!(f, ", {:.1} % writes", writes * 100.0)?;
                if dedicated {
                    write!(f, " by writers")?;
                }
            }
            Load::Pool { permits } => write!(f, ", {permits} permits")?,
            Load::Burst { sections, idle } => {
                write!(f, ", bursts of {sections} each, {idle:.0} µs apart")?;
            }
            Load::Mutex | Load::Queue { .. } | Load::ForkJoin => {}
        }
        if let Some((interlude, part)) = self.interlude {
            let does = match interlude {
                Interlude::Yield => "yields",
                Interlude::Sleep => "sleeps",
                Interlude::Io => "does I/O",
            };
            write!(f, ", {does} in {:.1} % of the sections", part * 100.0)?;
        }
        Ok(())
    }
}
