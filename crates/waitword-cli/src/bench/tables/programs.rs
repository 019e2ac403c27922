//! Whole programs: a row for each, plain and on the drop-in side by side.

use super::{figure, range, table};
use waitword_bench::report::{CaseReport, MetricReport};

const HEADER: [&str; 9] = [
    "program",
    "unit",
    "plain",
    "waitword",
    "ratio",
    "min–max",
    "CPU ratio",
    "switches ratio",
    "output",
];

/// The table of all programs that were measured.
pub(super) fn table_of(cases: &[CaseReport]) -> String {
    let mut table = table(&HEADER, 2, 6);
    for case in cases {
        if let [plain, ours] = &case.variants[..] {
            table.add_row(row(&case.name, &plain.metrics, &ours.metrics));
        }
    }
    table.to_string() + "\n"
}

fn row(program: &str, plain: &[MetricReport], ours: &[MetricReport]) -> Vec<String> {
    let ratio = |metric: &str| {
        let metric = ours.iter().find(|of| of.name == metric);
        metric.and_then(|metric| metric.ratio)
    };
    let median =
        |metric: &str| ratio(metric).map_or_else(String::new, |ratio| figure(ratio.median));
    let of = |metrics: &[MetricReport], number: usize| {
        metrics
            .get(number)
            .map_or(0.0, |metric| metric.summary.median)
    };
    vec![
        program.to_owned(),
        ours.first()
            .map_or_else(String::new, |metric| metric.unit.clone()),
        figure(of(plain, 0)),
        figure(of(ours, 0)),
        median("throughput"),
        ratio("throughput").map_or_else(String::new, range),
        median("CPU"),
        median("switches"),
        output(of(ours, 3)),
    ]
}

/// A run whose output differs is a failure, and has no row.
fn output(bytes: f64) -> String {
    if bytes > 0.0 {
        format!("same, {bytes:.0} bytes")
    } else {
        "figures only".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_bench::stats::Summary;

    fn metric(name: &str, value: f64, ratio: Option<f64>) -> MetricReport {
        let summary = |value| Summary::of(&[value]).expect("one value");
        MetricReport {
            name: name.to_owned(),
            unit: "op/s".to_owned(),
            values: vec![value],
            summary: summary(value),
            ratio: ratio.map(summary),
        }
    }

    #[test]
    fn a_row_has_both_and_their_ratios() {
        let metrics = |factor: f64, ratio: fn(f64) -> Option<f64>| {
            vec![
                metric("throughput", 200.0 * factor, ratio(2.0)),
                metric("CPU", 30.0, ratio(0.75)),
                metric("switches", 1.0, ratio(0.5)),
                metric("output compared", 17.0, ratio(1.0)),
            ]
        };
        let row = row("some program", &metrics(1.0, |_| None), &metrics(2.0, Some));
        let wanted = [
            "some program",
            "op/s",
            "200",
            "400",
            "2",
            "2–2",
            "0.750",
            "0.500",
            "same, 17 bytes",
        ];
        assert_eq!(row, wanted);
        assert_eq!(output(0.0), "figures only");
    }
}
