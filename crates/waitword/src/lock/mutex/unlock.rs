//! An unlock that must wake a waiter: which waiter it wakes, and whether that one becomes the
//! successor. (`private.rs` defines when an unlock must.)
//!
//! A thread that unlocks to wait for a condvar has found its condition false. So it prefers to wake
//! a waiter that did not come from the same condvar. After a broadcast, all threads that wait for
//! the same condition are in the mutex's queue, and would wait again one after the other.
//!
//! ```text
//!   4 producers (P), 4 consumers (C), room for 1            the mutex's queue, first on the left
//!   C1 takes the item, broadcasts "room"                    P1 P2 P3 P4
//!   C1 waits for an item, wakes P1; P1 puts one,
//!      broadcasts "item"                                    P2 P3 P4 C1 C2 C3 C4
//!   P1 waits for room.  If it wakes the oldest:             P2, P3 and P4 wait again; then C1 runs
//!                       if it skips those from "room":      C1 runs
//! ```
//!
//! It also does so past a successor that naps (`policy/monopoly.rs`). That successor leaves the
//! lock to a holder that takes it again and again. This holder does not, and the threads that would
//! take the lock are parked.
//!
//! ```text
//!   CPU 0   P fills the queue | waits, wakes C | C takes one, signals P, takes the next ....
//!   CPU 1   B samples, naps ................................................| B reserves it
//! ```

use super::policy::{LOOK_THROUGH, PASSED_OVER_FOR};
use super::waiter::{EXTRA, HOLDER, SUCCESSOR, Waiter};
use super::{RawPosixMutex, Then, real_time};
use crate::atomic::Ordering;
use crate::futex::parking::{self, Tokens};
use crate::private::{Choice, Unparked};
use crate::stats::{self, Event};
use crate::sys::clock::nanoseconds as now;

/// Releases the lock, and wakes a waiter and possibly some extra waiters. The word has PARKED set,
/// and no successor or one that naps.
#[cold]
pub(super) fn unlock_and_wake(mutex: &RawPosixMutex, then: Then) {
    if real_time::unlock(mutex) {
        return;
    }
    let extras = match mutex.state().has_successor() {
        true => 0,
        false => mutex.extras(),
    };
    let extras_beside = |successor: Waiter| match then {
        Then::Sleep(_) => extras,
        _ if successor.is_from_condvar() => extras,
        _ => 0,
    };
    let suits = |waiter: Waiter, is_extra: bool| match then {
        Then::Sleep(condvar) => {
            !waiter.is_from(condvar) || waiter.waited_until(now()) > PASSED_OVER_FOR
        }
        // A waiter that last ran on this CPU would have to wait for the caller.
        _ => is_extra || !waiter.ran_here(),
    };
    if !unlock_and_wake_one_of(mutex, suits, extras_beside) {
        unlock_and_wake_one_of(mutex, |_, _| true, extras_beside);
    }
}

/// Releases the lock, whose successor is late, and also wakes another waiter: the oldest one that
/// came to the mutex itself. (A waiter that a signal has moved here most likely has to wait for the
/// next signal.)
#[cold]
pub(super) fn unlock_past_late_successor(mutex: &RawPosixMutex) {
    mutex.note_successor(now());
    let came_here = |waiter: Waiter, _: bool| !waiter.is_from_condvar();
    let has_woken = unlock_and_wake_one_of(mutex, came_here, |_| 0);
    if !has_woken && !mutex.release_to_the_awake(mutex.state()) {
        // The successor has parked meanwhile.
        unlock_and_wake(mutex, Then::GoOn);
    }
}

/// Releases the lock and wakes the oldest waiter that `suits`, is impatient, or is a real-time
/// thread. Also wakes as many extra waiters behind it as `extras_beside` returns. If there are
/// waiters and none suits, does nothing and returns false.
fn unlock_and_wake_one_of(
    mutex: &RawPosixMutex,
    suits: impl Fn(Waiter, bool) -> bool,
    extras_beside: impl Fn(Waiter) -> usize,
) -> bool {
    let (mut seen, mut taken, mut done) = (0, 0, true);
    // Set once a waiter is found.
    let mut extras = 0;
    let found = core::cell::Cell::new(None::<Waiter>);
    let choose = |kind| {
        let waiter = Waiter(kind);
        seen += 1;
        if taken > extras || seen > LOOK_THROUGH + extras + extras {
            return Choice::Stop;
        }
        if found.get().is_none() {
            if !waiter.is_real_time() && !waiter.is_impatient() && !suits(waiter, false) {
                return Choice::Pass;
            }
            found.set(Some(waiter));
            extras = if waiter.is_real_time() { 0 } else { extras_beside(waiter) };
            mutex.note_successor(now());
        } else if !suits(waiter, true) {
            return Choice::Pass;
        }
        taken += 1;
        Choice::Take
    };
    let change = |unparked: Unparked| {
        if unparked.woken == 0 && unparked.more {
            done = false;
            return Tokens::from(0);
        }
        if let Some(found) = found.get().filter(|found| found.is_real_time()) {
            // The real-time thread has only just come.
            return Tokens::from(real_time::release_to(mutex, found, 0, unparked.more));
        }
        let impatient = found.get().is_some_and(Waiter::is_impatient);
        let from_condvar = found.get().is_some_and(Waiter::is_from_condvar);
        let mut state = mutex.state();
        loop {
            let left = state.with_ordinary_left(unparked.more);
            let (next, first) = if unparked.woken == 0 || state.has_successor() {
                (left.released(), 0)
            } else if impatient {
                (left, HOLDER)
            } else if from_condvar && !mutex.signalled_are_successors() {
                (left.released(), 0)
            } else {
                (left.released().with_successor(), SUCCESSOR)
            };
            match mutex.change(state, next, Ordering::Release) {
                Ok(()) => {
                    return Tokens { first, others: EXTRA };
                }
                Err(now) => state = now,
            }
        }
    };
    let woken = parking::unpark(mutex.key(), choose, change);
    let impatient = found.get().is_some_and(Waiter::is_impatient);
    stats::count_many(Event::HandOffs, usize::from(woken > 0 && impatient));
    done
}

