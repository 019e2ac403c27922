//! Rounds. In each round every variant of a case is measured once, one after the other, in a newly
//! drawn order.
//!
//! A rotating order (A B C, B C A) preserves which variant follows which, and with it what one
//! leaves behind for the next: warm caches, or a CPU clock that was slowed down. Therefore the
//! order is drawn from the run's seed and the case's name. The same seed gives the same order.
//!
//! A round during which other processes used the machine is discarded and repeated. (Short rounds
//! are judged together: the kernel counts in ticks, and some ticks must have passed.) A case that
//! does not get its quiet rounds is not measured, and the report names it. Disturbed rounds are
//! kept only if the user asks for it, and the report says how many there were.

use super::case::Case;
use super::contender::{Contender, only};
use super::context::Context;
use super::failure::Failure;
use super::metric::{Measured, Metric};
use super::report::{CPU, CaseReport, MetricReport, VariantReport};
use crate::stats::{Ratio, Summary};
use crate::usage::{LoadWatch, Usage};
use fastrand::Rng;
use std::time::{Duration, Instant};

/// This many rounds may be discarded even if fewer were requested.
const THROWN_AWAY: usize = 5;
/// How long each case waits in total for other load to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The complete rounds of a case so far.
#[derive(Default)]
struct Rounds {
    /// `kept[round][variant]`
    kept: Vec<Vec<Measured>>,
    repeated: usize,
    disturbed: usize,
}

/// Detects whether other processes have used the machine.
trait Load {
    /// Starts a new observation.
    fn begin(&mut self);
    /// Whether the observation is long enough to decide.
    fn can_tell(&self) -> bool;
    /// Whether other processes used the machine during the observation.
    fn was_disturbed(&self) -> bool;
    /// Waits for other load to end.
    fn wait(&mut self, context: &Context);
}

/// The actual load of the machine.
struct Watched {
    watch: LoadWatch,
    patience: Duration,
}

impl Load for Watched {
    fn begin(&mut self) {
        self.watch = LoadWatch::start();
    }

    fn can_tell(&self) -> bool {
        self.watch.can_tell()
    }

    fn was_disturbed(&self) -> bool {
        self.watch.was_disturbed()
    }

    fn wait(&mut self, context: &Context) {
        const LOOK: Duration = Duration::from_millis(300);
        while self.patience >= LOOK && !context.is_stopped() {
            self.begin();
            std::thread::sleep(LOOK);
            self.patience -= LOOK;
            context.progressed();
            if !self.was_disturbed() {
                return;
            }
        }
    }
}

/// Measures all variants of a case that the user wants, interleaved. After a failure, the earlier
/// measurements are reported together with it. `progress` is called with the completed fraction of
/// the case.
pub fn run_case(
    case: Case,
    context: &Context,
    progress: &mut dyn FnMut(f64),
) -> (Option<CaseReport>, Option<Failure>) {
    let load = Watched { watch: LoadWatch::start(), patience: PATIENCE };
    run_beside(load, case, context, progress)
}

fn run_beside(
    load: impl Load,
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
    let (rounds, failure) = run_rounds(load, &case.name, &mut contenders, context, progress);
    let failure = failure.map(|failure| match failure {
        Failure::Failed(message) => Failure::Failed(format!("{}: {message}", case.name)),
        Failure::Disturbed(message) => Failure::Disturbed(format!("{}: {message}", case.name)),
        other => other,
    });
    if rounds.kept.is_empty() || matches!(failure, Some(Failure::Disturbed(_))) {
        return (None, failure);
    }
    let mut report = summarize(case.name, &case.metrics, &contenders, &rounds);
    report.seconds = began.elapsed().as_secs_f64();
    (Some(report), failure)
}

fn run_rounds(
    mut load: impl Load,
    case: &str,
    contenders: &mut [Contender],
    context: &Context,
    progress: &mut dyn FnMut(f64),
) -> (Rounds, Option<Failure>) {
    let wanted = context.settings.rounds;
    let mut rounds = Rounds::default();
    let mut orders = orders(context.settings.seed, case);
    let mut unjudged = 0;
    load.begin();
    while rounds.kept.len() < wanted {
        let so_far = rounds.kept.len() as f64;
        let mut of_round = |part: f64| progress((so_far + part) / wanted as f64);
        let round = match run_round(case, contenders, &mut orders, context, &mut of_round) {
            Ok(round) => round,
            Err(failure) => {
                // The rounds since the last check may have been disturbed.
                if !context.settings.keep_disturbed {
                    rounds.kept.truncate(rounds.kept.len() - unjudged);
                }
                return (rounds, Some(failure));
            }
        };
        rounds.kept.push(round);
        unjudged += 1;
        if !load.can_tell() && rounds.kept.len() < wanted {
            continue;
        }
        if load.was_disturbed() {
            if context.settings.keep_disturbed {
                rounds.disturbed += unjudged;
            } else {
                rounds.repeated += unjudged;
                rounds.kept.truncate(rounds.kept.len() - unjudged);
                if rounds.repeated > wanted.max(THROWN_AWAY) {
                    return rounds.given_up(wanted);
                }
                load.wait(context);
            }
        }
        load.begin();
        unjudged = 0;
    }
    (rounds, None)
}

