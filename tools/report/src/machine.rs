//! The machine and the conditions of a run, and warnings about figures that do not count.

use crate::number::{figure, how_sure};
use jiff::Timestamp;
use maud::{Markup, html};
use waitword_bench::WINDOW;
use waitword_bench::any::AnyReport;
use waitword_bench::report::Report;
use waitword_bench::stats::{ROUNDS_OF_RANDOM_LOADS, ROUNDS_TO_TELL};

/// What a reader must know before the first figure.
pub(crate) fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if report.rounds < ROUNDS_TO_TELL {
        notes.push(format!(
            "Too few rounds ({}): a ratio has an interval and a verdict only with {ROUNDS_TO_TELL} \
             rounds or more (bench --rounds {ROUNDS_TO_TELL}).",
            report.rounds
        ));
    }
    let enough = report.rounds_to_publish();
    if report.rounds >= ROUNDS_TO_TELL && report.rounds < enough {
        notes.push(format!(
            "Few rounds ({}): a trial. Published results have at least {enough} (bench --rounds \
             {enough}).",
            report.rounds
        ));
    }
    if u128::from(report.window_milliseconds) < WINDOW.as_millis() {
        notes.push(format!(
            "Short runs ({} ms): few scheduler time slices. Published results have runs of {} ms.",
            report.window_milliseconds,
            WINDOW.as_millis()
        ));
    }
    let cases = || report.workloads.iter().flat_map(|workload| &workload.cases);
    if cases().any(|case| case.disturbed > 0) {
        notes.push(
            "Not on a quiet machine: rounds were kept despite other load, as requested. \
             Do not publish these results."
                .to_owned(),
        );
    }
    if !report.complete {
        notes.push(
            "Incomplete: the run was stopped, or a workload failed. These are the results so far."
                .to_owned(),
        );
    }
    for workload in &report.workloads {
        if let Some(error) = &workload.error {
            notes.push(format!("{} failed: {error}", workload.name));
        }
    }
    if report.workloads.is_empty() {
        notes.push("Nothing was measured.".to_owned());
    }
    notes
}

/// A note that the rounds are a trial, if there are fewer than `enough` to publish them.
pub(crate) fn few(rounds: usize, enough: usize) -> Option<String> {
    (rounds < enough).then(|| {
        format!("A trial of {rounds} rounds, to show the form of the table. Do not quote it.")
    })
}

/// What a reader of random loads must know before the figures.
pub(crate) fn notes_of_random_loads(report: &AnyReport) -> Vec<String> {
    let missing = report.missing();
    let all = missing + report.cells.len();
    let incomplete = format!("Incomplete: {missing} of {all} loads were not measured.");
    few(report.rounds, ROUNDS_OF_RANDOM_LOADS)
        .into_iter()
        .chain((missing > 0).then_some(incomplete))
        .collect()
}

/// The lines of the header: each a label and its value.
pub(crate) fn lines(report: &Report) -> Vec<(&'static str, String)> {
    let cases = || report.workloads.iter().flat_map(|workload| &workload.cases);
    let repeated: usize = cases().map(|case| case.repeated).sum();
    let disturbed: usize = cases().map(|case| case.disturbed).sum();
    let took = format!("{}, in {} s", when(report.started), figure(report.seconds.round()));
    let rounds = format!(
        "{}; {repeated} discarded because of other load{}",
        report.rounds,
        match disturbed {
            0 => String::new(),
            _ => format!(", {disturbed} kept on request despite it"),
        }
    );
    let mut lines = report.machine.lines();
    lines.push(("waitword", report.version.clone()));
    lines.extend(report.origin.lines());
    lines.push(("measured", took));
    lines.push(("rounds", rounds));
    lines.push(("confidence", how_sure(report.rounds)));
    lines.push(("order", format!("drawn for each round, from the seed {}", report.seed)));
    lines.push(("runs", format!("of {} ms", report.window_milliseconds)));
    lines
}

/// The header of the page.
pub(crate) fn section(report: &Report) -> Markup {
    html! {
        dl {
            @for (what, value) in lines(report) { dt { (what) } dd { (value) } }
            @for peer in &report.missing_peers {
                dt { "peer missing" }
                dd { (peer.name) ": not available; run " code { (peer.install) } " and rebuild" }
            }
        }
    }
}

/// Seconds since 1970, as a date.
pub(crate) fn when(started: u64) -> String {
    let moment =
        i64::try_from(started).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    moment.map_or_else(
        || "at an unknown time".to_owned(),
        |moment| moment.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date() {
        assert_eq!(when(1_767_225_600), "2026-01-01 00:00 UTC");
        assert_eq!(when(u64::MAX), "at an unknown time");
    }

    #[test]
    fn few_rounds_are_a_trial() {
        assert!(few(7, 9).unwrap().contains("Do not quote"));
        assert_eq!(few(9, 9), None);
    }
}
