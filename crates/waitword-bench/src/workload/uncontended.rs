//! `uncontended`: what a lock costs that nobody else wants.
//!
//! **Work.** One thread locks and unlocks, over and over, with nothing between: a mutex, also of the C library's kinds that keep their owner; a
//! reader-writer lock for reading, and for writing. It takes a semaphore's token, which is there, and gives it back; it asks for something to be done once that has been
//! done.
//!
//! **Redraws** the single-threaded shapes of glibc's benchtests. Other threads of the process are there, asleep: some
//! C libraries leave out the atomic instructions of a process with one thread, which is not what is asked here.
//!
//! **Figures.** Nanoseconds for a lock and an unlock together, two calls, the median of five batches of two
//! milliseconds.

use crate::harness::{Case, Contender, Context, Metric};
use crate::locks::glibc::{self, ErrorChecking, Inherit, MutexKind, Once, Recursive, Semaphore};
use crate::locks::pthread::{self, CLibrary, DropIn, Library};
use crate::locks::{BenchMutex, BenchRwLock, every_mutex, every_rwlock};
use crate::run::{Settings, Workload};
use crate::workload::calls::measure;
use std::hint::black_box;

/// What the user calls by name.
pub const WORKLOAD: Workload = Workload {
    name: "uncontended",
    about: "one thread locks and unlocks: mutex; rwlock for reading and for writing; semaphore; once",
    patch: None,
    milliseconds: 20,
    cases,
};

const METRICS: &[Metric] = &[Metric::less("", "ns")];

/// On a cache line of its own: a neighbour's size must not decide whether it lies across two.
#[repr(align(128))]
struct Apart<L>(L);

fn cases(_: &Settings) -> Vec<Case> {
    let mutexes = every_mutex!(nothing()).len();
    let rwlocks = every_rwlock!(nothing()).len();
    let libraries = 1 + usize::from(pthread::is_loaded());
    vec![
        Case::new("mutex", METRICS, mutexes, |_| Ok(every_mutex!(mutex()))),
        of_kind::<Recursive>("mutex, recursive", libraries),
        of_kind::<ErrorChecking>("mutex, error-checking", libraries),
        of_kind::<Inherit>("mutex, priority-inheriting", libraries),
        Case::new("rwlock, reading", METRICS, rwlocks, |_| {
            Ok(every_rwlock!(reader()))
        }),
        Case::new("rwlock, writing", METRICS, rwlocks, |_| {
            Ok(every_rwlock!(writer()))
        }),
        Case::new("semaphore", METRICS, libraries, |_| {
            Ok(every_library(semaphore::<CLibrary>, semaphore::<DropIn>))
        }),
        Case::new("once", METRICS, libraries, |_| {
            Ok(every_library(once::<CLibrary>, once::<DropIn>))
        }),
    ]
}

/// A mutex of the C library's and of the drop-in's.
fn of_kind<K: MutexKind>(name: &'static str, libraries: usize) -> Case {
    Case::new(name, METRICS, libraries, |_| {
        Ok(every_library(
            mutex_of_kind::<K, CLibrary>,
            mutex_of_kind::<K, DropIn>,
        ))
    })
}

/// The C library's, and the drop-in's if it is there.
fn every_library(theirs: fn() -> Contender, ours: fn() -> Contender) -> Vec<Contender> {
    let ours = pthread::is_loaded().then(ours);
    [theirs()].into_iter().chain(ours).collect()
}

fn name<L: Library>() -> &'static str {
    if L::IS_DROP_IN { "drop-in" } else { "glibc" }
}

fn semaphore<L: Library>() -> Contender {
    contender(
        name::<L>(),
        Semaphore::<L>::new(),
        |semaphore: &Semaphore<L>| {
            semaphore.wait_and_post();
        },
    )
}

fn once<L: Library>() -> Contender {
    contender(name::<L>(), Once::<L>::done(), |once: &Once<L>| once.ask())
}

fn nothing<L>() {}

fn mutex<M: BenchMutex>() -> Contender {
    contender(M::NAME, M::new(), |lock: &M| {
        lock.lock();
        // SAFETY: locked above; borrowed all the while, it does not move.
        unsafe { lock.unlock() };
    })
}

fn mutex_of_kind<K: MutexKind, L: Library>() -> Contender {
    type Mutex<K, L> = glibc::Mutex<K, L>;
    contender(name::<L>(), Mutex::<K, L>::new(), |lock: &Mutex<K, L>| {
        lock.lock();
        // SAFETY: locked above; borrowed all the while, it does not move.
        unsafe { lock.unlock() };
    })
}

fn reader<L: BenchRwLock>() -> Contender {
    contender(L::NAME, L::new(), |lock: &L| {
        lock.read_lock();
        // SAFETY: locked above; borrowed all the while, it does not move; there is no other.
        unsafe { lock.read_unlock() };
    })
}

fn writer<L: BenchRwLock>() -> Contender {
    contender(L::NAME, L::new(), |lock: &L| {
        lock.write_lock();
        // SAFETY: locked above; borrowed all the while, it does not move.
        unsafe { lock.write_unlock() };
    })
}

fn contender<L: 'static>(name: &str, lock: L, both: impl Fn(&L) + Copy + 'static) -> Contender {
    let lock = Box::new(Apart(lock));
    Contender::named(name, move |context: &Context| {
        measure(context, |times| {
            for _ in 0..times {
                both(black_box(&lock.0));
            }
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::run_case;
    use crate::watchdog;

    #[test]
    fn every_case_has_a_figure_for_every_lock() {
        let _guard = watchdog::guard("uncontended");
        let settings = Settings {
            rounds: 1,
            ..Settings::default()
        };
        let context = Context::new(settings.clone(), std::sync::Arc::default());
        for case in cases(&settings) {
            let (count, mut steps) = (case.contenders, 0);
            let (report, failure) = run_case(case, &context, &mut |_| steps += 1);
            assert_eq!(failure, None);
            assert_eq!(steps, count);
            for variant in report.unwrap().variants {
                let nanoseconds = variant.metrics[0].summary.median;
                assert!(nanoseconds > 0.0, "{}: {nanoseconds} ns", variant.name);
            }
        }
    }
}
