//! Rounds: every variant of a case once, one after the other, in an order that turns from round to round.
//!
//! A round during which somebody else used the machine is thrown away and done again, as often as the case
//! has rounds (short rounds together: the kernel counts in ticks, of which there must be some); if the load does not go away, the disturbed rounds are kept from then on, and the report
//! says how many.

use super::contender::only;
use super::{Case, Contender, Context, Failure, Measured, Metric};
use crate::report::{CaseReport, MetricReport, VariantReport};
use crate::stats::{Ratio, Summary};
use crate::usage::{LoadWatch, Usage};
use std::time::Instant;

/// The whole rounds of a case, as far as they got.
struct Rounds {
    /// `kept[round][variant]`
    kept: Vec<Vec<Measured>>,
    repeated: usize,
    disturbed: usize,
}

impl Rounds {
    /// The last so many were disturbed: they are to be done again, unless that was done often enough.
    fn disturb(&mut self, last: usize, wanted: usize) {
        if self.repeated < wanted {
            self.repeated += last;
            self.kept.truncate(self.kept.len() - last);
        } else {
            self.disturbed += last;
        }
    }
}

/// Measures all variants of a case that the user wants, interleaved. What was measured before a failure is reported
/// with it. `progress` is told which part of the case has been done.
pub fn run_case(
    case: Case,
    context: &Context,
    progress: &mut dyn FnMut(f64),
) -> (Option<CaseReport>, Option<Failure>) {
    let began = Instant::now();
    let contenders = match (case.prepare)(context) {
        Ok(contenders) => contenders,
        Err(failure) => return (None, Some(failure)),
    };
    debug_assert_eq!(contenders.len(), case.contenders, "{}", case.name);
    let mut contenders = only(contenders, |name| context.settings.wants_variant(name));
    let (rounds, failure) = run_rounds(&case.name, &mut contenders, context, progress);
    let failure = failure.map(|failure| match failure {
        Failure::Failed(message) => Failure::Failed(format!("{}: {message}", case.name)),
        other => other,
    });
    if rounds.kept.is_empty() {
        return (None, failure);
    }
    let mut report = summarize(case.name, &case.metrics, &contenders, &rounds);
    report.seconds = began.elapsed().as_secs_f64();
    (Some(report), failure)
}

fn run_rounds(
    case: &str,
    contenders: &mut [Contender],
    context: &Context,
    progress: &mut dyn FnMut(f64),
) -> (Rounds, Option<Failure>) {
    let wanted = context.settings.rounds;
    let mut rounds = Rounds {
        kept: Vec::new(),
        repeated: 0,
        disturbed: 0,
    };
    let (mut watch, mut unjudged) = (LoadWatch::start(), 0);
    while rounds.kept.len() < wanted {
        let turn = rounds.kept.len() + rounds.repeated;
        let so_far = rounds.kept.len() as f64;
        let mut of_round = |part: f64| progress((so_far + part) / wanted as f64);
        let round = match run_round(case, contenders, turn, context, &mut of_round) {
            Ok(round) => round,
            Err(failure) => return (rounds, Some(failure)),
        };
        rounds.kept.push(round);
        unjudged += 1;
        if !watch.can_tell() && rounds.kept.len() < wanted {
            continue;
        }
        if watch.was_disturbed() {
            rounds.disturb(unjudged, wanted);
        }
        (watch, unjudged) = (LoadWatch::start(), 0);
    }
    (rounds, None)
}

