//! A report as Markdown, for a repository: on what it was measured, the five patches then and now, what must be reached, what is won and
//! what is lost, and why. Every other figure is on the page ([`html`](crate::html)) and in the JSON.

mod standing;

use crate::number::{figure, interval};
use crate::table::{Cell, INTERVAL, Table};
use crate::workload::programs_table;
use crate::{any, machine, patches};
use waitword_bench::any::AnyReport;
use waitword_bench::any::contender::Contender;
use waitword_bench::any::summary::To;
use waitword_bench::bars::{BarReport, Verdict, counted};
use waitword_bench::report::Report;
use waitword_bench::workload::Patch;

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = String::from(
        "# Results\n\nMade by `waitword bench --markdown`: nothing here is written by hand but the reasons, which are part of the program.\n\
         A ratio is the median of the rounds' ratios. *Same*: the interval in which it lies is within 5 % of 1. *Better*, *worse*: it lies on one \
         side of 1. *Undecided*: neither.\n",
    );
    for note in machine::notes(report) {
        text += &format!("\n**{note}**\n");
    }
    text += "\n## Measured on\n\n";
    for (what, value) in machine::lines(report) {
        text += &format!("- {what}: {value}\n");
    }
    for peer in &report.missing_peers {
        text += &format!(
            "- peer missing: {}: not to be had; `{}`, and build again\n",
            peer.name, peer.install
        );
    }
    text + &chapters(report, &report.any.iter().collect::<Vec<_>>())
}

/// All but on what it was measured.
pub(crate) fn chapters(report: &Report, random: &[&AnyReport]) -> String {
    let mut text = String::new();
    for report in random {
        text += &format!("\n## Loads drawn at random\n{}", random_loads(report));
        let worst = any::worst(report);
        if !worst.rows.is_empty() {
            text += &format!("\n{}:\n\n{}", any::WORST_TITLE, worst.markdown());
        }
    }
    for patch in Patch::ALL {
        text += &patch_of(patch, report);
    }
    text += &programs(report);
    text += &bars(&report.bars);
    text + &standing::standing(report)
}

/// Ours to the best peer of each load.
pub(crate) fn random_loads(report: &AnyReport) -> String {
    let mut text = String::new();
    for (ours, to, title) in [
        (
            Contender::Waitword,
            To::Best,
            "The library, to the best peer of each load",
        ),
        (
            Contender::DropIn,
            To::Best,
            "The drop-in, to the best peer of each load",
        ),
        (
            Contender::Waitword,
            To::BestFlavour,
            "The library's adaptive mutex, to the best of its own flavours in each load",
        ),
    ] {
        let table = any::to_best(report, ours, to);
        if !table.rows.is_empty() {
            text += &format!("\n{title}:\n\n{}", table.markdown());
        }
    }
    if !report.disturbed.is_empty() {
        let cells = report.disturbed.join(", ");
        text += &format!("\nNot measured, since others used the machine: {cells}.\n");
    }
    text
}

/// Each program that ran, by its name, and which did not.
fn programs(report: &Report) -> String {
    let name = waitword_bench::workload::programs::WORKLOAD.name;
    let Some(workload) = report.workloads.iter().find(|of| of.name == name) else {
        return String::new();
    };
    let mut text = String::from("\n## Whole programs\n\nPlain, and on the drop-in.\n");
    let table = programs_table(&workload.cases);
    if !table.rows.is_empty() {
        text += &format!("\n{}", table.markdown());
    }
    for (why, names) in [
        ("other load", &workload.disturbed),
        ("not installed", &workload.missing),
    ] {
        if !names.is_empty() {
            text += &format!("\nNot run, {why}: {}.\n", names.join("; "));
        }
    }
    text
}

fn patch_of(patch: Patch, report: &Report) -> String {
    let (published, today) = patches::both(patch, report);
    let mut text = format!(
        "\n## {}\n\nPublished: {}.\n\n",
        patch.title(),
        published.source
    );
    text += &published.table.markdown();
    if let Some(note) = published.note {
        text += &format!("\n{note}\n");
    }
    text += &format!("\nToday, medians: {}\n", patches::about(patch));
    if !today.table.rows.is_empty() {
        text += &format!("\n{}", today.table.markdown());
    }
    for note in &today.notes {
        text += &format!("\n{note}\n");
    }
    for missing in &today.missing {
        text += &format!("\nNot measured in this run: {missing}.\n");
    }
    text
}

fn bars(bars: &[BarReport]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## What must be reached\n\nOf {}: {}. Each is judged by the worst of its figures, which is shown: met if \
         the whole interval is within the limit, not met if all of it lies beyond.\n\n",
        bars.len(),
        counted(bars)
    );
    let mut table = Table::new(&["what", "limit", "median", INTERVAL, "", "where it is worst"]);
    for bar in bars {
        let sign = if bar.at_least { "≥" } else { "≤" };
        let verdict = match bar.verdict {
            Verdict::NotMet => "**not met**",
            other => other.name(),
        };
        let worst = bar.cells.first();
        table.rows.push(vec![
            Cell::text(&bar.what),
            Cell::Numbers(format!("{sign} {}", figure(bar.limit))),
            worst.map_or(Cell::Empty, |cell| Cell::Number(cell.figure.median)),
            worst.map_or(Cell::Empty, |cell| Cell::Numbers(interval(cell.interval))),
            Cell::text(verdict),
            worst.map_or(Cell::Empty, |cell| Cell::text(&cell.label)),
        ]);
    }
    text += &table.markdown();
    text
}
