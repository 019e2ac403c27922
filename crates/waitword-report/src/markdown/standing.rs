//! What is won and what is lost, as tables; and why it is lost.

use crate::number::{figure, interval, range};
use crate::table::{Cell, Table};
use std::collections::BTreeMap;
use waitword_bench::locks::DROP_IN;
use waitword_bench::report::Report;
use waitword_bench::standing::{Outcome, Standing, reason, standings};
use waitword_bench::workload::programs;

/// So many losses of a workload are listed one by one; of all others the number is told.
const LISTED: usize = 12;

/// Two tables: how often each peer is beaten, and each case that is lost in the figure that the work is about.
pub(super) fn standing(report: &Report) -> String {
    let all = standings(report);
    if all.is_empty() {
        return String::from("\n## Won and lost\n\nOf so few rounds nothing can be told.\n");
    }
    won_and_lost(&all) + &lost(report, &all)
}

/// Wins, the same, and losses.
#[derive(Clone, Copy, Default)]
struct Score([usize; 3]);

impl Score {
    fn add(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    fn cell(self) -> Cell {
        let [won, same, lost] = self.0;
        Cell::Numbers(format!("{won} / {same} / {lost}"))
    }
}

fn won_and_lost(all: &[Standing]) -> String {
    let mut text = String::from(
        "\n## Won and lost\n\nwon / the same / lost. *Cases*: in the figure that the work is about. *All figures*: CPU, \
         switches, tails and the others, too.\n\n",
    );
    // In the report's order.
    let mut rows: Vec<(&str, &str, [Score; 2])> = Vec::new();
    for one in all {
        let of = ours(one);
        let row = match rows
            .iter_mut()
            .find(|row| (row.0, row.1) == (&*one.workload, of))
        {
            Some(row) => row,
            None => {
                rows.push((&one.workload, of, Default::default()));
                rows.last_mut().expect("just added")
            }
        };
        row.2[1].add(one.outcome);
        if one.is_first {
            row.2[0].add(one.outcome);
        }
    }
    let mut table = Table::new(&["workload", "ours", "cases", "all figures"]);
    for (workload, ours, [cases, figures]) in rows {
        table.rows.push(vec![
            Cell::text(workload),
            Cell::text(ours),
            cases.cell(),
            figures.cell(),
        ]);
    }
    let mut peers: BTreeMap<&str, [Score; 2]> = BTreeMap::new();
    for one in all.iter().filter(|one| ours(one) == LIBRARY) {
        let scores = peers.entry(&one.peer).or_default();
        scores[1].add(one.outcome);
        if one.is_first {
            scores[0].add(one.outcome);
        }
    }
    text += &table.markdown();
    text += "\nThe library against each peer, in all workloads:\n\n";
    let mut table = Table::new(&["peer", "cases", "all figures"]);
    for (peer, [cases, figures]) in peers {
        table
            .rows
            .push(vec![Cell::text(peer), cases.cell(), figures.cell()]);
    }
    text + &table.markdown()
}

const LIBRARY: &str = "the library, against each peer";

fn ours(one: &Standing) -> &'static str {
    // A whole program is on the drop-in.
    if one.ours.starts_with(DROP_IN) || one.workload == programs::WORKLOAD.name {
        "the drop-in, against glibc"
    } else {
        LIBRARY
    }
}

fn lost(report: &Report, all: &[Standing]) -> String {
    let mut text = String::from("\n## Where we lose, and why\n");
    let before = text.len();
    for workload in &report.workloads {
        let of = |one: &&Standing| one.workload == workload.name && one.outcome == Outcome::Loss;
        let losses: Vec<&Standing> = all.iter().filter(of).collect();
        if losses.is_empty() {
            continue;
        }
        text += &format!("\n### {}\n\n", workload.name);
        let mut first: Vec<&Standing> = losses.iter().copied().filter(|one| one.is_first).collect();
        first.sort_by(|one, other| other.factor.total_cmp(&one.factor));
        if !first.is_empty() {
            let header = ["case", "figure", "ours", "peer", "ratio", "99 %", "min–max"];
            let mut table = Table::new(&header);
            for one in first.iter().take(LISTED) {
                table.rows.push(vec![
                    Cell::text(&one.case),
                    Cell::text(&one.metric),
                    Cell::text(&one.ours),
                    Cell::text(&one.peer),
                    Cell::Number(one.ratio.summary.median),
                    Cell::Numbers(interval(one.ratio.interval)),
                    Cell::Numbers(range(one.ratio.summary)),
                ]);
            }
            text += &table.markdown();
        }
        if first.len() > LISTED {
            text += &format!("\nand {} more cases.\n", first.len() - LISTED);
        }
        text += &others(&losses);
        text += &format!(
            "\n{}\n",
            reason(&workload.name).unwrap_or("Why is not known.")
        );
    }
    if text.len() == before {
        text += "\nNowhere.\n";
    }
    text
}

/// The figures beside the first: how many are lost, and the worst of each.
fn others(losses: &[&Standing]) -> String {
    let mut worst: BTreeMap<&str, (usize, &Standing)> = BTreeMap::new();
    for one in losses.iter().filter(|one| !one.is_first) {
        let entry = worst.entry(&one.metric).or_insert((0, one));
        entry.0 += 1;
        if one.factor > entry.1.factor {
            entry.1 = one;
        }
    }
    let mut text = String::new();
    for (metric, (count, one)) in worst {
        let by = match one.factor {
            factor if factor.is_finite() => format!("by {} at worst", figure(factor)),
            _ => "at worst to one who has 0".to_owned(),
        };
        text += &format!(
            "- {metric}: {count} lost, {by} ({}, {}, against {}).\n",
            one.case, one.ours, one.peer
        );
    }
    if text.is_empty() {
        text
    } else {
        format!("\nOther figures:\n{text}")
    }
}