/// One measurement of each, starting with number `turn` (modulo), in the order of the contenders.
fn run_round(
    case: &str,
    contenders: &mut [Contender],
    turn: usize,
    context: &Context,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Measured>, Failure> {
    let count = contenders.len();
    let mut round: Vec<Option<Measured>> = vec![None; count];
    for place in 0..count {
        if context.is_stopped() {
            return Err(Failure::Stopped);
        }
        let index = (place + turn) % count;
        if !contenders[index].best_of.is_empty() {
            continue;
        }
        let variant = &mut contenders[index].variant;
        context.measures(format!("{case}: {}", variant.name()));
        let measured = variant.measure(context).map_err(|failure| match failure {
            Failure::Failed(message) => Failure::Failed(format!("{}: {message}", variant.name())),
            other => other,
        })?;
        round[index] = Some(measured);
        context.progressed();
        progress((place + 1) as f64 / count as f64);
    }
    for (index, contender) in contenders.iter().enumerate() {
        let best = best_of(contender.best_of.iter().map(|&other| &round[other]));
        round[index] = round[index].take().or(best);
    }
    Ok(round.into_iter().flatten().collect())
}

/// In each metric the greatest of these; `None` if there are none.
fn best_of<'a>(measured: impl Iterator<Item = &'a Option<Measured>>) -> Option<Measured> {
    let mut values: Option<Vec<f64>> = None;
    for measured in measured.flatten() {
        let best = values.get_or_insert_with(|| measured.values.clone());
        for (best, value) in best.iter_mut().zip(&measured.values) {
            *best = best.max(*value);
        }
    }
    Some(Measured {
        values: values?,
        operations: 0,
        usage: Usage::default(),
    })
}

