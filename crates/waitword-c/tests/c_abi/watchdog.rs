//! Runs a program and kills it if it hangs, so that a lost wake-up fails a test instead of hanging
//! it.

use crate::scratch;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of the small C programs, which take well under a second.
pub(crate) const PROGRAM: Duration = Duration::from_secs(60);
/// Time limit of a compiler, or of cargo with its dependencies to build, on a slow machine.
pub(crate) const BUILD: Duration = Duration::from_secs(20 * 60);

/// Runs `command` to its end and returns its output, stdout and stderr in the order written.
///
/// Panics with that output if the command fails, or if it exceeds `limit` and is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> String {
    let (success, output) = run_either_way(command, limit);
    assert!(success, "{command:?} failed:\n{output}");
    output
}

/// [`run`] for a program that may fail: returns whether it succeeded, and its output.
pub(crate) fn run_either_way(command: &mut Command, limit: Duration) -> (bool, String) {
    // A file, because a full pipe would hang the program.
    let path = scratch::new_file("log");
    let log = File::create(&path).expect("the scratch file can be written");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a file can be shared"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            break Some(status);
        }
        if started.elapsed() > limit {
            child.kill().expect("our own child");
            child.wait().expect("our own child");
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let output = std::fs::read(&path).expect("the scratch file can be read");
    let output = String::from_utf8_lossy(&output).into_owned();
    match status {
        Some(status) => (status.success(), output),
        None => panic!("{command:?} hangs: killed after {limit:?}. It wrote:\n{output}"),
    }
}
