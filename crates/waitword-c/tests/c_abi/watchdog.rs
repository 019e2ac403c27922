//! Runs a program and ends it if it hangs, so that a lost wake-up fails a test instead of stopping it.

use crate::scratch;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long one of the small C programs may take; they take well under a second.
pub(crate) const PROGRAM: Duration = Duration::from_secs(60);
/// How long a compiler, or cargo with its dependencies to build, may take on a slow machine.
pub(crate) const BUILD: Duration = Duration::from_secs(20 * 60);

/// Runs `command` to its end and returns what it wrote, stdout and stderr in the order written.
///
/// Panics, with that output, if it fails or if `limit` passes first; then it has been killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> String {
    let (success, output) = run_either_way(command, limit);
    assert!(success, "{command:?} failed:\n{output}");
    output
}

/// [`run`] for a program that may fail: whether it succeeded, and what it wrote.
pub(crate) fn run_either_way(command: &mut Command, limit: Duration) -> (bool, String) {
    // A file, since a full pipe would itself be a hang.
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
