//! The comparison in the terminal.

use super::answer::Told;
use super::{By, Comparison, Variant};
use crate::cells::table;
use waitword_bench::stats::{Summary, median};
use waitword_report::{figure, interval, range};

/// A table with a row for each variant, what is wrong with variants that are out, and the answer.
pub(super) fn text(comparison: &Comparison) -> String {
    let Comparison { by, rounds, program, variants, .. } = comparison;
    let compared = match by {
        By::Wall => "times as fast",
        By::Cpu => "times as economical",
        By::Metric => "times as good",
    };
    let mut header = vec!["variant", "wall s", "CPU s"];
    header.extend((*by == By::Metric).then_some("metric"));
    let min_max = match by {
        By::Wall => "min–max of wall",
        By::Cpu => "min–max of CPU",
        By::Metric => "min–max of metric",
    };
    header.extend([min_max, compared, "interval", ""]);
    // All but the name and the verdict are numbers.
    let mut table = table(&header, 1, header.len() - 2);
    for variant in variants {
        table.add_row(row(variant, *by));
    }
    let mut text = format!("{program}\n{rounds} rounds; medians\n\n{table}\n\n");
    for variant in variants {
        if let Some(failure) = &variant.failure {
            text += &format!("{} is out: {failure}\n", variant.name);
        }
    }
    text + &comparison.answer + "\n"
}

fn row(variant: &Variant, by: By) -> Vec<String> {
    let of = |values: &[f64]| match values {
        [] => String::new(),
        values => figure(median(values)),
    };
    let mut row = vec![variant.name.clone(), of(&variant.wall_seconds), of(&variant.cpu_seconds)];
    row.extend((by == By::Metric).then(|| of(&variant.metric)));
    row.push(Summary::of(variant.values(by)).map_or_else(String::new, range));
    row.extend(match (&variant.standing, &variant.failure) {
        (Some(standing), _) => {
            let ratio = &standing.times_as_good;
            let verdict = match standing.verdict {
                Told::Better => "better",
                Told::Worse => "worse",
                Told::Same => "same",
                Told::Undecided => "undecided",
            };
            [figure(ratio.summary.median), interval(ratio.interval), verdict.to_owned()]
        }
        (None, Some(_)) => {
            let rounds = variant.wall_seconds.len();
            [String::new(), String::new(), format!("out after {rounds} rounds")]
        }
        (None, None) => Default::default(),
    });
    row
}
