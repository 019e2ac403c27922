//! A ratio, how sure it is, and whether it is one at all.
//!
//! Two runs of the very same code never take the same time. So a ratio is printed with the interval in which it lies
//! with 99 % certainty, and is called "same" where that interval has 1 in it: *no difference was seen* (not: there is none).
//!
//! # The interval
//!
//! It is Efron's bootstrap (1979) of the median: draw as many rounds as there were from those that there were, with
//! repetition, take the median, and again; the middle 99 % of those medians. For a median no draw has to be made. Of n sorted
//! values, a draw is at most the k-th with the chance k/n; so the middle one of n draws is at most the k-th where at
//! least half of them are, which is a sum of binomial terms. The interval is exact, and the same each time.
//!
//! Of an even number, the lower of the two middle ones is used for the lower end, and the upper one for the upper end.
//!
//! # Few rounds
//!
//! With seven rounds the interval is all of the range, which holds the true median unless all seven fell on one side of it: in 63 of 64 runs.
//! With five it would be 15 of 16, and no interval of what was seen does better: so of fewer than [`ROUNDS_TO_TELL`]
//! rounds no difference is told.

use serde::{Deserialize, Serialize};

use super::{Summary, infinite};

/// Of fewer rounds, no difference is told.
pub const ROUNDS_TO_TELL: usize = 6;

/// How unlikely it is, by the bootstrap, that the true median lies outside of the interval.
const OUTSIDE: f64 = 0.01;

/// What can be said of two variants, or of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The interval lies below 1.
    #[serde(rename = "less")]
    Less,
    /// The interval has 1 in it: no difference was seen.
    #[serde(rename = "same")]
    Same,
    /// The interval lies above 1.
    #[serde(rename = "more")]
    More,
    /// Too few rounds to say.
    #[serde(rename = "too few rounds")]
    TooFewRounds,
}

/// Between which two values something lies.
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
    /// What it says of a ratio.
    pub fn verdict(self) -> Verdict {
        if self.high < 1.0 {
            Verdict::Less
        } else if self.low > 1.0 {
            Verdict::More
        } else {
            // Not a number: nothing was seen.
            Verdict::Same
        }
    }
}

/// Of each round's value to the baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median, least and greatest.
    #[serde(flatten)]
    pub summary: Summary,
    /// Where the median lies with 99 % certainty; `None` of too few rounds.
    pub interval: Option<Interval>,
    /// What can be said.
    pub verdict: Verdict,
}

impl Ratio {
    /// Of `values[i] / baseline[i]`, the pairs being those of one round.
    ///
    /// Where both are zero they are equal (1); a value over a zero baseline is infinite.
    ///
    /// # Panics
    /// If there are not as many of the one as of the other.
    pub fn of(values: &[f64], baseline: &[f64]) -> Option<Self> {
        let ratios = ratios(values, baseline);
        let interval = interval_of_median(&ratios);
        Some(Self {
            summary: Summary::of(&ratios)?,
            interval,
            verdict: interval.map_or(Verdict::TooFewRounds, Interval::verdict),
        })
    }
}

/// The pairs' ratios; see [`Ratio::of`].
///
/// # Panics
/// If there are not as many of the one as of the other.
pub fn ratios(values: &[f64], baseline: &[f64]) -> Vec<f64> {
    assert_eq!(values.len(), baseline.len(), "a round without its pair");
    let ratio = |(value, base): (&f64, &f64)| match (*value == 0.0, *base == 0.0) {
        (true, true) => 1.0,
        (false, true) => f64::INFINITY,
        _ => value / base,
    };
    values.iter().zip(baseline).map(ratio).collect()
}

/// Where the median of what these are a sample of lies; `None` of too few.
pub fn interval_of_median(values: &[f64]) -> Option<Interval> {
    if values.len() < ROUNDS_TO_TELL {
        return None;
    }
    let [lower, upper] = medians_drawn(values);
    Some(Interval {
        low: quantile(lower, OUTSIDE / 2.0),
        high: quantile(upper, 1.0 - OUTSIDE / 2.0),
    })
}

/// Where the quotient of two medians lies, of two samples that have nothing to do with each other; `None` of too few.
pub fn interval_of_quotient(values: &[f64], others: &[f64]) -> Option<Interval> {
    if values.len().min(others.len()) < ROUNDS_TO_TELL {
        return None;
    }
    let [lower, upper] = medians_drawn(values);
    let [other_lower, other_upper] = medians_drawn(others);
    let quotients = |these: &[Drawn], by: &[Drawn]| -> Vec<Drawn> {
        let pair = |value: &Drawn, other: &Drawn| Drawn {
            value: value.value / other.value,
            chance: value.chance * other.chance,
        };
        let all = these
            .iter()
            .flat_map(|value| by.iter().map(move |other| pair(value, other)));
        all.collect()
    };
    Some(Interval {
        low: quantile(quotients(&lower, &other_upper), OUTSIDE / 2.0),
        high: quantile(quotients(&upper, &other_lower), 1.0 - OUTSIDE / 2.0),
    })
}

/// A value that a draw can have, and how likely it is.
struct Drawn {
    value: f64,
    chance: f64,
}

