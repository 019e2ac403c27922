//! Storms of signals, whose handlers do something that other threads wait for.

use crate::actor::{Actor, Verdict};
use crate::process::thread_number;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// The signal of the storm.
pub(crate) const SIGNAL: i32 = libc::SIGUSR1;

/// Installs `handler` for a signal, with or without `SA_RESTART`.
pub(crate) fn install(signal: i32, handler: extern "C" fn(i32), restarting: bool) {
    waitword_testkit::install(signal, handler, if restarting { libc::SA_RESTART } else { 0 });
}

/// The threads that the storm strikes.
pub(crate) struct Targets(Vec<AtomicU32>);

impl Targets {
    pub(crate) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| AtomicU32::new(0)).collect())
    }

    /// Makes the calling thread a target, until it is `spared`. Returns its ID.
    pub(crate) fn strike_me(&self, index: usize) -> u32 {
        let thread = thread_number();
        self.0[index].store(thread, SeqCst);
        thread
    }

    pub(crate) fn spare(&self, index: usize) {
        self.0[index].store(0, SeqCst);
    }

    /// Signals the targets at random until the storm `is_over`.
    pub(crate) fn blow(&self, actor: &mut Actor, is_over: impl Fn() -> bool) -> Verdict {
        while !is_over() {
            for _ in 0..actor.dice.u32(1..8) {
                signal(self.0[actor.dice.usize(0..self.0.len())].load(SeqCst));
            }
            match actor.dice.u32(0..4) {
                0 => std::thread::sleep(Duration::from_micros(actor.dice.u64(0..200))),
                _ => std::thread::yield_now(),
            }
        }
        Ok(())
    }
}

fn signal(thread: u32) {
    if thread != 0 {
        // The thread may have ended. Then the signal reaches no thread, or another thread of this
        // process, where the handler is installed too.
        waitword_testkit::signal(thread as i32, SIGNAL);
    }
}
