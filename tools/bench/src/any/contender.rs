//! The contenders, each as its users get it, and which of its locks each family uses.

use super::cell::Family;
use super::crowd::Outcome;
use super::families::{Job, burst, fork_join, many_mutexes, mutex, pool, queue, rwlock};
use crate::harness::Failure;
use crate::locks::{barrier, glibc, ours, parking_lot, semaphore, stdlib};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// The source of the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// The C library.
    Glibc,
    /// The Rust standard library.
    Std,
    /// The `parking_lot` crate.
    ParkingLot,
    /// Google's nsync, in C.
    Nsync,
    /// Google's Abseil, in C++.
    Absl,
    /// waitword, used as a library.
    Waitword,
    /// The same, with the throughput flavour of the mutex.
    WaitwordThroughput,
    /// The same, with the flavour that sleeps at once.
    WaitwordWaitWake,
    /// waitword's drop-in, preloaded; the program uses the C library's locks.
    DropIn,
}

impl Contender {
    /// All contenders.
    pub const ALL: [Self; 9] = [
        Self::Glibc,
        Self::Std,
        Self::ParkingLot,
        Self::Nsync,
        Self::Absl,
        Self::Waitword,
        Self::WaitwordThroughput,
        Self::WaitwordWaitWake,
        Self::DropIn,
    ];

