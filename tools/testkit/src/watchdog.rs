//! Ends a hang with a report that shows which thread waits on what.
//!
//! A lost wake-up does not fail; it hangs silently forever. So a separate thread checks whether
//! there is any progress. If there is none for too long, it prints the waiters in our table and all
//! threads as the kernel sees them. Then it ends the process without waiting for any thread.
//!
//! A test makes progress when it ends, and when it says so ([`Watchdog::pat`]). A tool states what
//! its progress is ([`Watched`]).

use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use waitword::table::{self, Waiter};

/// The exit status of a process that hung.
pub const HUNG: i32 = 70;
/// How often a watchdog checks for progress, unless its patience is shorter.
const PERIOD: Duration = Duration::from_secs(1);
/// Number of waiters and of threads that are listed.
const LISTED: usize = 256;

/// What a watchdog watches.
pub trait Watched: Send + 'static {
    /// Called once, on the watchdog's thread, before all other methods.
    fn begin(&mut self) {}

    /// A number that changes whenever there was progress. `ran`: how long the process has run since
    /// the last call.
    fn progress(&mut self, ran: Duration) -> u64;

    /// There was no progress for `patience`. Returns the first lines of the report.
    fn hangs(&mut self, patience: Duration) -> String;

    /// Called when the watchdog is stopped in time.
    fn end(&mut self) {}
}

/// Watches until it is dropped.
#[must_use]
pub struct Watchdog {
    pats: Arc<AtomicU64>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    /// Watches for progress, and ends the process if there is none for `patience`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(patience: Duration, watched: impl Watched) -> std::io::Result<Self> {
        Self::with_period(PERIOD.min(patience / 4), patience, watched)
    }

    /// The same; the watchdog looks once in `period`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn with_period(
        period: Duration,
        patience: Duration,
        mut watched: impl Watched,
    ) -> std::io::Result<Self> {
        let pats = Arc::new(AtomicU64::new(0));
        let seen_pats = pats.clone();
        let (stop, stopped) = channel::<()>();
        let (started, starts) = channel::<()>();
        let watch = move || {
            watched.begin();
            // A thread's first wait takes memory. Later there may be none.
            let _ = stopped.recv_timeout(Duration::ZERO);
            drop(started);
            let mut seen = (0, 0);
            let (mut looked, mut idle) = (Instant::now(), Duration::ZERO);
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                // While the process is stopped no thread can make progress, so that time does not
                // count.
                let ran = looked.elapsed().min(4 * period);
                looked = Instant::now();
                let now = (watched.progress(ran), seen_pats.load(Relaxed));
                if now != seen {
                    seen = now;
                    idle = Duration::ZERO;
                    continue;
                }
                idle += ran;
                if idle > patience {
                    give_up(&watched.hangs(patience));
                }
            }
            watched.end();
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch)?;
        let _ = starts.recv();
        Ok(Self { pats, stop, thread })
    }

    /// There was progress.
    pub fn pat(&self) {
        self.pats.fetch_add(1, Relaxed);
    }

    /// Stops the watchdog, and waits until it has stopped.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

/// A test: it has its name from its thread, and its place from its caller.
struct Test {
    name: String,
    place: &'static Location<'static>,
}

impl Watched for Test {
    fn progress(&mut self, _ran: Duration) -> u64 {
        0
    }

    fn hangs(&mut self, patience: Duration) -> String {
        let (Self { name, place }, seconds) = (self, patience.as_secs());
        format!("`{name}` ({place}) hangs: no progress for {seconds} s.")
    }
}

/// Watches over the calling test until the result is dropped. Two minutes are ample; nothing is
/// measured by them.
#[track_caller]
pub fn watch() -> Watchdog {
    watch_for(limit(120))
}

/// The same with another limit.
#[track_caller]
pub fn watch_for(limit: Duration) -> Watchdog {
    let test = Test {
        name: std::thread::current().name().unwrap_or("a test").to_owned(),
        place: Location::caller(),
    };
    Watchdog::start(limit, test).expect("a thread for the watchdog")
}

/// `usually`, or the number of seconds in `WATCHDOG_SECONDS`: for slow machines.
pub fn limit(usually: u64) -> Duration {
    let wanted = std::env::var("WATCHDOG_SECONDS").ok();
    let seconds = wanted.and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(usually))
}

fn give_up(head: &str) -> ! {
    // Not `eprintln`: the test harness would capture it, and withhold it.
    let report = format!("\n{head}\n{}", who_waits());
    let _ = std::io::stderr().write_all(report.as_bytes());
    // SAFETY: ends the process at once. No exit handler runs, which could wait for a hung thread.
    unsafe { libc::_exit(HUNG) }
}

/// The waiters in our table, and the threads of the process as the kernel sees them, as text.
pub fn who_waits() -> String {
    let mut waiters = vec![Waiter::default(); LISTED];
    let snapshot = table::snapshot(&mut waiters);
    let mut text = format!(
        "in the table: {} waiters, {} locked buckets\n",
        snapshot.waiters, snapshot.locked_buckets
    );
    for waiter in waiters.iter().take(snapshot.waiters) {
        let _ = writeln!(text, "  {waiter:#x?}");
    }
    let _ = writeln!(text, "threads (id, name, state, place in the kernel, system call):");
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    for (number, task) in tasks.flatten().enumerate() {
        if number == LISTED {
            let _ = writeln!(text, "  ... and more");
            break;
        }
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let stat = read("stat");
        // The name may contain anything, also blanks and brackets.
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        let state = rest.split_whitespace().next().unwrap_or_default();
        let (place, call) = (read("wchan"), read("syscall"));
        let _ = writeln!(text, "  {name}) {state} {}: {}", place.trim(), call.trim());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_the_threads() {
        let _watchdog = watch();
        let asleep = "(watchdog) S ";
        let mut text = who_waits();
        // The watchdog may still be on its way to sleep.
        for _ in 0..1000 {
            if text.contains(asleep) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            text = who_waits();
        }
        assert!(text.contains(asleep), "{text}");
        assert!(text.contains("in the table: "), "{text}");
        assert!(text.contains(&std::process::id().to_string()), "{text}");
    }
}
