//! What the watchdog of a scenario watches: the steps of its protocol.
//!
//! A lost wake-up does not fail: the waiter just sleeps forever. Progress is measured by
//! `Operations`: steps of a scenario's protocol that were completed. Waits that time out and begin
//! again do not count.
//!
//! At each look the counts go to the supervisor. The process also ends once a thread has found a
//! violation, because other threads may wait for that thread.

use crate::context::Context;
use crate::count::{Count, Totals};
use crate::fault::kind::Fault;
use crate::fault::priority::stay_above;
use crate::protocol::VIOLATED;
use crate::{process, report};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use waitword_testkit::watchdog::Watched;
pub(crate) use waitword_testkit::watchdog::{HUNG, Watchdog};

/// The prefix of a line of counts for the supervisor.
pub(crate) const COUNTS_LINE: &str = "counts ";

/// How often the watchdog looks, and sends counts to the supervisor.
const PERIOD: Duration = Duration::from_millis(50);

struct Scenario(&'static Context);

/// Watches until it is stopped.
pub(crate) fn start(context: &'static Context) -> Watchdog {
    Watchdog::with_period(PERIOD, context.patience(), Scenario(context))
        .expect("a thread for the watchdog")
}

impl Watched for Scenario {
    fn begin(&mut self) {
        block_signals();
        if self.0.has(Fault::Priority) {
            // Where this is not permitted, no thread under torture is above the watchdog either.
            stay_above();
        }
    }

    fn progress(&mut self, ran: Duration) -> u64 {
        let context = self.0;
        (context.board.ran).fetch_add(ran.as_millis() as u64, Relaxed);
        let now = context.totals();
        tell(&now);
        if context.board.is_violated() {
            let head = "an invariant was violated, see above,";
            give_up(context, head, VIOLATED.into());
        }
        now.of(Count::Operations)
    }

    fn hangs(&mut self, patience: Duration) -> String {
        let seconds = patience.as_secs_f32();
        give_up(self.0, &format!("no progress for {seconds} s"), HUNG)
    }

    /// The last counts for the supervisor.
    fn end(&mut self) {
        tell(&self.0.totals());
    }
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

/// Reports which thread of which process waits for what, and ends them all.
fn give_up(context: &'static Context, head: &str, status: i32) -> ! {
    process::complain(&report::waits(context, head));
    process::kill_all(context);
    // SAFETY: ends the process at once. Exit handlers could wait for a thread that hangs.
    unsafe { libc::_exit(status) }
}
