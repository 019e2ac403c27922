//! The lists of contenders. Add a new lock here, and every workload measures it.
//!
//! A list is a macro because each entry is a type: `every_mutex!(contender(threads, &crew))` is the
//! `Vec` of `contender::<M>(threads, &crew)` for each mutex `M`. The order is: the baseline and the
//! C library's other locks, the historical implementations, the peers, ours, the drop-in.
//! `contender` is a generic function with any arguments; they are evaluated again for each call.

use super::traits::{BenchCondvar, BenchMutex, BenchRwLock};
use crate::ops::{Futexes as _, Kernel};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Calls `$build`, a function generic over [`BenchMutex`], for every mutex; the
/// results are a `Vec`.
macro_rules! every_mutex {
    ($build:ident $arguments:tt) => {{
        use crate::locks::{futex, futex_pi, glibc, ours, parking_lot, pthread, stdlib};
        let mut all = vec![
            $build::<glibc::Mutex<glibc::Normal>> $arguments,
            $build::<glibc::Mutex<glibc::Adaptive>> $arguments,
            $build::<glibc::Mutex<glibc::Inherit>> $arguments,
            $build::<futex::Mutex> $arguments,
            $build::<futex_pi::Mutex> $arguments,
            $build::<stdlib::Mutex> $arguments,
            $build::<parking_lot::Mutex> $arguments,
        ];
        #[cfg(has_cpp)]
        {
            use crate::locks::cpp;
            all.push($build::<cpp::Mutex> $arguments);
            all.push($build::<cpp::AtomicMutex> $arguments);
        }
        #[cfg(has_tbb)]
        if crate::locks::tbb::is_there() {
            use crate::locks::tbb;
            all.push($build::<tbb::Mutex> $arguments);
            all.push($build::<tbb::queuing::QueuingMutex> $arguments);
        }
        #[cfg(has_nsync)]
        all.push($build::<crate::locks::nsync::Mu> $arguments);
        #[cfg(has_absl)]
        all.push($build::<crate::locks::absl::Mu> $arguments);
        all.push($build::<ours::Mutex<ours::Adaptive>> $arguments);
        all.push($build::<ours::Mutex<ours::Throughput>> $arguments);
        all.push($build::<ours::Mutex<ours::WaitWake>> $arguments);
        all.push($build::<ours::Mutex<ours::Inherit>> $arguments);
        if pthread::is_loaded() {
            all.push($build::<glibc::Mutex<glibc::Normal, pthread::DropIn>> $arguments);
        }
        all
    }};
}

/// Calls `$build`, a function generic over [`BenchCondvar`], for every
/// condition variable; the results are a `Vec`.
macro_rules! every_condvar {
    ($build:ident $arguments:tt) => {{
        use crate::locks::{glibc, nptl, ours, parking_lot, pthread, requeue, stdlib};
        let mut all = vec![
            $build::<glibc::Condvar> $arguments,
            $build::<requeue::WakeAll> $arguments,
            $build::<requeue::Requeue> $arguments,
            $build::<nptl::Condvar<nptl::Orig>> $arguments,
            $build::<nptl::Condvar<nptl::Requeue>> $arguments,
            $build::<nptl::Condvar<nptl::WakeOp>> $arguments,
            $build::<stdlib::Condvar> $arguments,
            $build::<parking_lot::Condvar> $arguments,
        ];
        #[cfg(has_cpp)]
        all.push($build::<crate::locks::cpp::Condvar> $arguments);
        #[cfg(has_nsync)]
        all.push($build::<crate::locks::nsync::Cv> $arguments);
        #[cfg(has_absl)]
        all.push($build::<crate::locks::absl::Cv> $arguments);
        all.push($build::<ours::Condvar<ours::Adaptive>> $arguments);
        all.push($build::<ours::Condvar<ours::WaitWake>> $arguments);
        all.push($build::<ours::Condvar<ours::Inherit>> $arguments);
        if pthread::is_loaded() {
            all.push($build::<glibc::Condvar<pthread::DropIn>> $arguments);
        }
        all
    }};
}

