//! A ratio, its interval, and whether it differs from 1 at all.
//!
//! Two runs of the same code never take exactly the same time. So a ratio is printed with an
//! interval that contains it with some 99 % certainty ([`coverage`](super::coverage)), and with a
//! verdict:
//!
//! | verdict | the interval |
//! |---|---|
//! | same | lies within 5 % of 1 |
//! | less, more | lies on one side of 1 |
//! | undecided | neither: there may or may not be a difference |

use super::interval::{Interval, Verdict, interval_of_median, sign_test};
use super::summary::Summary;
use serde::{Deserialize, Serialize};

/// The ratio of each round's value to the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median, minimum and maximum.
    #[serde(flatten)]
    pub summary: Summary,
    /// Interval of the median; `None` if there were too few rounds.
    pub interval: Option<Interval>,
    /// The probability of such rounds if neither is better ([`sign_test`]).
    pub chance: f64,
    /// The verdict.
    pub verdict: Verdict,
}

impl Ratio {
    /// The ratios `values[i] / baseline[i]`, where each pair belongs to one round.
    ///
    /// If both are zero they are equal (1). A value over a zero baseline is infinite.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn of(values: &[f64], baseline: &[f64]) -> Option<Self> {
        let ratios = ratios(values, baseline);
        let interval = interval_of_median(&ratios);
        Some(Self {
            summary: Summary::of(&ratios)?,
            interval,
            chance: sign_test(&ratios),
            verdict: interval.map_or(Verdict::TooFewRounds, Interval::verdict),
        })
    }
}

/// The ratios of the pairs; see [`Ratio::of`].
///
/// # Panics
/// If the slices differ in length.
pub fn ratios(values: &[f64], baseline: &[f64]) -> Vec<f64> {
    assert_eq!(values.len(), baseline.len(), "a round without its pair");
    let ratio = |(value, base): (&f64, &f64)| match (*value == 0.0, *base == 0.0) {
        (true, true) => 1.0,
        (false, true) => f64::INFINITY,
        _ => value / base,
    };
    values.iter().zip(baseline).map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random;

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was twice as slow in the second round; the ratio does not show it.
        let ratio = Ratio::of(&[10.0, 20.0, 11.0], &[20.0, 40.0, 22.0]).unwrap();
        let summary = ratio.summary;
        assert_eq!((summary.median, summary.min, summary.max), (0.5, 0.5, 0.5));
    }

    #[test]
    fn zero_over_zero_is_equal_and_something_over_zero_is_infinite() {
        assert_eq!(ratios(&[0.0, 0.0], &[0.0, 512.0]), [1.0, 0.0]);
        assert!(ratios(&[1.0], &[0.0])[0].is_infinite());
    }

    #[test]
    #[should_panic(expected = "a round without its pair")]
    fn a_missing_round_is_not_passed_over() {
        ratios(&[1.0, 2.0], &[1.0]);
    }

    #[test]
    fn few_rounds_tell_nothing_and_seven_tell_by_all_of_their_range() {
        let five = Ratio::of(&[2.0; 5], &[1.0; 5]).unwrap();
        assert_eq!((five.interval, five.verdict), (None, Verdict::TooFewRounds));
        let values = [0.7, 0.8, 0.9, 0.91, 0.92, 0.93, 0.99];
        let seven = Ratio::of(&values, &[1.0; 7]).unwrap();
        assert_eq!(seven.interval, Some(Interval { low: 0.7, high: 0.99 }));
        assert_eq!(seven.verdict, Verdict::Less);
    }

    /// With long-tailed noise, like that of a machine: how often is a difference reported where
    /// there is none?
    #[test]
    fn of_the_same_thing_twice_at_most_one_in_twenty_differs() {
        let mut seed = 7;
        for n in [6, 7, 8, 9, 10, 11, 15, 20, 31] {
            let mut told = 0;
            for _ in 0..2000 {
                let mut noise = || 1.0 + 0.02 / (0.02 + random(&mut seed));
                let values: Vec<f64> = (0..n).map(|_| noise()).collect();
                let others: Vec<f64> = (0..n).map(|_| noise()).collect();
                let verdict = Ratio::of(&values, &others).unwrap().verdict;
                told += usize::from(matches!(verdict, Verdict::Less | Verdict::More));
            }
            assert!(told <= 100, "{n} rounds: {told} of 2000");
        }
    }
}
