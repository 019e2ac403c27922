//! `waitword torture --drop-in`: each scenario for a second through the drop-in, a short run on the
//! C library for comparison, and the proof that a broken run is caught.

use std::process::{Command, Output};

fn torture(arguments: &[&str]) -> Output {
    // The torture's own watchdogs end a hang. If these hang too, the time limit ends it.
    Command::new("timeout")
        .arg("400")
        .arg(env!("CARGO_BIN_EXE_waitword"))
        .arg("torture")
        .args(arguments)
        // The threads and processes, some of which end while they hold locks, must not inherit
        // another drop-in from the environment.
        .env_remove("LD_PRELOAD")
        .output()
        .expect("`timeout` is part of coreutils")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn all_of(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// Scenarios run one after the other: there are two cores, and each scenario starts many threads.
#[test]
fn every_scenario_holds_through_the_drop_in() {
    let output = torture(&["--drop-in", "--seconds", "12", "--threads", "4,16,64"]);
    assert!(output.status.success(), "{}", all_of(&output));
}

#[test]
fn the_scenarios_hold_on_the_c_library_too() {
    let names = "pthread-mutex,pthread-sem,pthread-once,pthread-reuse";
    let output = torture(&["--drop-in=off", "--seconds", "2", "--only", names]);
    assert!(output.status.success(), "{}", all_of(&output));
}

/// A run that is broken on purpose fails, gives the reason, and reports which thread waits for what
/// and which thread holds it.
fn is_caught(scenario: &str, sabotage: &str, why: &str) {
    let output = torture(&[
        "--drop-in",
        "--only",
        scenario,
        "--sabotage",
        sabotage,
        "--seconds",
        "20",
        "--patience",
        "2",
        "--threads",
        "8",
        "--faults",
        "none",
    ]);
    let all = all_of(&output);
    assert!(!output.status.success(), "{all}");
    assert!(all.contains(&format!("FAILED: {scenario}: {why}")), "{all}");
    assert!(all.contains("words and objects:"), "{all}");
    if (scenario, sabotage) == ("pthread-mutex", "skip-wake") {
        assert!(all.contains("; held by worker "), "{all}");
        assert!(all.contains("; bytes "), "{all}");
    }
    assert!(all.contains("environment: LD_PRELOAD="), "{all}");
}

#[test]
fn a_wake_up_that_is_left_out_is_noticed() {
    for scenario in ["mutex", "rwlock", "cond", "sem", "barrier", "once", "owners"] {
        is_caught(&format!("pthread-{scenario}"), "skip-wake", "hung");
    }
}

#[test]
fn a_wrong_count_is_noticed() {
    for scenario in ["mutex", "barrier", "once", "cancel", "owners"] {
        let scenario = format!("pthread-{scenario}");
        is_caught(&scenario, "miscount", "an invariant was violated");
    }
}

#[test]
fn scenarios_of_the_library_are_not_those_of_the_drop_in() {
    let output = torture(&["--drop-in", "--only", "ring"]);
    assert!(!output.status.success());
    assert!(all_of(&output).contains("--drop-in"), "{}", all_of(&output));
}
