//! Batched wake-ups: how many waiters are woken at once, where one is enough.
//!
//! Normally one waiter is woken at a time, since each needs the mutex. But after a broadcast,
//! hundreds of threads may wait for a mutex that each holds only for a moment before it sleeps
//! again. They run in a chain, each woken by the one before: on an idle CPU, which takes 10 µs, or
//! on the waker's own CPU, which the waker may lose before it has gone to sleep. Where sections are
//! that short, it is best to wake several at once, in one system call: they line up in the CPUs'
//! run queues and find the mutex free one after the other.
//!
//! If more threads are runnable than there are CPUs, each link of the chain waits in a run queue
//! for some milliseconds, one after the other. A herd, woken at once, would wait there at the same
//! time.
//!
//! So **extra waiters** are woken beside the successor by
//!
//! * an unlock by a thread that is about to sleep in a condvar,
//! * an unlock that wakes a waiter that comes from a condvar, and
//! * a broadcast while the mutex is free.
//!
//! There are 7 of them, if the last sixteen woken waiters had the mutex without waiting; 31, if the
//! last thirty had, or if the last successor that came from a condvar ran only a millisecond after
//! it was woken. (More than 31 was tried, up to all at once, and gained nothing: `waitword bench
//! cond-perf`.) An extra waiter is a newcomer that never yields its place. If it must park again,
//! its wake-up was in vain, and waiters are woken one at a time again.
//!
//! On one CPU an unlock wakes no extra waiters. A woken thread often preempts its waker, and the
//! more are woken, the sooner one does. On a queue, that thread then finds one item, or room for
//! one, and goes back to sleep: a switch for each item. With the successor alone, the waker often
//! goes on, and a consumer empties the queue. (48 queues drawn at random, one CPU: 1.09 of the
//! throughput, and 2.8 on one of them.)
//!
//! A **signal** wakes one thread for one thing to do, and also goes back to one at a time: the
//! other threads that wait for the mutex were signalled too, and each is woken by an unlock of its
//! own. A signalled thread is the successor in two cases only. Where extra waiters are woken, the
//! first of the batch is: the chain stays one chain. On one CPU it is, because a second woken
//! thread cannot run before the first.
//!
//! Tried: making every signalled thread the successor, 0.93 of the throughput on 18 queues drawn at
//! random, and 0.55 on the worst of them, with 5 switches an item instead of 3; making none of them
//! the successor, three times the time of a broadcast to 512.
//!
//! | bits of `data` | meaning |
//! |------|---------|
//! | 24-28 | how many in a row had the mutex at once, up to 30; 31: the last successor was late |
//!
//! This is a guess, like the time that `late_successor.rs` keeps there: every load and store of
//! `data` is Relaxed and orders nothing, and a lost update does no harm. The flavour and the scope
//! in the same word never change, so every store writes them correctly.

use super::RawPosixMutex;
use crate::park::spin;

impl RawPosixMutex {
    /// Whether a thread that comes from a condvar wakes up as the successor. (With extra waiters
    /// only if no other processes compete for the CPUs: otherwise the thread may run only
    /// milliseconds later.)
    pub(super) fn signalled_are_successors(&self) -> bool {
        spin::has_one_cpu() || self.extras() > 0 && !spin::is_beside_others()
    }
}

#[cfg(not(loom))]
mod real {
    use super::super::RawPosixMutex;
    use crate::atomic::Ordering;
    use crate::park::spin;

    const SHIFT: u32 = 24;
    const IN_A_ROW: u32 = 0x1f << SHIFT;

    const LATELY: u32 = 16;
    const MOST: u32 = 30 << SHIFT;
    const LATE: u32 = 31 << SHIFT;

    impl RawPosixMutex {
        /// How many waiters to wake beside the successor.
        pub(in super::super) fn extras(&self) -> usize {
            if self.state().is_special() || spin::has_one_cpu() {
                return 0;
            }
            match self.data.load(Ordering::Relaxed) & IN_A_ROW {
                LATE | MOST => 31,
                in_a_row if in_a_row >> SHIFT >= LATELY => 7,
                _ => 0,
            }
        }

        /// Notes whether a successor that came from a condvar ran late.
        #[inline]
        pub(in super::super) fn note_late(&self, late: bool) {
            let data = self.data.load(Ordering::Relaxed);
            let was_late = data & IN_A_ROW == LATE;
            if late != was_late && !self.state().is_special() {
                let in_a_row = if late { LATE } else { MOST };
                self.data
                    .store(data & !IN_A_ROW | in_a_row, Ordering::Relaxed);
            }
        }

