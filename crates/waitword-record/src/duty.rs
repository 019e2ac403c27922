//! When the kernel records the switches of a process's threads (`switches.rs`), and when it rests.
//!
//! A ring makes each switch of its thread slower, by [`COST`]. In a program whose threads do little
//! else than switch, that doubles the time. So the rings of a process may take [`ALLOWED`] of its
//! CPUs. If they take more, they are on for a part of the time only: a duty cycle, of all rings
//! together.
//!
//! ```text
//!   on, at least WINDOW       the last window's cost was above ALLOWED: unmap all rings
//!   rest, (on + TAIL) * cost / ALLOWED
//!   on ...
//! ```
//!
//! All together, because one ring makes the switches of all threads slower: the kernel looks for
//! rings at each switch while there is one in the system. It stops a second after the last one has
//! ended. That second is the [`TAIL`]. It is so long that a program which switches much should not
//! begin with rings: a thread makes its first one when it has been recorded for a window.
//!
//! While the rings rest, causes come from sums (`sums.rs`).

use crate::budget::cpus;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a ring adds to a switch, in nanoseconds: two threads that yield to each other take 1.32 µs
/// for a turn without rings, and 2.95 µs with them (Linux 6.18). Measured by
/// `cargo test --release -p waitword-record what_a_ring_costs -- --ignored --nocapture`.
const COST: u64 = 1630;
/// What the second after the last ring costs, as a time with rings, in nanoseconds. In it, a switch
/// of a thread that had a ring costs 0.14 µs more by the same command, and 0.25 µs in `sysbench
/// threads`. There are up to twice as many switches as with rings.
const TAIL: u64 = 1_000_000_000 * 2 * 250 / COST;
/// The share of the process's CPUs that rings may take, in thousandths.
const ALLOWED: u64 = 10;
/// How long switches are counted before the cost is known, in nanoseconds. On two CPUs [`ALLOWED`]
/// is 120 switches in this time: enough to tell more from less, to within 10 %.
const WINDOW: u64 = 10_000_000;

/// The duty cycle of a process. All accesses are Relaxed: these are numbers to be compared.
///
/// The cost is that of rings of all threads, though some may have none: a thread makes its ring
/// when it next records something.
pub(crate) struct Cycle {
    /// When the rings began.
    on_since: AtomicU64,
    /// Until when they rest.
    rests_until: AtomicU64,
    /// When the window began, and the process's switches until then.
    began: AtomicU64,
    switches: AtomicU64,
}

pub(crate) static CYCLE: Cycle = Cycle::new();

/// What a thread does with its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Stay,
    /// Unmap it.
    Rest,
    /// Unmap those of all threads.
    RestAll,
    /// Map a new one.
    Begin,
}

impl Cycle {
    const fn new() -> Self {
        Self {
            on_since: AtomicU64::new(0),
            rests_until: AtomicU64::new(0),
            began: AtomicU64::new(0),
            switches: AtomicU64::new(0),
        }
    }

    /// What a thread does that was first recorded at `first`.
    pub(crate) fn look(&self, now: u64, first: u64, has_ring: bool) -> Then {
        self.look_at(now, cpus(), switches, first, has_ring)
    }

    fn look_at(
        &self,
        now: u64,
        cpus: u64,
        switches: impl FnOnce() -> u64,
        first: u64,
        has_ring: bool,
    ) -> Then {
        if now < self.rests_until.load(Relaxed) {
            return if has_ring { Then::Rest } else { Then::Stay };
        }
        let (on_since, began) = (self.on_since.load(Relaxed), self.began.load(Relaxed));
        let is_rest_over = on_since == 0 || on_since < self.rests_until.load(Relaxed);
        let is_window_over = is_rest_over || now.saturating_sub(began) >= WINDOW;
        if is_window_over && self.began.compare_exchange(began, now, Relaxed, Relaxed).is_ok() {
            let switches = switches();
            let new = switches.saturating_sub(self.switches.swap(switches, Relaxed));
            let elapsed = now.saturating_sub(began).max(1);
            let cost = (new.saturating_mul(COST * 1000) / (elapsed * cpus)).min(1000);
            match is_rest_over {
                // What it would have cost meanwhile does not count.
                true => self.on_since.store(now, Relaxed),
                false if cost > ALLOWED => {
                    let on = now.saturating_sub(on_since).min(TAIL);
                    self.rests_until.store(now + (on + TAIL) * cost / ALLOWED, Relaxed);
                    return Then::RestAll;
                }
                false => {}
            }
        }
        let is_new = now.saturating_sub(first) < WINDOW;
        if has_ring || is_new { Then::Stay } else { Then::Begin }
    }
}

/// Whether the rings have rested in this process or one that it was forked from.
pub(crate) fn has_rested() -> bool {
    CYCLE.rests_until.load(Relaxed) != 0
}

/// The number of switches of all threads of the process so far.
fn switches() -> u64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes at most this structure, which is an array of integers, so zeros are
    // valid.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_nvcsw + usage.ru_nivcsw) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_that_cost_too_much_rest_in_proportion() {
        let cycle = Cycle::new();
        let look = |now, switches| cycle.look_at(now, 2, || switches, 0, true);
        let without = |now, first| cycle.look_at(now, 2, || unreachable!(), first, false);
        let mut now = 5_000_000_000;
        assert_eq!(look(now, 7000), Then::Stay);
        assert_eq!(without(now + WINDOW - 1, now), Then::Stay, "it is new");
        assert_eq!(without(now + WINDOW - 1, now - 1), Then::Begin);
        // 5,000 switches in a second cost 8 ms of 2 seconds.
        let mut switches = 7000;
        for _ in 0..100 {
            now += WINDOW;
            switches += 50;
            assert_eq!(look(now, switches), Then::Stay);
        }
        // 2700 in 10 ms cost 220 thousandths.
        now += WINDOW;
        assert_eq!(look(now, switches + 2700), Then::RestAll);
        // They have been on for a second: no longer than the tail counts.
        let until = now + 2 * TAIL * 22;
        assert_eq!(without(until - 1, 0), Then::Stay);
        assert_eq!(look(until - 1, 0), Then::Rest, "a ring that was left");
        // What they would have cost meanwhile does not count.
        assert_eq!(cycle.look_at(until, 2, || 900_000, 0, false), Then::Begin);
        assert_eq!(without(until + 10, 0), Then::Begin);
        assert_eq!(look(until + WINDOW, 902_700), Then::RestAll);
        let until = until + WINDOW + (WINDOW + TAIL) * 22;
        assert_eq!(without(until - 1, 0), Then::Stay);
        assert_eq!(cycle.look_at(until, 2, || 0, 0, false), Then::Begin);
    }

    #[test]
    fn threads_that_switch_much_from_the_first_make_no_ring() {
        let cycle = Cycle::new();
        let look = |now, switches| cycle.look_at(now, 2, || switches, 1000, false);
        assert_eq!(look(1000, 0), Then::Stay);
        assert_eq!(look(1000 + WINDOW - 1, 2000), Then::Stay);
        assert_eq!(look(1000 + WINDOW, 2700), Then::RestAll);
        assert_eq!(look(1000 + 2 * WINDOW, 2700), Then::Stay);
    }
}
