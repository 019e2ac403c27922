//! Which variants are compared, which one wins, and how many votes there are.

use super::*;
use crate::harness::Better;
use crate::stats::Summary;
use crate::usage::Usage;

const ROUNDS: usize = 21;

fn metric(name: &str, better: Better, values: Vec<f64>) -> MetricReport {
    MetricReport {
        name: name.to_owned(),
        unit: "ns".to_owned(),
        better,
        summary: Summary::of(&values).unwrap(),
        values,
        ratio: None,
    }
}

fn variant(name: &str, better: Better, value: f64) -> VariantReport {
    VariantReport {
        name: name.to_owned(),
        baseline: None,
        metrics: vec![metric("time", better, vec![value; ROUNDS])],
        cpu: None,
        operations: 1,
        usage: Usage::default(),
    }
}

fn case(variants: Vec<VariantReport>) -> CaseReport {
    CaseReport {
        name: "a case".to_owned(),
        seconds: 1.0,
        rounds: ROUNDS,
        repeated: 0,
        disturbed: 0,
        variants,
    }
}

fn standings_of(case: &CaseReport) -> Vec<Standing> {
    let mut all = Vec::new();
    for whose in Ours::ALL {
        for setting in settings(case) {
            all.extend(Side::new("some", case, whose, setting).standings());
        }
    }
    decide(&mut all);
    all
}

fn shown(all: &[Standing]) -> Vec<(&str, &str, Outcome, f64)> {
    let one = |one: &Standing| (one.outcome, one.factor);
    all.iter()
        .map(|standing| {
            let (outcome, factor) = one(standing);
            (&*standing.ours, &*standing.peer, outcome, factor)
        })
        .collect()
}

fn all(better: Better) -> Vec<Standing> {
    let mut open = variant("parking_lot", better, 1.0);
    for value in open.metrics[0].values.iter_mut().take(10) {
        *value = 2.0;
    }
    standings_of(&case(vec![
        variant("glibc", better, 2.0),
        variant("glibc, PI", better, 9.0),
        variant("std", better, 1.01),
        open,
        variant("waitword", better, 1.0),
        variant("waitword TO", better, 0.1),
        variant("drop-in", better, 3.0),
    ]))
}

#[test]
fn what_a_user_gets_stands_against_peers_and_the_drop_in_against_its_library() {
    let wanted = [
        ("waitword", "glibc", Outcome::Win, 2.0),
        ("waitword", "std", Outcome::Same, 1.01),
        ("waitword", "parking_lot", Outcome::Undecided, 1.0),
        ("drop-in", "glibc", Outcome::Loss, 1.5),
    ];
    assert_eq!(shown(&all(Better::Less)), wanted);
}

#[test]
fn where_more_is_better_it_is_the_other_way_round() {
    let outcomes: Vec<_> = all(Better::More).iter().map(|one| one.outcome).collect();
    let wanted = [Outcome::Loss, Outcome::Same, Outcome::Undecided, Outcome::Win];
    assert_eq!(outcomes, wanted);
    assert!(all(Better::Neither).is_empty());
}

#[test]
fn an_owner_has_one_vote_and_its_best_stands_for_it_against_the_worst_of_ours() {
    let less = Better::Less;
    let standings = standings_of(&case(vec![
        variant("glibc", less, 4.0),
        variant("glibc, prefer writer", less, 2.0),
        variant("C++ std", less, 3.0),
        variant("futex(2)", less, 5.0),
        variant("waitword 32", less, 1.0),
        variant("waitword 64", less, 1.6),
        variant("waitword, writers first", less, 0.1),
    ]));
    let wanted = [
        ("waitword 64", "glibc, prefer writer", Outcome::Win, 1.25),
        ("waitword 64", "futex(2)", Outcome::Win, 3.125),
    ];
    assert_eq!(shown(&standings), wanted);
}

#[test]
fn spinning_is_as_shipped_and_a_setting_is_compared_with_itself() {
    let less = Better::Less;
    let standings = standings_of(&case(vec![
        variant("futex(2), N = 16", less, 2.0),
        variant("futex(2), N = 256", less, 3.0),
        variant("waitword 32, N = 16", less, 1.0),
        variant("waitword 32, N = 256", less, 1.0),
    ]));
    let wanted = [
        ("waitword 32, N = 16", "futex(2), N = 16", Outcome::Win, 2.0),
        ("waitword 32, N = 256", "futex(2), N = 256", Outcome::Win, 3.0),
    ];
    assert_eq!(shown(&standings), wanted);
    assert_eq!(standings[0].case, "a case, N = 16");
    assert!(is_as_shipped("waitword 32, spin on") && !is_as_shipped("waitword 32, spin off"));
    assert!(is_as_shipped("drop-in, prefer writer") && !is_as_shipped("glibc"));
}

#[test]
fn cpu_and_the_tail_have_a_vote_and_other_figures_have_none() {
    let less = Better::Less;
    let with_more = |name, value: f64| {
        let mut variant = variant(name, less, value);
        for more in ["fairness", "wait p99.9"] {
            variant.metrics.push(metric(more, less, vec![value; ROUNDS]));
        }
        variant.cpu = Some(metric(CPU, less, vec![value; ROUNDS]));
        variant
    };
    let standings = standings_of(&case(vec![with_more("glibc", 2.0), with_more("waitword", 1.0)]));
    let figures: Vec<Figure> = standings.iter().map(|one| one.figure).collect();
    assert_eq!(figures, [Figure::Speed, Figure::Other, Figure::Tail, Figure::Cpu]);
}

#[test]
fn one_difference_among_many_that_are_none_must_be_a_clear_one() {
    let of = |ours: Vec<f64>| {
        let mut variants = vec![variant("waitword", Better::Less, 1.0)];
        variants[0].metrics[0].values = ours;
        variants.push(variant("glibc", Better::Less, 1.0));
        standings_of(&case(variants)).remove(0)
    };
    // 17 of 21 on one side: its interval excludes 1.
    let mut weak = vec![0.9; ROUNDS];
    weak[..4].fill(1.1);
    let weak = of(weak);
    assert_eq!(weak.outcome, Outcome::Win);
    let mut noise = vec![0.8; ROUNDS];
    noise[..10].fill(1.2);
    let noise = of(noise);
    let mut all = vec![noise; 50];
    all.extend([weak, of(vec![0.5; ROUNDS])]);
    decide(&mut all);
    let outcomes: Vec<Outcome> = all[50..].iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [Outcome::Undecided, Outcome::Win]);
}
