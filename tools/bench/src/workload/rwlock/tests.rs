use super::classes::{self, Classes};
use super::guarded::Guarded;
use super::*;
use crate::cpus::allowed_cpus;
use crate::crew::Crew;
use crate::locks::{glibc, stdlib};
use crate::workload::guarded::open::Open;
use crate::workload::testing::{
    context, full, is_finite, is_positive, measured, names, with_threads,
};
use std::sync::Arc;
use std::time::Duration;

/// Without a gap.
fn load(period: u64) -> mixed::Load {
    mixed::Load { period, gap: 0.0 }
}

#[test]
fn every_contender_is_measured() {
    let _guard = waitword_testkit::watch();
    let (readers, writers) = (3, 2);
    let cases = [
        mixed::case(3, load(0), Duration::from_millis(2)),
        mixed::case(3, load(10), Duration::from_millis(2)),
        mixed::case(2, load(2), Duration::from_millis(2)),
        mixed::case(2, mixed::Load { gap: 1000.0, ..load(2) }, Duration::from_millis(2)),
        classes::case(Classes { readers, writers }, Duration::from_millis(5)),
    ];
    for case in cases {
        let report = measured(case, &context());
        is_finite(&report);
        is_positive(&report);
    }
}

#[test]
fn one_in_so_many_is_a_write() {
    let _guard = waitword_testkit::watch();
    let context = context();
    let crew = Crew::new(1, &context).unwrap();
    for period in [0, 2, 10, 1000] {
        let guarded = Arc::new(Guarded::<stdlib::RwLock>::new());
        let time = Duration::from_millis(3);
        let done =
            mixed::run::<_, true>(&crew, &guarded, load(period), time, &context).unwrap().done;
        let wanted = match period {
            0 => 0,
            _ => done.operations.div_ceil(period),
        };
        assert!(done.operations > 0, "{done:?}");
        assert_eq!(done.writes, wanted, "{done:?}");
        assert_eq!(guarded.writes(), [wanted; 2]);
    }
}

#[test]
fn each_class_has_its_waits() {
    let _guard = waitword_testkit::watch();
    let context = context();
    let crew = Crew::new(3, &context).unwrap();
    let guarded = Arc::new(Guarded::<glibc::RwLock<glibc::PreferWriter>>::new());
    let (readers, writers) = (2, 1);
    let time = Duration::from_millis(20);
    let classes = Classes { readers, writers };
    let measured = classes::measure(&crew, &guarded, classes, time, &context).unwrap();
    let [reads, writes, _, read_p50, read_p99, read_p999, read_max, write_p50, ..] =
        measured.values[..]
    else {
        unreachable!()
    };
    assert!(reads > 0.0 && writes > 0.0, "{measured:?}");
    assert!(read_p50 <= read_p99 && read_p99 <= read_p999, "{measured:?}");
    assert!(read_p999 <= read_max, "{measured:?}");
    assert!(write_p50 > 0.0, "{measured:?}");
    assert!(guarded.writes()[0] as f64 >= writes * 0.02 * 0.9, "{measured:?}");
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
    let time = Duration::from_millis(5);
    let found = |_| match mixed::run::<_, false>(&crew, &guarded, load(2), time, &context) {
        Err(failure) => failure.to_string().contains("not alone"),
        Ok(_) => false,
    };
    assert!((0..1000).any(found));
    let (readers, writers) = (1, 1);
    let classes = Classes { readers, writers };
    let guarded = Arc::new(Guarded::<Open>::new());
    let found = |_| match classes::measure(&crew, &guarded, classes, time, &context) {
        Err(failure) => failure.to_string().contains("saw a half-done write"),
        Ok(_) => false,
    };
    assert!((0..1000).any(found));
}

#[test]
fn the_user_decides_how_many_cells_there_are() {
    let names = |settings: Settings| names(cases(&settings));
    let usual = names(Settings::default());
    assert_eq!(usual.len(), 4 * 2 + 2 + 1);
    let full = names(full());
    assert_eq!(full.len(), 5 * 5 + 2 + 3);
    assert!(full.contains(&"t = 8, one write in 1000 operations".to_owned()), "{full:?}");
    let apart = "t = 2, 1000 ns apart, one write in 10 operations";
    assert!(usual.contains(&apart.to_owned()), "{usual:?}");
    assert!(full.contains(&"99 readers, 1 writer (99 % read)".to_owned()), "{full:?}");
    let chosen = names(with_threads(&[3]));
    assert_eq!(chosen.len(), 3 + 1);
}
