//! The drop-in's settings: environment variables, and the options of `waitword run` that set them.

#[path = "raw_futex/support.rs"]
mod support;

use std::process::{Command, Output};
use support::{C, Program, compile, number, run, texts, under};

/// On a loaded machine, what a test waits for may not happen in a single run.
const RUNS: usize = 40;

fn locks() -> Program {
    compile(C, "locks.c")
}

/// Runs the program under the drop-in, with these variables and no options.
fn with(variables: &[(&str, &str)], program: &Program, arguments: &[&str]) -> Output {
    let mut command = under(&[], program.path(), arguments);
    command.envs(variables.iter().copied());
    run(&mut command)
}

#[test]
fn a_summary_counts_what_the_locks_had_to_do() {
    let program = locks();
    let (said, summary) = texts(run(&mut under(&["--summary"], program.path(), &["contend"])));
    assert_eq!(said, "counted 80000\n");
    assert_eq!(summary.lines().count(), 1, "{summary}");
    let name = program.path().rsplit('/').next().unwrap();
    assert!(summary.starts_with(&format!("waitword: {name}[")), "{summary}");
    // Four threads with 20,000 sections each, and one lock that is held while another thread
    // sleeps for it.
    let counted = number(&summary, "locks");
    assert!((80_002..80_100).contains(&counted), "{summary}");
    assert!(number(&summary, "contended") >= 1, "{summary}");
    assert!(number(&summary, "sleeps") >= 1, "{summary}");
    assert!(number(&summary, "wakes") >= 1, "{summary}");
    // Not requested: nothing is printed.
    let (_, nothing) = texts(run(&mut under(&[], program.path(), &["contend"])));
    assert_eq!(nothing, "");
    for none in ["", "0", "off"] {
        let (_, nothing) = texts(with(&[("WAITWORD_SUMMARY", none)], &program, &["contend"]));
        assert_eq!(nothing, "", "{none:?}");
    }
}

/// Their waiters sleep in the kernel, but are counted.
#[test]
fn waits_with_priority_inheriting_mutexes_are_counted() {
    let program = locks();
    let (_, summary) = texts(run(&mut under(&["--summary"], program.path(), &["inherit"])));
    assert!(number(&summary, "locks") >= 4, "{summary}");
    assert!(number(&summary, "contended") >= 1, "{summary}");
    // One sleep for the mutex, and one on the condition variable.
    assert!(number(&summary, "sleeps") >= 2, "{summary}");
    assert!(number(&summary, "wakes") >= 1, "{summary}");
}

#[test]
fn rwlocks_are_counted_and_answer_as_if_they_were_not() {
    let program = locks();
    let (said, _) = texts(run(&mut under(&[], program.path(), &["rwlock"])));
    // (glibc lets any thread unlock a rwlock that is not held.)
    assert_eq!(said, "0 errors\n");
    let (said, summary) = texts(run(&mut under(&["--summary"], program.path(), &["rwlock"])));
    assert_eq!(said, "0 errors\n");
    // 30 calls that succeed, and ten that fail because the caller already holds the lock.
    assert_eq!(number(&summary, "locks"), 40, "{summary}");
}

#[test]
fn a_summary_goes_to_the_end_of_a_file_whatever_the_program_does_to_its_environment() {
    let program = locks();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("1");
    let mut command = under(&["--summary=1"], program.path(), &["clear"]);
    command.current_dir(&directory);
    for lines in 1..=2 {
        let (_, stderr) = texts(run(&mut command));
        assert_eq!(stderr, "");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), lines, "{text}");
        assert!(number(&text, "locks") >= 1);
    }
    // A file that cannot be written to is reported before the program runs ...
    let output = run(&mut under(&["--summary=/no/such/folder/x"], program.path(), &["clear"]));
    assert_eq!(output.status.code(), Some(126));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("/no/such/folder/x"), "{stderr}");
    // ... or at its end, if the environment names the file.
    let (_, stderr) = texts(with(&[("WAITWORD_SUMMARY", "/no/such/x")], &program, &["clear"]));
    assert!(stderr.contains("/no/such/x: cannot be written to"), "{stderr}");
}

#[test]
fn a_forked_child_has_a_summary_of_its_own() {
    let program = locks();
    let (_, summary) = texts(run(&mut under(&["--summary"], program.path(), &["fork"])));
    // The parent locks 1000 times and forks. One child locks 7 times and exits. Another one locks 9
    // times and leaves by `_exit`, so it writes no summary.
    let lines: Vec<_> = summary.lines().collect();
    assert_eq!(lines.len(), 2, "{summary}");
    assert_eq!(number(lines[0], "locks"), 7, "{summary}");
    assert!((1000..1007).contains(&number(lines[1], "locks")), "{summary}");
}

