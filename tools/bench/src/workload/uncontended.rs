//! `uncontended`: the cost of a lock that no other thread wants.
//!
//! **Work.** One thread repeats, with nothing in between:
//!
//! | cases | operation |
//! |---|---|
//! | *mutex*, and the C library's types that record their owner | lock; unlock |
//! | *trylock, taken* | try to lock a mutex that is locked |
//! | *rwlock, reading*, *writing* | lock for reading, or for writing; unlock |
//! | *semaphore* | take its available token; return it |
//! | *once* | call a once object that has already run |
//! | *filler, ...* (with `--full`) | lock, a little arithmetic, unlock: how much the CPU can hide |
//!
//! **Reproduces** the single-threaded shapes of glibc's benchtests. Other threads of the process
//! exist and sleep: some C libraries leave out the atomic instructions in a single-threaded
//! process, which is not the question here.
//!
//! **Figures.** Nanoseconds for a lock and an unlock together, two calls (for *trylock*, its one
//! call), the median of five batches of two milliseconds. One thread cannot distinguish a lock from
//! nothing, so each must first show that it excludes another thread (`workload::proof`).

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Metric, Workload, check};
use crate::locks::glibc::{self, ErrorChecking, Inherit, MutexKind, Once, Recursive};
use crate::locks::pthread::{self, CLibrary, DropIn, Library};
use crate::locks::semaphore::{BenchSemaphore, every_semaphore};
use crate::locks::{BenchMutex, BenchRwLock, every_mutex, every_rwlock, mutexes, rwlocks};
use crate::settings::Settings;
use crate::workload::calls::measure;
use crate::workload::proof::{self, proved};
use std::hint::black_box;
use std::rc::Rc;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "uncontended",
    about: "one thread locks and unlocks: mutex, trylock; rwlock for reading and for writing; \
            semaphore; once",
    patch: None,
    milliseconds: 17,
    cases,
};

const METRICS: &[Metric] = &[Metric::less("", "ns")];

/// On its own cache line: a neighbour's size must not decide whether it crosses two.
#[repr(align(128))]
struct Apart<L>(L);

/// The work with the lock held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Empty,
    Filler,
}

/// A little work, of some ten nanoseconds, that touches no memory.
#[inline(always)]
fn fill() {
    let mut number = black_box(1_u64);
    for _ in 0..8 {
        number ^= number << 7;
        number ^= number >> 9;
    }
    black_box(number);
}

/// A crew of one thread that proves the contenders' locks.
type Prover = Rc<Crew>;

/// A case whose contenders are made for a prover.
fn case(
    name: &'static str,
    contenders: usize,
    prepare: impl FnOnce(&Prover) -> Vec<Contender> + 'static,
) -> Case {
    Case::new(name, METRICS, contenders, move |context| {
        Ok(prepare(&Rc::new(Crew::new(1, context)?)))
    })
}

fn cases(settings: &Settings) -> Vec<Case> {
    let mutexes = mutexes();
    let rwlocks = rwlocks();
    let semaphores = every_semaphore!(nothing()).len();
    let libraries = 1 + usize::from(pthread::is_loaded());
    let mut cases = vec![
        case("mutex", mutexes, |prover| every_mutex!(mutex(prover, Section::Empty))),
        of_kind::<Recursive>("mutex, recursive", libraries),
        of_kind::<ErrorChecking>("mutex, error-checking", libraries),
        of_kind::<Inherit>("mutex, priority-inheriting", libraries),
        case("trylock, taken", mutexes, |prover| every_mutex!(failing_trylock(prover))),
        case("rwlock, reading", rwlocks, |prover| every_rwlock!(reader(prover, Section::Empty))),
        case("rwlock, writing", rwlocks, |prover| every_rwlock!(writer(prover, Section::Empty))),
        case("semaphore", semaphores, |prover| every_semaphore!(semaphore(prover, Section::Empty))),
        case("once", libraries, |_| every_library(once::<CLibrary>, once::<DropIn>)),
    ];
    if settings.full {
        cases.extend([
            case("filler, locked", mutexes, |prover| every_mutex!(mutex(prover, Section::Filler))),
            case("filler, locked for reading", rwlocks, |prover| {
                every_rwlock!(reader(prover, Section::Filler))
            }),
            case("filler, locked for writing", rwlocks, |prover| {
                every_rwlock!(writer(prover, Section::Filler))
            }),
            case("filler, semaphore", semaphores, |prover| {
                every_semaphore!(semaphore(prover, Section::Filler))
            }),
        ]);
    }
    cases
}

/// A mutex of this kind, from the C library and from the drop-in.
fn of_kind<K: MutexKind>(name: &'static str, libraries: usize) -> Case {
    case(name, libraries, |prover| {
        every_library(
            || mutex_named::<glibc::Mutex<K, CLibrary>>(library::<CLibrary>(), prover),
            || mutex_named::<glibc::Mutex<K, DropIn>>(library::<DropIn>(), prover),
        )
    })
}

/// The C library's, and the drop-in's if it is loaded.
fn every_library(
    theirs: impl FnOnce() -> Contender,
    ours: impl FnOnce() -> Contender,
) -> Vec<Contender> {
    let ours = pthread::is_loaded().then(ours);
    [theirs()].into_iter().chain(ours).collect()
}

