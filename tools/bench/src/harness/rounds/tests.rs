//! Rounds of cases that are made up: which are kept, in which order, what is computed.

use super::super::failure::check;
use super::*;
use crate::settings::Settings;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn context(rounds: usize) -> Context {
    let settings = Settings { rounds, ..Settings::default() };
    Context::new(settings, Arc::default())
}

fn measured(value: f64) -> Measured {
    Measured { values: vec![value], operations: 1, usage: Usage::default() }
}

/// Answers each query with the next of these values, and with "quiet" after the last.
struct Scripted<I>(RefCell<I>);

impl<I: Iterator<Item = bool>> Load for Scripted<I> {
    fn begin(&mut self) {}
    fn can_tell(&self) -> bool {
        true
    }
    fn was_disturbed(&self) -> bool {
        self.0.borrow_mut().next().unwrap_or(false)
    }
    fn wait(&mut self, _: &Context) {}
}

/// A case whose only contender returns the number of the round.
fn counting() -> Case {
    Case::new("counting", TIME, 1, |_| {
        let mut round = 0.0;
        Ok(vec![Contender::named("counts", move |_| {
            round += 1.0;
            Ok(measured(round))
        })])
    })
}

fn strict(rounds: usize) -> Context {
    let mut context = context(rounds);
    context.settings.keep_disturbed = false;
    context
}

#[test]
fn a_disturbed_round_is_discarded_and_repeated() {
    let load = Scripted(RefCell::new([false, true, true, false].into_iter()));
    let (report, failure) = run_beside(load, counting(), &strict(3), &mut |_| ());
    let report = report.unwrap();
    assert_eq!(failure, None);
    assert_eq!((report.repeated, report.disturbed, report.rounds), (2, 0, 3));
    assert_eq!(report.variants[0].metrics[0].values, [1.0, 4.0, 5.0]);
}

#[test]
fn a_case_that_gets_no_quiet_rounds_is_not_measured() {
    let load = Scripted(RefCell::new([false].into_iter().chain(std::iter::repeat(true))));
    let (report, failure) = run_beside(load, counting(), &strict(3), &mut |_| ());
    assert_eq!(report, None);
    let Some(Failure::Disturbed(message)) = failure else {
        panic!("{failure:?}");
    };
    assert_eq!(message, "counting: 1 of 3 rounds were quiet, and 6 were not");
}

#[test]
fn disturbed_rounds_are_kept_and_counted_on_request() {
    let load = Scripted(RefCell::new(std::iter::repeat(true)));
    let mut context = context(3);
    context.settings.keep_disturbed = true;
    let (report, failure) = run_beside(load, counting(), &context, &mut |_| ());
    let report = report.unwrap();
    assert_eq!(failure, None);
    assert_eq!((report.repeated, report.disturbed, report.rounds), (0, 3, 3));
}

const TIME: &[Metric] = &[Metric::less("", "ns")];

/// The order in which contenders were measured, in a case with this name.
fn order(name: &str, seed: u64, rounds: usize) -> Vec<String> {
    let log: Rc<RefCell<Vec<String>>> = Rc::default();
    let seen = log.clone();
    let case = Case::new(name, TIME, 3, move |_| {
        let contender = |name: &'static str| {
            let log = log.clone();
            Contender::named(name, move |_| {
                log.borrow_mut().push(name.to_owned());
                Ok(measured(1.0))
            })
        };
        Ok(["A", "B", "C"].map(contender).into())
    });
    let mut context = context(rounds);
    context.settings.seed = seed;
    let (report, failure) = run_case(case, &context, &mut |_| ());
    assert_eq!(failure, None);
    assert_eq!(report.unwrap().rounds, rounds);
    let seen = seen.borrow();
    seen.chunks(3).map(|round| round.concat()).collect()
}

#[test]
fn each_round_has_all_in_an_order_of_its_own() {
    let rounds = order("order", 1, 40);
    let orders: std::collections::BTreeSet<&str> = rounds.iter().map(|one| &one[..]).collect();
    let all = ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"];
    assert!(orders.into_iter().eq(all), "{rounds:?}");
    assert_eq!(rounds, order("order", 1, 40), "a seed gives the same again");
    assert_ne!(rounds, order("order", 2, 40));
    assert_ne!(rounds, order("other", 1, 40));
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
    assert_eq!(best.metrics[0].values, [9.0, 7.0]);
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
    assert_eq!(failure, Some(Failure::new("some case: bad: lost a wake-up")));
    assert!(report.is_none_or(|report| report.rounds <= 2));
}

#[test]
fn the_user_can_stop() {
    let stop = Arc::new(AtomicBool::new(true));
    let context = Context::new(Settings::default(), stop);
    let case =
        Case::new("stopped", TIME, 1, |_| Ok(vec![Contender::named("never", |_| unreachable!())]));
    let (report, failure) = run_case(case, &context, &mut |_| ());
    assert!(report.is_none());
    assert_eq!(failure, Some(Failure::Stopped));
}
