//! Each scenario for about a second, and the proof that a broken run is caught.
//!
//! This program is its own harness: the torture starts the program that it is part of once more for every
//! scenario, so `main` must look first whether it is such a process.

use clap::Parser;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The torture as a program: what tests start, with the arguments that follow this word.
const AS_TORTURE: &str = "torture";

#[derive(clap::Parser)]
struct Torture {
    #[command(flatten)]
    args: waitword_torture::Args,
}

fn main() -> ExitCode {
    if let Some(code) = waitword_torture::run_if_child() {
        return code;
    }
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == AS_TORTURE) {
        return waitword_torture::run(&Torture::parse_from(&arguments[1..]).args, &|| {
            Err("the command carries it, this test does not".to_owned())
        });
    }
    let scenarios = waitword_torture::scenario_names(None);
    let mut trials: Vec<_> = scenarios
        .map(|name| Trial::test(format!("scenario::{name}"), move || holds(name)))
        .collect();
    // Where one wake that is left out stops somebody for ever.
    for name in [
        "ring",
        "condvar",
        "shared",
        "mutex",
        "rwlock",
        "cond",
        "semaphore",
        "events",
        "once",
        "atomic",
        "robust",
        "across",
        "door",
    ] {
        let test = move || is_caught(name, "skip-wake", "hung", "=== torture: nothing got done");
        trials.push(Trial::test(format!("sabotage::skip_wake::{name}"), test));
    }
    for name in [
        "tokens",
        "condvar",
        "herd",
        "order",
        "mutex",
        "rwlock",
        "cond",
        "semaphore",
        "barrier",
        "events",
        "once",
        "atomic",
        "robust",
        "across",
        "exec",
    ] {
        let test = move || {
            is_caught(
                name,
                "miscount",
                "an invariant was violated",
                "=== torture: ",
            )
        };
        trials.push(Trial::test(format!("sabotage::miscount::{name}"), test));
    }
    let starves = || {
        let why = "an invariant was violated";
        is_caught("mutex", "starve", why, "starved: it waited")
    };
    trials.push(Trial::test("sabotage::starve::mutex", starves));
    // Each under a scenario that it can strike.
    for (fault, name) in [
        ("hold", "mutex"),
        ("shuffle", "tokens"),
        ("priority", "cond"),
        ("stutter", "rwlock"),
        ("stop", "shared"),
        ("memory", "growth"),
    ] {
        let test = move || strikes(fault, name);
        trials.push(Trial::test(format!("fault::{fault}"), test));
    }
    trials.push(Trial::test(
        "fault::clock_is_left_alone_unless_asked_for",
        clock_is_left_alone,
    ));
    trials.push(Trial::test(
        "the_same_seed_makes_the_same_choices",
        seed_repeats,
    ));
    trials.push(Trial::test(
        "a_failure_says_how_it_is_run_again",
        failure_repeats,
    ));
    trials.push(Trial::test("the_same_seed_is_printed", seed_is_printed));
    trials.push(Trial::test("all_scenarios_are_listed", all_are_listed));
    let mut arguments = Arguments::from_args();
    // There are two cores; the scenarios bring their own crowd.
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs the torture. A hang ends by its own watchdogs; should these hang too, the limit ends it.
fn torture(arguments: &[&str]) -> Result<Output, Failed> {
    const LIMIT: Duration = Duration::from_secs(100);
    let mut child = Command::new(std::env::current_exe()?)
        .arg(AS_TORTURE)
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()?;
    let id = child.id();
    let started = Instant::now();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    // Reads to the end of both pipes while the limit is watched from another thread.
    let watch = std::thread::spawn(move || {
        let over = ended.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if over {
            // SAFETY: our own child, which has not been waited for yet.
            unsafe { libc::kill(id as i32, libc::SIGKILL) };
        }
        over
    });
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let errors = child.stderr.take().map(|mut from| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut from, &mut text).map(|_| text)
        })
    });
    if let Some(mut from) = child.stdout.take() {
        std::io::Read::read_to_end(&mut from, &mut stdout)?;
    }
    if let Some(reader) = errors {
        stderr = reader.join().map_err(|_| "the reader has panicked")??;
    }
    drop(done);
    if watch.join().map_err(|_| "the watch has panicked")? {
        return Err(format!("killed after {:?}", started.elapsed()).into());
    }
    let status = child.wait()?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn holds(scenario: &str) -> Result<(), Failed> {
    let output = torture(&["--only", scenario, "--seconds", "1"])?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", text(&output.stdout), text(&output.stderr)).into())
}

/// A run broken on purpose fails, says why, and reports who waits on what.
fn is_caught(scenario: &str, sabotage: &str, why: &str, report: &str) -> Result<(), Failed> {
    let output = torture(&[
        "--only",
        scenario,
        "--seconds",
        "20",
        "--patience",
        "2",
        "--faults",
        "none",
        "--sabotage",
        sabotage,
    ])?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let complaint = format!("FAILED: {scenario}: {why}");
    let is_whole = stderr.contains(report) && stderr.contains("words:");
    let is_whole = is_whole && stdout.contains("again, with the same choices: ");
    if output.status.success() || !stdout.contains(&complaint) || !is_whole {
        return Err(format!("not caught as it should be:\n{stdout}\n{stderr}").into());
    }
    if sabotage == "skip-wake" && !(stderr.contains("waits on") && stderr.contains("expecting")) {
        return Err(format!("who waits on what is missing:\n{stderr}").into());
    }
    Ok(())
}