/// A lock is reserved only for waiters that spin, and those of a wait-wake mutex do not spin. With
/// the other flavours, no lock may be reserved in a single run on a loaded machine.
#[test]
fn the_flavour_of_plain_mutexes_can_be_chosen() {
    let program = locks();
    let hand_offs = |output| number(&texts(output).1, "hand-offs");
    let by_option = |flavour| {
        let options = ["--mutex", flavour, "--summary"];
        hand_offs(run(&mut under(&options, program.path(), &["compete"])))
    };
    let by_variable = |flavour| {
        let variables = [("WAITWORD_MUTEX", flavour), ("WAITWORD_SUMMARY", "1")];
        hand_offs(with(&variables, &program, &["compete"]))
    };
    for flavour in ["adaptive", "throughput"] {
        assert!((0..RUNS).any(|_| by_option(flavour) > 0), "{flavour}");
        assert!((0..RUNS).any(|_| by_variable(flavour) > 0), "{flavour}");
    }
    for _ in 0..3 {
        assert_eq!(by_option("wait-wake"), 0);
        assert_eq!(by_variable("wait-wake"), 0);
    }
    let output = run(&mut under(&["--mutex", "fast"], program.path(), &[]));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_waiter_stays_awake_for_no_longer_than_it_is_told() {
    let program = locks();
    let sleeps = |nanoseconds: &str, what: &str| {
        let options = ["--summary", "--spin", nanoseconds];
        let (_, summary) = texts(run(&mut under(&options, program.path(), &[what])));
        number(&summary, "sleeps")
    };
    // Raw futexes, woken 1 ms after the wait begins.
    assert_eq!(sleeps("0", "wait"), 3);
    // Woken after some 10 µs: if the CPUs are free, most of these waits need no sleep.
    let halves = || sleeps("60000", "wait-often") * 2 < sleeps("0", "wait-often");
    assert!((0..RUNS).any(|_| halves()));
    let (_, summary) =
        texts(with(&[("WAITWORD_SPIN_NS", "0"), ("WAITWORD_SUMMARY", "1")], &program, &["wait"]));
    assert_eq!(number(&summary, "sleeps"), 3, "{summary}");
}

#[test]
fn off_is_off() {
    let program = locks();
    let (said, summary) =
        texts(with(&[("WAITWORD", "off"), ("WAITWORD_SUMMARY", "1")], &program, &["contend"]));
    // Nothing is counted and nothing is printed.
    assert_eq!((said.as_str(), summary.as_str()), ("counted 80000\n", ""));
    // A mutex of the C library holds its owner in the third word. Ours does not.
    let owner = |variables: &[(&str, &str)]| texts(with(variables, &program, &["owner"])).0;
    assert_eq!(owner(&[("WAITWORD", "off")]), "the C library's\n");
    assert_eq!(owner(&[]), "ours\n");
    assert_eq!(owner(&[("WAITWORD_FUTEX", "off")]), "ours\n");
}

#[test]
fn what_means_nothing_is_answered_once_and_left_out() {
    let program = locks();
    let (said, stderr) = texts(with(
        &[
            ("WAITWORD", "maybe"),
            ("WAITWORD_FUTEX", "yes\n"),
            ("WAITWORD_MUTEX", "fair"),
            ("WAITWORD_SPIN_NS", "-5"),
        ],
        &program,
        &["contend"],
    ));
    assert_eq!(said, "counted 80000\n");
    assert_eq!(
        stderr.lines().collect::<Vec<_>>(),
        [
            "waitword: WAITWORD=maybe: neither on nor off; taken as on",
            "waitword: WAITWORD_FUTEX=yes\\n: neither on nor off; taken as on",
            "waitword: WAITWORD_MUTEX=fair: not adaptive, throughput or wait-wake; taken as \
             adaptive",
            "waitword: WAITWORD_SPIN_NS=-5: not a number of nanoseconds; ignored",
        ]
    );
    let output = run(&mut under(&["--spin", "fast"], program.path(), &[]));
    assert_eq!(output.status.code(), Some(2));
}

/// A library's constructor may lock before any of our constructors has run. By then all settings
/// apply.
#[test]
fn a_constructor_that_locks_first_finds_it_decided() {
    let library = compile(&[C, &["-shared", "-fPIC"]].concat(), "early.c");
    let program = locks();
    let preloaded = format!("LD_PRELOAD={}", library.path());
    // `waitword run` puts the drop-in in front of the existing list, so this library is initialised
    // first.
    let mut command = Command::new("env");
    command.args([
        &preloaded,
        env!("CARGO_BIN_EXE_waitword"),
        "run",
        "--summary",
        "--",
        program.path(),
        "owner",
    ]);
    let (said, summary) = texts(run(&mut command));
    assert!(said.starts_with("early: locked\n"), "{said}");
    assert!(number(&summary, "locks") >= 5, "{summary}");
}
