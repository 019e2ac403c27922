//! Processes of a test's own: forked ones, and fresh ones.

use std::process::Command;
use std::time::{Duration, Instant};

/// The most that a forked child may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How a child is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// libc's fork: its handlers run, its locks are usable in the child.
    Fork,
    /// The bare system call: the child must not allocate, nor print, nor start threads.
    RawClone,
}

/// Makes a child in which `check` runs, and waits for it. `check` returns 0, or what the child is to exit
/// with.
///
/// # Panics
/// The child ends with anything else than 0, or hangs.
#[track_caller]
pub(crate) fn in_child(way: Way, check: impl FnOnce() -> i32) {
    // SAFETY: the child runs `check`, which keeps to what the way allows, and ends by the system call.
    let child = unsafe {
        match way {
            Way::Fork => libc::fork(),
            Way::RawClone => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32,
        }
    };
    assert!(child >= 0, "no child");
    if child == 0 {
        let status = check();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(status) };
    }
    expect_success(child);
}

/// Waits for a child to end with 0; kills it if it hangs.
#[track_caller]
pub(crate) fn expect_success(child: i32) {
    let started = Instant::now();
    let mut status = 0;
    // SAFETY: writes the status of our own child.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if started.elapsed() > LIMIT {
            // SAFETY: our own child, not waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        panic!("the child was killed by signal {signal} (9: it hung)");
    }
    assert_eq!(libc::WEXITSTATUS(status), 0, "what the child complains of");
}

/// Runs `check` in a process that has run nothing else before: this test program, started again for this one
/// test. `test` is the test's own name.
#[track_caller]
pub(crate) fn in_fresh_process(test: &str, check: impl FnOnce()) {
    const VARIABLE: &str = "WAITWORD_TEST_FRESH";
    if std::env::var_os(VARIABLE).is_some() {
        return check();
    }
    let output = Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(VARIABLE, "1")
        .output()
        .expect("our own program");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    assert!(
        stdout.contains("1 passed"),
        "there is no test `{test}`: {stdout}"
    );
    // What the test has to say (that it skips something) is to be seen.
    eprint!("{stderr}");
}
