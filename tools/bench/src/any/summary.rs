//! Summarizes many cells: our ratio to each peer, and to the best peer of each cell.
//!
//! Ratios are taken round by round, between measurements of the same round; a cell's ratio is the
//! median of these. The *best* peer of a cell is the one with the highest median throughput, and it
//! remains the best peer for CPU and waits. Comparing each figure with whichever peer is best in
//! that figure would compare us with a lock that does not exist.

use super::cell::{Beside, Family};
use super::child::Figures;
use super::contender::Contender;
use super::rounds::CellReport;
use crate::stats::{self, Interval, Ratio};
use fastrand::Rng;

/// A figure that ratios are computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// More is better.
    Throughput,
    /// Less is better.
    Cpu,
    /// Less is better.
    P999,
}

impl Of {
    /// All figures.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Cpu, Self::P999];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "CPU",
            Self::P999 => "p99.9",
        }
    }

    fn value(self, figures: &Figures) -> f64 {
        match self {
            Self::Throughput => figures.throughput,
            Self::Cpu => figures.cpu,
            Self::P999 => figures.p999,
        }
    }
}

/// The opponent in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The peer with the best throughput in the cell.
    Best,
    /// The best of our own other flavours.
    BestFlavour,
    /// This contender.
    Peer(Contender),
}

/// Ratios of a set of cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// Geometric mean.
    pub mean: f64,
    /// 99 % confidence interval for the mean over all loads that could be drawn.
    pub interval: Interval,
    /// One cell in ten is this bad or worse.
    pub tenth: f64,
    /// Worst ratio.
    pub worst: f64,
    /// Number of cells.
    pub cells: usize,
}

impl CellReport {
    fn values(&self, who: Contender, of: Of) -> Option<Vec<f64>> {
        let (_, rounds) = self.contenders.iter().find(|(each, _)| *each == who)?;
        Some(rounds.iter().map(|figures| of.value(figures)).collect())
    }

    fn median(&self, who: Contender, of: Of) -> Option<f64> {
        let values = self.values(who, of).filter(|values| !values.is_empty())?;
        Some(stats::median(&values))
    }

    /// The contender with the best throughput among those that `is_one` accepts.
    fn best(&self, is_one: impl Fn(Contender) -> bool) -> Option<Contender> {
        let all = self.contenders.iter().map(|&(who, _)| who);
        all.filter(|&who| is_one(who))
            .filter_map(|who| Some((who, self.median(who, Of::Throughput)?)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(who, _)| who)
    }

    /// Resolves the opponent in this cell.
    pub fn other(&self, to: To) -> Option<Contender> {
        match to {
            To::Best => self.best(|who| !who.is_ours()),
            To::BestFlavour => self.best(Contender::is_flavour),
            To::Peer(peer) => Some(peer),
        }
    }

    /// Our figure divided by the opponent's, round by round. More than 1 means ours is larger.
    pub fn ratio(&self, ours: Contender, to: To, of: Of) -> Option<Ratio> {
        let mine = self.values(ours, of)?;
        let theirs = self.values(self.other(to)?, of)?;
        let both = mine.len().min(theirs.len());
        let ratio = Ratio::of(&mine[..both], &theirs[..both])?;
        let median = ratio.summary.median;
        (median.is_finite() && median > 0.0).then_some(ratio)
    }
}

/// A selection of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Only this family; `None` selects all.
    pub family: Option<Family>,
    /// Only these surroundings; `None` selects all.
    pub beside: Option<Beside>,
}

impl Which {
    /// Whether the selection includes the cell.
    pub fn has(self, report: &CellReport) -> bool {
        let id = report.cell.id;
        self.family.is_none_or(|family| id.family == family)
            && self.beside.is_none_or(|beside| id.beside == beside)
    }

    /// The name in reports.
    pub fn name(self) -> String {
        match (self.family, self.beside) {
            (Some(family), Some(beside)) => format!("{family}, {beside}"),
            (Some(family), None) => family.to_string(),
            (None, Some(beside)) => format!("all, {beside}"),
            (None, None) => "all".to_owned(),
        }
    }

    /// Each family in each of the surroundings that have cells, and finally all cells together.
    pub fn all_of(cells: &[CellReport]) -> Vec<Self> {
        let pairs = Family::ALL.into_iter().flat_map(|family| {
            Beside::ALL
                .into_iter()
                .map(move |beside| Self { family: Some(family), beside: Some(beside) })
        });
        let all = Self::default();
        pairs.chain([all]).filter(|which| cells.iter().any(|cell| which.has(cell))).collect()
    }
}

/// Our ratios in these cells, each with its cell, worst first.
pub fn sorted(
    cells: &[CellReport],
    which: Which,
    ours: Contender,
    to: To,
    of: Of,
) -> Vec<(Ratio, &CellReport)> {
    let mut all: Vec<(Ratio, &CellReport)> = cells
        .iter()
        .filter(|report| which.has(report))
        .filter_map(|report| Some((report.ratio(ours, to, of)?, report)))
        .collect();
    all.sort_by(|(one, _), (other, _)| {
        let order = one.summary.median.total_cmp(&other.summary.median);
        match of {
            Of::Throughput => order,
            Of::Cpu | Of::P999 => order.reverse(),
        }
    });
    all
}

