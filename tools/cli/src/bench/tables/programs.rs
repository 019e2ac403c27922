//! Whole programs: a row for each, plain and on the drop-in side by side.

use crate::cells::{ratio, table};
use waitword_bench::report::{CaseReport, MetricReport};
use waitword_report::figure;

const HEADER: [&str; 10] = [
    "program",
    "unit",
    "plain",
    "waitword",
    "ratio",
    "interval",
    "min–max",
    "CPU ratio",
    "switches ratio",
    "output",
];

/// The table of all measured programs.
pub(super) fn table_of(cases: &[CaseReport]) -> String {
    let mut table = table(&HEADER, 2, 7);
    for case in cases {
        if let [plain, ours] = &case.variants[..] {
            table.add_row(row(&case.name, &plain.metrics, &ours.metrics));
        }
    }
    table.to_string() + "\n"
}

fn row(program: &str, plain: &[MetricReport], ours: &[MetricReport]) -> Vec<String> {
    let of_metric = |metric: &str| -> [String; 3] {
        let metric = ours.iter().find(|of| of.name == metric);
        let of = metric.and_then(|metric| metric.ratio.as_ref());
        of.map_or_else(Default::default, ratio)
    };
    let [told, interval, range] = of_metric("throughput");
    let of = |metrics: &[MetricReport], number: usize| {
        metrics.get(number).map_or(0.0, |metric| metric.summary.median)
    };
    vec![
        program.to_owned(),
        ours.first().map_or_else(String::new, |metric| metric.unit.clone()),
        figure(of(plain, 0)),
        figure(of(ours, 0)),
        told,
        interval,
        range,
        of_metric("CPU")[0].clone(),
        of_metric("switches")[0].clone(),
        output(of(ours, 3)),
    ]
}

/// What was compared. (A run whose output differs is a failure and has no row.)
fn output(bytes: f64) -> String {
    if bytes > 0.0 { format!("same, {bytes:.0} bytes") } else { "figures only".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitword_bench::harness::Better;
    use waitword_bench::stats::{Ratio, Summary};

    fn metric(name: &str, value: f64, ratio: Option<f64>) -> MetricReport {
        MetricReport {
            name: name.to_owned(),
            unit: "op/s".to_owned(),
            better: Better::More,
            values: vec![value],
            summary: Summary::of(&[value]).expect("one value"),
            ratio: ratio.and_then(|ratio| Ratio::of(&[ratio; 7], &[1.0; 7])),
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
            "2–2",
            "0.750",
            "0.500",
            "same, 17 bytes",
        ];
        assert_eq!(row, wanted);
        assert_eq!(output(0.0), "figures only");
    }
}
