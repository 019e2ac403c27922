//! Runs each scenario for about a second and each fault, and proves that a broken run is caught.
//!
//! This program is its own harness. The torture starts the program that it is part of again for
//! every scenario, so `main` must first check whether it is such a process.

mod choices;
mod command;
mod errors;
mod sabotage;

use command::{text, torture};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = command::run_if_torture() {
        return code;
    }
    let scenarios = waitword_torture::scenario_names(None);
    let mut trials: Vec<_> = scenarios
        .map(|name| Trial::test(format!("scenario::{name}"), move || holds(name)))
        .collect();
    // Scenarios in which a single wake that is left out stops a thread forever.
    for name in "ring wait_any condvar shared mutex rwlock cond semaphore barrier events once \
                 atomic robust across raw"
        .split(' ')
    {
        let test =
            move || sabotage::is_caught(name, "skip-wake", "hung", "=== torture: no progress for");
        trials.push(Trial::test(format!("sabotage::skip_wake::{name}"), test));
    }
    for name in "tokens condvar herd order mutex rwlock cond semaphore barrier events once atomic \
                 robust across exec"
        .split(' ')
    {
        let test = move || {
            sabotage::is_caught(name, "miscount", "an invariant was violated", "=== torture: ")
        };
        trials.push(Trial::test(format!("sabotage::miscount::{name}"), test));
    }
    // Scenarios that promise a bound or an order.
    for (sabotage, name, report) in [
        ("starve", "mutex", "starved: it waited"),
        ("starve", "rwlock", "starved: it waited"),
        ("overtake", "order", "were woken instead of"),
        ("overtake", "cond", "one was signalled before another"),
    ] {
        let test = move || sabotage::is_caught(name, sabotage, "an invariant was violated", report);
        trials.push(Trial::test(format!("sabotage::{sabotage}::{name}"), test));
    }
    // Each fault with a scenario that it can strike.
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
    trials.push(Trial::test("the_same_seed_makes_the_same_choices", choices::seed_repeats));
    trials.push(Trial::test("a_failure_says_how_it_is_run_again", choices::failure_repeats));
    trials.push(Trial::test("the_same_seed_is_printed", choices::seed_is_printed));
    trials.push(Trial::test("all_scenarios_are_listed", all_are_listed));
    trials.push(Trial::test("errors_come_before_the_run", errors::errors_come_first));
    trials.push(Trial::test("too_many_threads_are_an_error", errors::too_many_threads));
    let mut arguments = Arguments::from_args();
    // One at a time: there are two cores, and each scenario starts many threads of its own.
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn holds(scenario: &str) -> Result<(), Failed> {
    let output = torture(&format!("--only {scenario} --seconds 1"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", text(&output.stdout), text(&output.stderr)).into())
}

/// The scenario holds under the fault, and the fault was injected.
fn strikes(fault: &str, scenario: &str) -> Result<(), Failed> {
    let output =
        torture(&format!("--only {scenario} --seconds 1 --threads 4,64 --faults {fault}"))?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if !output.status.success() {
        return Err(format!("{stdout}{stderr}").into());
    }
    let none = format!(" 0 {fault}");
    match stdout.lines().find(|line| line.starts_with("faults injected:")) {
        Some(line) if line.contains(fault) && !line.contains(&none) => Ok(()),
        other => Err(format!("not injected: {other:?}").into()),
    }
}

fn all_are_listed() -> Result<(), Failed> {
    let output = torture("--list")?;
    let list = text(&output.stdout);
    match waitword_torture::scenario_names(None).find(|name| !list.contains(name)) {
        None => Ok(()),
        Some(name) => Err(format!("`{name}` is not in the list:\n{list}").into()),
    }
}
