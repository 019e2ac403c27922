//! Turns cases that differ only in their number of threads into curves over that number.
//!
//! The number is part of a case's name: `t = 16, L = 5, D = 1` and `n = 200, 25 rounds, mutex kept`
//! have 16 and 200 threads. The number of rounds depends on the threads, so it is not part of what
//! distinguishes two kinds of cases.

use crate::plot::axis::Axis;
use crate::plot::{Caption, Line, Lines, Point};
use waitword_bench::harness::Better;
use waitword_bench::report::CaseReport;

/// A plot for each kind of cases that was measured with two or more numbers of threads.
pub(crate) fn of(cases: &[CaseReport]) -> Vec<Lines> {
    let mut kinds: Vec<(String, Vec<(f64, &CaseReport)>)> = Vec::new();
    for case in cases {
        let Some((threads, kind)) = threads_and_kind(&case.name) else {
            continue;
        };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, cases)) => cases.push((threads, case)),
            None => kinds.push((kind, vec![(threads, case)])),
        }
    }
    kinds.into_iter().filter_map(|(kind, cases)| curve(&kind, cases)).collect()
}

/// The number of threads, and the rest of the name.
pub(crate) fn threads_and_kind(name: &str) -> Option<(f64, String)> {
    let mut parts = name.split(", ");
    let (letter, number) = parts.next()?.split_once(" = ")?;
    let threads: u32 = number.parse().ok()?;
    let is_rounds = |part: &&str| {
        part.strip_suffix(" rounds").is_some_and(|number| number.parse::<u64>().is_ok())
    };
    let rest: Vec<_> = parts.filter(|part| !is_rounds(part)).collect();
    (matches!(letter, "t" | "n") && threads > 0).then(|| (f64::from(threads), rest.join(", ")))
}

fn curve(kind: &str, mut cases: Vec<(f64, &CaseReport)>) -> Option<Lines> {
    cases.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    cases.dedup_by_key(|(threads, _)| *threads);
    let metric = cases.first()?.1.variants.first()?.metrics.first()?;
    if cases.len() < 2 {
        return None;
    }
    let mut lines: Vec<Line> = Vec::new();
    for (threads, case) in &cases {
        for variant in &case.variants {
            let Some(metric) = variant.metrics.first() else {
                continue;
            };
            let point = Point { x: *threads, y: metric.summary };
            match lines.iter_mut().find(|line| line.variant == variant.name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line { variant: variant.name.clone(), points: vec![point] }),
            }
        }
    }
    let what = [kind, &metric.name].into_iter().filter(|part| !part.is_empty());
    let what = what.collect::<Vec<_>>().join(": ");
    let better = match metric.better {
        Better::Less => ", less is better",
        Better::More => ", more is better",
        Better::Neither => "",
    };
    let unit = if metric.unit.is_empty() { String::new() } else { format!("{}, ", metric.unit) };
    let counts: Vec<f64> = cases.iter().map(|(threads, _)| *threads).collect();
    Some(Lines {
        caption: Caption::new(
            if what.is_empty() { "Over the number of threads" } else { &what },
            format!(
                "over the number of threads; {unit}logarithmic{better}; median, and range of the \
                 rounds"
            ),
        ),
        across: "threads",
        x: Axis::of_counts(&counts)?,
        lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_by_the_name() {
        let told = |name| threads_and_kind(name).map(|(threads, kind)| (threads as u32, kind));
        let of = |threads, kind: &str| Some((threads, kind.to_owned()));
        assert_eq!(told("t = 16, L = 5, D = 1"), of(16, "L = 5, D = 1"));
        assert_eq!(told("n = 200, 25 rounds, mutex kept"), of(200, "mutex kept"));
        assert_eq!(told("t = 2"), of(2, ""));
        for other in [
            "N = 16, x",
            "worst case: t = 16, 5 sections",
            "t = many",
            "t = 0",
            "mutex, reading",
            "",
        ] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
