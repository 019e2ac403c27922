//! Runs a command to its end. If it hangs, it is killed with all its children, and the test fails.

use crate::watchdog::limit;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Runs a command, and returns what it has written. Three minutes are ample.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    output_within(limit(180), command, |_| ())
}

/// The same with another limit. Calls `meanwhile` with the process ID once the command has started.
///
/// # Panics
/// The command cannot be started, or hangs.
#[track_caller]
pub fn output_within(
    limit: Duration,
    command: &mut Command,
    meanwhile: impl FnOnce(u32),
) -> Output {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let id = child.id();
    let (done, ended) = channel();
    // Reads both pipes to their ends.
    std::thread::spawn(move || done.send(child.wait_with_output()));
    meanwhile(id);
    let in_time = ended.recv_timeout(limit);
    let hangs = in_time.is_err();
    let output = in_time.or_else(|_| {
        // SAFETY: the group of a child of ours that has not been waited for, or that ended just
        // now, so its number is hardly in use again.
        unsafe { libc::kill(-(id as i32), libc::SIGKILL) };
        ended.recv()
    });
    let output = output.expect("the thread's message").expect("the command's output");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(!hangs, "{command:?} hangs\n{stdout}\n{stderr}");
    output
}

/// The texts that a command wrote to stdout and to stderr. Fails if the command failed.
#[track_caller]
pub fn texts(output: Output) -> (String, String) {
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let status = output.status;
    assert!(status.success(), "{status}\n{stdout}\n{stderr}");
    (stdout, stderr)
}

/// Runs `check` in a process that has run nothing else before: this test program, started again for
/// the calling test alone.
#[track_caller]
pub fn in_fresh_process(check: impl FnOnce()) {
    const VARIABLE: &str = "WAITWORD_TEST_FRESH";
    if std::env::var_os(VARIABLE).is_some() {
        return check();
    }
    let thread = std::thread::current();
    // The harness names each test's thread after the test.
    let test = thread.name().expect("the test's name");
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]).env(VARIABLE, "1");
    let (stdout, stderr) = texts(command.output().expect("our own program"));
    let found = stdout.contains("1 passed");
    assert!(found, "there is no test `{test}`: {stdout}");
    // Shows what the test prints (for example, that it skips something).
    eprint!("{stderr}");
}
