//! Rounds: every variant of a case once, one after the other, in an order that turns from round to round.
//!
//! A round during which somebody else used the machine is thrown away and done again, as often as the case
//! has rounds; if the load does not go away, the disturbed rounds are kept from then on, and the report
//! says how many.

use crate::report::{CaseReport, MetricReport, VariantReport};
use crate::run::Settings;
use crate::stats::Summary;
use crate::usage::{LoadWatch, Usage};
use core::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Why a measurement came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The workload's own check failed, or it could not be set up.
    Failed(String),
    /// The user wants to stop.
    Stopped,
}

impl Failure {
    /// With this message.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => f.write_str(message),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// Fails unless `condition` holds: how a workload checks its own work.
///
/// # Errors
/// [`Failure::Failed`], with the message, if it does not hold.
pub fn check(condition: bool, message: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition {
        Ok(())
    } else {
        Err(Failure::new(message()))
    }
}

/// What a measurement knows of the run that it is part of.
#[derive(Clone, Debug)]
pub struct Context {
    /// What the user asked for.
    pub settings: Settings,
    stop: Arc<AtomicBool>,
    progress: Arc<AtomicU64>,
}

impl Context {
    /// A run with these settings, which ends early when `stop` becomes true.
    pub fn new(settings: Settings, stop: Arc<AtomicBool>) -> Self {
        Self {
            settings,
            stop,
            progress: Arc::default(),
        }
    }

    /// Tells the watchdog that something has got done.
    pub fn progressed(&self) {
        self.progress.fetch_add(1, Relaxed);
    }

    /// How often something got done so far.
    pub fn progress(&self) -> u64 {
        self.progress.load(Relaxed)
    }

    /// Whether the user wants to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// What a variant's figures are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Short; empty if the case has but one.
    pub name: &'static str,
    /// For instance `ns`.
    pub unit: &'static str,
}

/// One measurement of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// One value for each metric of the case.
    pub values: Vec<f64>,
    /// How many operations the usage below is for.
    pub operations: u64,
    /// What they cost the process.
    pub usage: Usage,
}

/// One contender in a case: anything that can be measured in that case's metrics.
pub trait Variant {
    /// As the report calls it.
    fn name(&self) -> String;

    /// Does the work once, checks it, and says what it took.
    ///
    /// # Errors
    /// If the work was not done as it should be, or the user wants to stop.
    fn measure(&mut self, context: &Context) -> Result<Measured, Failure>;
}

/// A [`Variant`] made of a name and a closure.
pub struct Named<F>(pub String, pub F);

impl<F: FnMut(&Context) -> Result<Measured, Failure>> Variant for Named<F> {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn measure(&mut self, context: &Context) -> Result<Measured, Failure> {
        (self.1)(context)
    }
}

/// A variant, and which of the case's variants it is compared with (itself: none).
pub struct Contender {
    /// What is measured.
    pub variant: Box<dyn Variant>,
    /// Index of the variant that its ratio is taken to.
    pub baseline: usize,
}

impl Contender {
    /// Compared with the case's first variant.
    pub fn new(variant: impl Variant + 'static) -> Self {
        Self::against(0, variant)
    }

    /// Compared with the variant of this index.
    pub fn against(baseline: usize, variant: impl Variant + 'static) -> Self {
        Self {
            variant: Box::new(variant),
            baseline,
        }
    }

    /// Made of a name and a closure, compared with the case's first variant.
    pub fn named(
        name: impl Into<String>,
        body: impl FnMut(&Context) -> Result<Measured, Failure> + 'static,
    ) -> Self {
        Self::new(Named(name.into(), body))
    }
}

type Prepare = dyn FnOnce(&Context) -> Result<Vec<Contender>, Failure>;

/// Some variants doing the same work.
pub struct Case {
    /// Which work.
    pub name: String,
    /// In what it is measured.
    pub metrics: Vec<Metric>,
    /// How many variants there will be.
    pub contenders: usize,
    /// Sets them up: threads and memory are made only when the case's turn has come.
    pub prepare: Box<Prepare>,
}

impl Case {
    /// A case of this name, whose `contenders` variants are set up by `prepare`.
    pub fn new(
        name: impl Into<String>,
        metrics: &[Metric],
        contenders: usize,
        prepare: impl FnOnce(&Context) -> Result<Vec<Contender>, Failure> + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            metrics: metrics.to_vec(),
            contenders,
            prepare: Box::new(prepare),
        }
    }

    /// How many measurements it takes, if none is repeated.
    pub fn steps(&self, settings: &Settings) -> u64 {
        (self.contenders * settings.rounds) as u64
    }
}

