//! The text, checked strictly, and by `promtool`.

use super::super::sums::Waits;
use super::*;
use std::collections::{BTreeMap, HashSet};

/// Names that need to be escaped.
fn snapshot() -> Snapshot {
    let mut took = Histogram { sum: 7_000_123, ..Histogram::default() };
    (took.counts[0], took.counts[6], took.counts[BOUNDS.len()]) = (3, 2, 1);
    let waits = Waits { took, handed_over: 2, timed_out: 1, asleep: 6_000_000, ..Waits::default() };
    Snapshot {
        locks: vec![
            (("operator\"\"_x(char const*) < a\\b\n".to_owned(), "mutex"), waits),
            (("(other)".to_owned(), "(other)"), Waits::default()),
        ],
        holds: vec![("releases".to_owned(), took)],
        events: vec![("condvar", took)],
        waiters: vec![("mutex", 4), ("condvar", 0)],
        threads: 9,
        processes: 1,
        lost: 5,
    }
}

/// A sample: its name, its labels, its value.
type Sample = (String, Labels, f64);
type Labels = Vec<(String, String)>;

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && letters.all(|it| it.is_ascii_alphanumeric() || it == '_')
}

fn sample(line: &str) -> Sample {
    let Some((name, rest)) = line.split_once('{') else {
        let (name, value) = line.split_once(' ').unwrap_or_else(|| panic!("{line}"));
        return (name.to_owned(), vec![], value.parse().unwrap());
    };
    let (mut labels, mut letters) = (Vec::new(), rest.chars());
    loop {
        let key: String = letters.by_ref().take_while(|letter| *letter != '=').collect();
        assert!(is_name(&key), "{line}");
        assert_eq!(letters.next(), Some('"'), "{line}");
        let mut value = String::new();
        loop {
            match letters.next().unwrap_or_else(|| panic!("{line}")) {
                '"' => break,
                '\\' => match letters.next() {
                    Some('n') => value.push('\n'),
                    Some(letter @ ('"' | '\\')) => value.push(letter),
                    other => panic!("\\{other:?} in {line}"),
                },
                letter => value.push(letter),
            }
        }
        labels.push((key, value));
        match letters.next() {
            Some(',') => {}
            Some('}') => break,
            other => panic!("{other:?} in {line}"),
        }
    }
    let value: String = letters.collect();
    let value = value.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("{line}")))
}

/// Checks a text, and returns its samples.
fn check(text: &str, is_open_metrics: bool) -> Vec<Sample> {
    let (mut family, mut helped, mut seen) = (None, HashSet::new(), HashSet::new());
    let mut samples = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line == "# EOF" {
            assert!(is_open_metrics && lines.peek().is_none(), "{text}");
            break;
        }
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty() && helped.insert(name), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(helped.contains(name), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter" && !is_open_metrics, name.ends_with("_total"), "{line}");
            family = Some((name, kind));
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').unwrap();
            assert!(is_open_metrics && name.ends_with(&format!("_{unit}")), "{line}");
        } else {
            let sample = sample(line);
            let (name, kind) = family.unwrap_or_else(|| panic!("{line}"));
            let ending = sample.0.strip_prefix(name).unwrap_or_else(|| panic!("{line}"));
            let endings: &[&str] = match kind {
                "counter" if is_open_metrics => &["_total"],
                "histogram" => &["_sum", "_count", "_bucket"],
                _ => &[""],
            };
            assert!(endings.contains(&ending) && sample.2 >= 0.0, "{line}");
            assert!(seen.insert(line.rsplit_once(' ').unwrap().0), "twice: {line}");
            samples.push(sample);
        }
    }
    assert_eq!(text.ends_with("# EOF\n"), is_open_metrics);
    check_histograms(&samples);
    samples
}

/// Buckets grow, and the last one contains everything.
fn check_histograms(samples: &[Sample]) {
    let mut last: BTreeMap<(String, Labels), (f64, f64)> = BTreeMap::new();
    for (name, labels, value) in samples {
        let Some(name) = name.strip_suffix("_bucket") else {
            continue;
        };
        let (le, others): (Vec<_>, Vec<_>) = labels.iter().cloned().partition(|it| it.0 == "le");
        let le = le[0].1.replace("+Inf", "inf").parse().unwrap();
        let before = last.insert((name.to_owned(), others), (le, *value));
        assert!(before.is_none_or(|(bound, count)| bound < le && count <= *value), "{name}");
    }
    assert!(!last.is_empty());
    for ((name, labels), (le, value)) in last {
        assert_eq!(le, f64::INFINITY, "{name}");
        let count = samples.iter().find(|it| it.0 == format!("{name}_count") && it.1 == labels);
        assert_eq!(count.unwrap().2, value, "{name}");
    }
}

fn value(samples: &[Sample], name: &str, label: &str) -> f64 {
    let is_it = |it: &&Sample| it.0 == name && it.1.iter().any(|(_, value)| value == label);
    samples.iter().find(is_it).unwrap_or_else(|| panic!("{name} {label}")).2
}

#[test]
fn both_formats_are_right_and_say_the_same() {
    let text = open_metrics(snapshot()).unwrap();
    let samples = check(&text, true);
    let site = "operator\"\"_x(char const*) < a\\b\n";
    assert_eq!(value(&samples, "waitword_lock_wait_seconds_sum", site), 0.007_000_123);
    assert_eq!(value(&samples, "waitword_lock_contentions_total", site), 6.0);
    assert_eq!(value(&samples, "waitword_lock_handoffs_total", site), 2.0);
    assert_eq!(value(&samples, "waitword_lock_holder_seconds_total", "asleep"), 0.006);
    assert_eq!(value(&samples, "waitword_lock_holder_seconds_total", "unknown"), 0.001_000_123);
    assert_eq!(value(&samples, "waitword_lock_wait_seconds_bucket", "0.01"), 5.0);
    assert_eq!(value(&samples, "waitword_waiters", "mutex"), 4.0);
    let older = check(&of_prometheus(&text), false);
    assert_eq!(older, samples);
}

#[test]
fn promtool_has_nothing_to_say() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let _watchdog = waitword_testkit::watch();
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("promtool (`.ci/run packages`, or Debian's package prometheus)");
    let text = of_prometheus(&open_metrics(snapshot()).unwrap());
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}
