//! Where ours wins and where it loses: each figure of ours against each peer's, in the same case and the same rounds.
//!
//! Ours are the variants that a user has who chooses nothing: the default mutex, the condvar with it, the rwlock in both
//! preferences, the futex at each width, and the drop-in, which stands against the C library alone, whose place it takes. Flavours that one
//! has to ask for are in the tables, but win nothing here. Peers are the others' locks and the kernel's futex; not the old ways of the
//! patches, nor others' priority-inheriting locks, which do something else.
//!
//! A figure wins or loses only if the interval of the ratio says so ([`Ratio`]): else it is the same.

mod reasons;

pub use reasons::reason;

use crate::harness::Better;
use crate::locks::{DROP_IN, is_peer};
use crate::report::{CaseReport, Report, VariantReport};
use crate::stats::{Ratio, Verdict};

/// How a figure of ours stands to a peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Ours is better.
    Win,
    /// No difference was seen.
    Same,
    /// The peer's is better.
    Loss,
}

/// One figure of ours against one peer's.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Of which workload.
    pub workload: String,
    /// In which case.
    pub case: String,
    /// Which figure; empty if the case has but one.
    pub metric: String,
    /// Whether it is the case's first figure: what the work is about.
    pub is_first: bool,
    /// Which of ours.
    pub ours: String,
    /// Whose else.
    pub peer: String,
    /// Ours / the peer's.
    pub ratio: Ratio,
    /// Who is better.
    pub outcome: Outcome,
    /// How many times better the better one is; at least 1, if only by the medians.
    pub factor: f64,
}

/// All standings, in the report's order. There are none if the rounds were too few.
pub fn standings(report: &Report) -> Vec<Standing> {
    let mut standings = Vec::new();
    for workload in &report.workloads {
        for case in &workload.cases {
            for ours in case
                .variants
                .iter()
                .filter(|variant| is_default(&variant.name))
            {
                for peer in peers_of(case, ours) {
                    standings.extend(stand(&workload.name, case, ours, peer));
                }
            }
        }
    }
    standings
}

/// Whether it is one of those that a user has who chooses nothing.
fn is_default(name: &str) -> bool {
    const DEFAULTS: &[&str] = &[
        "waitword",
        "waitword, readers first",
        "waitword, writers first",
        "waitword 8",
        "waitword 16",
        "waitword 32",
        "waitword 64",
    ];
    name.starts_with(DROP_IN) || DEFAULTS.contains(&name)
}

/// The peers of this variant of ours.
fn peers_of<'a>(
    case: &'a CaseReport,
    ours: &'a VariantReport,
) -> impl Iterator<Item = &'a VariantReport> {
    case.variants.iter().filter(|other| {
        match ours.name.strip_prefix(DROP_IN) {
            // What it takes the place of: `glibc, prefer writer` of `drop-in, prefer writer`.
            Some(kind) => other.name.strip_prefix("glibc") == Some(kind),
            None => is_peer(&other.name),
        }
    })
}

fn stand<'a>(
    workload: &'a str,
    case: &'a CaseReport,
    ours: &'a VariantReport,
    peer: &'a VariantReport,
) -> impl Iterator<Item = Standing> + 'a {
    let both = ours.metrics.iter().zip(&peer.metrics).enumerate();
    both.filter_map(move |(number, (mine, theirs))| {
        let ratio = Ratio::of(&mine.values, &theirs.values)?;
        let outcome = match (ratio.verdict, mine.better) {
            (Verdict::TooFewRounds, _) | (_, Better::Neither) => return None,
            (Verdict::Same, _) => Outcome::Same,
            (Verdict::Less, Better::Less) | (Verdict::More, Better::More) => Outcome::Win,
            (Verdict::Less, Better::More) | (Verdict::More, Better::Less) => Outcome::Loss,
        };
        let factor = ratio.summary.median;
        Some(Standing {
            workload: workload.to_owned(),
            case: case.name.clone(),
            metric: mine.name.clone(),
            is_first: number == 0,
            ours: ours.name.clone(),
            peer: peer.name.clone(),
            ratio,
            outcome,
            factor: factor.max(1.0 / factor),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::MetricReport;
    use crate::stats::Summary;
    use crate::usage::Usage;

    fn variant(name: &str, better: Better, values: [f64; 7]) -> VariantReport {
        let metric = MetricReport {
            name: "time".to_owned(),
            unit: "ns".to_owned(),
            better,
            values: values.to_vec(),
            summary: Summary::of(&values).unwrap(),
            ratio: None,
        };
        VariantReport {
            name: name.to_owned(),
            baseline: None,
            metrics: vec![metric],
            operations: 1,
            usage: Usage::default(),
        }
    }

    fn all(better: Better) -> Vec<Standing> {
        let case = CaseReport {
            name: "a case".to_owned(),
            seconds: 1.0,
            rounds: 7,
            repeated: 0,
            disturbed: 0,
            variants: vec![
                variant("glibc", better, [2.0; 7]),
                variant("glibc, PI", better, [9.0; 7]),
                variant("std", better, [1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 1.0]),
                variant("waitword", better, [1.0; 7]),
                variant("waitword TO", better, [0.1; 7]),
                variant("drop-in", better, [3.0; 7]),
            ],
        };
        let mut standings = Vec::new();
        for ours in case
            .variants
            .iter()
            .filter(|variant| is_default(&variant.name))
        {
            for peer in peers_of(&case, ours) {
                standings.extend(stand("some", &case, ours, peer));
            }
        }
        standings
    }

    #[test]
    fn what_a_user_gets_stands_against_peers_and_the_drop_in_against_its_library() {
        let all = all(Better::Less);
        let pairs: Vec<_> = all
            .iter()
            .map(|one| {
                (
                    one.ours.as_str(),
                    one.peer.as_str(),
                    one.outcome,
                    one.factor,
                )
            })
            .collect();
        assert_eq!(
            pairs,
            [
                ("waitword", "glibc", Outcome::Win, 2.0),
                ("waitword", "std", Outcome::Same, 1.0),
                ("drop-in", "glibc", Outcome::Loss, 1.5),
            ]
        );
    }

    #[test]
    fn where_more_is_better_it_is_the_other_way_round() {
        let outcomes: Vec<_> = all(Better::More).iter().map(|one| one.outcome).collect();
        assert_eq!(outcomes, [Outcome::Loss, Outcome::Same, Outcome::Win]);
        assert!(all(Better::Neither).is_empty());
    }
}
