//! No test of these locks hangs: a thread of its own ends the process, saying which test it was.

use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Watches until dropped.
pub(crate) struct Watchdog {
    _done: Sender<()>,
}

/// Ends the process, unless the result is dropped within two minutes, or as many seconds as `WATCHDOG_SECONDS` says.
pub(crate) fn watch(test: &'static str) -> Watchdog {
    let wanted = std::env::var("WATCHDOG_SECONDS").ok();
    let seconds = wanted.and_then(|seconds| seconds.parse().ok());
    let patience = Duration::from_secs(seconds.unwrap_or(120));
    let (done, ended) = channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln`: the test harness would keep it.
            let _ = writeln!(std::io::stderr(), "\n`{test}` hangs");
            std::process::abort();
        }
    });
    Watchdog { _done: done }
}

/// Waits until `condition` holds. That it does is for the watchdog to see.
pub(crate) fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Whether this thread, of whatever process, is asleep in futex(2).
pub(crate) fn sleeps(tid: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{tid}/{file}"));
    let futex = format!("{} ", libc::SYS_futex);
    read("syscall").is_ok_and(|call| call.starts_with(&futex))
        && read("stat").is_ok_and(|stat| stat.rsplit(')').next().unwrap().starts_with(" S"))
}
