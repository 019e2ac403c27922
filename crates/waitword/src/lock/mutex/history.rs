//! What is remembered of a mutex, on its contended paths: the records that the policy decides by.
//!
//! * In `data`: how waiters woke up ([`WakeRecord`]). A mutex that keeps an owner has no such
//!   record: its `data` holds the owner's number.
//! * In the lock's entry of the table of histories ([`LockHistory`]): whether it is monopolized
//!   ([`Monopoly`]), and when a thread last waited for a condvar with it.
//!
//! All of it is a guess. Every access is Relaxed and orders nothing, and updates are a load and a
//! store: a lost one, or a time from long ago, costs a system call or a wake-up. The flavour and
//! the scope that `data` also holds never change, so every store writes them correctly.

use super::policy::{Monopoly, WakeRecord};
use super::word::State;
use super::{PosixFlavour, RawPosixMutex};
use crate::atomic::Ordering;
use crate::park::spin::{self, LockHistory};
use crate::sys::clock::nanoseconds as now;
use crate::sys::sched;

#[inline]
pub(super) fn of(mutex: &RawPosixMutex) -> &'static LockHistory {
    LockHistory::at(core::ptr::from_ref(mutex).addr())
}

/// What the last samples have shown.
fn turns_of(mutex: &RawPosixMutex, cpu_is_scarce: bool) -> Monopoly {
    Monopoly::from_bits(of(mutex).counted(), cpu_is_scarce)
}

/// Whether the lock was found to be monopolized lately.
pub(super) fn is_monopolized(mutex: &RawPosixMutex) -> bool {
    // The limits make no difference here, and to find out whether CPU time is scarce would take a
    // reading of the clock.
    turns_of(mutex, false).is_one()
}

/// Whether it takes less than some 2 µs from one section to the next.
fn has_short_turns(mutex: &RawPosixMutex) -> bool {
    turns_of(mutex, false).are_short()
}

/// What is known of the lock, under the limits that apply now.
pub(super) fn monopoly(mutex: &RawPosixMutex) -> Monopoly {
    turns_of(mutex, spin::is_throttled() || spin::is_beside_others())
}

/// Updates the record of the monopoly, and returns the nap that follows from it.
pub(super) fn note_monopoly(
    mutex: &RawPosixMutex,
    now: u64,
    with: impl Fn(Monopoly) -> (Monopoly, u64),
) -> u64 {
    let (counted, nap) = with(monopoly(mutex));
    of(mutex).note_counted(now, counted.to_bits());
    nap
}

/// Notes that a thread gives the lock back to wait for a condvar, while other threads want it.
pub(super) fn note_wait(mutex: &RawPosixMutex) {
    of(mutex).note_wait(now());
}

/// Whether a thread did so lately.
#[inline]
pub(super) fn has_waited_lately(mutex: &RawPosixMutex) -> bool {
    of(mutex).has_waited_lately(now)
}

/// How waiters woke up.
impl RawPosixMutex {
    #[inline]
    fn wakes(&self) -> WakeRecord {
        WakeRecord(self.alive(self.data.load(Ordering::Relaxed)))
    }

    /// Updates the record, if the mutex has one.
    #[inline]
    fn note_wakes(&self, with: impl FnOnce(WakeRecord) -> WakeRecord) {
        let before = self.wakes();
        let after = with(before);
        if after != before && !self.state().is_special() {
            self.data.store(after.0, Ordering::Relaxed);
        }
    }

    /// How many waiters to wake beside the successor.
    pub(super) fn extras(&self) -> usize {
        match self.state().is_special() || spin::has_one_cpu() {
            true => 0,
            false => self.wakes().extras(),
        }
    }

    /// Whether a thread that comes from a condvar wakes up as the successor.
    pub(super) fn signalled_are_successors(&self) -> bool {
        spin::has_one_cpu() || self.extras() > 0 && !spin::is_beside_others()
    }

    /// Notes that one thread was signalled, not all of them.
    #[inline]
    pub(super) fn note_signal(&self) {
        self.note_wakes(WakeRecord::with_signal);
    }

    /// Notes whether a woken waiter had the mutex at once.
    #[inline]
    pub(super) fn note_woken(&self, at_once: bool) {
        self.note_wakes(|wakes| wakes.with_woken(at_once));
    }

    /// As a successor that came from a condvar: notes whether it runs so long after it was woken
    /// that the CPUs must have been busy with other threads.
    #[inline]
    pub(super) fn note_run(&self) {
        let now = now();
        self.note_wakes(|wakes| wakes.with_late(wakes.ran_late(now)));
    }

    /// Notes that there is a successor from `now` on.
    #[inline]
    pub(super) fn note_successor(&self, now: u64) {
        self.note_wakes(|wakes| wakes.with_successor(now));
    }

    /// Whether the successor should have had the lock long ago, so that an unlock wakes another
    /// waiter. Reads the clock in turns 0, 1, 2, 4 and 8 of sixteen: at once where sections are
    /// long, and seldom where they are short. (Where turns are known to be short, only in turn 0:
    /// reading the clock takes as long as a section.)
    #[inline]
    pub(super) fn successor_is_late(&self, state: State) -> bool {
        let turn = state.turn();
        // At most one bit is set.
        turn & turn.wrapping_sub(1) == 0 && self.successor_is_late_now(state)
    }

