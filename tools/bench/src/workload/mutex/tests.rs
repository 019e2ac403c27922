use super::*;
use crate::cpus::allowed_cpus;
use crate::locks::{glibc, stdlib};
use crate::workload::guarded::open::Open;
use crate::workload::testing::{context, full, is_finite, measured, with_threads};

const WORK: Work = Work { inside: 5, outside: 1, naps: 0 };

fn run<M: BenchMutex>(threads: usize, work: Work, until: Until, timed: bool) -> crowd::Outcome {
    let context = context();
    let crew = Crew::new(threads, &context).unwrap();
    let guarded = Arc::new(Guarded::<M>::new());
    crowd::run(&crew, &guarded, work, until, timed, &context).unwrap()
}

#[test]
fn a_run_for_a_time_takes_that_time() {
    let _guard = waitword_testkit::watch();
    let time = Duration::from_millis(20);
    let outcome = run::<stdlib::Mutex>(3, WORK, Until::Time(time), false);
    assert!(outcome.took >= 20e6, "{} ns", outcome.took);
    assert_eq!(outcome.threads.len(), 3);
    assert!(outcome.waits.is_empty());
}

#[test]
fn a_run_for_a_number_does_that_number_and_times_each() {
    let _guard = waitword_testkit::watch();
    let outcome = run::<glibc::Mutex<glibc::Normal>>(5, WORK, Until::Sections(300), true);
    assert!(outcome.threads.iter().all(|thread| thread.sections == 300));
    assert_eq!(outcome.waits.len(), 1500);
    let values = figures::of_sections(&outcome);
    assert_eq!(values.len(), figures::OF_SECTIONS.len());
    let [slowest, fastest, average, ..] = values[..] else { unreachable!() };
    assert!(slowest >= average && average >= fastest, "{values:?}");
    assert!(fastest > 0.0, "{values:?}");
}

#[test]
fn so_many_sections_are_naps() {
    let _guard = waitword_testkit::watch();
    let work = Work { naps: OUT_OF / 8, ..WORK };
    let outcome = run::<glibc::Mutex<glibc::Normal>>(1, work, Until::Sections(80), false);
    let slept = outcome.threads[0].usage.voluntary_switches;
    // Ten. A nap that ends before the thread has left its CPU is not a switch.
    assert!((5..20).contains(&slept), "{slept} naps in 80 sections");
}

#[test]
fn a_lock_that_is_none_is_detected() {
    let _guard = waitword_testkit::watch();
    if allowed_cpus().len() < 2 {
        return;
    }
    let context = context();
    let crew = Crew::new(2, &context).unwrap();
    let guarded = Arc::new(Guarded::<Open>::new());
    let none = Work { inside: 0, outside: 0, naps: 0 };
    let found = |_| {
        let until = Until::Time(Duration::from_millis(5));
        match crowd::run(&crew, &guarded, none, until, false, &context) {
            Err(failure) => failure.to_string().contains("at once"),
            Ok(_) => false,
        }
    };
    assert!((0..100).any(found));
}

#[test]
fn the_user_decides_how_many_cells_there_are() {
    let count = |settings: &Settings| cases(settings).len();
    let usual = Settings::default();
    let chosen = with_threads(&[3]);
    let full = full();
    assert_eq!(count(&usual), USUAL.len() + 1);
    assert_eq!(count(&chosen), INSIDE.len() + 1);
    assert_eq!(count(&full), crowd::ALL_THREADS.len() * INSIDE.len() * OUTSIDE.len() + 1);
    assert!(cases(&chosen)[0].name.starts_with("t = 3, "));
}

#[test]
fn every_contender_is_measured() {
    let _guard = waitword_testkit::watch();
    let context = context();
    for case in [for_a_time(2, 5, 1, 0), worst_case(3, 5)] {
        is_finite(&measured(case, &context));
    }
}
