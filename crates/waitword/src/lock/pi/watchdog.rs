//! Keeps these tests from hanging: a separate thread aborts the process and names the test.

use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Watches until dropped.
pub(crate) struct Watchdog {
    _done: Sender<()>,
}

/// Aborts the process unless the result is dropped within two minutes, or within the number of
/// seconds in `WATCHDOG_SECONDS`.
pub(crate) fn watch(test: &'static str) -> Watchdog {
    let wanted = std::env::var("WATCHDOG_SECONDS").ok();
    let seconds = wanted.and_then(|seconds| seconds.parse().ok());
    let patience = Duration::from_secs(seconds.unwrap_or(120));
    let (done, ended) = channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln`: the test harness would capture it.
            let _ = writeln!(std::io::stderr(), "\n`{test}` hangs");
            std::process::abort();
        }
    });
    Watchdog { _done: done }
}

/// Waits until `condition` holds. If it never does, the watchdog detects it.
pub(crate) fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Whether this thread, of any process, is asleep in futex(2).
pub(crate) fn sleeps(tid: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{tid}/{file}"));
    let futex = format!("{} ", libc::SYS_futex);
    read("syscall").is_ok_and(|call| call.starts_with(&futex))
        && read("stat").is_ok_and(|stat| stat.rsplit(')').next().unwrap().starts_with(" S"))
}
