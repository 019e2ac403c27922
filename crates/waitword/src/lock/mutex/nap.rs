//! Whether a lock is monopolized, and the nap of its heir: `monopoly.rs`, applied to a mutex.
//!
//! What was counted is kept in the lock's record (`LockHistory`). In a model nothing is counted.

use super::RawPosixMutex;
use super::monopoly::Monopoly;
use crate::park::spin::LockHistory;

/// How often turns are counted, at most, where the lock was not monopolized lately.
pub(super) const SAMPLE_EVERY: u64 = 100_000;

#[inline]
fn history_of(mutex: &RawPosixMutex) -> &'static LockHistory {
    LockHistory::at(core::ptr::from_ref(mutex).addr())
}

/// What was counted of the lock's turns lately.
fn turns_of(mutex: &RawPosixMutex) -> Monopoly {
    Monopoly::from_bits(history_of(mutex).counted())
}

/// Whether the lock was found to be so lately.
pub(super) fn is_monopolized(mutex: &RawPosixMutex) -> bool {
    turns_of(mutex).is_one()
}

#[cfg(not(loom))]
mod counted {
    use super::super::monopoly::SAMPLE;
    use super::super::waiter::Moment;
    use super::{RawPosixMutex, SAMPLE_EVERY, history_of, is_monopolized, turns_of};
    use crate::park::spin;
    use crate::sys::clock::Deadline;
    use crate::sys::sched;

    /// Whether it takes less than some 2 µs from one section to the next.
    pub(in super::super) fn has_short_turns(mutex: &RawPosixMutex) -> bool {
        turns_of(mutex).are_short()
    }

    /// Counts turns for a moment, while there is an heir, and returns for how many nanoseconds the heir
    /// naps if the caller is that; 0: it does not.
    pub(in super::super) fn count_turns(mutex: &RawPosixMutex) -> u64 {
        let (began, before) = (Moment::now(), mutex.state());
        spin::pause_for(SAMPLE);
        let after = mutex.state();
        let turns = match before.has_heir() && after.has_heir() {
            true => after.turns_since(before),
            false => 0,
        };
        let (counted, nap) = turns_of(mutex).with(turns, began.elapsed());
        history_of(mutex).note_counted(began.nanoseconds(), counted.to_bits());
        nap
    }

    /// For how many nanoseconds the caller, the heir, naps; 0: it does not.
    ///
    /// An heir that waits until some time does not: it might oversleep. (A wait that ends only because a thread is to
    /// leave it may be left that much later.) Nor does a real-time thread: others would have the lock for longer than
    /// it takes to wake it. The word of a mutex that keeps an owner counts no turns.
    pub(in super::super) fn due(
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
        now: Moment,
    ) -> u64 {
        // Each time, of a monopolized lock.
        let is_due = is_monopolized(mutex)
            || history_of(mutex).is_sample_due(now.nanoseconds(), SAMPLE_EVERY);
        let has_end = deadline.and_then(Deadline::in_time).is_some();
        if !is_due || has_end || mutex.state().is_special() {
            return 0;
        }
        match count_turns(mutex) {
            nap if nap == 0 || sched::priority() == 0 => nap,
            _ => 0,
        }
    }
}

#[cfg(not(loom))]
pub(super) use counted::{count_turns, due, has_short_turns};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::waiter::Moment;
    use super::super::word::State;
    use super::*;
    use crate::atomic::Ordering;
    use crate::sys::clock::Deadline;
    use crate::sys::interrupts::Interrupts;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// With another thread that takes the lock again and again, past an heir.
    fn beside_a_monopolist(mutex: &RawPosixMutex, test: impl FnOnce()) {
        mutex.set(State::with_heir);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Relaxed) {
                    let change = |change: fn(State) -> State| {
                        let state = mutex.state();
                        mutex.change(state, change(state), Ordering::Relaxed)
                    };
                    assert!(change(State::taken).is_ok() && change(State::released).is_ok());
                }
            });
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
            is_over.store(true, Relaxed);
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
    }

    /// Whether the heir naps, sooner or later: samples in which this thread or the other had no CPU say nothing.
    fn naps(mutex: &RawPosixMutex, deadline: Option<&Deadline>, patience: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < patience {
            if due(mutex, deadline, Moment::now()) != 0 {
                return true;
            }
        }
        false
    }

    #[test]
    fn the_heir_of_a_monopolized_lock_naps_unless_it_might_oversleep() {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            return;
        }
        let mutex = RawPosixMutex::new();
        let interrupts = Interrupts::new();
        // SAFETY: `interrupts` outlives its last use.
        let left = unsafe { Deadline::brought_forward(None, &interrupts, true) };
        let timed = Deadline::after(Duration::from_secs(3600));
        beside_a_monopolist(&mutex, || {
            assert!(naps(&mutex, None, Duration::from_secs(20)));
            assert!(is_monopolized(&mutex) && has_short_turns(&mutex));
            // A wait of the drop-in's, which has no end but may be left.
            assert!(naps(&mutex, Some(&left), Duration::from_secs(20)));
            assert!(!naps(&mutex, Some(&timed), Duration::from_millis(20)));
        });
    }
}
