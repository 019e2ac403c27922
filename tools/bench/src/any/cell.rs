//! Definition of a cell: a randomly drawn load, and what runs beside it.

use super::durations::Durations;
use super::named::named;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

named! {
    /// A kind of load.
    Family, "family";

    /// One mutex.
    Mutex = "mutex";
    /// Several mutexes. A thread takes one, or two nested.
    ManyMutexes = "many-mutexes";
    /// One reader/writer lock.
    RwLock = "rwlock";
    /// A bounded queue: a mutex and two condition variables.
    Queue = "queue";
    /// A semaphore of some permits.
    Pool = "pool";
    /// Parts of a job, between two barriers.
    ForkJoin = "fork-join";
    /// One mutex that is idle for a while and then wanted by all threads at once.
    Burst = "burst";
}

named! {
    /// What else the machine does, and how much of it the process may use.
    Beside, "surroundings";

    /// Nothing. The threads run where the kernel puts them.
    Quiet = "quiet";
    /// Nothing. Each thread is bound to a CPU.
    Pinned = "pinned";
    /// Nothing. The process may use only one CPU.
    OneCpu = "one-cpu";
    /// A busy process on one CPU.
    BusyOne = "busy-one";
    /// A busy process on each CPU.
    BusyAll = "busy-all";
    /// The process gets half of a CPU's time: 50 ms of every 100 ms.
    HalfQuota = "half-quota";
}

/// Identifies a cell; drawing from it always gives the same cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CellId {
    /// Family.
    pub family: Family,
    /// The seed the user gave.
    pub seed: u64,
    /// Index among the cells of that seed, from 0.
    pub number: u32,
    /// Surroundings.
    pub beside: Beside,
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, seed, number, beside } = self;
        f.pad(&format!("{family}/{beside}/{seed}/{number}"))
    }
}

impl FromStr for CellId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let [family, beside, seed, number] = parts[..] else {
            return Err(format!(
                "`{text}` is not a cell; use FAMILY/SURROUNDINGS/SEED/NUMBER, such as \
                 mutex/quiet/7/12"
            ));
        };
        let number_of =
            |text: &str| text.parse::<u64>().map_err(|error| format!("`{text}`: {error}"));
        Ok(Self {
            family: family.parse()?,
            beside: beside.parse()?,
            seed: number_of(seed)?,
            number: u32::try_from(number_of(number)?).map_err(|error| error.to_string())?,
        })
    }
}

/// What a holder occasionally does instead of the section's work.
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

/// How a thread that has put an item into a queue, or taken one out, notifies the other side.
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

/// Parameters that only one family has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing.
    Mutex,
    /// See [`Family::ManyMutexes`].
    ManyMutexes {
        /// Number of mutexes.
        locks: u32,
        /// Exponent of the Zipf distribution by which mutexes are chosen; 0 means uniform.
        skew: f64,
        /// Whether a section takes a second mutex inside the first.
        nested: bool,
    },
    /// See [`Family::RwLock`].
    RwLock {
        /// Fraction of the operations that write.
        writes: f64,
        /// Whether some threads only write and all the others only read.
        dedicated: bool,
    },
    /// See [`Family::Queue`]. `inside` is the length of the sections, `outside` that of the work on
    /// an item.
    Queue {
        /// Threads that put items in.
        producers: u32,
        /// Threads that take items out.
        consumers: u32,
        /// Capacity, in items.
        capacity: u32,
        /// How the two sides notify each other.
        signal: Signal,
    },
    /// See [`Family::Pool`].
    Pool {
        /// How many threads may be inside at a time.
        permits: u32,
    },
    /// See [`Family::ForkJoin`]. `inside` is the length of a part, `outside` that of the work which
    /// one thread does between two rounds.
    ForkJoin,
    /// See [`Family::Burst`].
    Burst {
        /// Sections per thread in a burst.
        sections: u32,
        /// Microseconds between two bursts.
        idle: f64,
    },
}

/// A complete load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Identity.
    pub id: CellId,
    /// Number of threads.
    pub threads: u32,
    /// How long a section takes.
    pub inside: Durations,
    /// How long a thread works between two sections.
    pub outside: Durations,
    /// What holders occasionally do, and in which fraction of the sections.
    pub interlude: Option<(Interlude, f64)>,
    /// Parameters of the family.
    pub load: Load,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { threads, inside, outside, .. } = self;
        match self.load {
            Load::Queue { producers, consumers, capacity, signal } => write!(
                f,
                "{producers} producers, {consumers} consumers, capacity {capacity}, {}",
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
            Load::ManyMutexes { locks, skew, nested } => {
                write!(f, ", {locks} mutexes")?;
                if skew > 0.0 {
                    write!(f, " (Zipf {skew:.1})")?;
                }
                if nested {
                    write!(f, ", nested")?;
                }
            }
            Load::RwLock { writes, dedicated } => {
                write!(f, ", {:.1} % writes", writes * 100.0)?;
                if dedicated {
                    write!(f, " by dedicated writers")?;
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
