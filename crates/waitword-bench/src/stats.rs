//! Median, least and greatest; and ratios taken pair by pair.
//!
//! The median, because one preempted measurement must not move the figure; least and greatest beside
//! it, because a figure without its spread is a rumour. A ratio is taken within each round, between two
//! measurements that followed each other, and only then summarized: the ratio of two medians would
//! compare moments that never met.

mod ratio;

pub use ratio::{
    Interval, ROUNDS_TO_TELL, Ratio, Verdict, interval_of_median, interval_of_quotient, ratios,
};

use serde::{Deserialize, Deserializer, Serialize};

/// Median, least and greatest of some measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle one; the mean of the two middle ones of an even number.
    #[serde(deserialize_with = "infinite")]
    pub median: f64,
    /// The least.
    #[serde(deserialize_with = "infinite")]
    pub min: f64,
    /// The greatest.
    #[serde(deserialize_with = "infinite")]
    pub max: f64,
}

/// Numbers, or the `null`s that JSON has for infinity.
pub(crate) fn all_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    Ok(values
        .into_iter()
        .map(|value| value.unwrap_or(f64::INFINITY))
        .collect())
}

/// A number, or the `null` that JSON has for infinity.
pub(crate) fn infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

impl Summary {
    /// Of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[half]
        } else {
            (sorted[half - 1] + sorted[half]) / 2.0
        };
        Some(Self { median, min, max })
    }
}

/// The median of some values.
///
/// # Panics
/// If there are none.
pub fn median(values: &[f64]) -> f64 {
    Summary::of(values).expect("the median of nothing").median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_the_mean_of_two() {
        let summary = Summary::of(&[9.0, 1.0, 2.0]).unwrap();
        assert_eq!((summary.median, summary.min, summary.max), (2.0, 1.0, 9.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
        assert_eq!(Summary::of(&[]), None);
    }
}
