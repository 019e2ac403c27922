//! A successor that gets no CPU.
//!
//! The successor bounds for how long others may take the lock before it, but only once it runs. A waiter is woken for a CPU that is
//! about to become free; should the holder end up on just that CPU, the two are in each other's way: the successor cannot run
//! while the holder does, and the holder goes on, since nobody reserves the lock. The kernel notices at a tick, some milliseconds
//! later. (Seen with 64 threads and sections of 100 ns: five times in 100 ms, for 3 ms each, and one thread had seven times the
//! others' share.)
//!
//! So a thread that takes the lock past a successor looks at the clock in every sixteenth turn, and if
//! that successor should have had the lock long since, **makes way**: it yields its CPU, where that
//! gives it to a thread of this process.
//!
//! And a successor that waits for a CPU keeps unlocks from waking others, for milliseconds beside a
//! busy process or with many threads that are runnable. CPUs that become free meanwhile find
//! nothing to do. So an unlock whose successor is late wakes another waiter (`throughput.rs`), once in
//! 80 µs at most.
//!
//! On one CPU no successor counts as late, and no thread reads the clock: only the running thread keeps
//! the successor from running, and the kernel shares that CPU out. (A queue's consumer that made way after 80 µs left half of the items in the
//! queue, and the producers got room for a few: 48 queues drawn at random had 0.93 of the
//! throughput, one of them 0.44.)
//!
//! When the successor was appointed is kept in `data`:
//!
//! | bits of `data` | meaning |
//! |------|---------|
//! | 8-23 | when there came to be a successor, in 4.096 µs of the monotonic clock, modulo 2^16 (268 ms) |
//!
//! (Not of one that keeps an owner, whose number then stands in `data`.) It is a guess. Every
//! access is Relaxed; a lost update, or a time from long ago, costs a system call. The flavour and
//! the scope beside it never change, so any store has them right.
//!
//! A real-time thread does not make way: the successor may be of a lower priority, and would not run.

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
    /// Nanoseconds in a unit, as a shift.
    const UNIT: u32 = 12;

    /// When a successor is late: it wakes up in some 60 µs where its CPU had nothing to do, and far
    /// sooner elsewhere.
    const LATE: u32 = 80_000 >> UNIT;
    /// From being woken to running, where CPUs are free, is far less.
    const BUSY: u32 = 1_000_000 >> UNIT;
    /// For how long nobody makes way again.
    const NOT_AGAIN_FOR: u32 = 200_000 >> UNIT;
    /// Times further apart than this are in the future: somebody has just made way.
    const FUTURE: u32 = 1 << 15;

    fn units(moment: Moment) -> u32 {
        ((moment.nanoseconds() >> UNIT) as u32) << SHIFT & TIME
    }

    impl RawPosixMutex {
        /// Notes that there is a successor from now on.
        #[inline]
        pub(in super::super) fn note_successor(&self, now: Moment) {
            if !self.state().is_special() {
                self.note(units(now));
            }
        }

        /// As the successor, woken by an unlock, who runs now: whether that took so long that the CPUs must have been busy with others.
        #[inline]
        pub(in super::super) fn ran_late(&self) -> bool {
            let woken = self.data.load(Ordering::Relaxed) & TIME;
            let since = (units(Moment::now()).wrapping_sub(woken) & TIME) >> SHIFT;
            !self.state().is_special() && (BUSY..FUTURE).contains(&since)
        }

        /// Whether the successor should have had the lock long since, so that an unlock wakes another
        /// waiter. Looks at the clock in the turns 0, 1, 2, 4 and 8 of sixteen: at once where
        /// sections are long, and seldom where they are short. (Where turns are known to be
        /// short in turn 0 only: a look takes as long as a section.)
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

        /// The time, if the successor should have had the lock long since. On one CPU the clock is not read.
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
            // Relaxed, and in two steps: see above.
            let data = self.data.load(Ordering::Relaxed);
            let noted = data & !TIME | time & TIME;
            self.data.store(noted, Ordering::Relaxed);
        }

        /// Yields the CPU if the successor is late, and returns whether it did. For a thread that is
        /// about to take the lock past the successor.
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

/// In a model a successor is late, or not, as the model says.
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
