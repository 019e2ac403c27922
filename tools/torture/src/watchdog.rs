//! Watches for progress. If there is none, it reports which thread waits for what, and ends the
//! process.
//!
//! A lost wake-up does not fail: the waiter just sleeps forever. Progress is measured by
//! `Operations`: steps of a scenario's protocol that were completed. Waits that time out and begin
//! again do not count.
//!
//! It also ends the process once a thread has found a violation, because other threads may wait for
//! that thread.

use crate::child::VIOLATED;
use crate::context::Context;
use crate::count::{Count, Totals};
use crate::fault::{Fault, stay_above};
use crate::{process, report};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The exit status of a scenario that hung.
pub(crate) const HUNG: i32 = 70;

/// The prefix of a line of counts for the supervisor.
pub(crate) const COUNTS_LINE: &str = "counts ";

/// How often the watchdog looks, and sends counts to the supervisor.
const PERIOD: Duration = Duration::from_millis(50);

/// Watches until it is stopped.
pub(crate) struct Watchdog {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    pub(crate) fn start(context: &'static Context) -> Self {
        let (stop, stopped) = channel();
        let watch = move || {
            block_signals();
            if context.has(Fault::Priority) {
                // Where this is not permitted, no thread under torture is above the watchdog
                // either.
                stay_above();
            }
            let mut seen = Totals::default();
            let mut looked = Instant::now();
            let mut idle = Duration::ZERO;
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                // While the process is stopped no thread can make progress, so that time does not
                // count.
                let ran = looked.elapsed().min(4 * PERIOD);
                idle += ran;
                (context.board.ran).fetch_add(ran.as_millis() as u64, Relaxed);
                looked = Instant::now();
                let now = context.totals();
                tell(&now);
                if context.board.is_violated() {
                    let head = "an invariant was violated, see above,";
                    give_up(context, head, VIOLATED.into());
                }
                if progress(&now) != progress(&seen) {
                    seen = now;
                    idle = Duration::ZERO;
                } else if idle > context.patience() {
                    let seconds = context.patience().as_secs_f32();
                    give_up(context, &format!("no progress for {seconds} s"), HUNG);
                }
            }
            tell(&context.totals());
        };
        let thread = std::thread::Builder::new()
            .name("watchdog".to_owned())
            .spawn(watch)
            .expect("a thread for the watchdog");
        Self { stop, thread }
    }

    /// Stops the watchdog, which first sends the last counts to the supervisor.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // It can only have failed because its output pipe was closed.
        let _ = self.thread.join();
    }
}

fn progress(totals: &Totals) -> u64 {
    totals.of(Count::Operations)
}

fn tell(totals: &Totals) {
    println!("{COUNTS_LINE}{}", totals.to_line());
}

/// Leaves the signals of a storm to the threads that they are meant for. (SIGSYS cannot be blocked:
/// it answers the thread's own call.)
pub(crate) fn block_signals() {
    // SAFETY: fills a local set, and changes only this thread's mask.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigdelset(&raw mut all, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

fn give_up(context: &'static Context, head: &str, status: i32) -> ! {
    process::complain(&report::who_waits_for_what(context, head));
    process::kill_all(context);
    // SAFETY: ends the process at once. Exit handlers could wait for a thread that hangs.
    unsafe { libc::_exit(status) }
}
