//! Runs a program and kills it if it hangs, so that a lost wake-up fails a test instead of hanging
//! it.

use std::process::Command;
use std::time::Duration;
use waitword_testkit::command::output_within;

/// Time limit of the small C programs, which take well under a second.
pub(crate) const PROGRAM: Duration = Duration::from_secs(60);
/// Time limit of a compiler, or of cargo with its dependencies to build, on a slow machine.
pub(crate) const BUILD: Duration = Duration::from_secs(20 * 60);

/// Runs `command` to its end and returns its output: stdout, then stderr.
///
/// Panics with that output if the command fails, or if it exceeds `limit` and is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> String {
    let (success, output) = run_either_way(command, limit);
    assert!(success, "{command:?} failed:\n{output}");
    output
}

/// [`run`] for a program that may fail: returns whether it succeeded, and its output.
pub(crate) fn run_either_way(command: &mut Command, limit: Duration) -> (bool, String) {
    let output = output_within(limit, command, |_| ());
    let texts = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&texts).into_owned();
    (output.status.success(), text)
}
