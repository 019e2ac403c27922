//! When the kernel records the switches of a thread (`switches.rs`), and when it rests.
//!
//! A ring makes each switch of its thread slower, by [`COST`]. In a program whose threads do little
//! else than switch, that doubles the time. So the rings of a process may take [`ALLOWED`] of its
//! CPUs. If they take more, they are on for a part of the time only: a duty cycle, for each thread
//! by itself.
//!
//! ```text
//!   on, at least WINDOW       the last window's cost was above ALLOWED: unmap the ring
//!   rest, WINDOW * full / ALLOWED
//!   on ...
//! ```
//!
//! `full` is what all rings would cost if all threads switched as often as this one and none
//! rested. (The measured cost is less as soon as some rest.)
//!
//! While a ring rests, causes come from sums (`sums.rs`).

use crate::budget::cpus;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a ring adds to a switch, in nanoseconds: two threads that yield to each other take 0.72 µs
/// for a turn without rings, and 1.79 µs with them (Linux 6.18). Measured by
/// `cargo test --release -p waitword-record what_a_ring_costs -- --ignored --nocapture`.
const COST: u64 = 1100;
/// The share of the process's CPUs that rings may take, in thousandths.
const ALLOWED: u64 = 10;
/// How long the cost is added up before it counts, in nanoseconds. On two CPUs [`ALLOWED`] is 180
/// switches in this time: enough to tell more from less, to within 7 %.
const WINDOW: u64 = 10_000_000;

/// The cost in a process, of all threads that have a ring. All accesses are Relaxed: these are
/// numbers to be compared, and a switch that is lost between two windows does not matter.
struct Window {
    began: AtomicU64,
    switches: AtomicU64,
    /// In the last window, in thousandths of the CPUs.
    cost: AtomicU64,
}

static WINDOW_NOW: Window = Window::new();

impl Window {
    const fn new() -> Self {
        Self { began: AtomicU64::new(0), switches: AtomicU64::new(0), cost: AtomicU64::new(0) }
    }

    /// Adds switches of the calling thread. Returns the cost in the last window that is over.
    fn add(&self, now: u64, switches: u64, cpus: u64) -> u64 {
        let all = self.switches.fetch_add(switches, Relaxed) + switches;
        let began = self.began.load(Relaxed);
        let elapsed = now.saturating_sub(began);
        if elapsed >= WINDOW && self.begin(began, now) && began != 0 {
            let cost = all.saturating_mul(COST * 1000) / (elapsed * cpus);
            self.cost.store(cost, Relaxed);
        }
        self.cost.load(Relaxed)
    }

    /// Begins a window in place of the one that began then. Returns false if another thread has.
    fn begin(&self, before: u64, now: u64) -> bool {
        let is_mine = self.began.compare_exchange(before, now, Relaxed, Relaxed).is_ok();
        if is_mine {
            self.switches.store(0, Relaxed);
        }
        is_mine
    }
}

/// What a thread does with its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Stay,
    /// Unmap it.
    Rest,
    /// Map a new one.
    Begin,
}

/// The duty cycle of a thread.
#[derive(Debug)]
pub(crate) struct Duty {
    /// When the ring was made.
    since: Cell<u64>,
    /// The number of its switches that have been added.
    added: Cell<u64>,
    /// Until when the thread has none; 0: it has one.
    rests_until: Cell<u64>,
}

impl Duty {
    pub(crate) const fn new() -> Self {
        Self { since: Cell::new(0), added: Cell::new(0), rests_until: Cell::new(0) }
    }

    /// A ring has been made.
    pub(crate) fn begin(&self, now: u64) {
        self.since.set(now);
        self.added.set(0);
        let rested = self.rests_until.replace(0) != 0;
        let began = WINDOW_NOW.began.load(Relaxed);
        if rested && now.saturating_sub(began) >= WINDOW {
            // A window without this ring would hide its cost.
            WINDOW_NOW.begin(began, now);
        }
    }

    /// When the ring was made.
    pub(crate) fn since(&self) -> u64 {
        self.since.get()
    }

    /// Looks what to do, with a ring that has seen so many switches, or without one, in a process
    /// with so many threads.
    pub(crate) fn look(&self, now: u64, switches: u64, threads: u64) -> Then {
        self.look_at(&WINDOW_NOW, now, switches, Process { threads, cpus: cpus() })
    }

    fn look_at(&self, window: &Window, now: u64, switches: u64, process: Process) -> Then {
        match self.rests_until.get() {
            0 => {}
            until if now < until => return Then::Stay,
            _ => return Then::Begin,
        }
        let new = switches.saturating_sub(self.added.replace(switches));
        let cost = window.add(now, new, process.cpus);
        let on = now.saturating_sub(self.since.get());
        if cost <= ALLOWED || on < WINDOW {
            return Then::Stay;
        }
        let mine = switches.saturating_mul(COST * 1000) / on;
        let full = mine.saturating_mul(process.threads) / process.cpus;
        self.rests_until.set(now + WINDOW * full.clamp(ALLOWED, 1000) / ALLOWED);
        Then::Rest
    }
}

/// What a cost is compared with.
#[derive(Clone, Copy)]
struct Process {
    threads: u64,
    cpus: u64,
}

/// Adds switches to this process's window.
#[cfg(test)]
pub(crate) fn pretend_to_cost(now: u64, switches: u64) {
    WINDOW_NOW.add(now, switches, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_switches_too_often_rests_in_proportion() {
        let (window, duty) = (Window::new(), Duty::new());
        let process = Process { threads: 16, cpus: 2 };
        let look = |now, switches| duty.look_at(&window, now, switches, process);
        let mut now = 5_000_000_000;
        duty.since.set(now);
        // 10,000 switches in a second cost 11 ms of 2 seconds.
        let mut switches = 0;
        for _ in 0..100 {
            now += WINDOW;
            switches += 100;
            assert_eq!(look(now, switches), Then::Stay);
        }
        assert_eq!(window.cost.load(Relaxed), 5);
        // 40 times as many: 220 thousandths. With those before, the ring's own cost is 15.
        now += WINDOW;
        switches += 4000;
        assert_eq!(look(now, switches), Then::Rest);
        assert_eq!(window.cost.load(Relaxed), 220);
        // As if each of the 16 threads had a cost of 15, on 2 CPUs: 120, 12 times what is allowed.
        assert_eq!(look(now + 12 * WINDOW - 1, 0), Then::Stay);
        assert_eq!(look(now + 12 * WINDOW, 0), Then::Begin);
        // The new ring stays for a window, whatever the last one has cost.
        now += 12 * WINDOW;
        duty.begin(now);
        assert_eq!(look(now + WINDOW - 1, 5), Then::Stay);
        assert_eq!(duty.since(), now);
    }

    #[test]
    fn the_cost_is_that_of_all_threads() {
        let (window, duties) = (Window::new(), [Duty::new(), Duty::new()]);
        let process = Process { threads: 2, cpus: 1 };
        let look = |which: usize, now, count| duties[which].look_at(&window, now, count, process);
        let began = 7 * WINDOW;
        duties.iter().for_each(|duty| duty.since.set(began));
        assert_eq!(look(0, began, 0), Then::Stay);
        assert_eq!(look(0, began + WINDOW / 2, 100), Then::Stay);
        // 200 in 10 ms: 22 thousandths.
        assert_eq!(look(1, began + WINDOW, 100), Then::Rest);
        assert_eq!(look(0, began + WINDOW, 100), Then::Rest);
    }
}