fn summarize(
    name: String,
    metrics: &[Metric],
    contenders: &[Contender],
    rounds: &Rounds,
) -> CaseReport {
    let values = |variant: usize, metric: usize| -> Vec<f64> {
        let of_round = |round: &Vec<Measured>| round[variant].values[metric];
        rounds.kept.iter().map(of_round).collect()
    };
    let variants = contenders.iter().enumerate().map(|(index, contender)| {
        let compared = contender.baseline != index;
        let metrics = metrics.iter().enumerate().map(|(number, metric)| {
            let mine = values(index, number);
            let theirs = values(contender.baseline, number);
            MetricReport {
                name: metric.name.to_owned(),
                unit: metric.unit.to_owned(),
                summary: Summary::of(&mine).expect("at least one round"),
                better: metric.better,
                ratio: compared.then(|| Ratio::of(&mine, &theirs)).flatten(),
                values: mine,
            }
        });
        let mut usage = Usage::default();
        let mut operations = 0;
        for round in &rounds.kept {
            usage += round[index].usage;
            operations += round[index].operations;
        }
        VariantReport {
            name: contender.variant.name(),
            baseline: compared.then(|| contenders[contender.baseline].variant.name()),
            metrics: metrics.collect(),
            operations,
            usage,
        }
    });
    CaseReport {
        name,
        variants: variants.collect(),
        rounds: rounds.kept.len(),
        seconds: 0.0,
        repeated: rounds.repeated,
        disturbed: rounds.disturbed,
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use crate::run::Settings;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn context(rounds: usize) -> Context {
        let settings = Settings {
            rounds,
            ..Settings::default()
        };
        Context::new(settings, Arc::default())
    }

    fn measured(value: f64) -> Measured {
        Measured {
            values: vec![value],
            operations: 1,
            usage: Usage::default(),
        }
    }

    #[test]
    fn disturbed_rounds_are_done_again_until_that_was_often_enough() {
        let mut rounds = Rounds {
            kept: (0..5)
                .map(|value| vec![measured(f64::from(value))])
                .collect(),
            repeated: 0,
            disturbed: 0,
        };
        rounds.disturb(2, 3);
        assert_eq!(
            (rounds.kept.len(), rounds.repeated, rounds.disturbed),
            (3, 2, 0)
        );
        assert_eq!(rounds.kept[2][0].values, [2.0], "the last ones go");
        rounds.disturb(2, 3);
        rounds.disturb(1, 3);
        assert_eq!(
            (rounds.kept.len(), rounds.repeated, rounds.disturbed),
            (1, 4, 1)
        );
    }

    const TIME: &[Metric] = &[Metric::less("", "ns")];

    #[test]
    fn variants_are_interleaved_and_the_first_place_goes_round() {
        let log: Rc<RefCell<String>> = Rc::default();
        let seen = log.clone();
        let case = Case::new("order", TIME, 3, move |_| {
            let contender = |name: &'static str| {
                let log = log.clone();
                Contender::named(name, move |_| {
                    log.borrow_mut().push_str(name);
                    Ok(measured(1.0))
                })
            };
            Ok(["A", "B", "C"].map(contender).into())
        });
        let (report, failure) = run_case(case, &context(3), &mut |_| ());
        assert_eq!(failure, None);
        // A round is repeated if this machine is busy: the pattern holds all the same.
        assert!("ABCBCACABABCBCACAB".starts_with(seen.borrow().as_str()));
        assert_eq!(report.unwrap().rounds, 3);
    }

    #[test]
    fn ratios_are_to_the_baseline_of_the_same_round() {
        let case = Case::new("ratio", TIME, 2, |_| {
            let mut round = 0.0;
            let mut other = 0.0;
            Ok(vec![
                Contender::named("base", move |_| {
                    round += 10.0;
                    Ok(measured(round))
                }),
                Contender::named("half", move |_| {
                    other += 5.0;
                    Ok(measured(other))
                }),
            ])
        });
        let report = run_case(case, &context(4), &mut |_| ()).0.unwrap();
        assert_eq!(report.variants[0].baseline, None);
        assert_eq!(report.variants[0].metrics[0].ratio, None);
        let ratio = report.variants[1].metrics[0].ratio.unwrap().summary;
        assert_eq!((ratio.min, ratio.median, ratio.max), (0.5, 0.5, 0.5));
        assert_eq!(report.variants[1].baseline.as_deref(), Some("base"));
    }

    #[test]
    fn the_best_of_some_is_of_the_same_round_and_is_not_measured() {
        let case = Case::new("best", TIME, 4, |_| {
            let contender = |name: &str, values: [f64; 2]| {
                let mut rounds = values.into_iter().cycle();
                Contender::named(name, move |_| Ok(measured(rounds.next().unwrap_or(0.0))))
            };
            Ok(vec![
                contender("early", [9.0, 1.0]),
                contender("late", [3.0, 7.0]),
                contender("out of the race", [100.0, 100.0]),
                Contender::best_of("best of two", vec![0, 1]),
            ])
        });
        let report = run_case(case, &context(2), &mut |_| ()).0.unwrap();
        let best = &report.variants[3];
        // A round is repeated if this machine is busy: two that follow each other, whichever.
        let values = &best.metrics[0].values;
        assert!([[9.0, 7.0], [7.0, 9.0]].iter().any(|pair| values == pair));
        assert_eq!(best.name, "best of two");
        assert_eq!(best.operations, 0);
    }

    #[test]
    fn a_failure_names_case_and_variant_and_keeps_the_whole_rounds_before_it() {
        let case = Case::new("some case", TIME, 1, |_| {
            let mut left = 2;
            Ok(vec![Contender::named("bad", move |context: &Context| {
                assert_eq!(context.measured(), "some case: bad");
                left -= 1;
                check(left >= 0, || "lost a wake-up".to_owned())?;
                Ok(measured(1.0))
            })])
        });
        let (report, failure) = run_case(case, &context(50), &mut |_| ());
        assert_eq!(
            failure,
            Some(Failure::new("some case: bad: lost a wake-up"))
        );
        assert!(report.is_none_or(|report| report.rounds <= 2));
    }

    #[test]
    fn the_user_can_stop() {
        let stop = Arc::new(AtomicBool::new(true));
        let context = Context::new(Settings::default(), stop);
        let case = Case::new("stopped", TIME, 1, |_| {
            Ok(vec![Contender::named("never", |_| unreachable!())])
        });
        let (report, failure) = run_case(case, &context, &mut |_| ());
        assert!(report.is_none());
        assert_eq!(failure, Some(Failure::Stopped));
    }
}
