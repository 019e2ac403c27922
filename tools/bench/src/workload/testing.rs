//! What the tests of several workloads need.

use crate::harness::{Case, CaseReport, Context, run_case};
use crate::settings::Settings;
use std::sync::Arc;

/// A run of one round.
pub(super) fn context() -> Context {
    let settings = Settings { rounds: 1, ..Settings::default() };
    Context::new(settings, Arc::default())
}

/// The default settings, with all cases.
pub(super) fn full() -> Settings {
    Settings { full: true, ..Settings::default() }
}

/// The default settings, with the user's numbers of threads.
pub(super) fn with_threads(threads: &[usize]) -> Settings {
    Settings { threads: threads.to_vec(), ..Settings::default() }
}

/// Measures a case. Every contender must succeed.
pub(super) fn measured(case: Case, context: &Context) -> CaseReport {
    let count = case.contenders;
    let (report, failure) = run_case(case, context, &mut |_| ());
    assert_eq!(failure, None);
    let report = report.unwrap();
    assert_eq!(report.variants.len(), count);
    report
}

/// Each contender's first figure is positive.
pub(super) fn is_positive(report: &CaseReport) {
    for variant in &report.variants {
        assert!(variant.metrics[0].summary.median > 0.0, "{variant:?}");
    }
}

/// All figures are finite.
pub(super) fn is_finite(report: &CaseReport) {
    for variant in &report.variants {
        let mut metrics = variant.metrics.iter();
        assert!(metrics.all(|metric| metric.summary.median.is_finite()), "{variant:?}");
    }
}

/// The names of the cases.
pub(super) fn names(cases: Vec<Case>) -> Vec<String> {
    cases.into_iter().map(|case| case.name).collect()
}