/// The whole rounds of a case, as far as they got.
struct Rounds {
    /// `kept[round][variant]`
    kept: Vec<Vec<Measured>>,
    repeated: usize,
    disturbed: usize,
}

/// Measures all variants of a case, interleaved. What was measured before a failure is reported with it.
pub fn run_case(
    case: Case,
    context: &Context,
    step: &mut dyn FnMut(),
) -> (Option<CaseReport>, Option<Failure>) {
    let mut contenders = match (case.prepare)(context) {
        Ok(contenders) => contenders,
        Err(failure) => return (None, Some(failure)),
    };
    debug_assert_eq!(contenders.len(), case.contenders, "{}", case.name);
    let (rounds, failure) = run_rounds(&mut contenders, context, step);
    let failure = failure.map(|failure| match failure {
        Failure::Failed(message) => Failure::Failed(format!("{}: {message}", case.name)),
        Failure::Stopped => Failure::Stopped,
    });
    if rounds.kept.is_empty() {
        return (None, failure);
    }
    let report = summarize(case.name, &case.metrics, &contenders, &rounds);
    (Some(report), failure)
}

fn run_rounds(
    contenders: &mut [Contender],
    context: &Context,
    step: &mut dyn FnMut(),
) -> (Rounds, Option<Failure>) {
    let wanted = context.settings.rounds;
    let mut rounds = Rounds {
        kept: Vec::new(),
        repeated: 0,
        disturbed: 0,
    };
    while rounds.kept.len() < wanted {
        let turn = rounds.kept.len() + rounds.repeated;
        let watch = LoadWatch::start();
        let round = match run_round(contenders, turn, context) {
            Ok(round) => round,
            Err(failure) => return (rounds, Some(failure)),
        };
        if watch.was_disturbed() {
            if rounds.repeated < wanted {
                rounds.repeated += 1;
                continue;
            }
            rounds.disturbed += 1;
        }
        rounds.kept.push(round);
        for _ in 0..contenders.len() {
            step();
        }
    }
    (rounds, None)
}

/// One measurement of each, starting with number `turn` (modulo), in the order of the contenders.
fn run_round(
    contenders: &mut [Contender],
    turn: usize,
    context: &Context,
) -> Result<Vec<Measured>, Failure> {
    let count = contenders.len();
    let mut round: Vec<Option<Measured>> = vec![None; count];
    for place in 0..count {
        if context.is_stopped() {
            return Err(Failure::Stopped);
        }
        let index = (place + turn) % count;
        let variant = &mut contenders[index].variant;
        let measured = variant.measure(context).map_err(|failure| match failure {
            Failure::Failed(message) => Failure::Failed(format!("{}: {message}", variant.name())),
            Failure::Stopped => Failure::Stopped,
        })?;
        round[index] = Some(measured);
        context.progressed();
    }
    Ok(round.into_iter().flatten().collect())
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
                ratio: compared
                    .then(|| Summary::of_ratios(&mine, &theirs))
                    .flatten(),
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
        repeated: rounds.repeated,
        disturbed: rounds.disturbed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

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

    const TIME: &[Metric] = &[Metric {
        name: "",
        unit: "ns",
    }];

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
        let (report, failure) = run_case(case, &context(3), &mut || ());
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
        let report = run_case(case, &context(4), &mut || ()).0.unwrap();
        assert_eq!(report.variants[0].baseline, None);
        assert_eq!(report.variants[0].metrics[0].ratio, None);
        let ratio = report.variants[1].metrics[0].ratio.unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (0.5, 0.5, 0.5));
        assert_eq!(report.variants[1].baseline.as_deref(), Some("base"));
    }

    #[test]
    fn a_failure_names_case_and_variant_and_keeps_the_whole_rounds_before_it() {
        let case = Case::new("some case", TIME, 1, |_| {
            let mut left = 2;
            Ok(vec![Contender::named("bad", move |_| {
                left -= 1;
                check(left >= 0, || "lost a wake-up".to_owned())?;
                Ok(measured(1.0))
            })])
        });
        let (report, failure) = run_case(case, &context(50), &mut || ());
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
        let (report, failure) = run_case(case, &context, &mut || ());
        assert!(report.is_none());
        assert_eq!(failure, Some(Failure::Stopped));
    }
}
