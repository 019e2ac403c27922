//! Median, least and greatest; and ratios taken pair by pair.
//!
//! The median, because one preempted measurement must not move the figure; least and greatest beside
//! it, because a figure without its spread is a rumour. A ratio is taken within each round, between two
//! measurements that followed each other, and only then summarized: the ratio of two medians would
//! compare moments that never met.

use serde::Serialize;

/// Median, least and greatest of some measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The middle one; the mean of the two middle ones of an even number.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
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

    /// Of `values[i] / baseline[i]`, the pairs being those of one round.
    ///
    /// Where both are zero they are equal (1); a value over a zero baseline is infinite.
    ///
    /// # Panics
    /// If there are not as many of the one as of the other.
    pub fn of_ratios(values: &[f64], baseline: &[f64]) -> Option<Self> {
        assert_eq!(values.len(), baseline.len(), "a round without its pair");
        let ratio = |(value, base): (&f64, &f64)| match (*value == 0.0, *base == 0.0) {
            (true, true) => 1.0,
            (false, true) => f64::INFINITY,
            _ => value / base,
        };
        let ratios: Vec<f64> = values.iter().zip(baseline).map(ratio).collect();
        Self::of(&ratios)
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

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was twice as slow in the second round: the ratio does not show it.
        let ours = [10.0, 20.0, 11.0];
        let theirs = [20.0, 40.0, 22.0];
        let ratio = Summary::of_ratios(&ours, &theirs).unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (0.5, 0.5, 0.5));
    }

    #[test]
    fn zero_over_zero_is_equal_and_something_over_zero_is_infinite() {
        assert_eq!(Summary::of_ratios(&[0.0], &[0.0]).unwrap().median, 1.0);
        assert_eq!(Summary::of_ratios(&[0.0], &[512.0]).unwrap().median, 0.0);
        assert!(
            Summary::of_ratios(&[1.0], &[0.0])
                .unwrap()
                .median
                .is_infinite()
        );
    }

    #[test]
    #[should_panic(expected = "a round without its pair")]
    fn a_missing_round_is_not_passed_over() {
        Summary::of_ratios(&[1.0, 2.0], &[1.0]);
    }
}
