//! Whether a lock is monopolized, and the nap of its heir: `monopoly.rs`, applied to a mutex.
//!
//! What was counted is kept in the lock's record (`LockHistory`). In a model nothing is counted.

use super::RawPosixMutex;
use super::monopoly::Monopoly;
use crate::park::spin::{self, LockHistory};

/// How often turns are counted, at most, where the lock was not monopolized lately.
pub(super) const SAMPLE_EVERY: u64 = 100_000;

#[inline]
fn history_of(mutex: &RawPosixMutex) -> &'static LockHistory {
    LockHistory::at(core::ptr::from_ref(mutex).addr())
}

/// What was counted of the lock's turns lately.
fn turns_of(mutex: &RawPosixMutex) -> Monopoly {
    Monopoly::from_bits(history_of(mutex).counted(), spin::is_throttled())
}

/// Whether the lock was found to be so lately.
pub(super) fn is_monopolized(mutex: &RawPosixMutex) -> bool {
    turns_of(mutex).is_one()
}

#[cfg(not(loom))]
mod counted {
    use super::super::monopoly::{
        ENOUGH_TURNS, LOOK_EVERY, LOOKS_AFTER_NAP, MOST_LOOKS, MOST_LOOKS_AT_ONE, Monopoly, SAMPLE,
        Sample, Use,
    };
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
        note(mutex, began, |monopoly| {
            monopoly.with(turns, began.elapsed())
        })
    }

    /// Notes what is known of the lock by now, and returns the nap that comes of it.
    fn note(mutex: &RawPosixMutex, now: Moment, with: impl Fn(Monopoly) -> (Monopoly, u64)) -> u64 {
        let (counted, nap) = with(turns_of(mutex));
        history_of(mutex).note_counted(now.nanoseconds(), counted.to_bits());
        nap
    }

    /// Notes, as an heir that has just woken from its nap, whether a saturated lock is still in use. If
    /// it was left alone, it is free and no thread takes it.
    pub(in super::super) fn note_end(mutex: &RawPosixMutex) {
        if !turns_of(mutex).is_saturated() {
            return;
        }
        let mut is_in_use = mutex.state().is_locked();
        for _ in 0..LOOKS_AFTER_NAP {
            if is_in_use {
                break;
            }
            spin::pause_for(LOOK_EVERY);
            is_in_use = mutex.state().is_locked();
        }
        note(mutex, Moment::now(), |monopoly| {
            (monopoly.with_nap_ended(is_in_use), 0)
        });
    }

    /// Notes that a thread gives the lock back to wait for a condvar, while others want it. It may wait
    /// for them: then one thread alone does not saturate the lock, however long it holds it.
    pub(in super::super) fn note_wait(mutex: &RawPosixMutex) {
        history_of(mutex).note_wait(Moment::now().nanoseconds());
    }

    /// Whether one did lately.
    #[inline]
    pub(in super::super) fn has_waited_lately(mutex: &RawPosixMutex) -> bool {
        history_of(mutex).has_waited_lately(|| Moment::now().nanoseconds())
    }

    /// Looks at how the lock is used, as its heir, which leaves it alone meanwhile. `None`: that
    /// cannot be said.
    fn look_at_use(mutex: &RawPosixMutex) -> Option<Use> {
        let began = Moment::now();
        let mut before = mutex.state();
        let (mut looks, mut held, mut turns, mut unchanged) = (0, 0, 0, 0);
        while looks < MOST_LOOKS && turns < ENOUGH_TURNS && unchanged < MOST_LOOKS_AT_ONE {
            spin::pause_for(LOOK_EVERY);
            let state = mutex.state();
            if !state.has_heir() {
                return None;
            }
            looks += 1;
            turns += state.turns_since(before);
            unchanged = if state == before { unchanged + 1 } else { 0 };
            before = state;
            held += u32::from(state.is_locked());
        }
        let took = began.elapsed();
        // If this thread was preempted meanwhile, more turns have passed than were counted.
        let is_right = looks > 0 && took < 2 * u64::from(looks) * LOOK_EVERY.as_nanos() as u64;
        is_right.then_some(Use { looks, held, turns })
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
        let nap = match turns_of(mutex).next_sample() {
            Sample::Turns => count_turns(mutex),
            Sample::Use if has_waited_lately(mutex) => note(mutex, now, Monopoly::without_use),
            Sample::Use => {
                let seen = look_at_use(mutex);
                note(mutex, now, |monopoly| monopoly.with_use(seen))
            }
            Sample::Nothing => note(mutex, now, Monopoly::with_nap),
        };
        match nap {
            nap if nap == 0 || sched::priority() == 0 => nap,
            _ => 0,
        }
    }
}

