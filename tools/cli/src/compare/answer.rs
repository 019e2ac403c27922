//! Which variant is best, by how much, and how surely.
//!
//! All of it is computed from ratios within rounds. A flavour differs from the plain program if the
//! ratio's 99 % interval lies on one side of 1 and the difference is also significant among all
//! flavours (`stats/many.rs` of the benchmark).

use super::{By, Variant};
use serde::Serialize;
use waitword_bench::harness::Better;
use waitword_bench::stats::{Ratio, Verdict, coverage, greatest_that_counts};
use waitword_report::figure;

/// A flavour compared with the plain program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Standing {
    /// How many times as good as the plain program it is: above 1 is better, whether a smaller or a
    /// greater number is.
    #[serde(serialize_with = "without_verdict")]
    pub(super) times_as_good: Ratio,
    /// In how many rounds it was better.
    pub(super) rounds_won: usize,
    pub(super) verdict: Told,
}

/// The ratio without its own verdict, which does not consider that there are several flavours.
fn without_verdict<S: serde::Serializer>(ratio: &Ratio, to: S) -> Result<S::Ok, S::Error> {
    let Ratio { summary, interval, chance, .. } = ratio;
    serde_json::json!({
        "median": summary.median,
        "min": summary.min,
        "max": summary.max,
        "interval": interval,
        "chance": chance,
    })
    .serialize(to)
}

/// What the rounds show of a flavour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Told {
    Better,
    Worse,
    /// Within 5 %.
    Same,
    Undecided,
}

/// Fills in the standing of each variant but the first, which is the plain program.
pub(super) fn assess(variants: &mut [Variant], by: By, better: Better) {
    let Some((plain, others)) = variants.split_first_mut() else {
        return;
    };
    for variant in others.iter_mut().filter(|variant| variant.failure.is_none()) {
        // How many times as good it is.
        let (greater, smaller) = match better {
            Better::Less => (plain.values(by), variant.values(by)),
            _ => (variant.values(by), plain.values(by)),
        };
        let rounds_won = greater.iter().zip(smaller).filter(|(one, other)| one > other).count();
        variant.standing = Ratio::of(greater, smaller).map(|times_as_good| Standing {
            times_as_good,
            rounds_won,
            verdict: match times_as_good.verdict {
                Verdict::Same => Told::Same,
                Verdict::More => Told::Better,
                Verdict::Less => Told::Worse,
                Verdict::Undecided | Verdict::TooFewRounds => Told::Undecided,
            },
        });
    }
    let standings = || others.iter().filter_map(|variant| variant.standing);
    let counts = greatest_that_counts(standings().map(|standing| standing.times_as_good.chance));
    for standing in others.iter_mut().filter_map(|variant| variant.standing.as_mut()) {
        if standing.verdict != Told::Same && standing.times_as_good.chance > counts {
            standing.verdict = Told::Undecided;
        }
    }
}

/// The answer in sentences.
pub(super) fn answer(variants: &[Variant], by: By, rounds: usize) -> String {
    let told = |wanted: Told| {
        variants.iter().filter_map(move |variant| {
            let standing = variant.standing.as_ref()?;
            (standing.verdict == wanted).then_some((variant, standing))
        })
    };
    let median = |(_, standing): &(&Variant, &Standing)| standing.times_as_good.summary.median;
    let best = told(Told::Better).max_by(|one, other| median(one).total_cmp(&median(other)));
    if let Some((best, standing)) = best {
        let rivals = told(Told::Better).map(|(variant, _)| variant).filter(|variant| {
            variant.name != best.name && !differ(variant.values(by), best.values(by))
        });
        let rivals: Vec<&str> = rivals.map(|variant| &*variant.name).collect();
        let mut text = is_best(&best.name, standing, by, rounds);
        if !rivals.is_empty() {
            text +=
                &format!("\nThese rounds show no difference between it and {}.", rivals.join(", "));
        }
        return text;
    }
    if variants.iter().all(|variant| variant.standing.is_none()) {
        return "No flavour can be compared.".to_owned();
    }
    let same: Vec<&str> = told(Told::Same).map(|(variant, _)| &*variant.name).collect();
    let undecided: Vec<_> = told(Told::Undecided).collect();
    let mut lines = vec![match (&same[..], &undecided[..]) {
        ([], []) => "The plain program is best.".to_owned(),
        (same, []) => {
            let same = same.join(", ");
            format!("No flavour is better than the plain program. Within 5 % of it: {same}.")
        }
        _ => format!("{rounds} rounds show no flavour that is better than the plain program."),
    }];
    lines.extend(undecided.iter().map(|(variant, standing)| {
        let within = standing.times_as_good.interval.map_or_else(String::new, |interval| {
            let (low, high) = (figure(interval.low), figure(interval.high));
            format!("; it is {low} to {high} times as {} as the plain program", as_good(by))
        });
        format!("{}: undecided{within}.", variant.name)
    }));
    if !undecided.is_empty() {
        lines.push("More rounds may tell (--rounds).".to_owned());
    }
    lines.join("\n")
}

