//! A hang must fail, and report which thread waits on what.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use waitword::table::{self, Waiter};

/// Ends the process with a report if it gets no sign of life for too long and is not dropped.
#[must_use]
pub(crate) struct Watchdog {
    signs_of_life: Sender<()>,
}

impl Watchdog {
    /// The test makes progress.
    pub(crate) fn pat(&self) {
        let _ = self.signs_of_life.send(());
    }
}

/// Guards the test that calls it.
pub(crate) fn watch(test: &'static str) -> Watchdog {
    let seconds = std::env::var("WATCHDOG_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(120);
    let patience = Duration::from_secs(seconds);
    let (signs_of_life, heard) = channel();
    std::thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            loop {
                match heard.recv_timeout(patience) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            let report = format!("\n`{test}` hangs (for {seconds} s).\n{}", who_waits());
            // Not `eprintln`: the test harness would capture it, and withhold it.
            let _ = std::io::stderr().write_all(report.as_bytes());
            std::process::abort();
        })
        .expect("no thread for the watchdog");
    Watchdog { signs_of_life }
}

/// Private waiters from the table, and every thread of the process with the system call that it is
/// in.
pub(crate) fn who_waits() -> String {
    let mut waiters = vec![Waiter::default(); 4096];
    let snapshot = table::snapshot(&mut waiters);
    let mut report = format!(
        "{} private waiters, {} locked buckets:\n",
        snapshot.waiters, snapshot.locked_buckets
    );
    for waiter in waiters.iter().take(snapshot.waiters) {
        let Waiter {
            address,
            mask,
            thread,
            ..
        } = waiter;
        let _ = writeln!(
            report,
            "  thread {thread:#x} waits on {address:#x}, mask {mask:#x}"
        );
    }
    report.push_str("threads (id, name, system call and its arguments):\n");
    for thread in std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let read =
            |file: &str| std::fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        let _ = writeln!(
            report,
            "  {} {} {}",
            thread.file_name().to_string_lossy(),
            read("comm").trim(),
            read("syscall").trim()
        );
    }
    report
}