/// Calls `$build`, a function generic over [`BenchRwLock`], for every
/// reader-writer lock; the results are a `Vec`.
macro_rules! every_rwlock {
    ($build:ident $arguments:tt) => {{
        use crate::locks::{glibc, nptl_rwlock, ours, parking_lot, pthread, stdlib};
        let mut all = vec![
            $build::<glibc::RwLock<glibc::PreferReader>> $arguments,
            $build::<glibc::RwLock<glibc::PreferWriter>> $arguments,
            $build::<nptl_rwlock::PreferReader> $arguments,
            $build::<nptl_rwlock::PreferWriter> $arguments,
            $build::<stdlib::RwLock> $arguments,
            $build::<parking_lot::RwLock> $arguments,
        ];
        #[cfg(has_cpp)]
        all.push($build::<crate::locks::cpp::SharedMutex> $arguments);
        #[cfg(has_tbb)]
        if crate::locks::tbb::is_there() {
            use crate::locks::tbb;
            all.push($build::<tbb::RwMutex> $arguments);
            all.push($build::<tbb::queuing::QueuingRwMutex> $arguments);
        }
        #[cfg(has_nsync)]
        all.push($build::<crate::locks::nsync::Mu> $arguments);
        #[cfg(has_absl)]
        all.push($build::<crate::locks::absl::Mu> $arguments);
        all.push($build::<ours::RwLock<ours::PreferReaders>> $arguments);
        all.push($build::<ours::RwLock<ours::PreferWriters>> $arguments);
        if pthread::is_loaded() {
            use pthread::DropIn;
            all.push($build::<glibc::RwLock<glibc::PreferReader, DropIn>> $arguments);
            all.push($build::<glibc::RwLock<glibc::PreferWriter, DropIn>> $arguments);
        }
        all
    }};
}

pub(crate) use {every_condvar, every_mutex, every_rwlock};

/// How many mutexes there are.
pub(crate) fn mutexes() -> usize {
    fn one<M>() {}
    every_mutex!(one()).len()
}

/// How many condition variables.
pub(crate) fn condvars() -> usize {
    fn one<C>() {}
    every_condvar!(one()).len()
}

/// How many reader-writer locks.
pub(crate) fn rwlocks() -> usize {
    fn one<L>() {}
    every_rwlock!(one()).len()
}

/// The names of all lock variants and the kernel's futex. There are more names, such as the lengths
/// and widths of ours.
pub fn names() -> BTreeSet<String> {
    fn mutex<M: BenchMutex>() -> &'static str {
        M::NAME
    }
    fn condvar<C: BenchCondvar>() -> &'static str {
        C::NAME
    }
    fn rwlock<L: BenchRwLock>() -> &'static str {
        L::NAME
    }
    let mut names: BTreeSet<String> = BTreeSet::from([Kernel::<true>.name()]);
    for list in [every_mutex!(mutex()), every_condvar!(condvar()), every_rwlock!(rwlock())] {
        names.extend(list.into_iter().map(str::to_owned));
    }
    names
}

/// A peer that cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The name that the report would use.
    pub name: &'static str,
    /// The command that installs it on Debian; the next build or the next run then includes it.
    pub install: &'static str,
}

/// The peers that were absent or could not be compiled and linked at build time, and those that
/// were built but cannot be loaded now.
pub fn missing() -> &'static [Missing] {
    static ALL: LazyLock<Vec<Missing>> =
        LazyLock::new(|| NOT_BUILT.iter().copied().chain(not_loaded()).collect());
    &ALL
}

const NOT_BUILT: &[Missing] = &[
    #[cfg(not(has_cpp))]
    Missing { name: "C++ std", install: "apt-get install g++" },
    #[cfg(not(has_tbb))]
    Missing { name: "tbb", install: "apt-get install g++ libtbb-dev" },
    #[cfg(not(has_nsync))]
    Missing { name: "nsync", install: "apt-get install gcc libnsync-dev" },
    #[cfg(not(has_absl))]
    Missing { name: "absl", install: "apt-get install g++ libabsl-dev" },
];

fn not_loaded() -> Option<Missing> {
    #[cfg(has_tbb)]
    if !super::tbb::is_there() {
        return Some(Missing { name: "tbb", install: "apt-get install libtbb12" });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_mutexes_condvars_and_rwlocks() {
        let names = names();
        for name in ["glibc", "futex(2)", "nptl-wake_op", "std", "waitword, readers first"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
    }
}
