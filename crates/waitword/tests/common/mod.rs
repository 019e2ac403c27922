//! What the integration tests share: watchdogs, processes of their own, a way into a bucket.

// Each test program uses only part of this.
#![allow(dead_code)]

pub(crate) mod inside;
pub(crate) mod process;
pub(crate) mod seccomp;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use waitword::table::{self, Waiter};

/// `usually`, or the number of seconds in `WATCHDOG_SECONDS`: for slow machines.
pub(crate) fn limit(usually: u64) -> Duration {
    let wanted = std::env::var("WATCHDOG_SECONDS").ok();
    let seconds = wanted.and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(usually))
}

/// Ends the process unless it is dropped in time, and reports which thread waits on what. A hang
/// then fails the test run instead of blocking it forever.
pub(crate) struct Watchdog {
    _done: Sender<()>,
}

/// Watches over a test until the result is dropped. Two minutes are ample; nothing is measured by
/// it.
pub(crate) fn watchdog(test: &'static str) -> Watchdog {
    watchdog_for(test, limit(120))
}

/// The same with another limit. The watchdog's thread is running when this returns: in a test that
/// continues without memory it could not be started later.
pub(crate) fn watchdog_for(test: &'static str, limit: Duration) -> Watchdog {
    let (done, ended) = channel::<()>();
    let (started, starts) = channel::<()>();
    std::thread::spawn(move || {
        // A thread's first wait takes memory, too.
        let _ = ended.recv_timeout(Duration::ZERO);
        drop(started);
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let mut waiters = vec![Waiter::default(); 20];
            let snapshot = table::snapshot(&mut waiters);
            waiters.truncate(snapshot.waiters);
            let text = format!("\ntest {test} hangs. {snapshot:?}, the first: {waiters:#x?}\n");
            // SAFETY: writes only the bytes of `text`, and ends the process without its exit
            // handlers. (The test harness would hold back what is printed.)
            unsafe {
                libc::write(2, text.as_ptr().cast(), text.len());
                libc::_exit(70);
            }
        }
    });
    let _ = starts.recv();
    Watchdog { _done: done }
}

/// Waits until `condition` holds. If it never does, the watchdog ends the process.
pub(crate) fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// How many waiters the table has for the word at this address.
pub(crate) fn waiters_at<A>(word: &A) -> usize {
    let mut waiters = vec![Waiter::default(); 8192];
    let snapshot = table::snapshot(&mut waiters);
    assert!(snapshot.waiters <= waiters.len());
    waiters.truncate(snapshot.waiters);
    let address = (&raw const *word).addr();
    waiters
        .iter()
        .filter(|waiter| waiter.address == address)
        .count()
}

/// Waits until the table has `count` waiters for this word.
pub(crate) fn until_waiting<A>(word: &A, count: usize) {
    until(|| waiters_at(word) == count);
}

/// The kernel's ID of the calling thread.
pub(crate) fn thread_number() -> i32 {
    // SAFETY: takes no pointers.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Signals one thread of this process.
pub(crate) fn signal(thread: i32, signal: i32) {
    // SAFETY: passes numbers.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, signal) };
}

/// Installs a handler; `flags` are those of sigaction(2).
pub(crate) fn install(signal: i32, handler: extern "C" fn(i32), flags: i32) {
    // SAFETY: a whole `sigaction`.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    assert_eq!(result, 0, "no handler for signal {signal}");
}