/// Releases the lock to one of its waiters: to the successor if there is one, else to the real-time
/// thread of the highest priority, else to the waiter that has waited longest. The last two are
/// handed the lock. (The oldest is not always the first in the queue: a successor that parks does
/// so at the front, even if it came last.)
#[cold]
pub(super) fn unlock_fairly(mutex: &RawPosixMutex) {
    let mut state = mutex.state();
    while state.has_successor() || !state.has_parked() {
        let next =
            if state.has_successor() { state.released().with_handoff() } else { state.released() };
        match mutex.change(state, next, Ordering::Release) {
            Ok(()) => {
                stats::count_many(Event::HandOffs, usize::from(state.has_successor()));
                return;
            }
            Err(now) => state = now,
        }
    }
    let now = now();
    let was_real_time = core::cell::Cell::new(false);
    let rank = |kind| match Waiter(kind) {
        // The first real-time thread has the highest priority: the queue is in that order.
        waiter if waiter.is_real_time() => {
            was_real_time.set(true);
            u64::MAX
        }
        waiter => waiter.waited_until(now),
    };
    let handed_off = parking::unpark_highest(mutex.key(), LOOK_THROUGH, rank, |unparked| {
        let mut state = mutex.state();
        loop {
            let left = match was_real_time.get() {
                true => state.with_parked(unparked.more),
                false => state.with_ordinary_left(unparked.more),
            };
            let (next, token) = match unparked.woken {
                0 => (left.released(), 0),
                _ => (left, HOLDER),
            };
            match mutex.change(state, next, Ordering::Release) {
                Ok(()) => return token,
                Err(now) => state = now,
            }
        }
    });
    stats::count_many(Event::HandOffs, handed_off);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::RawCondvar;
    use crate::lock::mutex::waiter::FromCondvar;
    use std::sync::Mutex;
    use std::thread::{sleep, yield_now};
    use std::time::{Duration, Instant};

    /// Two threads wait, each for a condvar of its own, and are signalled one after the other.
    /// After `pause`, a thread that waits for the first condvar gives the mutex back. Returns the
    /// order in which the two threads get it, and how long they have waited for it by then at most.
    fn order_after(pause: Duration) -> (Vec<usize>, u64) {
        let (mutex, condvars) = (RawPosixMutex::new(), [RawCondvar::new(), RawCondvar::new()]);
        let order = Mutex::new(vec![]);
        let mut waited = 0;
        std::thread::scope(|threads| {
            for (number, condvar) in condvars.iter().enumerate() {
                let (mutex, order) = (&mutex, &order);
                threads.spawn(move || {
                    mutex.lock();
                    // SAFETY: the mutex is held, and every waiter uses this mutex.
                    unsafe { condvar.wait(mutex, None) }.unwrap();
                    order.lock().unwrap().push(number);
                    // SAFETY: the mutex is held.
                    unsafe { mutex.unlock() };
                });
            }
            while !condvars.iter().all(RawCondvar::may_have_waiters) {
                yield_now();
            }
            mutex.lock();
            let began = Instant::now();
            for condvar in &condvars {
                assert_eq!(condvar.notify_all(), 1);
            }
            sleep(pause);
            let first = core::ptr::from_ref(&condvars[0]).addr();
            mutex.unlock_to_sleep(FromCondvar::at(first));
            waited = began.elapsed().as_micros() as u64;
        });
        (order.into_inner().unwrap(), waited)
    }

    #[test]
    fn an_unlock_before_a_wait_passes_over_waiters_of_the_same_condvar_for_a_while() {
        let _watchdog = waitword_testkit::watch();
        // On a loaded machine the unlock may come too late. What comes in time counts.
        let in_time = |_: u32| {
            let (order, waited) = order_after(Duration::ZERO);
            (waited < PASSED_OVER_FOR).then_some(order)
        };
        let mut orders = (0..).filter_map(in_time).take(100);
        assert!(orders.any(|order| order == [1, 0]));
        let long = Duration::from_micros(2 * PASSED_OVER_FOR);
        assert_eq!(order_after(long).0, [0, 1]);
    }
}
