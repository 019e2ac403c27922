//! The results of a run, as a table.

use crate::count::{Count, Totals};
use crate::fault::kind::Fault;
use crate::list;
use crate::slice::DropIn;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Cell, CellAlignment, Table};
use indicatif::HumanCount;
use std::time::Duration;

/// One scenario's result.
pub(crate) struct Line {
    pub(crate) scenario: &'static str,
    pub(crate) totals: Totals,
    pub(crate) took: Duration,
    pub(crate) failure: Option<String>,
}

const COLUMNS: [(&str, Count); 10] = [
    ("rounds", Count::Rounds),
    ("threads", Count::Threads),
    ("operations", Count::Operations),
    ("waits", Count::Waits),
    ("wakes", Count::Wakes),
    ("timeouts", Count::Timeouts),
    ("requeues", Count::Requeues),
    ("signals", Count::Signals),
    ("forks", Count::Forks),
    ("kills", Count::Kills),
];

/// All scenarios, with totals.
pub(crate) fn table(lines: &[Line]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    let titles = COLUMNS.iter().map(|(title, _)| *title);
    table.set_header(std::iter::once("scenario").chain(titles).chain(["seconds", "result"]));
    let mut sum = Totals::default();
    let mut took = Duration::ZERO;
    for line in lines {
        sum.add(&line.totals);
        took += line.took;
        let result = if line.failure.is_some() { "FAILED" } else { "ok" };
        table.add_row(row(line.scenario, &line.totals, line.took, result));
    }
    table.add_row(row("all", &sum, took, ""));
    table
}

fn row(name: &str, totals: &Totals, took: Duration, result: &str) -> Vec<Cell> {
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let counts = COLUMNS.iter().map(|&(_, count)| right(HumanCount(totals.of(count)).to_string()));
    let mut row = vec![Cell::new(name)];
    row.extend(counts);
    row.push(right(format!("{:.1}", took.as_secs_f64())));
    row.push(Cell::new(result));
    row
}

/// One scenario on one line, where no progress bar can be drawn.
pub(crate) fn one(line: &Line) -> String {
    let result = line.failure.as_deref().unwrap_or("ok");
    let seconds = line.took.as_secs_f64();
    let operations = HumanCount(line.totals.of(Count::Operations)).to_string();
    format!("{:15} {seconds:5.1} s {operations:>12} operations  {result}", line.scenario)
}

/// The scenarios, and what each checks.
pub(crate) fn scenarios(drop_in: Option<DropIn>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["scenario", "what is tortured, and what must hold"]);
    for scenario in list::all(drop_in) {
        table.add_row([scenario.name, scenario.about]);
    }
    table
}

/// The faults that may be injected meanwhile.
pub(crate) fn all_faults() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header(["fault", "what is done meanwhile"]);
    for fault in Fault::all() {
        table.add_row([fault.name(), fault.about()]);
    }
    table
}

/// How many faults of each kind were injected, on one line.
pub(crate) fn faults(lines: &[Line]) -> String {
    let of = |fault: &Fault| {
        let count = |line: &Line| line.totals.of(fault.count());
        let sum = lines.iter().map(count).sum::<u64>();
        format!("{} {}", HumanCount(sum), fault.name())
    };
    let each: Vec<_> = Fault::all().iter().map(of).collect();
    let sum = |what| (lines.iter().map(|line| line.totals.of(what))).sum::<u64>();
    format!(
        "faults injected: {}; {} owners died, {} processes executed another program",
        each.join(", "),
        HumanCount(sum(Count::Deaths)),
        HumanCount(sum(Count::Execs)),
    )
}