/// The cells in which one of our contenders reaches the smallest fraction of the best peer's
/// throughput, over all families; at most `count`.
pub fn worst<'a>(
    cells: &'a [CellReport],
    ours: &[Contender],
    count: usize,
) -> Vec<(Contender, Ratio, &'a CellReport)> {
    let each = |&who| {
        let sorted = sorted(cells, Which::default(), who, To::Best, Of::Throughput);
        sorted.into_iter().map(move |(ratio, cell)| (who, ratio, cell))
    };
    let mut all: Vec<_> = ours.iter().flat_map(each).collect();
    all.sort_by(|(_, one, _), (_, other, _)| one.summary.median.total_cmp(&other.summary.median));
    all.truncate(count);
    all
}

/// Summarizes the ratios; `None` if there are none.
pub fn ratios(
    cells: &[CellReport],
    which: Which,
    ours: Contender,
    to: To,
    of: Of,
) -> Option<Ratios> {
    let sorted = sorted(cells, which, ours, to, of);
    let all: Vec<f64> = sorted.iter().map(|(ratio, _)| ratio.summary.median).collect();
    Some(Ratios {
        mean: geometric_mean(all.iter().copied())?,
        interval: interval_of_mean(&all),
        tenth: all[(all.len() - 1) / 10],
        worst: *all.first()?,
        cells: all.len(),
    })
}

fn geometric_mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| (values.map(f64::ln).sum::<f64>() / count as f64).exp())
}

/// Bootstrap over the cells: the middle 99 % of the means of resamples. The seed is fixed.
fn interval_of_mean(values: &[f64]) -> Interval {
    const DRAWS: usize = 2000;
    const OUTSIDE: usize = DRAWS / 200;
    let mut rng = Rng::with_seed(1);
    let mut means: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            geometric_mean((0..values.len()).map(|_| values[rng.usize(..values.len())]))
        })
        .collect();
    means.sort_by(f64::total_cmp);
    Interval { low: means[OUTSIDE], high: means[DRAWS - 1 - OUTSIDE] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::cell::CellId;
    use crate::any::draw;

    fn figures(throughput: f64, cpu: f64) -> Figures {
        Figures {
            throughput,
            cpu,
            p50: 1.0,
            p99: 1.0,
            p999: 1.0,
            longest: 1.0,
            spread: 1.0,
            switches: 0.0,
        }
    }

    /// A cell in which std is the fastest, glibc takes the least CPU, and ours is `times` as fast
    /// as std.
    fn cell(number: u32, times: f64) -> CellReport {
        let id = CellId { family: Family::Mutex, seed: 1, number, beside: Beside::Quiet };
        CellReport {
            cell: draw::cell(id),
            repeated: 0,
            disturbed: 0,
            quota: None,
            contenders: vec![
                (Contender::Glibc, vec![figures(50.0, 1.0), figures(5.0, 1.0)]),
                (Contender::Std, vec![figures(100.0, 4.0), figures(10.0, 4.0)]),
                (
                    Contender::Waitword,
                    vec![figures(100.0 * times, 2.0), figures(10.0 * times, 2.0)],
                ),
            ],
        }
    }

    #[test]
    fn the_best_is_the_fastest_in_every_figure_and_ratios_are_of_one_round() {
        let cell = cell(0, 0.5);
        let median = |to, of| cell.ratio(Contender::Waitword, to, of).unwrap().summary.median;
        assert_eq!(cell.other(To::Best), Some(Contender::Std));
        // In the second round all contenders were ten times as slow.
        assert_eq!(median(To::Best, Of::Throughput), 0.5);
        assert_eq!(median(To::Best, Of::Cpu), 0.5);
        assert_eq!(median(To::Peer(Contender::Glibc), Of::Throughput), 1.0);
        assert_eq!(cell.ratio(Contender::DropIn, To::Best, Of::Cpu), None);
    }

    #[test]
    fn the_worst_come_first_and_the_mean_has_an_interval() {
        let cells: Vec<CellReport> = [1.0, 4.0, 0.25, 1.0, 1.0]
            .into_iter()
            .zip(0..)
            .map(|(times, number)| cell(number, times))
            .collect();
        let ratios =
            ratios(&cells, Which::default(), Contender::Waitword, To::Best, Of::Throughput);
        let Ratios { mean, interval, tenth, worst, cells: count } = ratios.unwrap();
        assert!((mean - 1.0).abs() < 1e-9 && count == 5);
        assert_eq!((tenth, worst), (0.25, 0.25));
        assert!(0.25 <= interval.low && interval.low < 0.9, "{interval:?}");
        assert!(1.1 < interval.high && interval.high <= 4.0, "{interval:?}");
        let listed = super::worst(&cells, &[Contender::Waitword, Contender::DropIn], 2);
        let medians: Vec<f64> = listed.iter().map(|(_, ratio, _)| ratio.summary.median).collect();
        assert_eq!(medians, [0.25, 1.0], "no drop-in was measured");
        let none = Which { beside: Some(Beside::Pinned), ..Which::default() };
        assert_eq!(super::ratios(&cells, none, Contender::Waitword, To::Best, Of::Cpu), None);
        let names: Vec<String> = Which::all_of(&cells).into_iter().map(Which::name).collect();
        assert_eq!(names, ["mutex, quiet", "all"]);
    }
}
