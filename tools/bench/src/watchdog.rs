//! Ends a hang with a message that shows which thread waits on what.
//!
//! A lost wake-up does not fail; it hangs silently forever. So a separate thread checks whether
//! there is any progress. If there is none for a minute, it prints the contender under test, the
//! waiters in our table, and all threads as the kernel sees them. Then it ends the process without
//! waiting for any thread.

use crate::harness::Context;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use waitword::table::{self, Waiter};

/// How long there may be no progress.
const PATIENCE: Duration = Duration::from_secs(60);
/// Progress is checked at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The exit status of a process that hung.
pub const HUNG: i32 = 70;
/// Number of waiters and of threads that are listed. For waiters, the total is printed as well.
const NAMED: usize = 32;

/// Watches until it is dropped.
pub struct Watchdog {
    _stop: Sender<()>,
}

impl Watchdog {
    /// Watches `context`'s progress, in the workload called `name`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(name: &str, context: &Context) -> std::io::Result<Self> {
        Self::with_patience(PATIENCE, name, context)
    }

    /// The same with another time limit.
    pub(crate) fn with_patience(
        patience: Duration,
        name: &str,
        context: &Context,
    ) -> std::io::Result<Self> {
        let (name, context) = (name.to_owned(), context.clone());
        let look_again = (patience / 4).min(LOOK_AGAIN);
        let (stop, stopped) = channel::<()>();
        let watch = move || {
            let mut seen = context.progress();
            let mut since = Instant::now();
            while stopped.recv_timeout(look_again) == Err(RecvTimeoutError::Timeout) {
                if context.progress() != seen {
                    seen = context.progress();
                    since = Instant::now();
                } else if since.elapsed() > patience {
                    give_up(&name, patience, &context);
                }
            }
        };
        std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(watch)?;
        Ok(Self { _stop: stop })
    }
}

fn give_up(name: &str, patience: Duration, context: &Context) -> ! {
    let hangs = who_hangs(name, patience, context);
    let message = format!("\n{hangs}\n{}", who_waits_on_what());
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(message.as_bytes());
    let _ = stderr.flush();
    // SAFETY: ends the process at once. No exit handler runs, which could wait for a hung thread.
    unsafe { libc::_exit(HUNG) }
}

fn who_hangs(name: &str, patience: Duration, context: &Context) -> String {
    let patience = patience.as_secs();
    let measured = match context.measured() {
        nothing if nothing.is_empty() => String::new(),
        measured => format!(" in \"{measured}\""),
    };
    format!("`{name}` hangs{measured}: no progress for {patience} s.")
}

/// The waiters in our table, and the threads of the process as the kernel sees them, as text.
pub fn who_waits_on_what() -> String {
    let mut waiters = vec![Waiter::default(); NAMED];
    let snapshot = table::snapshot(&mut waiters);
    let named = snapshot.waiters.min(NAMED);
    let mut text = format!(
        "in the table: {} waiters, {} locked buckets\n",
        snapshot.waiters, snapshot.locked_buckets
    );
    for waiter in &waiters[..named] {
        let _ = writeln!(text, "  {waiter:?}");
    }
    let _ = writeln!(text, "threads (id, name, state, system call):");
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    for (number, task) in tasks.flatten().enumerate() {
        if number == NAMED {
            let _ = writeln!(text, "  ... and more");
            break;
        }
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let stat = read("stat");
        let head = stat.split_whitespace().take(4).collect::<Vec<_>>();
        let _ = writeln!(text, "  {}: {}", head.join(" "), read("syscall").trim());
    }
    text
}

/// For tests: ends the process with a message unless dropped within a minute.
#[cfg(test)]
pub(crate) fn guard(test: &str) -> Watchdog {
    let context = Context::new(crate::run::Settings::default(), std::sync::Arc::default());
    Watchdog::start(test, &context).expect("a thread for the watchdog")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_contender() {
        let context = Context::new(crate::run::Settings::default(), std::sync::Arc::default());
        let before = who_hangs("signal", PATIENCE, &context);
        assert!(
            before.starts_with("`signal` hangs: no progress"),
            "{before}"
        );
        context.measures("one CPU: some lock".to_owned());
        let message = who_hangs("signal", PATIENCE, &context);
        assert!(message.contains("in \"one CPU: some lock\""), "{message}");
    }

    #[test]
    fn the_message_names_the_threads() {
        let _guard = guard("watchdog");
        let text = who_waits_on_what();
        assert!(text.contains("in the table: "), "{text}");
        assert!(text.contains(&std::process::id().to_string()), "{text}");
    }
}