impl Rounds {
    fn given_up(self, wanted: usize) -> (Self, Option<Failure>) {
        let failure = Failure::Disturbed(format!(
            "{} of {wanted} rounds were quiet, and {} were not",
            self.kept.len(),
            self.repeated
        ));
        (self, Some(failure))
    }
}

/// The random generator for the orders of a case's rounds; each case has its own.
fn orders(seed: u64, case: &str) -> Rng {
    let mixed =
        case.bytes().fold(seed, |seed, byte| seed.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    Rng::with_seed(mixed)
}

/// Measures each contender once, in a newly drawn order. The results are in the order of the
/// contenders.
fn run_round(
    case: &str,
    contenders: &mut [Contender],
    orders: &mut Rng,
    context: &Context,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Measured>, Failure> {
    let count = contenders.len();
    let mut round: Vec<Option<Measured>> = vec![None; count];
    let mut order: Vec<usize> =
        (0..count).filter(|&index| contenders[index].best_of.is_empty()).collect();
    orders.shuffle(&mut order);
    for (place, &index) in order.iter().enumerate() {
        if context.is_stopped() {
            return Err(Failure::Stopped);
        }
        let variant = &mut contenders[index].variant;
        context.measures(format!("{case}: {}", variant.name()));
        let measured = variant.measure(context).map_err(|failure| match failure {
            Failure::Failed(message) => Failure::Failed(format!("{}: {message}", variant.name())),
            other => other,
        })?;
        round[index] = Some(measured);
        context.progressed();
        progress((place + 1) as f64 / order.len() as f64);
    }
    for (index, contender) in contenders.iter().enumerate() {
        let best = best_of(contender.best_of.iter().map(|&other| &round[other]));
        round[index] = round[index].take().or(best);
    }
    Ok(round.into_iter().flatten().collect())
}

/// The greatest value in each metric; `None` if there are no measurements.
fn best_of<'a>(measured: impl Iterator<Item = &'a Option<Measured>>) -> Option<Measured> {
    let mut values: Option<Vec<f64>> = None;
    for measured in measured.flatten() {
        let best = values.get_or_insert_with(|| measured.values.clone());
        for (best, value) in best.iter_mut().zip(&measured.values) {
            *best = best.max(*value);
        }
    }
    Some(Measured { values: values?, operations: 0, usage: Usage::default() })
}

fn summarize(
    name: String,
    metrics: &[Metric],
    contenders: &[Contender],
    rounds: &Rounds,
) -> CaseReport {
    let has_cpu = metrics.iter().any(|metric| metric.name == CPU);
    let values = |variant: usize, metric: usize| -> Vec<f64> {
        let of_round = |round: &Vec<Measured>| round[variant].values[metric];
        rounds.kept.iter().map(of_round).collect()
    };
    let cpu = |variant: usize| -> Option<Vec<f64>> {
        let of_round = |round: &Vec<Measured>| {
            let Measured { operations, usage, .. } = round[variant];
            (operations > 0).then(|| usage.cpu_seconds * 1e9 / operations as f64)
        };
        rounds.kept.iter().map(of_round).collect()
    };
    let variants = contenders.iter().enumerate().map(|(index, contender)| {
        let baseline = contender.baseline;
        let compared = baseline != index;
        let report = |metric: &Metric, mine: Vec<f64>, theirs: Option<Vec<f64>>| MetricReport {
            name: metric.name.to_owned(),
            unit: metric.unit.to_owned(),
            summary: Summary::of(&mine).expect("at least one round"),
            better: metric.better,
            ratio: theirs.and_then(|theirs| Ratio::of(&mine, &theirs)),
            values: mine,
        };
        let metrics = metrics.iter().enumerate().map(|(number, metric)| {
            let theirs = compared.then(|| values(baseline, number));
            report(metric, values(index, number), theirs)
        });
        let mut usage = Usage::default();
        let mut operations = 0;
        for round in &rounds.kept {
            usage += round[index].usage;
            operations += round[index].operations;
        }
        let cpu = cpu(index).filter(|_| !has_cpu).map(|mine| {
            let theirs = if compared { cpu(baseline) } else { None };
            report(&Metric::less(CPU, "ns/op"), mine, theirs)
        });
        VariantReport {
            name: contender.variant.name(),
            baseline: compared.then(|| contenders[baseline].variant.name()),
            metrics: metrics.collect(),
            cpu,
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
mod tests;
