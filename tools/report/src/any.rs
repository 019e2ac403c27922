//! Random loads: ours relative to the best peer of each load, family by family, worst loads first.

use crate::looks::Looks;
use crate::machine::notes_of_random_loads;
use crate::number::{interval, range};
use crate::plot::axis::Axis;
use crate::plot::{Caption, Figure, Line, Lines, Point};
use crate::table::{Cell, Head, INTERVAL, Table};
use maud::{Markup, html};
use waitword_bench::any::AnyReport;
use waitword_bench::any::cell::Family;
use waitword_bench::any::contender::Contender;
use waitword_bench::any::summary::{self, Of, Ratios, To, Which, ratios, sorted};
use waitword_bench::locks::remarks;
use waitword_bench::stats::Summary;

/// Those of our contenders that are drawn.
const OURS: [Contender; 2] = [Contender::Waitword, Contender::DropIn];
/// The greatest number of labels along an axis of cells.
const MOST_TICKS: usize = 10;

/// The names that need a look ([`Looks`]).
pub(crate) fn names(report: &AnyReport) -> impl Iterator<Item = &str> {
    OURS.into_iter().chain(report.peers()).map(|contender| contender.name())
}

/// The whole section.
pub(crate) fn section(report: &AnyReport, looks: &Looks) -> Markup {
    let seeds: Vec<String> = report.seeds().iter().map(u64::to_string).collect();
    html! {
        p {
            "These loads were not chosen by hand. Threads, critical sections, gaps, and what else \
             the machine does are drawn from a seed ("
            (seeds.join(", ")) "). " (report.cells.len()) " loads, " (report.rounds) " rounds of "
            (report.milliseconds) " ms each. A ratio is ours divided by that of the peer with the \
             best throughput in the load, also for CPU and waits."
        }
        @for note in notes_of_random_loads(report) { p.note { (note) } }
        div.figures {
            @for family in Family::ALL {
                @if let Some(figure) = figure(report, family, looks) { (figure.markup(looks)) }
            }
        }
        @for ours in OURS {
            h3 { (ours.name()) ", relative to the best peer of each load" }
            (to_best(report, ours, To::Best).markup())
            h3 { (ours.name()) ", relative to each peer: geometric means" }
            (to_peers(report, ours).markup())
            @for remark in more_remarks(report) { p.s { (remark) } }
        }
        h3 { (WORST_TITLE) }
        (worst(report).markup())
        @let flavours = to_best(report, Contender::Waitword, To::BestFlavour);
        @if !flavours.rows.is_empty() {
            h3 { "waitword, adaptive, relative to the best of its own flavours in each load" }
            (flavours.markup())
        }
        @if !report.disturbed.is_empty() {
            p.note role="note" { "Not measured (other load): " (report.disturbed.join(", ")) }
        }
    }
}

/// The report's remarks on its peers, without those that the table adds by itself.
fn more_remarks(report: &AnyReport) -> Vec<String> {
    let names = report.peers().into_iter().map(Contender::name);
    let said = remarks(names);
    let mut more = report.remarks();
    more.retain(|remark| !said.contains(remark));
    more
}

/// The ratios of throughput, sorted, with the worst at the left.
fn figure(report: &AnyReport, family: Family, looks: &Looks) -> Option<Figure> {
    let which = Which { family: Some(family), beside: None };
    let line = |ours: Contender| {
        let sorted = sorted(&report.cells, which, ours, To::Best, Of::Throughput);
        let points = sorted.iter().zip(1..).map(|((ratio, _), place)| {
            let summary = ratio.summary;
            let (min, max) =
                ratio.interval.map_or((summary.min, summary.max), |of| (of.low, of.high));
            Point { x: f64::from(place), y: Summary { min, max, ..summary } }
        });
        Line { variant: ours.name().to_owned(), points: points.collect() }
    };
    let lines: Vec<Line> =
        OURS.into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
    let cells = lines.iter().map(|line| line.points.len()).max()?;
    Lines {
        caption: Caption::new(
            format!("{family}: throughput relative to the best peer, load by load"),
            "worst load first; logarithmic; 1: as good as the best peer; median and interval (with \
             few rounds: range)",
        ),
        across: "load",
        x: Axis::of_places(cells, MOST_TICKS),
        lines,
    }
    .figure_against_1(looks)
}

fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::Numbers(format!("{value:.2}")))
}

