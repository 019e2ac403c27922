//! Where ours wins and where it loses: each figure of ours against each peer's, in the same case and the
//! same rounds.
//!
//! # One vote
//!
//! A case has one vote for each figure and each *independent* peer. Whoever has more variants in a case
//! has no more votes:
//!
//! - Ours are what a user has who chooses nothing ([`is_as_shipped`]): the library, and the
//!   drop-in, which stands against the C library alone, whose place it takes. Where a case has
//!   several of these (a futex of each width), the worst of them stands for all.
//! - Peers are others' locks of today, and the kernel's futex ([`is_peer`]). All that are the same library
//!   beneath ([`owner`]) are one peer, and the best of them stands for it: glibc's rwlock in the
//!   better of its preferences, and not C++'s besides.
//! - The figures are the case's first ([`Figure::Speed`]), CPU for an operation, and the 99.9th percentile of
//!   the waits. Others ([`Figure::Other`]) are listed where they are lost, and have no vote.
//!
//! # Won and lost
//!
//! A ratio is *same* if its interval lies within 5 % of 1. It is won or lost if the interval excludes 1 *and* the
//! sign test stands up to the number of comparisons in the report ([`greatest_that_counts`]): of those that are told
//! as won or lost, one in a hundred is expected to be noise. All others are *undecided*.

mod reasons;

pub use reasons::reason;

use crate::harness::Better;
use crate::locks::{DROP_IN, is_ours, is_peer, owner};
use crate::report::{CPU, CaseReport, MetricReport, Report, VariantReport};
use crate::stats::{Ratio, Verdict, greatest_that_counts};
use crate::workload::programs;

/// How a figure of ours stands to a peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Ours is better.
    Win,
    /// They differ by less than 5 %.
    Same,
    /// It cannot be told.
    Undecided,
    /// The peer's is better.
    Loss,
}

impl Outcome {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Win, Self::Same, Self::Undecided, Self::Loss];
}

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// The case's time or rate.
    Speed,
    /// CPU time for an operation.
    Cpu,
    /// The wait that one operation in a thousand exceeds.
    Tail,
    /// Another one, which has no vote.
    Other,
}

impl Figure {
    /// Those that have a vote.
    pub const VOTES: [Self; 3] = [Self::Speed, Self::Cpu, Self::Tail];

    /// As the report calls it.
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
            // Of readers against writers: what the one class does more, the other does less.
            "writes" => Self::Speed,
            _ if metric.ends_with("p99.9") => Self::Tail,
            _ if number == 0 => Self::Speed,
            _ => Self::Other,
        }
    }
}

/// Which of ours.
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
        // A whole program is on the drop-in.
        if name.starts_with(DROP_IN) || workload == programs::WORKLOAD.name {
            Self::DropIn
        } else {
            Self::Library
        }
    }
}

/// One figure of ours against one peer's.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Of which workload.
    pub workload: String,
    /// In which case; with the setting, if variants of the case differ by one.
    pub case: String,
    /// Which figure; empty if the case has but one.
    pub metric: String,
    /// What it is about.
    pub figure: Figure,
    /// Which of ours.
    pub whose: Ours,
    /// Its name.
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

/// Won and lost, if that stands up to the number of all.
fn decide(all: &mut [Standing]) {
    let limit = greatest_that_counts(all.iter().map(|one| one.ratio.chance));
    for one in all {
        let is_told = matches!(one.outcome, Outcome::Win | Outcome::Loss);
        if is_told && one.ratio.chance > limit {
            one.outcome = Outcome::Undecided;
        }
    }
}

/// Whether it is what a user has who chooses nothing: of ours, all but what has to be asked for.
pub fn is_as_shipped(name: &str) -> bool {
    const ASKED_FOR: &[&str] = &[
        "waitword TO",
        "waitword WW",
        "waitword PI",
        "waitword, writers first",
    ];
    is_ours(name)
        && !ASKED_FOR.contains(&without_setting(name))
        && !without_setting(name).ends_with(", spin off")
}

/// How variants of one case are told apart that do the same beside different things.
const SETTING: &str = ", N = ";

fn setting(name: &str) -> Option<&str> {
    name.find(SETTING).map(|start| &name[start + 2..])
}

fn without_setting(name: &str) -> &str {
    name.find(SETTING).map_or(name, |end| &name[..end])
}

/// The settings in a case, in its order; `None` where there is none.
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

/// Ours of one kind, in one case and setting, and who stands against it.
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
                // What it takes the place of: `glibc, prefer writer` of `drop-in, prefer writer`.
                Some(kind) => other.name.strip_prefix("glibc") == Some(kind),
                None => is_peer(&other.name),
            };
            stands && setting(&other.name) == setting_wanted
        })
    }

    /// One for each figure and each owner: the worst of ours against the best of theirs.
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

/// The case's metrics, and CPU time if that is none of them.
fn figures(variant: &VariantReport) -> impl Iterator<Item = &MetricReport> {
    variant.metrics.iter().chain(&variant.cpu)
}

/// Whether we stand worse there than here.
fn is_worse(there: &Standing, here: &Standing, better: Better) -> bool {
    let [there, here] = [there, here].map(|one| one.ratio.summary.median);
    match better {
        Better::More => there < here,
        Better::Less | Better::Neither => there > here,
    }
}

#[cfg(test)]
mod tests;
