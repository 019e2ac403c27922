//! Median, minimum and maximum of some measurements.

use serde::{Deserialize, Deserializer, Serialize};

/// Median, minimum and maximum of some measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The middle value; for an even number of values, the mean of the two middle ones.
    #[serde(deserialize_with = "infinite")]
    pub median: f64,
    /// The minimum.
    #[serde(deserialize_with = "infinite")]
    pub min: f64,
    /// The maximum.
    #[serde(deserialize_with = "infinite")]
    pub max: f64,
}

/// Reads numbers; JSON's `null` stands for infinity.
pub(crate) fn all_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f64::INFINITY)).collect())
}

/// Reads a number; JSON's `null` stands for infinity.
pub(crate) fn infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

impl Summary {
    /// Summarizes these values; `None` if there are none.
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

    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let Self { median, min, max } = self;
        Self { median: median * factor, min: min * factor, max: max * factor }
    }
}

/// The median of some values.
///
/// # Panics
/// If there are no values.
pub fn median(values: &[f64]) -> f64 {
    Summary::of(values).expect("the median of no values").median
}

/// A number from 0 to 1, drawn from a seed that is advanced (splitmix64).
#[cfg(test)]
pub(crate) fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *seed;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / u64::MAX as f64
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
