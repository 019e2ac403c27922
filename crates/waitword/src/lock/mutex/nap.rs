//! The nap of a monopolized lock's successor (`policy/monopoly.rs`): taking the samples, sleeping,
//! and checking afterwards whether the lock is still in use.

use super::RawPosixMutex;
use super::history::{self, has_waited_lately, is_monopolized, monopoly, note_monopoly};
use super::policy::{
    ENOUGH_TURNS, LOOK_EVERY, LOOKS_AFTER_NAP, MOST_LOOKS, MOST_LOOKS_AT_ONE, Monopoly, SAMPLE,
    SAMPLE_EVERY, Sample, Use,
};
use super::waiter::elapsed;
use super::word::State;
use crate::park::spin;
use crate::sys::clock::{Deadline, nanoseconds as now};
use crate::sys::cpu::current_cpu;
use crate::sys::sched;

/// Counts turns for a moment, while there is a successor. If the caller is the successor, it naps
/// for the returned number of nanoseconds; 0 means that it does not nap.
pub(super) fn count_turns(mutex: &RawPosixMutex) -> u64 {
    let (began, before) = (now(), mutex.state());
    spin::pause_for(SAMPLE);
    let after = mutex.state();
    let turns = match before.has_successor() && after.has_successor() {
        true => after.turns_since(before),
        false => 0,
    };
    let took = elapsed(began);
    note_monopoly(mutex, began, |monopoly| monopoly.with(turns, took))
}

/// Naps, as the successor, and notes whether the lock is still in use afterwards.
pub(super) fn sleep(mutex: &RawPosixMutex, nap: u64) {
    let cpu = current_cpu();
    sched::sleep_nanoseconds(nap as i64);
    note_end(mutex, current_cpu() != cpu);
}

/// As a successor that has just woken from its nap: notes whether the lock is still in use. A lock
/// that was left alone is free, and no thread takes it.
///
/// `is_elsewhere`: the thread is on another CPU than before. That may be the holder's CPU, in which
/// case the holder has lost it.
fn note_end(mutex: &RawPosixMutex, is_elsewhere: bool) {
    let looks = match monopoly(mutex).is_saturated() {
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
    note_monopoly(mutex, now(), |monopoly| (monopoly.with_nap_ended(is_in_use), 0));
}

/// As the successor: looks at how the lock is used, and leaves it alone meanwhile. `None` if that
/// is inconclusive.
fn look_at_use(mutex: &RawPosixMutex) -> Option<Use> {
    let began = now();
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
    let took = elapsed(began);
    // If this thread was preempted meanwhile, more turns have passed than were counted.
    let is_right = looks > 0 && took < 2 * u64::from(looks) * LOOK_EVERY.as_nanos() as u64;
    is_right.then_some(Use { looks, held, turns })
}

/// For how many nanoseconds the caller, which is the successor, naps; 0 if it does not.
///
/// A successor with a deadline does not nap, because it might oversleep. (A deadline that carries
/// only an interrupter does not count. A thread that is to leave such a wait may do so later by the
/// length of a nap.) A real-time thread does not nap either: other threads would have the lock for
/// longer than it takes to wake the real-time thread. The word of a mutex that keeps an owner
/// counts no turns.
pub(super) fn due(mutex: &RawPosixMutex, deadline: Option<&Deadline>, now: u64) -> u64 {
    // Every time, if the lock is monopolized.
    let is_due = is_monopolized(mutex) || history::of(mutex).is_sample_due(now, SAMPLE_EVERY);
    let has_end = deadline.and_then(Deadline::in_time).is_some();
    if !is_due || has_end || mutex.state().is_special() {
        return 0;
    }
    let nap = match monopoly(mutex).next_sample() {
        Sample::Turns => count_turns(mutex),
        Sample::Use => {
            let seen = look_at_use(mutex);
            note_monopoly(mutex, now, |monopoly| monopoly.with_use(seen))
        }
        Sample::Nothing => note_monopoly(mutex, now, Monopoly::with_nap),
    };
    match nap {
        nap if nap == 0 || sched::priority() == 0 => nap,
        _ => 0,
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