/// The medians that draws of these values can have: the lower and the upper middle one.
fn medians_drawn(values: &[f64]) -> [Vec<Drawn>; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // The place of each, from 1.
    [n.div_ceil(2), n / 2 + 1].map(|place| {
        let at_most = |k: usize| at_least(n, place, k as f64 / n as f64);
        let drawn = |(index, value): (usize, &f64)| Drawn {
            value: *value,
            chance: at_most(index + 1) - at_most(index),
        };
        sorted.iter().enumerate().map(drawn).collect()
    })
}

/// The chance that of n draws at least `wanted` are of those that have this chance each.
fn at_least(n: usize, wanted: usize, chance: f64) -> f64 {
    // The chance of `k`, term by term from that of none. Never of more than some hundred rounds: nothing underflows that counts.
    let mut sum = 0.0;
    for k in wanted..=n {
        let choose = (0..k)
            .map(|i| (n - i) as f64 / (k - i) as f64)
            .product::<f64>();
        sum += choose * chance.powi(k as i32) * (1.0 - chance).powi((n - k) as i32);
    }
    sum
}

/// The least value up to which this much of the chances lies.
fn quantile(mut drawn: Vec<Drawn>, wanted: f64) -> f64 {
    drawn.sort_by(|one, other| one.value.total_cmp(&other.value));
    let mut so_far = 0.0;
    for one in &drawn {
        so_far += one.chance;
        if so_far >= wanted {
            return one.value;
        }
    }
    // Their sum may be a rounding error short of 1.
    drawn.last().map_or(f64::NAN, |last| last.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number from 0 to 1 from a seed that it moves on (splitmix64).
    fn random(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = *seed;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) as f64 / u64::MAX as f64
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was twice as slow in the second round: the ratio does not show it.
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
        assert_eq!(
            seven.interval,
            Some(Interval {
                low: 0.7,
                high: 0.99
            })
        );
        assert_eq!(seven.verdict, Verdict::Less);
    }

    #[test]
    fn an_interval_that_has_1_in_it_is_same() {
        let verdict = |low, high| Interval { low, high }.verdict();
        assert_eq!(verdict(0.9, 1.1), Verdict::Same);
        assert_eq!(verdict(1.0, 1.1), Verdict::Same);
        assert_eq!(verdict(0.8, 0.99), Verdict::Less);
        assert_eq!(verdict(1.01, f64::INFINITY), Verdict::More);
        assert_eq!(verdict(f64::NAN, f64::NAN), Verdict::Same);
    }

    /// What the sums say must be what draws say.
    #[test]
    fn the_exact_interval_is_that_of_many_draws() {
        let mut seed = 1;
        for n in [9, 15, 21] {
            let values: Vec<f64> = (0..n).map(|_| random(&mut seed)).collect();
            let mut medians: Vec<f64> = (0..40_000)
                .map(|_| {
                    let mut drawn: Vec<f64> = (0..n)
                        .map(|_| values[((random(&mut seed) * n as f64) as usize).min(n - 1)])
                        .collect();
                    drawn.sort_by(f64::total_cmp);
                    drawn[n / 2]
                })
                .collect();
            medians.sort_by(f64::total_cmp);
            let interval = interval_of_median(&values).unwrap();
            let below = medians
                .iter()
                .filter(|&&median| median < interval.low)
                .count();
            let up_to = medians
                .iter()
                .filter(|&&median| median <= interval.low)
                .count();
            assert!(below <= 230 && up_to >= 170, "{n}: {below} {up_to}");
            let above = medians
                .iter()
                .filter(|&&median| median > interval.high)
                .count();
            let from = medians
                .iter()
                .filter(|&&median| median >= interval.high)
                .count();
            assert!(above <= 230 && from >= 170, "{n}: {above} {from}");
        }
    }

    /// Noise with a long tail, as a machine's is: how often is a difference seen where there is none?
    #[test]
    fn of_the_same_thing_twice_nineteen_in_twenty_are_same() {
        let mut seed = 7;
        for n in [6, 7, 8, 9, 10, 11, 15, 20, 31] {
            let mut told = 0;
            for _ in 0..2000 {
                let mut noise = || 1.0 + 0.02 / (0.02 + random(&mut seed));
                let values: Vec<f64> = (0..n).map(|_| noise()).collect();
                let others: Vec<f64> = (0..n).map(|_| noise()).collect();
                let verdict = Ratio::of(&values, &others).unwrap().verdict;
                told += usize::from(verdict != Verdict::Same);
            }
            assert!(told <= 100, "{n} rounds: {told} of 2000");
        }
    }

    #[test]
    fn a_difference_of_a_tenth_is_seen_through_noise() {
        let mut seed = 3;
        let mut noisy = |value: f64| -> Vec<f64> {
            let mut noise = || value * (1.0 + 0.04 * random(&mut seed));
            (0..15).map(|_| noise()).collect()
        };
        let (old, slower) = (noisy(0.5), noisy(0.55));
        let verdict = |new: &[f64], old: &[f64]| interval_of_quotient(new, old).unwrap().verdict();
        assert_eq!(verdict(&slower, &old), Verdict::More);
        assert_eq!(verdict(&old, &slower), Verdict::Less);
        assert_eq!(verdict(&noisy(0.5), &old), Verdict::Same);
        assert_eq!(interval_of_quotient(&old[..5], &slower), None);
    }
}
