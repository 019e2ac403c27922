//! Where our locks win and where they lose: each of our figures against each peer's, in the same
//! case and the same rounds.
//!
//! # One vote
//!
//! A case has one vote for each figure and each *independent* peer. Additional variants in a case
//! do not add votes:
//!
//! - Ours are the variants that a user gets by default ([`is_as_shipped`]): the library, and the
//!   drop-in, which is compared only with the C library that it replaces. If a case has several of
//!   them (a futex of each width), the worst one counts.
//! - Peers are other projects' locks that are in use today, and the kernel's futex ([`is_peer`]).
//!   All variants that use the same library underneath ([`owner`]) are one peer, and the best one
//!   counts. For example, glibc's rwlock counts once, with the better of its preferences, and C++'s
//!   does not count in addition.
//! - The figures are the first one of the case ([`Figure::Speed`]), CPU per operation, and the
//!   99.9th percentile of the waits. Other figures ([`Figure::Other`]) are listed where we lose,
//!   but have no vote.
//!
//! # Won and lost
//!
//! A ratio is *same* if its interval lies within 5 % of 1. It is won or lost if the interval
//! excludes 1 *and* the sign test remains significant given the number of comparisons in the report
//! ([`greatest_that_counts`]). One in a hundred of the comparisons reported as won or lost is
//! expected to be noise. All other ratios are *undecided*.

mod reasons;

pub use reasons::reason;

use crate::harness::Better;
use crate::locks::{DROP_IN, is_ours, is_peer, owner};
use crate::report::{CPU, CaseReport, MetricReport, Report, VariantReport};
use crate::stats::{Ratio, Verdict, greatest_that_counts};
use crate::workload::programs;

/// How one of our figures compares with a peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Ours is better.
    Win,
    /// They differ by less than 5 %.
    Same,
    /// No conclusion is possible.
    Undecided,
    /// The peer's is better.
    Loss,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 4] = [Self::Win, Self::Same, Self::Undecided, Self::Loss];
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// The case's time or rate.
    Speed,
    /// CPU time per operation.
    Cpu,
    /// 99.9th percentile of the wait.
    Tail,
    /// Any other figure; it has no vote.
    Other,
}

impl Figure {
    /// The kinds that have a vote.
    pub const VOTES: [Self; 3] = [Self::Speed, Self::Cpu, Self::Tail];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speed => "time or rate",
            Self::Cpu => "CPU",
            Self::Tail => "p99.9",
            Self::Other => "other figures",
        }
    }

    fn of(number: usize, metric: &str) -> Self {
        match metric {
            CPU => Self::Cpu,
            // For readers against writers: the more one class does, the less the other does.
            "writes" => Self::Speed,
            _ if metric.ends_with("p99.9") => Self::Tail,
            _ if number == 0 => Self::Speed,
            _ => Self::Other,
        }
    }
}

/// Which of our products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ours {
    /// The library.
    Library,
    /// The drop-in.
    DropIn,
}

impl Ours {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Library, Self::DropIn];

    fn of(workload: &str, name: &str) -> Self {
        // Whole programs run on the drop-in.
        if name.starts_with(DROP_IN) || workload == programs::WORKLOAD.name {
            Self::DropIn
        } else {
            Self::Library
        }
    }
}

/// One of our figures against one peer's.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Workload.
    pub workload: String,
    /// Case, including the setting if the case has variants that differ only by one.
    pub case: String,
    /// Metric; empty if the case has only one.
    pub metric: String,
    /// Kind of the figure.
    pub figure: Figure,
    /// Which of our products.
    pub whose: Ours,
    /// Name of our variant.
    pub ours: String,
    /// Name of the peer's variant.
    pub peer: String,
    /// Our value divided by the peer's.
    pub ratio: Ratio,
    /// Which one is better.
    pub outcome: Outcome,
    /// How many times better the better one is, by the medians; at least 1.
    pub factor: f64,
}

/// All standings, in the report's order. Comparisons with too few rounds are left out.
pub fn standings(report: &Report) -> Vec<Standing> {
    let mut all = Vec::new();
    for workload in &report.workloads {
        for case in &workload.cases {
            for whose in Ours::ALL {
                for setting in settings(case) {
                    let side = Side::new(&workload.name, case, whose, setting);
                    all.extend(side.standings());
                }
            }
        }
    }
    decide(&mut all);
    all
}

/// Changes wins and losses to undecided unless they are significant given the number of
/// comparisons.
fn decide(all: &mut [Standing]) {
    let limit = greatest_that_counts(all.iter().map(|one| one.ratio.chance));
    for one in all {
        let is_told = matches!(one.outcome, Outcome::Win | Outcome::Loss);
        if is_told && one.ratio.chance > limit {
            one.outcome = Outcome::Undecided;
        }
    }
}

/// Whether a user gets this variant by default. True for all of ours except those that must be
/// requested.
pub fn is_as_shipped(name: &str) -> bool {
    const ASKED_FOR: &[&str] =
        &["waitword TO", "waitword WW", "waitword PI", "waitword, writers first"];
    is_ours(name)
        && !ASKED_FOR.contains(&without_setting(name))
        && !without_setting(name).ends_with(", spin off")
}

