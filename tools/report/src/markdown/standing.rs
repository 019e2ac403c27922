//! Tables of what is won and what is lost, and the reasons for the losses.

use crate::number::{figure, interval, range};
use crate::table::{Cell, INTERVAL, Table};
use std::collections::BTreeMap;
use waitword_bench::locks::{marked, owner};
use waitword_bench::report::Report;
use waitword_bench::standing::{Figure, Ours, Outcome, Standing, reason, standings};
use waitword_bench::stats::FALSE_DISCOVERIES;

/// At most so many losses of a workload are listed; the rest are counted.
const LISTED: usize = 12;

/// Two chapters: how often each peer is beaten, and each case that is lost in the workload's main
/// figure.
pub(super) fn standing(report: &Report) -> String {
    let all = standings(report);
    if all.is_empty() {
        return String::from("\n## Won and lost\n\nToo few rounds for verdicts.\n");
    }
    won_and_lost(&all) + &lost(report, &all)
}

/// The number of cases with each outcome.
#[derive(Clone, Copy, Default)]
struct Score([usize; Outcome::ALL.len()]);

impl Score {
    fn add(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    fn cell(self) -> Cell {
        match self.0 {
            [0, 0, 0, 0] => Cell::Empty,
            counts => Cell::Numbers(counts.map(|count| count.to_string()).join(" / ")),
        }
    }
}

/// The scores for each key, in order of first appearance: one score for each figure that has a
/// vote.
fn scores<'a, K: PartialEq>(
    all: impl Iterator<Item = &'a Standing>,
    key: impl Fn(&'a Standing) -> K,
) -> Vec<(K, [Score; Figure::VOTES.len()])> {
    let mut rows: Vec<(K, [Score; Figure::VOTES.len()])> = Vec::new();
    for one in all {
        let Some(place) = Figure::VOTES.iter().position(|figure| *figure == one.figure) else {
            continue;
        };
        let of = key(one);
        let row = match rows.iter().position(|row| row.0 == of) {
            Some(row) => row,
            None => {
                rows.push((of, Default::default()));
                rows.len() - 1
            }
        };
        rows[row].1[place].add(one.outcome);
    }
    rows
}

fn won_and_lost(all: &[Standing]) -> String {
    let mut text = format!(
        "\n## Won and lost\n\nEach cell counts votes: won / the same / undecided / lost. There is \
         one vote for each case and independent peer. glibc and C++ count as one peer, and a peer \
         with several variants is represented by its best. Wins and losses are corrected for the \
         number of comparisons, {} (Benjamini and Hochberg, {} %).\n\n",
        all.len(),
        100.0 * FALSE_DISCOVERIES
    );
    let mut head = vec!["workload", "ours"];
    head.extend(Figure::VOTES.map(Figure::name));
    let mut table = Table::new(&head);
    for ((workload, whose), row) in scores(all.iter(), |one| (one.workload.as_str(), one.whose)) {
        let names = [Cell::text(workload), Cell::text(ours(whose))];
        table.rows.push(names.into_iter().chain(row.map(Score::cell)).collect());
    }
    text += &table.markdown();
    text += "\nThe library against each peer, in all workloads:\n\n";
    let mut head = vec!["peer"];
    head.extend(Figure::VOTES.map(Figure::name));
    let mut table = Table::new(&head);
    let library = all.iter().filter(|one| one.whose == Ours::Library);
    let mut rows = scores(library, |one| owner(&one.peer));
    rows.sort_by_key(|(peer, _)| *peer);
    for (peer, row) in rows {
        let name = [Cell::Variant(peer.to_owned())];
        table.rows.push(name.into_iter().chain(row.map(Score::cell)).collect());
    }
    text + &table.markdown()
}

fn ours(whose: Ours) -> &'static str {
    match whose {
        Ours::Library => "the library, against each peer",
        Ours::DropIn => "the drop-in, against glibc",
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
        let mut first: Vec<&Standing> =
            losses.iter().copied().filter(|one| one.figure == Figure::Speed).collect();
        first.sort_by(|one, other| other.factor.total_cmp(&one.factor));
        if !first.is_empty() {
            let header = ["case", "figure", "ours", "peer", "ratio", INTERVAL, "min–max"];
            let mut table = Table::new(&header);
            for one in first.iter().take(LISTED) {
                table.rows.push(vec![
                    Cell::text(&one.case),
                    Cell::text(&one.metric),
                    Cell::text(&one.ours),
                    Cell::Variant(one.peer.clone()),
                    Cell::Number(one.ratio.summary.median),
                    Cell::Numbers(interval(one.ratio.interval)),
                    Cell::Numbers(range(one.ratio.summary)),
                ]);
            }
            text += &table.markdown();
        }
        if first.len() > LISTED {
            text += &format!("\nNot listed: {} more.\n", first.len() - LISTED);
        }
        text += &others(&losses);
        text += &format!("\n{}\n", reason(&workload.name).unwrap_or("The reason is not known."));
    }
    if text.len() == before {
        text += "\nNo losses.\n";
    }
    text
}

/// All other figures: the number of losses in each, and the worst one.
fn others(losses: &[&Standing]) -> String {
    let mut worst: BTreeMap<&str, (usize, &Standing)> = BTreeMap::new();
    for one in losses.iter().filter(|one| one.figure != Figure::Speed) {
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
            _ => "at worst to a peer that has 0".to_owned(),
        };
        text += &format!(
            "- {metric}: {count} lost, {by} ({}, {}, against {}).\n",
            one.case,
            one.ours,
            marked(&one.peer)
        );
    }
    if text.is_empty() { text } else { format!("\nOther figures:\n{text}") }
}