#[cfg(not(loom))]
pub(super) use counted::{
    count_turns, due, has_short_turns, has_waited_lately, note_end, note_wait,
};

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::monopoly::Use;
    use super::super::waiter::Moment;
    use super::super::word::State;
    use super::*;
    use crate::atomic::Ordering;
    use crate::sys::clock::Deadline;
    use crate::sys::interrupts::Interrupts;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// With another thread that takes the lock again and again, past an heir: for so many pauses each
    /// time, and with so many between.
    fn beside_one(mutex: &RawPosixMutex, section: u32, gap: u32, test: impl FnOnce()) {
        let pause = |times| (0..times).for_each(|_| std::hint::spin_loop());
        mutex.set(State::with_heir);
        // Of an earlier mutex at this place.
        history_of(mutex).note_counted(0, 0);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Relaxed) {
                    let change = |change: fn(State) -> State| {
                        let state = mutex.state();
                        mutex.change(state, change(state), Ordering::Relaxed)
                    };
                    assert!(change(State::taken).is_ok());
                    pause(section);
                    assert!(change(State::released).is_ok());
                    pause(gap);
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
        beside_one(&mutex, 0, 0, || {
            let began = Instant::now();
            while !(is_monopolized(&mutex) && has_short_turns(&mutex)) {
                assert!(began.elapsed() < PATIENCE && naps(&mutex, None, PATIENCE));
                if turns_of(&mutex).is_saturated() {
                    // That, too; and then nobody counts turns.
                    history_of(&mutex).note_counted(0, 0);
                }
            }
            // A wait of the drop-in's, which has no end but may be left.
            assert!(naps(&mutex, Some(&left), PATIENCE));
            assert!(!naps(&mutex, Some(&timed), Duration::from_millis(20)));
        });
    }

    /// It is long until the use is sampled; and samples in which the other had no CPU say nothing.
    const PATIENCE: Duration = Duration::from_secs(20);
    /// As long as it takes to sample the use often enough that it would have been found.
    const LONG_ENOUGH: Duration = Duration::from_millis(200);

    #[test]
    fn the_heir_of_a_saturated_lock_naps() {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            return;
        }
        let mutex = RawPosixMutex::new();
        beside_one(&mutex, 200, 20, || {
            let began = Instant::now();
            while !turns_of(&mutex).is_saturated() {
                assert!(began.elapsed() < PATIENCE && naps(&mutex, None, PATIENCE));
            }
        });
    }

    #[test]
    fn a_saturated_lock_that_is_left_alone_at_the_end_of_naps_is_saturated_no_longer() {
        let mutex = RawPosixMutex::new();
        let seen = Use {
            looks: 100,
            held: 80,
            turns: 8,
        };
        let (saturated, _) = Monopoly::default().with_use(Some(seen));
        let naps_end = |is_held: bool| {
            history_of(&mutex).note_counted(0, saturated.to_bits());
            (0..4).for_each(|_| note_end(&mutex));
            assert_eq!(turns_of(&mutex).is_saturated(), is_held);
        };
        naps_end(false);
        mutex.lock();
        naps_end(true);
    }

    /// Nor one whose threads wait for condvars meanwhile.
    #[test]
    fn the_heir_of_a_lock_with_long_gaps_does_not_nap() {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            return;
        }
        let unsaturated = RawPosixMutex::new();
        // A holder that loses its CPU in a section may look like a long one, in one sample.
        let stays_awake = || {
            let mut stays = false;
            beside_one(&unsaturated, 40, 200, || {
                stays = !naps(&unsaturated, None, LONG_ENOUGH);
            });
            stays
        };
        assert!((0..10).any(|_| stays_awake()));
        let with_condvar = RawPosixMutex::new();
        beside_one(&with_condvar, 200, 20, || {
            let began = Instant::now();
            while began.elapsed() < LONG_ENOUGH {
                note_wait(&with_condvar);
                assert_eq!(due(&with_condvar, None, Moment::now()), 0);
            }
        });
    }
}
