//! An interval for the true median of a sample, and how unlikely it is that this median is 1. No
//! distribution of the values is assumed, only that the rounds are independent.
//!
//! # The interval
//!
//! Each value is equally likely to lie below and above the true median. So the probability that the
//! k-th smallest of n values lies above it is the probability that fewer than k of n fair coins
//! show heads. The same holds at the other end. The interval reaches from the k-th smallest to the
//! k-th greatest value, with the greatest k for which it contains the median in at least 99 of 100
//! runs.
//!
//! # Few rounds
//!
//! With fewer than eight values there is no such k. The interval is then the range of the values,
//! and contains the median less often. [`coverage`] computes how often: 98.4 % with seven, 96.9 %
//! with six. With fewer than [`ROUNDS_TO_TELL`] values no difference is reported.
//!
//! # The probability
//!
//! [`sign_test`] uses the same coins: it is the probability that so many of the rounds, or more,
//! lie on one side of 1 if neither side is better. The correction for many comparisons is based on
//! it ([`many`](super::many)).

use super::summary::infinite;
use serde::{Deserialize, Serialize};

/// With fewer rounds, no difference is reported.
pub const ROUNDS_TO_TELL: usize = 6;
/// With fewer rounds, a workload is not published.
pub const ROUNDS_TO_PUBLISH: usize = 21;
/// With fewer rounds, a whole program is not published. One round takes seconds.
pub const ROUNDS_OF_PROGRAMS: usize = 9;
/// With fewer rounds, random loads are not published. Their figures are means over many loads.
pub const ROUNDS_OF_RANDOM_LOADS: usize = 5;
/// The fraction of runs in which the interval must contain the true median.
const WANTED: f64 = 0.99;
/// Ratios within this factor of 1 are the same.
const SAME: f64 = 1.05;

/// The verdict on two variants, or on two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval lies below 1.
    #[serde(rename = "less")]
    Less,
    /// The interval lies within 5 % of 1.
    #[serde(rename = "same")]
    Same,
    /// The interval lies above 1.
    #[serde(rename = "more")]
    More,
    /// The interval includes both 1 and values that would be a difference.
    #[serde(rename = "undecided")]
    Undecided,
    /// There were too few rounds to decide.
    #[serde(rename = "too few rounds")]
    TooFewRounds,
}

/// A lower and an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    #[serde(deserialize_with = "infinite")]
    pub low: f64,
    /// The upper end.
    #[serde(deserialize_with = "infinite")]
    pub high: f64,
}

impl Interval {
    /// The verdict on a ratio with this interval. *Same* is a claim, too: that the ratio lies
    /// within 5 % of 1.
    pub fn verdict(self) -> Verdict {
        if self.low >= 1.0 / SAME && self.high <= SAME {
            Verdict::Same
        } else if self.high < 1.0 {
            Verdict::Less
        } else if self.low > 1.0 {
            Verdict::More
        } else {
            // Also if the bounds are NaN: nothing was seen.
            Verdict::Undecided
        }
    }
}

/// The interval for the true median of this sample; `None` if there are too few values.
pub fn interval_of_median(values: &[f64]) -> Option<Interval> {
    let place = place(values.len())?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Interval { low: sorted[place], high: sorted[sorted.len() - 1 - place] })
}

/// The fraction of runs in which an interval from this many rounds contains the true median; `None`
/// if there are too few.
pub fn coverage(rounds: usize) -> Option<f64> {
    Some(1.0 - 2.0 * at_most(rounds, place(rounds)?))
}

/// The probability that this many values, or more, lie on one side of 1 if the median is 1.
pub fn sign_test(values: &[f64]) -> f64 {
    let below = values.iter().filter(|value| **value < 1.0).count();
    let above = values.iter().filter(|value| **value > 1.0).count();
    (2.0 * at_most(below + above, below.min(above))).min(1.0)
}

/// How many values lie outside the interval at each end.
fn place(rounds: usize) -> Option<usize> {
    if rounds < ROUNDS_TO_TELL {
        return None;
    }
    let wide_enough = |outside: &usize| 1.0 - 2.0 * at_most(rounds, *outside) >= WANTED;
    Some((0..rounds / 2).take_while(wide_enough).last().unwrap_or(0))
}

/// The probability that at most `heads` of `coins` fair coins show heads.
fn at_most(coins: usize, heads: usize) -> f64 {
    // The number of combinations, term by term, starting with no heads. There are never more than a
    // few hundred coins, so nothing that matters underflows.
    let (mut ways, mut sum) = (1.0, 0.0);
    for k in 0..=heads.min(coins) {
        sum += ways;
        ways *= (coins - k) as f64 / (k + 1) as f64;
    }
    sum * 0.5_f64.powi(coins as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random;

    #[test]
    fn what_an_interval_says() {
        let verdict = |low, high| Interval { low, high }.verdict();
        assert_eq!(verdict(0.9, 1.1), Verdict::Undecided);
        assert_eq!(verdict(1.0, 1.1), Verdict::Undecided);
        assert_eq!(verdict(0.96, 1.04), Verdict::Same);
        assert_eq!(verdict(1.01, 1.04), Verdict::Same);
        assert_eq!(verdict(0.96, 1.06), Verdict::Undecided);
        assert_eq!(verdict(0.8, 0.99), Verdict::Less);
        assert_eq!(verdict(1.01, f64::INFINITY), Verdict::More);
        assert_eq!(verdict(f64::NAN, f64::NAN), Verdict::Undecided);
    }

    #[test]
    fn the_coverage_is_that_of_the_textbook() {
        let percent = |rounds| (coverage(rounds).unwrap() * 1000.0).round() / 10.0;
        assert_eq!(coverage(5), None);
        assert_eq!([6, 7, 8, 21].map(percent), [96.9, 98.4, 99.2, 99.3]);
        // The fifth value from each end.
        let values: Vec<f64> = (1..=21).map(f64::from).collect();
        let (low, high) = (5.0, 17.0);
        assert_eq!(interval_of_median(&values), Some(Interval { low, high }));
        assert_eq!(interval_of_median(&values[..5]), None);
    }

    /// With long-tailed noise: how often does the interval contain the known median?
    #[test]
    fn the_interval_holds_the_median_as_often_as_it_says() {
        let mut seed = 11;
        for rounds in [6, 7, 12, 21] {
            let runs = 20_000;
            let held = (0..runs).filter(|_| {
                // The median of 1 / u is 2.
                let values: Vec<f64> = (0..rounds).map(|_| 1.0 / random(&mut seed)).collect();
                let interval = interval_of_median(&values).unwrap();
                interval.low <= 2.0 && 2.0 <= interval.high
            });
            let seen = held.count() as f64 / f64::from(runs);
            let wanted = coverage(rounds).unwrap();
            assert!((seen - wanted).abs() < 0.004, "{rounds}: {seen} for {wanted}");
        }
    }

    #[test]
    fn the_sign_test_counts_coins() {
        assert_eq!(sign_test(&[0.5; 7]), 2.0 / 128.0);
        assert_eq!(sign_test(&[0.5, 0.5, 0.5, 2.0]), 2.0 * 5.0 / 16.0);
        assert_eq!(sign_test(&[0.5, 2.0]), 1.0);
        assert_eq!(sign_test(&[1.0; 9]), 1.0, "neither is better");
        assert_eq!(sign_test(&[]), 1.0);
    }
}
