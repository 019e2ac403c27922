//! What is made of many cells: how we stand to each peer, and to the best peer of each cell.

use super::cell::{Beside, Family};
use super::child::Figures;
use super::contender::Contender;
use super::rounds::CellReport;

/// A figure of which ratios are made.
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
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Cpu, Self::P999];

    /// As the report calls it.
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

/// With whom ours is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// With the peer that has the best throughput in the cell.
    Best,
    /// With the best of our own flavours.
    BestFlavour,
    /// With this one.
    Peer(Contender),
}

/// Ratios of some cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// The geometric mean.
    pub mean: f64,
    /// One in ten is as bad, or worse.
    pub tenth: f64,
    /// The worst.
    pub worst: f64,
    /// How many.
    pub cells: usize,
}

impl CellReport {
    fn median(&self, who: Contender, of: Of) -> Option<f64> {
        let (_, rounds) = self.contenders.iter().find(|(each, _)| *each == who)?;
        median(rounds.iter().map(|figures| of.value(figures)).collect())
    }

    /// The one of these with the best throughput.
    fn best(&self, is_one: impl Fn(Contender) -> bool) -> Option<Contender> {
        let all = self.contenders.iter().map(|&(who, _)| who);
        all.filter(|&who| is_one(who))
            .filter_map(|who| Some((who, self.median(who, Of::Throughput)?)))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(who, _)| who)
    }

    /// The contender that is meant here.
    pub fn other(&self, to: To) -> Option<Contender> {
        match to {
            To::Best => self.best(|who| !who.is_ours()),
            To::BestFlavour => self.best(Contender::is_flavour),
            To::Peer(peer) => Some(peer),
        }
    }

    /// What ours is to the other: more than 1 is more.
    pub fn ratio(&self, ours: Contender, to: To, of: Of) -> Option<f64> {
        let ratio = self.median(ours, of)? / self.median(self.other(to)?, of)?;
        ratio.is_finite().then_some(ratio)
    }
}

/// The ratios of ours in the cells of a family beside something.
pub fn ratios(
    cells: &[CellReport],
    family: Option<Family>,
    beside: Option<Beside>,
    ours: Contender,
    to: To,
    of: Of,
) -> Option<Ratios> {
    let mut all: Vec<f64> = cells
        .iter()
        .filter(|report| family.is_none_or(|family| report.cell.id.family == family))
        .filter(|report| beside.is_none_or(|beside| report.cell.id.beside == beside))
        .filter_map(|report| report.ratio(ours, to, of))
        .collect();
    // The worst first.
    all.sort_by(|one, other| match of {
        Of::Throughput => one.total_cmp(other),
        Of::Cpu | Of::P999 => other.total_cmp(one),
    });
    let worst = *all.first()?;
    let mean = (all.iter().map(|ratio| ratio.ln()).sum::<f64>() / all.len() as f64).exp();
    Some(Ratios {
        mean,
        tenth: all[(all.len() - 1) / 10],
        worst,
        cells: all.len(),
    })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}