    #[cold]
    #[inline(never)]
    fn successor_is_late_now(&self, state: State) -> bool {
        !state.is_special()
            && !state.released().is_reserved()
            && (state.turn() == 0 || !has_short_turns(self))
            && self.flavour() != PosixFlavour::WaitWake
            && self.is_late().is_some()
    }

    /// The time, if the successor should have had the lock long ago. Does not read the clock on one
    /// CPU.
    fn is_late(&self) -> Option<u64> {
        if spin::has_one_cpu() {
            return None;
        }
        let now = now();
        self.wakes().is_late(now).then_some(now)
    }

    /// Yields the CPU if the successor is late, and returns whether it did. For a thread that is
    /// about to take the lock past the successor.
    #[cold]
    pub(super) fn makes_way(&self) -> bool {
        let Some(now) = self.is_late() else {
            return false;
        };
        self.note_wakes(|wakes| wakes.with_way_made(now));
        let yields = spin::yields_are_worth_while(now) && sched::priority() == 0;
        if yields {
            spin::yield_cpu(now);
        }
        yields
    }
}

/// For models: what the mutex remembers when they begin.
#[cfg(all(test, loom))]
impl RawPosixMutex {
    /// Woken waiters have had the mutex at once, so that many are woken.
    pub(crate) fn let_many_be_woken(&self) {
        for _ in 0..30 {
            self.note_woken(true);
        }
    }

    /// Turns have just been counted, without a result.
    pub(crate) fn let_a_sample_be_recent(&self) {
        note_monopoly(self, now(), |monopoly| (monopoly, 0));
    }

    /// The lock is saturated, so that its successor naps.
    pub(crate) fn let_it_be_monopolized(&self) {
        let seen = super::policy::Use { looks: 100, held: 80, turns: 8 };
        note_monopoly(self, now(), |monopoly| monopoly.with_use(Some(seen)));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::mutex::waiter::FromCondvar;
    use crate::sys::generation::ends_well;
    use std::thread::sleep;
    use std::time::Duration;

    /// A signalled thread that takes the mutex at once.
    fn wakes_up(mutex: &RawPosixMutex) {
        mutex.lock_after_wait(0);
        // SAFETY: locked just now.
        unsafe { mutex.unlock() };
    }

    /// Other parked threads do not prevent that.
    #[test]
    fn a_woken_waiter_that_has_it_at_once_counts_though_others_are_parked() {
        let mutex = RawPosixMutex::new();
        for _ in 0..16 {
            mutex.set(|state| state.with_parked(true));
            wakes_up(&mutex);
        }
        assert_eq!(mutex.extras(), 7);
        mutex.set(|state| state.with_parked(true).with_successor().with_handoff());
        // It is reserved for another thread: this one waits until that reservation is removed.
        std::thread::scope(|threads| {
            let woken = threads.spawn(|| wakes_up(&mutex));
            while mutex.extras() != 0 {
                std::thread::yield_now();
            }
            mutex.set(|state| state.without_successor());
            woken.join().unwrap();
        });
    }

    /// A thread that gives the mutex back to sleep while others want it is noted: when other
    /// processes compete for the CPUs, the mutex then acts as another flavour.
    #[test]
    fn a_wait_for_a_condvar_is_noted_of_its_mutex() {
        let mutex = RawPosixMutex::new();
        let has_waited = || has_waited_lately(&mutex);
        // There may have been another mutex at this address.
        let waited_before = has_waited();
        mutex.lock();
        mutex.unlock_to_sleep(FromCondvar::ELSEWHERE);
        assert_eq!(has_waited(), waited_before);
        mutex.lock();
        mutex.set(|state| state.with_parked(true));
        mutex.unlock_to_sleep(FromCondvar::ELSEWHERE);
        assert!(has_waited());
    }

    #[test]
    fn a_signal_resets_the_count_and_a_broadcast_does_not() {
        let mutex = RawPosixMutex::new();
        (0..16).for_each(|_| wakes_up(&mutex));
        assert_eq!(mutex.extras(), 7);
        assert!(!mutex.accept_waiters(false, true));
        assert_eq!(mutex.extras(), 7);
        assert!(!mutex.accept_waiters(false, false));
        assert_eq!(mutex.extras(), 0);
        assert!(!mutex.signalled_are_successors());
    }

    /// In a child, because the number of CPUs is the same for the whole process.
    #[test]
    fn on_one_cpu_a_chain_has_no_extras_and_no_successor_is_late() {
        // Of a chosen flavour: another test overrides the default one.
        let options = crate::PosixMutexOptions::new().flavour(PosixFlavour::Throughput);
        let mutex = options.build_raw();
        (0..30).for_each(|_| mutex.note_woken(true));
        let is_late = || mutex.successor_is_late(mutex.state().with_successor());
        // Repeats: a thread that sleeps for too long finds a time in the future.
        let is_late_after_a_while = || {
            mutex.note_successor(now());
            sleep(Duration::from_millis(1));
            is_late()
        };
        assert!(
            spin::has_one_cpu()
                || mutex.extras() == 31 && (0..100).any(|_| is_late_after_a_while())
        );
        assert!(ends_well(|| {
            spin::pretend_to_have_one_cpu();
            mutex.extras() == 0 && mutex.signalled_are_successors() && !is_late()
        }));
    }
}