fn seed_is_printed() -> Result<(), Failed> {
    let output = torture(&[
        "--only",
        "ring",
        "--seconds",
        "0",
        "--seed",
        "42",
        "--threads",
        "4",
    ])?;
    match text(&output.stdout).contains("seed 42") {
        true => Ok(()),
        false => Err(text(&output.stdout).into()),
    }
}

fn all_are_listed() -> Result<(), Failed> {
    let output = torture(&["--list"])?;
    let list = text(&output.stdout);
    match waitword_torture::scenario_names(None).find(|name| !list.contains(name)) {
        None => Ok(()),
        Some(name) => Err(format!("`{name}` is not in the list:\n{list}").into()),
    }
}

/// The scenario holds under the fault, which was injected.
fn strikes(fault: &str, scenario: &str) -> Result<(), Failed> {
    let output = torture(&[
        "--only",
        scenario,
        "--seconds",
        "1",
        "--threads",
        "4,64",
        "--faults",
        fault,
    ])?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if !output.status.success() {
        return Err(format!("{stdout}{stderr}").into());
    }
    let none = format!(" 0 {fault}");
    match stdout
        .lines()
        .find(|line| line.starts_with("faults injected:"))
    {
        Some(line) if line.contains(fault) && !line.contains(&none) => Ok(()),
        other => Err(format!("not injected: {other:?}").into()),
    }
}

/// The clock is the whole machine's. (`src/fault/clock.rs` tests the steps, on a clock of its own.)
fn clock_is_left_alone() -> Result<(), Failed> {
    let arguments = ["--only", "tokens", "--seconds", "1", "--faults", "clock"];
    let output = torture(&arguments)?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match output.status.success() && !stdout.contains("clock steps") {
        true => Ok(()),
        false => Err(format!("{stdout}{stderr}").into()),
    }
}

/// What a run wrote down: choices of its own, and those of each fault, of which a slow run makes fewer.
type Choices = (Vec<String>, BTreeMap<String, String>);

/// Runs the torture with these arguments, and reads what it has chosen.
fn choices_of(arguments: &[&str]) -> Result<Choices, Failed> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("waitword-choices-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let path = file.to_str().ok_or("a name in UTF-8")?;
    torture(&[arguments, &["--choices", path]].concat())?;
    let written = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    let (faults, mut own): (Vec<_>, Vec<_>) =
        (written.lines().map(str::to_owned)).partition(|line| line.starts_with("fault "));
    own.sort();
    let split = |line: String| {
        let (number, choice) = line.split_once(": ")?;
        Some((number.to_owned(), choice.to_owned()))
    };
    Ok((own, faults.into_iter().filter_map(split).collect()))
}

fn same(first: &Choices, second: &Choices) -> Result<(), Failed> {
    let (own, faults) = first;
    if own.is_empty() || *own != second.0 {
        return Err(format!("{own:#?}\nare not\n{:#?}", second.0).into());
    }
    let differs = |(number, choice): (&String, &String)| {
        (second.1.get(number)).is_some_and(|other| other != choice)
    };
    match faults.iter().find(|&fault| differs(fault)) {
        None => Ok(()),
        Some(fault) => Err(format!("{fault:?} was another one").into()),
    }
}

fn seed_repeats() -> Result<(), Failed> {
    let run = |seed| {
        choices_of(&[
            "--only",
            "tokens,semaphore",
            "--seconds",
            "8",
            "--rounds",
            "3",
            "--threads",
            "4,16",
            "--faults",
            "hold,shuffle,stutter",
            "--slice",
            "2",
            "--seed",
            seed,
        ])
    };
    let (first, again, other) = (run("42")?, run("42")?, run("43")?);
    same(&first, &again)?;
    if first.1.is_empty() {
        return Err("no fault was written down".into());
    }
    match same(&first, &other) {
        Err(_) => Ok(()),
        Ok(()) => Err("another seed makes the same choices".into()),
    }
}

/// The command that a failing slice prints makes the same choices, and fails again.
fn failure_repeats() -> Result<(), Failed> {
    let arguments = [
        "--only",
        "order",
        "--seconds",
        "9",
        "--rounds",
        "2",
        "--sabotage",
        "miscount",
        "--seed",
        "7",
        "--slice",
        "1",
    ];
    let stdout = text(&torture(&arguments)?.stdout);
    let command = (stdout.lines())
        .find_map(|line| line.strip_prefix("again, with the same choices: waitword torture "))
        .ok_or("no command")?;
    let again: Vec<&str> = command.split(' ').collect();
    if torture(&again)?.status.success() {
        return Err(format!("it did not fail again: {command}").into());
    }
    same(&choices_of(&arguments)?, &choices_of(&again)?)
}
