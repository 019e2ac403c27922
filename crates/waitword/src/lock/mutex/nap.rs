//! Whether a lock is monopolized, and the nap of its successor: `monopoly.rs`, applied to a mutex.
//!
//! The samples are kept in the lock's record (`LockHistory`). In a model nothing is counted and no
//! successor naps; a lock counts as monopolized if the model declares it so.

use super::RawPosixMutex;
use super::monopoly::Monopoly;
use crate::park::spin::LockHistory;

/// How often turns are counted, at most, if the lock has not been monopolized lately.
pub(super) const SAMPLE_EVERY: u64 = 100_000;

#[inline]
fn history_of(mutex: &RawPosixMutex) -> &'static LockHistory {
    LockHistory::at(core::ptr::from_ref(mutex).addr())
}

/// What the last samples have shown.
fn turns_of(mutex: &RawPosixMutex, cpu_is_scarce: bool) -> Monopoly {
    Monopoly::from_bits(history_of(mutex).counted(), cpu_is_scarce)
}

/// Whether the lock was found to be monopolized lately.
pub(super) fn is_monopolized(mutex: &RawPosixMutex) -> bool {
    #[cfg(loom)]
    if model::mutexes_are_monopolized() {
        return true;
    }
    // The limits make no difference here, and to find out whether CPU time is scarce would take a
    // reading of the clock.
    turns_of(mutex, false).is_one()
}

#[cfg(not(loom))]
mod counted {
    use super::super::monopoly::{
        ENOUGH_TURNS, LOOK_EVERY, LOOKS_AFTER_NAP, MOST_LOOKS, MOST_LOOKS_AT_ONE, Monopoly, SAMPLE,
        Sample, Use,
    };
    use super::super::waiter::Moment;
    use super::super::word::State;
    use super::{RawPosixMutex, SAMPLE_EVERY, history_of, is_monopolized, turns_of};
    use crate::oncpu::current_cpu;
    use crate::park::spin;
    use crate::sys::clock::Deadline;
    use crate::sys::sched;

    /// Whether it takes less than some 2 µs from one section to the next.
    pub(in super::super) fn has_short_turns(mutex: &RawPosixMutex) -> bool {
        turns_of(mutex, false).are_short()
    }

    /// What is known of the lock, under the limits that apply now.
    pub(super) fn known_of(mutex: &RawPosixMutex) -> Monopoly {
        turns_of(mutex, spin::is_throttled() || spin::is_beside_others())
    }

    /// Counts turns for a moment, while there is a successor. If the caller is the successor, it
    /// naps for the returned number of nanoseconds; 0 means that it does not nap.
    pub(in super::super) fn count_turns(mutex: &RawPosixMutex) -> u64 {
        let (began, before) = (Moment::now(), mutex.state());
        spin::pause_for(SAMPLE);
        let after = mutex.state();
        let turns = match before.has_successor() && after.has_successor() {
            true => after.turns_since(before),
            false => 0,
        };
        note(mutex, began, |monopoly| {
            monopoly.with(turns, began.elapsed())
        })
    }

    /// Updates the lock's record, and returns the nap that follows from it.
    fn note(mutex: &RawPosixMutex, now: Moment, with: impl Fn(Monopoly) -> (Monopoly, u64)) -> u64 {
        let (counted, nap) = with(known_of(mutex));
        history_of(mutex).note_counted(now.nanoseconds(), counted.to_bits());
        nap
    }

    /// Naps, as the successor, and notes whether the lock is still in use afterwards.
    pub(in super::super) fn sleep(mutex: &RawPosixMutex, nap: u64) {
        let cpu = current_cpu();
        sched::sleep_nanoseconds(nap as i64);
        note_end(mutex, current_cpu() != cpu);
    }

    /// As a successor that has just woken from its nap: notes whether the lock is still in use. A
    /// lock that was left alone is free, and no thread takes it.
    ///
    /// `is_elsewhere`: the thread is on another CPU than before. That may be the holder's CPU, in
    /// which case the holder has lost it.
    pub(super) fn note_end(mutex: &RawPosixMutex, is_elsewhere: bool) {
        let looks = match known_of(mutex).is_saturated() {
            true => LOOKS_AFTER_NAP,
            // Threads that wait for a condvar leave a lock alone for other reasons.
            false if is_elsewhere || has_waited_lately(mutex) => return,
            // A turn takes less time than the pause between two looks.
            false => 1,
        };
        let first = mutex.state();
        let shows_use = |state: State| state.is_locked() || state.turns_since(first) != 0;
        let is_in_use = shows_use(first)
            || (0..looks).any(|_| {
                spin::pause_for(LOOK_EVERY);
                shows_use(mutex.state())
            });
        note(mutex, Moment::now(), |monopoly| {
            (monopoly.with_nap_ended(is_in_use), 0)
        });
    }

    /// Notes that a thread gives the lock back to wait for a condvar, while other threads want it.
    pub(in super::super) fn note_wait(mutex: &RawPosixMutex) {
        history_of(mutex).note_wait(Moment::now().nanoseconds());
    }

