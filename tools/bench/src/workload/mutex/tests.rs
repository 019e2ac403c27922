use super::*;
use crate::harness::run_case;
use crate::locks::{glibc, stdlib};
use crate::watchdog;
use crate::workload::allowed_cpus;
use crate::workload::guarded::open::Open;

const WORK: Work = Work {
    inside: 5,
    outside: 1,
    naps: 0,
};

fn context() -> Context {
    let settings = Settings {
        rounds: 1,
        ..Settings::default()
    };
    Context::new(settings, Arc::default())
}

fn run<M: BenchMutex>(threads: usize, work: Work, until: Until, timed: bool) -> crowd::Outcome {
    let context = context();
    let crew = Crew::new(threads, &context).unwrap();
    let guarded = Arc::new(Guarded::<M>::new());
    crowd::run(&crew, &guarded, work, until, timed, &context).unwrap()
}

#[test]
fn a_run_for_a_time_takes_that_time() {
    let _guard = watchdog::guard("mutex, for a time");
    let time = Duration::from_millis(20);
    let outcome = run::<stdlib::Mutex>(3, WORK, Until::Time(time), false);
    assert!(outcome.took >= 20e6, "{} ns", outcome.took);
    assert_eq!(outcome.threads.len(), 3);
    assert!(outcome.waits.is_empty());
}

#[test]
fn a_run_for_a_number_does_that_number_and_times_each() {
    let _guard = watchdog::guard("mutex, for a number");
    let outcome = run::<glibc::Mutex<glibc::Normal>>(5, WORK, Until::Sections(300), true);
    assert!(outcome.threads.iter().all(|thread| thread.sections == 300));
    assert_eq!(outcome.waits.len(), 1500);
    let values = figures::of_sections(&outcome);
    assert_eq!(values.len(), figures::OF_SECTIONS.len());
    let [slowest, fastest, average, ..] = values[..] else {
        unreachable!()
    };
    assert!(slowest >= average && average >= fastest, "{values:?}");
    assert!(fastest > 0.0, "{values:?}");
}

#[test]
fn so_many_sections_are_naps() {
    let _guard = watchdog::guard("mutex, naps");
    let work = Work {
        naps: OUT_OF / 8,
        ..WORK
    };
    let outcome = run::<glibc::Mutex<glibc::Normal>>(1, work, Until::Sections(80), false);
    let slept = outcome.threads[0].usage.voluntary_switches;
    // Ten. A nap that ends before the thread has left its CPU is not a switch.
    assert!((5..20).contains(&slept), "{slept} naps in 80 sections");
}

#[test]
fn a_lock_that_is_none_is_found_out() {
    let _guard = watchdog::guard("mutex, no lock");
    if allowed_cpus().len() < 2 {
        return;
    }
    let context = context();
    let crew = Crew::new(2, &context).unwrap();
    let guarded = Arc::new(Guarded::<Open>::new());
    let none = Work {
        inside: 0,
        outside: 0,
        naps: 0,
    };
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
    let chosen = Settings {
        threads: vec![3],
        ..Settings::default()
    };
    let full = Settings {
        full: true,
        ..Settings::default()
    };
    assert_eq!(count(&usual), USUAL.len() + 1);
    assert_eq!(count(&chosen), INSIDE.len() + 1);
    assert_eq!(
        count(&full),
        crowd::ALL_THREADS.len() * INSIDE.len() * OUTSIDE.len() + 1
    );
    assert!(cases(&chosen)[0].name.starts_with("t = 3, "));
}

#[test]
fn every_contender_is_measured() {
    let _guard = watchdog::guard("mutex, every contender");
    let context = context();
    for case in [for_a_time(2, 5, 1, 0), worst_case(3, 5)] {
        let count = case.contenders;
        let (report, failure) = run_case(case, &context, &mut |_| ());
        assert_eq!(failure, None);
        let report = report.unwrap();
        assert_eq!(report.variants.len(), count);
        for variant in &report.variants {
            let finite = |metric: &crate::report::MetricReport| metric.summary.median.is_finite();
            assert!(variant.metrics.iter().all(finite), "{variant:?}");
        }
    }
}