fn library<L: Library>() -> &'static str {
    if L::IS_DROP_IN { "drop-in" } else { "glibc" }
}

fn nothing<L>() {}

fn once<L: Library>() -> Contender {
    let proof = |_: &Context| {
        check(Once::<L>::is_one(), || "the once function did not run exactly once".to_owned())
    };
    contender(library::<L>(), Once::<L>::done(), Section::Empty, proof, |once| once.ask(), |_| ())
}

pub(super) fn mutex<M: BenchMutex>(prover: &Prover, section: Section) -> Contender {
    locked::<M>(M::NAME, prover, section)
}

fn mutex_named<M: BenchMutex>(name: &str, prover: &Prover) -> Contender {
    locked::<M>(name, prover, Section::Empty)
}

fn locked<M: BenchMutex>(name: &str, prover: &Prover, section: Section) -> Contender {
    let prover = prover.clone();
    contender(
        name,
        M::new(),
        section,
        move |context| proof::mutex::<M>(&prover, context),
        |lock: &M| lock.lock(),
        // SAFETY: locked just before; it stays borrowed, so it does not move.
        |lock: &M| unsafe { lock.unlock() },
    )
}

pub(super) fn failing_trylock<M: BenchMutex>(prover: &Prover) -> Contender {
    let (lock, prover) = (Box::new(Apart(M::new())), prover.clone());
    let proof = move |context: &Context| proof::mutex::<M>(&prover, context);
    proved(M::NAME, proof, move |context| {
        measure(context, |times| {
            let lock = &lock.0;
            lock.lock();
            let mut taken = 0;
            for _ in 0..times {
                taken += u64::from(black_box(lock).try_lock());
            }
            // SAFETY: locked above; it stays borrowed, so it does not move.
            unsafe { lock.unlock() };
            check(taken == 0, || format!("a locked mutex was taken {taken} times"))
        })
    })
}

pub(super) fn reader<L: BenchRwLock>(prover: &Prover, section: Section) -> Contender {
    let prover = prover.clone();
    contender(
        L::NAME,
        L::new(),
        section,
        move |context| proof::rwlock::<L>(&prover, context),
        |lock: &L| lock.read_lock(),
        // SAFETY: locked just before; it stays borrowed, so it does not move; the thread holds no
        // other.
        |lock: &L| unsafe { lock.read_unlock() },
    )
}

pub(super) fn writer<L: BenchRwLock>(prover: &Prover, section: Section) -> Contender {
    let prover = prover.clone();
    contender(
        L::NAME,
        L::new(),
        section,
        move |context| proof::rwlock::<L>(&prover, context),
        |lock: &L| lock.write_lock(),
        // SAFETY: locked just before; it stays borrowed, so it does not move.
        |lock: &L| unsafe { lock.write_unlock() },
    )
}

pub(super) fn semaphore<S: BenchSemaphore>(prover: &Prover, section: Section) -> Contender {
    let prover = prover.clone();
    contender(
        S::NAME,
        S::new(1),
        section,
        move |context| proof::semaphore::<S>(&prover, context),
        S::wait,
        S::post,
    )
}

/// Repeats `enter`, the section, `leave` on one lock.
fn contender<L: 'static>(
    name: &str,
    lock: L,
    section: Section,
    proof: impl Fn(&Context) -> Result<(), Failure> + 'static,
    enter: impl Fn(&L) + Copy + 'static,
    leave: impl Fn(&L) + Copy + 'static,
) -> Contender {
    let lock = Box::new(Apart(lock));
    proved(name, proof, move |context| {
        measure(context, |times| {
            match section {
                Section::Empty => (0..times).for_each(|_| {
                    let lock = black_box(&lock.0);
                    enter(lock);
                    leave(lock);
                }),
                Section::Filler => (0..times).for_each(|_| {
                    let lock = black_box(&lock.0);
                    enter(lock);
                    fill();
                    leave(lock);
                }),
            }
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::run_case;
    use waitword_testkit::watch;

    #[test]
    fn every_case_has_a_figure_for_every_lock() {
        let _guard = watch();
        let settings = Settings { rounds: 1, full: true, ..Settings::default() };
        let context = Context::new(settings.clone(), std::sync::Arc::default());
        for case in cases(&settings) {
            let count = case.contenders;
            let (report, failure) = run_case(case, &context, &mut |_| ());
            assert_eq!(failure, None);
            let report = report.unwrap();
            assert_eq!(report.variants.len(), count);
            for variant in report.variants {
                let nanoseconds = variant.metrics[0].summary.median;
                assert!(nanoseconds > 0.0, "{}: {nanoseconds} ns", variant.name);
            }
        }
    }

    #[test]
    fn fillers_are_for_the_full_run_and_judged_by_no_bar_of_the_empty_section() {
        let names = |full| -> Vec<String> {
            let settings = Settings { full, ..Settings::default() };
            cases(&settings).into_iter().map(|case| case.name).collect()
        };
        let fillers = |names: &[String]| {
            let filler = |name: &&String| name.starts_with("filler, ");
            names.iter().filter(filler).count()
        };
        assert_eq!((fillers(&names(false)), fillers(&names(true))), (0, 4));
        let with = names(true);
        let judged = |name: &&String| name.contains("mutex") || name.contains("rwlock");
        assert_eq!(with.iter().filter(judged).count(), 6, "{with:?}");
    }
}
