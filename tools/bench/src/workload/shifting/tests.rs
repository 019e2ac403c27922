use super::*;
use crate::locks::glibc;
use crate::workload::guarded::open::Open;
use crate::workload::testing::context;

#[test]
fn the_metrics_names_say_what_the_phases_are() {
    for (phase, metric) in METRICS[1..].iter().enumerate() {
        let section = match SECTIONS[phase % SECTIONS.len()] {
            Section::Busy(50.0) => "50 ns",
            Section::Busy(1000.0) => "1 µs",
            Section::Busy(other) => panic!("{other} ns has no name"),
            Section::Nap => "nap",
        };
        let expected = format!("{}: {} x {section}", phase + 1, RAMP[phase]);
        assert_eq!(metric.name, expected);
    }
}

#[test]
fn something_is_done_in_every_phase() {
    let _guard = waitword_testkit::watch();
    let context = context();
    let crew = Crew::new(THREADS, &context).unwrap();
    let locks: Arc<[Guarded<glibc::Mutex<glibc::Normal>>]> =
        (0..LOCKS).map(|_| Guarded::new()).collect();
    // Other tests compete for the CPUs, and a phase with naps may end before its first nap does. So
    // try repeatedly.
    let mut idle = vec![true; PHASES];
    for _ in 0..100 {
        let measured = measure(&crew, &locks, Duration::from_millis(5), &context).unwrap();
        assert_eq!(measured.values.len(), METRICS.len());
        for (idle, value) in idle.iter_mut().zip(&measured.values[1..]) {
            *idle &= *value == 0.0;
        }
        if !idle.contains(&true) {
            return;
        }
    }
    panic!("phases in which nothing is done: {idle:?}");
}

#[test]
fn a_lock_that_is_none_is_detected() {
    let _guard = waitword_testkit::watch();
    if allowed_cpus().len() < 2 {
        return;
    }
    let context = context();
    let crew = Crew::new(THREADS, &context).unwrap();
    let locks: Arc<[Guarded<Open>]> = (0..LOCKS).map(|_| Guarded::new()).collect();
    let found = |_| match measure(&crew, &locks, Duration::from_millis(2), &context) {
        Err(failure) => failure.to_string().contains("at once"),
        Ok(_) => false,
    };
    assert!((0..50).any(found));
}

#[test]
fn the_adaptive_one_is_compared_with_the_best_fixed_one() {
    let _guard = waitword_testkit::watch();
    let context = context();
    let case = cases(&context.settings).remove(0);
    let contenders = (case.prepare)(&context).unwrap();
    assert_eq!(contenders.len(), case.contenders);
    let name = |index: usize| contenders[index].variant.name();
    for (index, contender) in contenders.iter().enumerate() {
        let adaptive = name(index) == <ours::Mutex<ours::Adaptive> as BenchMutex>::NAME;
        let expected = if adaptive { "best fixed flavour of each" } else { "glibc" };
        assert_eq!(name(contender.baseline), expected, "{}", name(index));
    }
}
