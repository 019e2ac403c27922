//! How long work takes: a mean, and a distribution about it.

use super::work;
use core::fmt;
use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// Distribution of the times about their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Every time equals the mean.
    Fixed,
    /// Exponential.
    Exponential,
    /// Nine of ten are half as long as the mean, one is 5.5 times as long.
    Bimodal,
    /// Pareto with exponent 1.5, capped at about 50 times the mean.
    Pareto,
}

/// Lengths of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Durations {
    /// Mean, in nanoseconds.
    pub mean: f64,
    /// Distribution about the mean.
    pub shape: Shape,
}

impl Durations {
    /// Draws one length, in nanoseconds.
    fn sample(&self, rng: &mut Rng) -> f64 {
        /// Mean of a Pareto distribution with exponent 1.5 and minimum 1, capped at 50 times 3 (3
        /// is its mean without the cap).
        const PARETO_MEAN: f64 = 3.0 - 2.0 * 0.081_649_658;
        let mean = self.mean;
        match self.shape {
            Shape::Fixed => mean,
            Shape::Exponential => -mean * (1.0 - rng.f64()).ln(),
            Shape::Bimodal if rng.u32(..10) == 0 => 5.5 * mean,
            Shape::Bimodal => 0.5 * mean,
            Shape::Pareto => {
                let least = mean / PARETO_MEAN;
                (least * (1.0 - rng.f64()).powf(-1.0 / 1.5)).min(150.0 * least)
            }
        }
    }

    /// Draws `length` of them, as amounts of work, scaled so that their mean is exactly `mean`.
    pub(super) fn table(&self, length: usize, rng: &mut Rng) -> Vec<u32> {
        let times: Vec<f64> = (0..length).map(|_| self.sample(rng)).collect();
        let drawn = times.iter().sum::<f64>() / length as f64;
        let correct = |time: f64| work::lasting(time * self.mean / drawn);
        times.into_iter().map(correct).collect()
    }
}

impl fmt::Display for Durations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = self.mean;
        match mean {
            ..1e3 => write!(f, "{mean:.0} ns")?,
            ..1e4 => write!(f, "{:.1} µs", mean / 1e3)?,
            _ => write!(f, "{:.0} µs", mean / 1e3)?,
        }
        match self.shape {
            Shape::Fixed => Ok(()),
            Shape::Exponential => write!(f, " (exponential)"),
            Shape::Bimodal => write!(f, " (bimodal)"),
            Shape::Pareto => write!(f, " (Pareto)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_has_its_mean() {
        let mut rng = Rng::with_seed(1);
        for shape in [Shape::Fixed, Shape::Exponential, Shape::Bimodal, Shape::Pareto] {
            let durations = Durations { mean: 1000.0, shape };
            let samples = 1_000_000;
            let sum: f64 = (0..samples).map(|_| durations.sample(&mut rng)).sum();
            let mean = sum / f64::from(samples);
            assert!((950.0..1050.0).contains(&mean), "{shape:?}: {mean}");
        }
    }
}