        /// Notes that one thread was signalled, not all of them.
        #[inline]
        pub(in super::super) fn note_signal(&self) {
            let data = self.data.load(Ordering::Relaxed);
            if data & IN_A_ROW != 0 && !self.state().is_special() {
                self.data.store(data & !IN_A_ROW, Ordering::Relaxed);
            }
        }

        /// Notes whether a woken waiter had the mutex at once.
        #[inline]
        pub(in super::super) fn note_woken(&self, at_once: bool) {
            if self.state().is_special() {
                return;
            }
            let data = self.data.load(Ordering::Relaxed);
            let next = match at_once {
                true if data & IN_A_ROW >= MOST => return,
                true => data + (1 << SHIFT),
                false if data & IN_A_ROW == 0 => return,
                false => data & !IN_A_ROW,
            };
            self.data.store(next, Ordering::Relaxed);
        }
    }
}

/// In a model, the model decides whether one waiter is woken or two.
#[cfg(loom)]
mod model {
    use super::super::RawPosixMutex;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    crate::checker::lazy_static! {
        static ref WOKEN: AtomicBool = AtomicBool::new(false);
    }

    /// From now on in this execution.
    pub(crate) fn let_extras_be_woken() {
        WOKEN.store(true, Relaxed);
    }

    impl RawPosixMutex {
        pub(in super::super) fn extras(&self) -> usize {
            usize::from(WOKEN.load(Relaxed))
        }

        pub(in super::super) fn note_late(&self, _: bool) {}

        pub(in super::super) fn note_woken(&self, _: bool) {}

        pub(in super::super) fn note_signal(&self) {}
    }
}

#[cfg(loom)]
pub(crate) use model::let_extras_be_woken;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::nap;
    use super::super::waiter::{FromCondvar, Moment};
    use crate::lock::RawPosixMutex;
    use crate::park::spin;
    use crate::sys::generation::ends_well;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn a_late_successor_brings_many_and_one_woken_in_vain_ends_it() {
        let mutex = RawPosixMutex::new();
        assert_eq!(mutex.extras(), 0);
        mutex.note_late(true);
        assert_eq!(mutex.extras(), 31);
        // Waiters that have it at once do not raise the number further.
        mutex.note_woken(true);
        assert_eq!(mutex.extras(), 31);
        mutex.note_late(false);
        assert_eq!(mutex.extras(), 31);
        mutex.note_woken(false);
        assert_eq!(mutex.extras(), 0);
        // Successors that are in time change nothing else.
        mutex.note_late(false);
        assert_eq!(mutex.extras(), 0);
    }

    #[test]
    fn sixteen_in_a_row_bring_some_and_thirty_many() {
        let mutex = RawPosixMutex::new();
        let after = |more| {
            (0..more).for_each(|_| mutex.note_woken(true));
            mutex.extras()
        };
        assert_eq!(after(15), 0);
        assert_eq!(after(1), 7);
        assert_eq!(after(13), 7);
        assert_eq!(after(1), 31);
        assert_eq!(after(40), 31);
        mutex.note_woken(false);
        assert_eq!(after(15), 0);
    }

    /// A signalled thread that takes the mutex at once.
    fn wakes_up(mutex: &RawPosixMutex) {
        mutex.lock_after_wait(0);
        // SAFETY: locked just now.
        unsafe { mutex.unlock() };
    }

    /// Other parked threads do not prevent that.
    #[test]
    fn those_who_have_it_at_once_though_others_are_parked_count() {
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
        let has_waited = || nap::has_waited_lately(&mutex);
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
    fn a_signal_begins_anew_and_a_broadcast_does_not() {
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
        let mutex = RawPosixMutex::new();
        (0..30).for_each(|_| mutex.note_woken(true));
        mutex.note_successor(Moment::now());
        sleep(Duration::from_millis(1));
        let is_late = || mutex.successor_is_late(mutex.state().with_successor());
        assert!(spin::has_one_cpu() || mutex.extras() == 31 && is_late());
        assert!(ends_well(|| {
            spin::pretend_to_have_one_cpu();
            mutex.extras() == 0 && mutex.signalled_are_successors() && !is_late()
        }));
    }
}