/// What ours is compared with in random loads, with a title.
pub(crate) const COMPARISONS: [(Contender, To, &str); 3] = [
    (Contender::Waitword, To::Best, "The library, relative to the best peer of each load"),
    (Contender::DropIn, To::Best, "The drop-in, relative to the best peer of each load"),
    (
        Contender::Waitword,
        To::BestFlavour,
        "The library's adaptive mutex, relative to the best of its own flavours in each load",
    ),
];

/// An empty table of mean, tenth percentile and worst of each figure.
fn ratio_table() -> Table {
    let mut table = Table::new(&["", "", "mean", INTERVAL, "tenth", "worst"]);
    table.heads[0].extend(
        ["mean", "tenth", "worst", "mean", "tenth", "worst"].map(|text| Head::over(1, text)),
    );
    table.heads.insert(
        0,
        vec![
            Head::over(1, "loads"),
            Head::over(1, "count"),
            Head::over(4, "throughput"),
            Head::over(3, "CPU"),
            Head::over(3, "p99.9"),
        ],
    );
    table
}

/// A row of [`ratio_table`]. `None` if no load is selected.
fn ratio_row(
    report: &AnyReport,
    which: Which,
    name: String,
    ours: Contender,
    to: To,
) -> Option<Vec<Cell>> {
    let of = |figure| ratios(&report.cells, which, ours, to, figure);
    let throughput = of(Of::Throughput)?;
    let mut row = vec![
        Cell::text(name),
        Cell::Numbers(throughput.cells.to_string()),
        number(Some(throughput.mean)),
        Cell::Numbers(interval(Some(throughput.interval))),
        number(Some(throughput.tenth)),
        number(Some(throughput.worst)),
    ];
    for figure in [Of::Cpu, Of::P999] {
        let of = of(figure);
        let part = |part: fn(Ratios) -> f64| number(of.map(part));
        row.extend([part(|of| of.mean), part(|of| of.tenth), part(|of| of.worst)]);
    }
    Some(row)
}

/// The ratios of one comparison, family by family.
pub(crate) fn to_best(report: &AnyReport, ours: Contender, to: To) -> Table {
    let mut table = ratio_table();
    let rows = Which::all_of(&report.cells)
        .into_iter()
        .filter_map(|which| ratio_row(report, which, which.name(), ours, to));
    table.rows.extend(rows);
    table
}

/// The ratios of each of the [`COMPARISONS`], of all loads together.
pub(crate) fn overall(report: &AnyReport) -> Table {
    let all = Which { family: None, beside: None };
    let mut table = ratio_table();
    let rows = COMPARISONS
        .into_iter()
        .filter_map(|(ours, to, title)| ratio_row(report, all, title.to_owned(), ours, to));
    table.rows.extend(rows);
    table
}

/// The title of the table [`worst`].
pub(crate) const WORST_TITLE: &str = "The ten worst loads";

/// The loads in which our throughput is lowest relative to the best peer's, with their
/// descriptions.
pub(crate) fn worst(report: &AnyReport) -> Table {
    let mut table = Table::new(&["load", "what", "ours", "best peer", "throughput", INTERVAL]);
    for (ours, ratio, cell) in summary::worst(&report.cells, &OURS, 10) {
        let best = cell.other(To::Best).map(|best| report.shown(best));
        // With few rounds there is no interval: show the range.
        let spread = match ratio.interval {
            Some(of) => interval(Some(of)),
            None => range(ratio.summary),
        };
        table.rows.push(vec![
            Cell::text(cell.cell.id.to_string()),
            Cell::text(cell.cell.to_string()),
            Cell::text(ours.name()),
            best.map_or(Cell::Empty, Cell::Text),
            number(Some(ratio.summary.median)),
            Cell::Numbers(spread),
        ]);
    }
    table
}

fn to_peers(report: &AnyReport, ours: Contender) -> Table {
    let peers = report.peers();
    let mut head = vec!["loads", "figure"];
    let names: Vec<String> = peers.iter().map(|&peer| report.shown(peer)).collect();
    head.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&head);
    for which in Which::all_of(&report.cells) {
        for figure in Of::ALL {
            let of = |&peer: &Contender| {
                let ratios = ratios(&report.cells, which, ours, To::Peer(peer), figure);
                number(ratios.map(|ratios| ratios.mean))
            };
            let names = [Cell::text(which.name()), Cell::text(figure.name())];
            table.rows.push(names.into_iter().chain(peers.iter().map(of)).collect());
        }
    }
    table
}
