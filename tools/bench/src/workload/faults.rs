//! No fault may look like speed: tests every workload with faulty contenders.
//!
//! The table in `list.rs` has each workload × each fault: a contender with that fault and how the
//! fault must show, or why no such contender can exist. A workload that is missing from the table
//! fails a test here, and so does a fault that does not show.

mod broken;
mod list;

use crate::harness::{Contender, Context, Failure};
use crate::settings::Settings;
use crate::watchdog::{self, HUNG};
use crate::workload::workloads;
use list::TABLE;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is wrong with a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It does not exclude.
    SkipsLock,
    /// A thread that should be woken is not.
    LosesWake,
    /// It reports work that it did not do.
    DoesLess,
}

const FAULTS: [Fault; 3] = [Fault::SkipsLock, Fault::LosesWake, Fault::DoesLess];

/// Makes a contender with a fault.
type Build = fn(&Context) -> Result<Contender, Failure>;

/// How a fault shows.
enum Shown {
    /// The measurement fails with a message that contains this text.
    Fails(&'static str, Build),
    /// Progress stops, and the watchdog reports it.
    Hangs(Build),
    /// In the test with this name.
    By(&'static str),
    /// Not at all: such a contender cannot exist, for this reason.
    Cannot(&'static str),
}

struct Row {
    workload: &'static str,
    fault: Fault,
    shown: Shown,
}

impl Row {
    fn name(&self) -> String {
        format!("{}, {:?}", self.workload, self.fault)
    }
}

fn context() -> Context {
    Context::new(Settings::default(), Arc::default())
}

#[test]
fn every_workload_is_in_the_table_with_every_fault() {
    for workload in workloads() {
        for fault in FAULTS {
            let fits = |row: &&Row| row.workload == workload.name && row.fault == fault;
            assert!(TABLE.iter().any(|row| fits(&row)), "{}: {fault:?}", workload.name);
        }
    }
    for row in TABLE {
        let exists = workloads().iter().any(|it| it.name == row.workload);
        assert!(exists, "there is no workload {}", row.workload);
    }
}

#[test]
fn what_cannot_be_has_a_reason_and_is_not_shown_elsewhere() {
    for row in TABLE {
        if let Shown::Cannot(why) = row.shown {
            assert!(!why.is_empty(), "{}", row.name());
            let same = |it: &&Row| it.workload == row.workload && it.fault == row.fault;
            assert_eq!(TABLE.iter().filter(same).count(), 1, "{}", row.name());
        }
    }
}

/// This test program.
fn this() -> Command {
    Command::new(std::env::current_exe().expect("the tests' own path"))
}

#[test]
fn every_test_that_the_table_names_exists() {
    let output = this().args(["--list", "--format", "terse"]).output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    for row in TABLE {
        if let Shown::By(test) = row.shown {
            let line = format!("{test}: test");
            assert!(list.lines().any(|it| it == line), "there is no {test}");
        }
    }
}

#[test]
fn a_contender_that_does_not_exclude_or_does_less_fails() {
    let _guard = waitword_testkit::watch();
    for row in TABLE {
        let Shown::Fails(expected, build) = row.shown else {
            continue;
        };
        let context = context();
        let mut contender = build(&context).unwrap();
        let message = match contender.variant.measure(&context) {
            Ok(measured) => panic!("{}: measured {measured:?}", row.name()),
            Err(failure) => failure.to_string(),
        };
        assert!(message.contains(expected), "{}: {message}", row.name());
    }
}

/// The table row that the child measures.
const ROW: &str = "WAITWORD_BENCH_TEST_FAULT";
/// How long the child may make no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the child may take in all; never reached in practice.
const LONGEST: Duration = Duration::from_secs(50);
/// Children at a time.
const AT_ONCE: usize = 12;

#[test]
fn a_lost_wake_up_ends_with_a_message() {
    let _guard = waitword_testkit::watch();
    let hangs = |row: &&(usize, &Row)| matches!(row.1.shown, Shown::Hangs(_));
    let rows: Vec<(usize, &Row)> = TABLE.iter().enumerate().filter(|row| hangs(&row)).collect();
    let mut wrong = Vec::new();
    for rows in rows.chunks(AT_ONCE) {
        let children: Vec<(&Row, Child)> =
            rows.iter().map(|&(number, row)| (row, child(number))).collect();
        for (row, child) in children {
            let output = end_of(child);
            let said = String::from_utf8_lossy(&output.stderr);
            let hangs = format!("`{}` hangs", row.workload);
            let ended = output.status.code() == Some(HUNG);
            if !ended || !said.contains(&hangs) || !said.contains("(crew 0)") {
                let first: String = said.chars().take(1000).collect();
                wrong.push(format!("{}: {}: {first}", row.name(), output.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn child(number: usize) -> Child {
    let test = "workload::faults::a_child_that_measures_a_fault";
    this()
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(ROW, number.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a child process")
}

fn end_of(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().expect("a child of ours").is_none() {
        if began.elapsed() > LONGEST {
            child.kill().expect("a child of ours");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("a child of ours")
}

#[test]
#[ignore = "the child process of another test"]
fn a_child_that_measures_a_fault() {
    let number: usize = std::env::var(ROW).unwrap().parse().unwrap();
    let Row { shown, workload, .. } = &TABLE[number];
    let Shown::Hangs(build) = shown else {
        panic!("this one does not hang");
    };
    let context = context();
    let _watchdog = watchdog::with_patience(PATIENCE, workload, &context).unwrap();
    let mut contender = build(&context).unwrap();
    let measured = contender.variant.measure(&context);
    panic!("it finished: {measured:?}");
}