    /// The name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Std => "std",
            Self::ParkingLot => "parking_lot",
            Self::Nsync => "nsync",
            Self::Absl => "absl",
            Self::Waitword => "waitword",
            Self::WaitwordThroughput => "waitword TO",
            Self::WaitwordWaitWake => "waitword WW",
            Self::DropIn => "drop-in",
        }
    }

    /// Whether this is waitword in any form.
    pub fn is_ours(self) -> bool {
        matches!(
            self,
            Self::Waitword | Self::WaitwordThroughput | Self::WaitwordWaitWake | Self::DropIn
        )
    }

    /// Whether this is a flavour of waitword other than the default.
    pub fn is_flavour(self) -> bool {
        matches!(self, Self::WaitwordThroughput | Self::WaitwordWaitWake)
    }

    /// Whether this build includes the contender, and the contender has its own lock for the
    /// family.
    pub fn is_there_for(self, family: Family) -> bool {
        let is_built = match self {
            Self::Nsync => cfg!(has_nsync),
            Self::Absl => cfg!(has_absl),
            _ => true,
        };
        let mutexes = matches!(family, Family::Mutex | Family::ManyMutexes | Family::Burst);
        is_built && (mutexes || !self.is_flavour() || family == Family::Queue)
    }

    /// Runs the job with this contender's locks.
    pub(super) fn run(self, job: Job<'_>) -> Result<Outcome, Failure> {
        match job.cell.id.family {
            Family::Mutex => with_mutex!(self, mutex::run, job),
            Family::ManyMutexes => with_mutex!(self, many_mutexes::run, job),
            Family::Burst => with_mutex!(self, burst::run, job),
            Family::RwLock => self.run_rwlock(job),
            Family::Queue => self.run_queue(job),
            Family::Pool => self.run_pool(job),
            Family::ForkJoin => self.run_fork_join(job),
        }
    }

    fn run_rwlock(self, job: Job<'_>) -> Result<Outcome, Failure> {
        match self {
            Self::Glibc | Self::DropIn => rwlock::run::<glibc::RwLock<glibc::PreferReader>>(job),
            Self::Std => rwlock::run::<stdlib::RwLock>(job),
            Self::ParkingLot => rwlock::run::<parking_lot::RwLock>(job),
            #[cfg(has_nsync)]
            Self::Nsync => rwlock::run::<crate::locks::nsync::Mu>(job),
            #[cfg(has_absl)]
            Self::Absl => rwlock::run::<crate::locks::absl::Mu>(job),
            Self::Waitword => rwlock::run::<ours::RwLock<ours::PreferReaders>>(job),
            _ => Err(self.is_missing()),
        }
    }

    fn run_queue(self, job: Job<'_>) -> Result<Outcome, Failure> {
        match self {
            Self::Glibc | Self::DropIn => queue::run::<glibc::Condvar>(job),
            Self::Std => queue::run::<stdlib::Condvar>(job),
            Self::ParkingLot => queue::run::<parking_lot::Condvar>(job),
            #[cfg(has_nsync)]
            Self::Nsync => queue::run::<crate::locks::nsync::Cv>(job),
            #[cfg(has_absl)]
            Self::Absl => queue::run::<crate::locks::absl::Cv>(job),
            Self::Waitword => queue::run::<ours::Condvar<ours::Adaptive>>(job),
            Self::WaitwordThroughput => queue::run::<ours::Condvar<ours::Throughput>>(job),
            Self::WaitwordWaitWake => queue::run::<ours::Condvar<ours::WaitWake>>(job),
            #[allow(unreachable_patterns, reason = "not if all peers are there")]
            _ => Err(self.is_missing()),
        }
    }

    fn run_pool(self, job: Job<'_>) -> Result<Outcome, Failure> {
        match self {
            Self::Glibc | Self::DropIn => pool::run::<glibc::Semaphore>(job),
            Self::Std => pool::run::<pool::Made<stdlib::Condvar>>(job),
            Self::ParkingLot => pool::run::<pool::Made<parking_lot::Condvar>>(job),
            #[cfg(has_nsync)]
            Self::Nsync => pool::run::<pool::Made<crate::locks::nsync::Cv>>(job),
            #[cfg(has_absl)]
            Self::Absl => pool::run::<pool::Made<crate::locks::absl::Cv>>(job),
            Self::Waitword => pool::run::<semaphore::Ours>(job),
            _ => Err(self.is_missing()),
        }
    }

    fn run_fork_join(self, job: Job<'_>) -> Result<Outcome, Failure> {
        match self {
            Self::Glibc | Self::DropIn => fork_join::run::<barrier::Pthread>(job),
            Self::Std => fork_join::run::<barrier::Std>(job),
            Self::ParkingLot => fork_join::run::<fork_join::Made<parking_lot::Condvar>>(job),
            #[cfg(has_nsync)]
            Self::Nsync => fork_join::run::<fork_join::Made<crate::locks::nsync::Cv>>(job),
            #[cfg(has_absl)]
            Self::Absl => fork_join::run::<fork_join::Made<crate::locks::absl::Cv>>(job),
            Self::Waitword => fork_join::run::<barrier::Ours>(job),
            _ => Err(self.is_missing()),
        }
    }

    fn is_missing(self) -> Failure {
        Failure::Missing(format!("{self} has no lock for this family in this build"))
    }
}

/// Calls a function that is generic over a mutex with the contender's mutex.
macro_rules! with_mutex {
    ($contender:expr, $run:path, $job:expr) => {{
        use $run as run;
        match $contender {
            Contender::Glibc | Contender::DropIn => run::<glibc::Mutex<glibc::Normal>>($job),
            Contender::Std => run::<stdlib::Mutex>($job),
            Contender::ParkingLot => run::<parking_lot::Mutex>($job),
            #[cfg(has_nsync)]
            Contender::Nsync => run::<crate::locks::nsync::Mu>($job),
            #[cfg(has_absl)]
            Contender::Absl => run::<crate::locks::absl::Mu>($job),
            Contender::Waitword => run::<ours::Mutex<ours::Adaptive>>($job),
            Contender::WaitwordThroughput => run::<ours::Mutex<ours::Throughput>>($job),
            Contender::WaitwordWaitWake => run::<ours::Mutex<ours::WaitWake>>($job),
            #[allow(unreachable_patterns, reason = "not if all peers are there")]
            _ => Err($contender.is_missing()),
        }
    }};
}
use with_mutex;

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|each| each.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown contender: `{text}`; known: {names}")
        })
    }
}
