//! `waitword compare` as a user runs it, on shell scripts whose results are known.

use std::process::{Command, Output};
use std::time::Duration;
use waitword_testkit::command::output_within;

fn compare(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    let _watchdog = waitword_testkit::watch();
    output_within(Duration::from_secs(100), command.arg("compare").args(arguments), |_| ())
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned())
}

/// A script whose metric depends on the flavour: the answer is known exactly.
const SCORES: &str = "case $WAITWORD_MUTEX in throughput) echo score 300;; \
                      wait-wake) echo score 50;; *) echo score 100;; esac";

#[test]
fn the_best_flavour_by_a_metric() {
    let place = tempfile::tempdir().unwrap();
    let json = place.path().join("all.json");
    let output = compare(&[
        "--metric",
        "score ([0-9]+)",
        "--json",
        json.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        SCORES,
    ]);
    let [stdout, stderr] = texts(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    let answer = "throughput is best: 3 times as good as the plain program \
                  (3 to 3 with 99.3 % certainty; better in 15 of 15 rounds).";
    assert!(stdout.contains(answer), "{stdout}");
    let row = |name: &str| stdout.lines().find(|line| line.contains(name)).unwrap();
    assert!(row("| wait-wake").contains("| worse"), "{stdout}");
    assert!(row("| adaptive").contains("| same"), "{stdout}");
    let all: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(all["rounds"], 15);
    assert_eq!(all["answer"], answer);
    assert_eq!(all["variants"][2]["name"], "throughput");
    assert_eq!(all["variants"][2]["metric"], serde_json::json!(vec![300.0; 15]));
    assert_eq!(all["variants"][2]["standing"]["verdict"], "better");
    assert_eq!(all["variants"][0]["wall_seconds"].as_array().unwrap().len(), 15);
}

#[test]
fn a_flavour_that_does_something_else_is_out() {
    let script = "case $WAITWORD_MUTEX in throughput) echo other;; wait-wake) exit 3;; \
                  *) echo the same;; esac";
    let output = compare(&["--rounds", "2", "--", "sh", "-c", script]);
    let [stdout, stderr] = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    let line = "throughput is out: line 1 of stdout is 'other' instead of 'the same'";
    assert!(stdout.contains(line), "{stdout}");
    let line = "wait-wake is out: exit status: 3 instead of exit status: 0";
    assert!(stdout.contains(line), "{stdout}");
    assert!(stdout.contains("adaptive: undecided"), "{stdout}");
}

/// The variables that a user may have set make no difference.
#[test]
fn plain_is_plain_and_the_others_are_not_whatever_the_environment() {
    let script = "echo ${WAITWORD:-unset} ${WAITWORD_MUTEX:-unset}; exit 0";
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.args(["compare", "--rounds", "1", "--check", "cat >> $SEEN", "--", "sh", "-c", script]);
    let place = tempfile::tempdir().unwrap();
    let seen = place.path().join("seen");
    command.env("SEEN", &seen).env("WAITWORD", "off").env("WAITWORD_MUTEX", "throughput");
    let output = output_within(Duration::from_secs(100), &mut command, |_| ());
    assert!(output.status.success(), "{:?}", texts(&output));
    let seen = std::fs::read_to_string(&seen).unwrap();
    let mut seen: Vec<&str> = seen.lines().collect();
    seen.sort_unstable();
    let expected = ["off unset", "off unset", "on adaptive", "on throughput", "on wait-wake"];
    assert_eq!(seen, expected);
}

/// What was measured until then is shown.
#[test]
fn a_plain_program_that_changes_ends_the_comparison() {
    let place = tempfile::tempdir().unwrap();
    let count = place.path().join("count");
    // From the tenth run on it prints something else: after two plain ones and two rounds.
    let script =
        format!("echo >> {0}; [ $(wc -l < {0}) -gt 10 ] && echo other; exit 0", count.display());
    let output = compare(&["--rounds", "9", "--", "sh", "-c", &script]);
    let [stdout, stderr] = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("2 rounds; medians"), "{stdout}");
    assert!(stdout.contains("plain is out: stdout goes on in line 1: 'other'"), "{stdout}");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    for (arguments, reason) in [
        // Its output is never the same.
        (&["--", "sh", "-c", "echo $$"][..], "two plain runs differ"),
        (&["--metric", "x", "--", "true"], "the output has no match of x"),
        (&["--metric", "l.*", "--", "echo", "long"], "'long' is not a number above 0"),
        (&["--metric", "-?[0-9]+", "--", "echo", "-5"], "'-5' is not a number above 0"),
        (&["--metric", "[0-9]+", "--", "echo", "0"], "'0' is not a number above 0"),
        (&["--", "/no/such/program"], "/no/such/program: not found"),
        (&["--check", "false", "--", "true"], "the check 'false' rejects the output"),
        (&["--limit", "1", "--", "sleep", "1000"], "the plain program did not end within 1 s"),
        (&["--stdin", "/no/such/file", "--", "true"], "/no/such/file: No such file"),
        (&["--json", "/no/such/folder/x", "--", "true"], "cannot write /no/such/folder/x"),
        (&["--flavours", "adaptive,adaptive", "--", "true"], "--flavours has adaptive twice"),
        (&["--metric", "(", "--", "true"], "unclosed group"),
        (&["--smaller", "--", "true"], "--metric"),
        (&["--flavours", "fast", "--", "true"], "possible values"),
        (&[], "PROGRAM"),
    ] {
        let output = compare(arguments);
        let [stdout, stderr] = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
        assert_eq!(stdout, "", "{arguments:?}");
    }
}

#[test]
fn the_program_reads_what_it_is_given() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("input");
    std::fs::write(&file, "b\na\n").unwrap();
    let stdin = file.to_str().unwrap();
    let check = "cmp - $EXPECTED";
    let expected = place.path().join("expected");
    std::fs::write(&expected, "a\nb\n").unwrap();
    let check = check.replace("$EXPECTED", expected.to_str().unwrap());
    let output = compare(&["--rounds", "1", "--stdin", stdin, "--check", &check, "--", "sort"]);
    let [stdout, stderr] = texts(&output);
    assert!(output.status.success(), "{stdout}{stderr}");
    // Nothing: the terminal is never read.
    let output = compare(&["--rounds", "1", "--", "cat"]);
    assert!(output.status.success(), "{:?}", texts(&output));
}
