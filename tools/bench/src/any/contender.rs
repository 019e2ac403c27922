//! The contenders, each as its users get it, and which of its locks each family uses.

use super::cell::Family;
use super::crowd::{Job, Outcome};
use super::families::{burst, fork_join, many_mutexes, mutex, pool, queue, rwlock};
use super::named::named;
use crate::harness::Failure;
#[cfg(has_absl)]
use crate::locks::absl;
#[cfg(has_nsync)]
use crate::locks::nsync;
use crate::locks::{barrier, glibc, ours, parking_lot, semaphore, stdlib};

named! {
    /// The source of the locks.
    Contender, "contender";

    /// The C library.
    Glibc = "glibc";
    /// The Rust standard library.
    Std = "std";
    /// The `parking_lot` crate.
    ParkingLot = "parking_lot";
    /// Google's nsync, in C.
    Nsync = "nsync";
    /// Google's Abseil, in C++.
    Absl = "absl";
    /// waitword, used as a library.
    Waitword = "waitword";
    /// The same, with the throughput flavour of the mutex.
    WaitwordThroughput = "waitword TO";
    /// The same, with the flavour that sleeps at once.
    WaitwordWaitWake = "waitword WW";
    /// waitword's drop-in, preloaded; the program uses the C library's locks.
    DropIn = "drop-in";
}

impl Contender {
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
            Family::Mutex => with_mutex!(self, job, mutex::run),
            Family::ManyMutexes => with_mutex!(self, job, many_mutexes::run),
            Family::Burst => with_mutex!(self, job, burst::run),
            Family::RwLock => with!(
                self, job, rwlock::run,
                glibc: glibc::RwLock<glibc::PreferReader>, std: stdlib::RwLock,
                parking_lot: parking_lot::RwLock, nsync: nsync::Mu, absl: absl::Mu,
                waitword: ours::RwLock<ours::PreferReaders>
            ),
            Family::Queue => with!(
                self, job, queue::run,
                glibc: glibc::Condvar, std: stdlib::Condvar,
                parking_lot: parking_lot::Condvar, nsync: nsync::Cv, absl: absl::Cv,
                waitword: ours::Condvar<ours::Adaptive>, ours::Condvar<ours::Throughput>,
                ours::Condvar<ours::WaitWake>
            ),
            Family::Pool => with!(
                self, job, pool::run,
                glibc: glibc::Semaphore, std: pool::Made<stdlib::Condvar>,
                parking_lot: pool::Made<parking_lot::Condvar>, nsync: pool::Made<nsync::Cv>,
                absl: pool::Made<absl::Cv>, waitword: semaphore::Ours
            ),
            Family::ForkJoin => with!(
                self, job, fork_join::run,
                glibc: barrier::Pthread, std: barrier::Std,
                parking_lot: fork_join::Made<parking_lot::Condvar>,
                nsync: fork_join::Made<nsync::Cv>, absl: fork_join::Made<absl::Cv>,
                waitword: barrier::Ours
            ),
        }
    }

    fn is_missing(self) -> Failure {
        Failure::Missing(format!("{self} has no lock for this family in this build"))
    }
}

/// Calls `$run`, a function generic over a lock, with the contender's lock; ours is in some
/// families the default and two flavours.
macro_rules! with {
    (
        $contender:expr, $job:expr, $run:path, glibc: $glibc:ty, std: $std:ty,
        parking_lot: $parking_lot:ty, nsync: $nsync:ty, absl: $absl:ty,
        waitword: $waitword:ty $(, $throughput:ty, $wait_wake:ty)?
    ) => {{
        use $run as run;
        match $contender {
            Contender::Glibc | Contender::DropIn => run::<$glibc>($job),
            Contender::Std => run::<$std>($job),
            Contender::ParkingLot => run::<$parking_lot>($job),
            #[cfg(has_nsync)]
            Contender::Nsync => run::<$nsync>($job),
            #[cfg(has_absl)]
            Contender::Absl => run::<$absl>($job),
            Contender::Waitword => run::<$waitword>($job),
            $(
                Contender::WaitwordThroughput => run::<$throughput>($job),
                Contender::WaitwordWaitWake => run::<$wait_wake>($job),
            )?
            #[allow(unreachable_patterns, reason = "not if all peers are there")]
            _ => Err($contender.is_missing()),
        }
    }};
}
use with;

macro_rules! with_mutex {
    ($contender:expr, $job:expr, $run:path) => {
        with!(
            $contender, $job, $run,
            glibc: glibc::Mutex<glibc::Normal>, std: stdlib::Mutex,
            parking_lot: parking_lot::Mutex, nsync: nsync::Mu, absl: absl::Mu,
            waitword: ours::Mutex<ours::Adaptive>, ours::Mutex<ours::Throughput>,
            ours::Mutex<ours::WaitWake>
        )
    };
}
use with_mutex;