/// Separates the setting in the name of variants that do the same work under different conditions.
const SETTING: &str = ", N = ";

fn setting(name: &str) -> Option<&str> {
    name.find(SETTING).map(|start| &name[start + 2..])
}

fn without_setting(name: &str) -> &str {
    name.find(SETTING).map_or(name, |end| &name[..end])
}

/// The settings in a case, in its order; `None` for variants without one.
fn settings(case: &CaseReport) -> Vec<Option<&str>> {
    let mut all = Vec::new();
    for variant in &case.variants {
        let setting = setting(&variant.name);
        if !all.contains(&setting) {
            all.push(setting);
        }
    }
    all
}

/// Our variants of one product, in one case and setting, with the peers they are compared with.
struct Side<'a> {
    workload: &'a str,
    case: &'a CaseReport,
    whose: Ours,
    setting: Option<&'a str>,
    ours: Vec<&'a VariantReport>,
}

impl<'a> Side<'a> {
    fn new(
        workload: &'a str,
        case: &'a CaseReport,
        whose: Ours,
        setting_wanted: Option<&'a str>,
    ) -> Self {
        let is_one = |variant: &&VariantReport| {
            is_as_shipped(&variant.name)
                && Ours::of(workload, &variant.name) == whose
                && setting(&variant.name) == setting_wanted
        };
        Self {
            workload,
            case,
            whose,
            setting: setting_wanted,
            ours: case.variants.iter().filter(is_one).collect(),
        }
    }

    /// The peers of this variant of ours.
    fn peers_of(&self, ours: &'a VariantReport) -> impl Iterator<Item = &'a VariantReport> {
        let setting_wanted = self.setting;
        self.case.variants.iter().filter(move |other| {
            let stands = match ours.name.strip_prefix(DROP_IN) {
                // The variant that it replaces: `glibc, prefer writer` for `drop-in, prefer
                // writer`.
                Some(kind) => other.name.strip_prefix("glibc") == Some(kind),
                None => is_peer(&other.name),
            };
            stands && setting(&other.name) == setting_wanted
        })
    }

    /// One standing for each figure and owner: our worst variant against the owner's best.
    fn standings(&self) -> Vec<Standing> {
        let mut all: Vec<Standing> = Vec::new();
        for ours in &self.ours {
            for peer in self.peers_of(ours) {
                for (number, mine) in figures(ours).enumerate() {
                    let theirs = figures(peer).find(|metric| metric.name == mine.name);
                    let new =
                        theirs.and_then(|theirs| self.stand(number, ours, peer, mine, theirs));
                    let Some(new) = new else { continue };
                    let same = |one: &&mut Standing| {
                        one.metric == new.metric && owner(&one.peer) == owner(&new.peer)
                    };
                    match all.iter_mut().find(same) {
                        None => all.push(new),
                        Some(old) if is_worse(&new, old, mine.better) => *old = new,
                        Some(_) => {}
                    }
                }
            }
        }
        all
    }

    fn stand(
        &self,
        number: usize,
        ours: &VariantReport,
        peer: &VariantReport,
        mine: &MetricReport,
        theirs: &MetricReport,
    ) -> Option<Standing> {
        let both = mine.values.len().min(theirs.values.len());
        let ratio = Ratio::of(&mine.values[..both], &theirs.values[..both])?;
        let outcome = match (ratio.verdict, mine.better) {
            (Verdict::TooFewRounds, _) | (_, Better::Neither) => return None,
            (Verdict::Same, _) => Outcome::Same,
            (Verdict::Undecided, _) => Outcome::Undecided,
            (Verdict::Less, Better::Less) | (Verdict::More, Better::More) => Outcome::Win,
            (Verdict::Less, Better::More) | (Verdict::More, Better::Less) => Outcome::Loss,
        };
        let factor = ratio.summary.median;
        let case = &self.case.name;
        Some(Standing {
            workload: self.workload.to_owned(),
            case: match self.setting {
                Some(setting) => format!("{case}, {setting}"),
                None => case.clone(),
            },
            metric: mine.name.clone(),
            figure: Figure::of(number, &mine.name),
            whose: self.whose,
            ours: ours.name.clone(),
            peer: peer.name.clone(),
            ratio,
            outcome,
            factor: factor.max(1.0 / factor),
        })
    }
}

/// The case's metrics, and CPU time if it is not among them.
fn figures(variant: &VariantReport) -> impl Iterator<Item = &MetricReport> {
    variant.metrics.iter().chain(&variant.cpu)
}

/// Whether our result is worse in `there` than in `here`.
fn is_worse(there: &Standing, here: &Standing, better: Better) -> bool {
    let [there, here] = [there, here].map(|one| one.ratio.summary.median);
    match better {
        Better::More => there < here,
        Better::Less | Better::Neither => there > here,
    }
}

#[cfg(test)]
mod tests;