    /// Whether a thread did so lately.
    #[inline]
    pub(in super::super) fn has_waited_lately(mutex: &RawPosixMutex) -> bool {
        history_of(mutex).has_waited_lately(|| Moment::now().nanoseconds())
    }

    /// As the successor: looks at how the lock is used, and leaves it alone meanwhile. `None` if
    /// that is inconclusive.
    fn look_at_use(mutex: &RawPosixMutex) -> Option<Use> {
        let began = Moment::now();
        let mut before = mutex.state();
        let (mut looks, mut held, mut turns, mut unchanged) = (0, 0, 0, 0);
        while looks < MOST_LOOKS && turns < ENOUGH_TURNS && unchanged < MOST_LOOKS_AT_ONE {
            spin::pause_for(LOOK_EVERY);
            let state = mutex.state();
            if !state.has_successor() {
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

    /// For how many nanoseconds the caller, which is the successor, naps; 0 if it does not.
    ///
    /// A successor with a deadline does not nap, because it might oversleep. (A deadline that
    /// carries only an interrupter does not count. A thread that is to leave such a wait may do so
    /// later by the length of a nap.) A real-time thread does not nap either: other threads would
    /// have the lock for longer than it takes to wake the real-time thread. The word of a mutex
    /// that keeps an owner counts no turns.
    pub(in super::super) fn due(
        mutex: &RawPosixMutex,
        deadline: Option<&Deadline>,
        now: Moment,
    ) -> u64 {
        // Every time, if the lock is monopolized.
        let is_due = is_monopolized(mutex)
            || history_of(mutex).is_sample_due(now.nanoseconds(), SAMPLE_EVERY);
        let has_end = deadline.and_then(Deadline::in_time).is_some();
        if !is_due || has_end || mutex.state().is_special() {
            return 0;
        }
        let nap = match known_of(mutex).next_sample() {
            Sample::Turns => count_turns(mutex),
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
pub(super) use counted::{count_turns, due, has_short_turns, has_waited_lately, note_wait, sleep};

#[cfg(loom)]
mod model {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    crate::checker::lazy_static! {
        static ref MONOPOLIZED: AtomicBool = AtomicBool::new(false);
    }

    /// From now on in this execution, every mutex counts as monopolized.
    pub(crate) fn let_mutexes_be_monopolized() {
        MONOPOLIZED.store(true, Relaxed);
    }

    pub(super) fn mutexes_are_monopolized() -> bool {
        MONOPOLIZED.load(Relaxed)
    }
}

#[cfg(loom)]
pub(crate) use model::let_mutexes_be_monopolized;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::monopoly::{Monopoly, SAMPLE, Use};
    use super::super::waiter::{FromCondvar, Moment};
    use super::super::word::State;
    use super::counted::{known_of, note_end};
    use super::*;
    use crate::atomic::Ordering;
    use crate::park::spin;
    use crate::sys::clock::Deadline;
    use crate::sys::interrupts::Interrupts;
    use crate::{PosixFlavour, PosixMutexOptions, RawCondvar};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::{Duration, Instant};

    /// Runs `test` while another thread takes the lock again and again, past a successor. `section`
    /// and `gap` are numbers of pause instructions.
    fn beside_one(mutex: &RawPosixMutex, section: u32, gap: u32, test: impl FnOnce()) {
        let pause = |times| (0..times).for_each(|_| std::hint::spin_loop());
        mutex.set(State::with_successor);
        // Clears the record of an earlier mutex at this address.
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

    /// Whether the successor naps, sooner or later. (A sample in which this thread or the other had
    /// no CPU is inconclusive.)
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
    fn the_successor_of_a_monopolized_lock_naps_unless_it_might_oversleep() {
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
                if known_of(&mutex).is_saturated() {
                    // The lock counts as saturated, too, and then turns are not counted.
                    history_of(&mutex).note_counted(0, 0);
                }
            }
            // A wait of the drop-in, which has no deadline but may be interrupted.
            assert!(naps(&mutex, Some(&left), PATIENCE));
            assert!(!naps(&mutex, Some(&timed), Duration::from_millis(20)));
        });
    }

    /// The use is sampled only after a long time, and a sample in which the other thread had no CPU
    /// is inconclusive.
    const PATIENCE: Duration = Duration::from_secs(20);
    /// Long enough for so many samples of the use that a saturation would have been found.
    const LONG_ENOUGH: Duration = Duration::from_millis(200);

    #[test]
    fn the_successor_of_a_saturated_lock_naps() {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            return;
        }
        let mutex = RawPosixMutex::new();
        beside_one(&mutex, 200, 20, || {
            let began = Instant::now();
            while !known_of(&mutex).is_saturated() {
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
            (0..4).for_each(|_| note_end(&mutex, false));
            assert_eq!(known_of(&mutex).is_saturated(), is_held);
        };
        naps_end(false);
        mutex.lock();
        naps_end(true);
    }

    /// Whether naps are on hold at a lock that is left alone and was taken in short turns before.
    fn are_on_hold(mutex: &RawPosixMutex, is_elsewhere: bool) -> bool {
        let (short, _) = Monopoly::default().with(4, SAMPLE.as_nanos() as u64);
        history_of(mutex).note_counted(0, short.to_bits());
        (0..4).for_each(|_| note_end(mutex, is_elsewhere));
        !is_monopolized(mutex)
    }

    #[test]
    fn naps_are_on_hold_at_a_lock_that_is_left_alone() {
        let mutex = RawPosixMutex::new();
        mutex.set(State::with_successor);
        // Threads may have waited for a condvar with an earlier mutex at this address.
        let began = Instant::now();
        while has_waited_lately(&mutex) {
            assert!(began.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        assert!(are_on_hold(&mutex, false));
        assert!(!are_on_hold(&mutex, true));
        note_wait(&mutex);
        assert!(!are_on_hold(&mutex, false));

        let held = RawPosixMutex::new();
        held.lock();
        assert!(!are_on_hold(&held, false));
    }

    /// In a nap the thread may move to another CPU. Such a nap is inconclusive.
    #[test]
    fn a_successor_that_naps_at_a_lock_that_is_left_alone_naps_no_more() {
        let mutex = RawPosixMutex::new();
        mutex.set(State::with_successor);
        let (short, _) = Monopoly::default().with(4, SAMPLE.as_nanos() as u64);
        history_of(&mutex).note_counted(0, short.to_bits());
        let began = Instant::now();
        while is_monopolized(&mutex) {
            assert!(began.elapsed() < PATIENCE);
            super::sleep(&mutex, 20_000);
        }
    }

    #[test]
    fn the_successor_of_a_lock_with_long_gaps_does_not_nap() {
        if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1) {
            return;
        }
        let unsaturated = RawPosixMutex::new();
        // In a single sample, a holder that loses its CPU in a section may look like one with long
        // sections.
        let stays_awake = || {
            let mut stays = false;
            beside_one(&unsaturated, 40, 200, || {
                stays = !naps(&unsaturated, None, LONG_ENOUGH);
            });
            stays
        };
        assert!((0..10).any(|_| stays_awake()));
    }

    /// Records that the lock was held for this many hundredths of the time.
    fn note_use(mutex: &RawPosixMutex, held: u32) {
        let seen = Use {
            looks: 100,
            held,
            turns: 8,
        };
        let (known, _) = Monopoly::default().with_use(Some(seen));
        history_of(mutex).note_counted(0, known.to_bits());
    }

    /// Other tests change the state of the process, too. So this one repeats until the state is as
    /// expected.
    #[test]
    fn beside_others_a_lock_is_monopolized_sooner() {
        let mutex = Box::new(RawPosixMutex::new());
        let is_saturated = |others_run_for: u64| {
            note_use(&mutex, 40);
            spin::pretend_to_be_beside_others(others_run_for);
            known_of(&mutex).is_saturated()
        };
        let began = Instant::now();
        while !is_saturated(1_000_000_000) || is_saturated(0) {
            assert!(began.elapsed() < PATIENCE);
        }
    }

    /// A signalled thread is parked at a mutex that has a successor. Returns whether the holder
    /// wakes it when it gives the mutex back to wait for another condvar.
    fn is_woken_past_successor(is_monopolized: bool) -> bool {
        let mutex = Box::new(
            PosixMutexOptions::new()
                .flavour(PosixFlavour::Throughput)
                .build_raw(),
        );
        let (condvar, has_had_it) = (RawCondvar::new(), AtomicBool::new(false));
        let mut is_woken = false;
        std::thread::scope(|threads| {
            threads.spawn(|| {
                mutex.lock();
                // SAFETY: the mutex is held, and every waiter uses this mutex.
                unsafe { condvar.wait(&mutex, None) }.unwrap();
                has_had_it.store(true, Relaxed);
                // SAFETY: the mutex is held.
                unsafe { mutex.unlock() };
            });
            while !condvar.may_have_waiters() {
                std::thread::yield_now();
            }
            mutex.lock();
            assert!(condvar.notify_one());
            mutex.set(State::with_successor);
            note_use(&mutex, if is_monopolized { 80 } else { 20 });
            mutex.unlock_to_sleep(FromCondvar::ELSEWHERE);
            let began = Instant::now();
            let patience = if is_monopolized {
                PATIENCE
            } else {
                LONG_ENOUGH
            };
            while !is_woken && began.elapsed() < patience {
                is_woken = has_had_it.load(Relaxed);
                std::thread::yield_now();
            }
            mutex.lock();
            mutex.set(State::without_successor);
            // SAFETY: locked above.
            unsafe { mutex.unlock() };
        });
        is_woken
    }

    #[test]
    fn a_thread_that_waits_for_a_condvar_wakes_another_past_a_successor_that_may_nap() {
        assert!(is_woken_past_successor(true));
        assert!(!is_woken_past_successor(false));
    }
}
