//! Stopped processes: SIGSTOP and, some milliseconds later, SIGCONT. Either a single process of a
//! scenario is stopped while the others go on, or, from outside, the scenario's own process with
//! all its threads, including its watchdog.

use super::choice::{choices, noted_choices, pause};
use super::flag::Flag;
use super::kind::Fault;
use crate::context::Context;
use crate::count::Count;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Stops one forked process after another.
pub(super) fn run(context: &'static Context, over: &Flag) {
    for number in 0.. {
        let mut dice = noted_choices(context, Fault::Stop, number);
        if !over.sleep(pause(&mut dice, 60)) {
            break;
        }
        let place = &context.children[dice.usize(0..context.children.len().min(8))];
        let child = place.load(SeqCst);
        if child <= 0 {
            continue;
        }
        let process = Handle::open(child);
        // Still listed: it had not been waited for when it was opened, so the number was its own.
        if let Some(process) = process
            && place.load(SeqCst) == child
        {
            process.signal(libc::SIGSTOP);
            std::thread::sleep(stay(&mut dice));
            process.signal(libc::SIGCONT);
            context.board.count(Count::Stops, 1);
        }
    }
}

fn stay(dice: &mut fastrand::Rng) -> Duration {
    Duration::from_micros(dice.u64(100..15_000))
}

/// A process by file descriptor, which cannot come to mean another process that gets the number
/// later.
struct Handle(i32);

impl Handle {
    fn open(process: i32) -> Option<Self> {
        // SAFETY: passes only numbers.
        let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) } as i32;
        (file >= 0).then_some(Self(file))
    }

    /// Has no effect on a process that has ended.
    fn signal(&self, signal: i32) {
        let none = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: passes numbers and a null pointer.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0, signal, none, 0) };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once.
        unsafe { libc::close(self.0) };
    }
}

/// Stops a scenario's whole process now and then, from the supervisor.
pub(crate) struct Outside {
    over: Flag,
    stops: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Outside {
    /// The caller must not wait for `child` before [`end`](Self::end) has returned.
    pub(crate) fn start(child: u32, seed: u64) -> Self {
        let over = Flag::default();
        let stops = Arc::new(AtomicU64::new(0));
        let (flag, count) = (over.clone(), stops.clone());
        let work = move || {
            for number in 0.. {
                // Different choices from those inside.
                let mut dice = choices(!seed, Fault::Stop, number);
                if !flag.sleep(pause(&mut dice, 120)) {
                    break;
                }
                signal(child, libc::SIGSTOP);
                std::thread::sleep(stay(&mut dice));
                signal(child, libc::SIGCONT);
                count.fetch_add(1, SeqCst);
            }
        };
        let thread = std::thread::spawn(work);
        Self { over, stops, thread }
    }

    /// Stops no longer, and leaves the process running. Returns how often it was stopped.
    pub(crate) fn end(self) -> u64 {
        self.over.raise();
        // It cannot have panicked: nothing in it panics.
        let _ = self.thread.join();
        self.stops.load(SeqCst)
    }
}

fn signal(child: u32, signal: i32) {
    // SAFETY: a child that has not been waited for, so the number is its own.
    unsafe { libc::kill(child as i32, signal) };
}
