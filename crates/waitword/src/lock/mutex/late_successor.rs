//! A successor that gets no CPU.
//!
//! The successor bounds how long other threads may take the lock past it, but only once it runs. A
//! waiter is woken for a CPU that is about to become free. If the holder ends up on that very CPU,
//! the two block each other: the successor cannot run while the holder does, and the holder goes
//! on, because no thread reserves the lock. The kernel notices at a scheduler tick, some
//! milliseconds later. (Seen with 64 threads and sections of 100 ns: five times in 100 ms, for 3 ms
//! each, and one thread had seven times the share of the others.)
//!
//! So a thread that takes the lock past a successor reads the clock in every sixteenth turn. If
//! that successor should have had the lock long ago, the thread **yields its CPU** (`makes_way`),
//! where the yield gives the CPU to a thread of this process.
//!
//! A successor that waits for a CPU also keeps unlocks from waking other threads, for milliseconds
//! on a loaded machine or with many runnable threads. CPUs that become free meanwhile find nothing
//! to do. So an unlock whose successor is late wakes another waiter (`private.rs`), at most once
//! in 80 µs.
//!
//! On one CPU no successor counts as late, and no thread reads the clock. There only the running
//! thread keeps the successor from running, and the kernel divides that CPU. (A queue's consumer
//! that yielded after 80 µs left half of the items in the queue, and the producers got room for
//! only a few: 48 queues drawn at random had 0.93 of the throughput, one of them 0.44.)
//!
//! The time when the successor was appointed is kept in `data`:
//!
//! | bits of `data` | meaning |
//! |------|---------|
//! | 8-23 | that time, in 4.096 µs of the monotonic clock, modulo 2^16 (268 ms) |
//!
//! (A mutex that keeps an owner has no such field: its `data` holds the owner's number.) The time
//! is a guess. Every access is Relaxed; a lost update, or a time from long ago, costs a system
//! call. The flavour and the scope in the same word never change, so every store writes them
//! correctly.
//!
//! A real-time thread does not yield: the successor may have a lower priority, and would not run.

use super::RawPosixMutex;
use super::waiter::Moment;
use super::word::State;

#[cfg(not(loom))]
mod real {
    use super::super::nap;
    use super::{Moment, RawPosixMutex, State};
    use crate::atomic::Ordering;
    use crate::lock::PosixFlavour;
    use crate::park::spin;
    use crate::sys::sched;

    const SHIFT: u32 = 8;
    const TIME: u32 = 0xffff << SHIFT;
    /// Nanoseconds per unit, as a shift.
    const UNIT: u32 = 12;

    /// A successor is late after this time. It wakes up in some 60 µs if its CPU had nothing to do,
    /// and far sooner otherwise.
    const LATE: u32 = 80_000 >> UNIT;
    /// If a woken successor runs only after this time, the CPUs were busy. With free CPUs it takes
    /// far less.
    const BUSY: u32 = 1_000_000 >> UNIT;
    /// For how long no other thread yields after one has.
    const NOT_AGAIN_FOR: u32 = 200_000 >> UNIT;
    /// A difference of this much or more means a time in the future: a thread has just yielded.
    const FUTURE: u32 = 1 << 15;

    fn units(moment: Moment) -> u32 {
        ((moment.nanoseconds() >> UNIT) as u32) << SHIFT & TIME
    }

    impl RawPosixMutex {
        /// Notes that there is a successor from `now` on.
        #[inline]
        pub(in super::super) fn note_successor(&self, now: Moment) {
            if !self.state().is_special() {
                self.note(units(now));
            }
        }

        /// For a successor that an unlock has woken and that runs now: whether that took so long
        /// that the CPUs must have been busy with other threads.
        #[inline]
        pub(in super::super) fn ran_late(&self) -> bool {
            let woken = self.data.load(Ordering::Relaxed) & TIME;
            let since = (units(Moment::now()).wrapping_sub(woken) & TIME) >> SHIFT;
            !self.state().is_special() && (BUSY..FUTURE).contains(&since)
        }

        /// Whether the successor should have had the lock long ago, so that an unlock wakes another
        /// waiter. Reads the clock in turns 0, 1, 2, 4 and 8 of sixteen: at once where sections are
        /// long, and seldom where they are short. (Where turns are known to be short, only in turn
        /// 0: reading the clock takes as long as a section.)
        #[inline]
        pub(in super::super) fn successor_is_late(&self, state: State) -> bool {
            let turn = state.turn();
            // At most one bit is set.
            turn & turn.wrapping_sub(1) == 0 && self.successor_is_late_now(state)
        }

        #[cold]
        #[inline(never)]
        fn successor_is_late_now(&self, state: State) -> bool {
            !state.is_special()
                && !state.released().is_reserved()
                && (state.turn() == 0 || !nap::has_short_turns(self))
                && self.flavour() != PosixFlavour::WaitWake
                && self.is_late().is_some()
        }

        /// The time, if the successor should have had the lock long ago. Does not read the clock on
        /// one CPU.
        fn is_late(&self) -> Option<Moment> {
            if spin::has_one_cpu() {
                return None;
            }
            let now = Moment::now();
            let then = self.data.load(Ordering::Relaxed) & TIME;
            let since = (units(now).wrapping_sub(then) & TIME) >> SHIFT;
            (LATE..FUTURE).contains(&since).then_some(now)
        }

        fn note(&self, time: u32) {
            // Relaxed, as a separate load and store: see the module docs.
            let data = self.data.load(Ordering::Relaxed);
            let noted = data & !TIME | time & TIME;
            self.data.store(noted, Ordering::Relaxed);
        }

        /// Yields the CPU if the successor is late, and returns whether it did. For a thread that
        /// is about to take the lock past the successor.
        #[cold]
        pub(in super::super) fn makes_way(&self) -> bool {
            let Some(now) = self.is_late() else {
                return false;
            };
            self.note(units(now).wrapping_add(NOT_AGAIN_FOR << SHIFT));
            let yields = spin::yields_are_worth_while(now.nanoseconds()) && sched::priority() == 0;
            if yields {
                spin::yield_cpu(now.nanoseconds());
            }
            yields
        }
    }
}

/// In a model, the model decides whether a successor is late.
#[cfg(loom)]
mod model {
    use super::{Moment, RawPosixMutex, State};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    crate::checker::lazy_static! {
        static ref LATE: AtomicBool = AtomicBool::new(false);
    }

    /// From now on in this execution.
    pub(crate) fn let_successors_be_late() {
        LATE.store(true, Relaxed);
    }

    impl RawPosixMutex {
        pub(in super::super) fn note_successor(&self, _: Moment) {}

        pub(in super::super) fn ran_late(&self) -> bool {
            false
        }

        pub(in super::super) fn successor_is_late(&self, _: State) -> bool {
            LATE.load(Relaxed)
        }
    }
}

#[cfg(loom)]
pub(crate) use model::let_successors_be_late;