fn is_best(name: &str, standing: &Standing, by: By, rounds: usize) -> String {
    let Standing { times_as_good, rounds_won, .. } = standing;
    let within = times_as_good.interval.map_or_else(String::new, |interval| {
        let sure = coverage(rounds).unwrap_or(0.0) * 100.0;
        let (low, high) = (figure(interval.low), figure(interval.high));
        format!("{low} to {high} with {sure:.1} % certainty; ")
    });
    format!(
        "{name} is best: {} times as {} as the plain program \
         ({within}better in {rounds_won} of {rounds} rounds).",
        figure(times_as_good.summary.median),
        as_good(by),
    )
}

fn differ(values: &[f64], others: &[f64]) -> bool {
    Ratio::of(values, others)
        .is_some_and(|ratio| matches!(ratio.verdict, Verdict::Less | Verdict::More))
}

/// In "times as ... as".
fn as_good(by: By) -> &'static str {
    match by {
        By::Wall => "fast",
        By::Cpu => "economical",
        By::Metric => "good",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variants whose values are the plain ones, multiplied by a factor for each round.
    fn variants(rounds: usize, factors: &[(&str, &dyn Fn(usize) -> f64)]) -> Vec<Variant> {
        let plain = (0..rounds).map(|round| 10.0 + round as f64);
        let of = |name: &str, factor: &dyn Fn(usize) -> f64| {
            let mut variant = Variant::new(name, Vec::new());
            variant.wall_seconds =
                plain.clone().enumerate().map(|(round, value)| value * factor(round)).collect();
            variant.metric = variant.wall_seconds.clone();
            variant
        };
        let mut variants = vec![of("plain", &|_| 1.0)];
        variants.extend(factors.iter().map(|(name, factor)| of(name, *factor)));
        variants
    }

    fn about(factor: f64) -> impl Fn(usize) -> f64 {
        move |round| factor * (1.0 + 0.001 * (round % 5) as f64)
    }

    fn says(mut variants: Vec<Variant>, by: By, better: Better) -> String {
        assess(&mut variants, by, better);
        answer(&variants, by, variants[0].values(by).len())
    }

    #[test]
    fn the_best_one_is_named_and_those_that_are_as_good() {
        let all = variants(
            11,
            &[
                ("slow", &about(1.3)),
                ("fast", &about(0.5)),
                ("as fast", &about(0.501)),
                ("half as fast", &about(0.75)),
            ],
        );
        let text = says(all, By::Wall, Better::Less);
        assert_eq!(
            text,
            "fast is best: 2.00 times as fast as the plain program (1.99 to 2 with 99.9 % \
             certainty; better in 11 of 11 rounds).\n\
             These rounds show no difference between it and as fast."
        );
    }

    #[test]
    fn a_greater_metric_is_better_if_it_is_said_to_be() {
        let all = || variants(11, &[("much", &about(2.0)), ("little", &about(0.5))]);
        let text = says(all(), By::Metric, Better::More);
        assert!(text.starts_with("much is best: 2.00 times as good as the plain"), "{text}");
        let text = says(all(), By::Metric, Better::Less);
        assert!(text.starts_with("little is best: 2.00 times as good as the plain"), "{text}");
    }

    #[test]
    fn without_a_better_one_it_says_so() {
        let text =
            says(variants(11, &[("a", &about(1.2)), ("b", &about(1.3))]), By::Wall, Better::Less);
        assert_eq!(text, "The plain program is best.");
        let text =
            says(variants(11, &[("a", &about(1.2)), ("b", &about(1.0))]), By::Wall, Better::Less);
        assert_eq!(text, "No flavour is better than the plain program. Within 5 % of it: b.");
        let mut all = variants(11, &[("a", &about(0.5))]);
        all[1].failure = Some("crashed".to_owned());
        assert_eq!(says(all, By::Wall, Better::Less), "No flavour can be compared.");
    }

    #[test]
    fn noise_and_few_rounds_decide_nothing() {
        let noise = |round: usize| if round.is_multiple_of(2) { 0.8 } else { 1.25 };
        let text = says(variants(12, &[("a", &noise)]), By::Wall, Better::Less);
        assert_eq!(
            text,
            "12 rounds show no flavour that is better than the plain program.\n\
             a: undecided; it is 0.800 to 1.25 times as fast as the plain program.\n\
             More rounds may tell (--rounds)."
        );
        let text = says(variants(3, &[("a", &about(0.5))]), By::Wall, Better::Less);
        assert!(text.contains("a: undecided.\nMore rounds may tell"), "{text}");
        // Six of six rounds: once in 32 by chance.
        let text = says(variants(6, &[("a", &about(0.5))]), By::Wall, Better::Less);
        assert!(text.contains("a: undecided; it is 1.99 to 2 times"), "{text}");
    }
}
