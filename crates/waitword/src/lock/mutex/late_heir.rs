//! An heir that gets no CPU.
//!
//! The heir bounds for how long others may take the lock before it, but only once it runs. A waiter is woken for a CPU that is
//! about to become free; should the holder end up on just that CPU, the two are in each other's way: the heir cannot run
//! while the holder does, and the holder goes on, since nobody reserves the lock. The kernel notices at a tick, some milliseconds
//! later. (Seen with 64 threads and sections of 100 ns: five times in 100 ms, for 3 ms each, and one thread had seven times the
//! others' share.)
//!
//! So a thread that takes the lock past an heir looks at the clock in every sixteenth turn, and if that heir should have had
//! the lock long since, **makes way**: it yields its CPU. When it runs again and the heir still waits, though others had the
//! lock meanwhile, then more threads use the lock than there are CPUs for them, and it parks behind the heir. (Without that, as
//! many as happened to be running at the start stayed so, and all of one CPU's, for 20 ms.) If nobody had it, the heir waits
//! for another CPU; to leave the lock alone would help nobody, and it goes on.
//!
//! When the heir was appointed is kept in `data`:
//!
//! | bits of `data` | meaning |
//! |------|---------|
//! | 8-23 | when an heir was woken last, in 4.096 µs of the monotonic clock, modulo 2^16 (268 ms) |
//!
//! (Not of one that keeps an owner, whose number then stands in `data`.) It is a guess, as what `adaptive.rs` keeps there; a lost
//! update, or a time from long ago, costs a system call.
//!
//! A real-time thread does not make way: the heir may be of a lower priority, and would not run.
//!
//! To park while the lock is free is safe with an heir: it takes the lock, or sees to it that another one wakes up.

use super::RawPosixMutex;
use super::waiter::Moment;
use super::word::State;

#[cfg(not(loom))]
mod real {
    use super::{Moment, RawPosixMutex, State};
    use crate::atomic::Ordering;
    use crate::sys::sched;

    const SHIFT: u32 = 8;
    const TIME: u32 = 0xffff << SHIFT;
    /// Nanoseconds in a unit, as a shift.
    const UNIT: u32 = 12;

    /// When an heir is late: it wakes up in some 15 µs and has the lock reserved 15 µs after that.
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
        /// An heir is about to be woken.
        #[inline]
        pub(in super::super) fn note_heir_woken(&self, now: Moment) {
            if !self.state().is_special() {
                self.note(units(now));
            }
        }

        /// As the heir, woken by an unlock, who runs now: whether that took so long that the CPUs must have been busy with others.
        #[inline]
        pub(in super::super) fn ran_late(&self) -> bool {
            let woken = self.data.load(Ordering::Relaxed) & TIME;
            let since = (units(Moment::now()).wrapping_sub(woken) & TIME) >> SHIFT;
            !self.state().is_special() && (BUSY..FUTURE).contains(&since)
        }

        fn note(&self, time: u32) {
            // Relaxed, and in two steps: see above.
            let data = self.data.load(Ordering::Relaxed);
            let noted = data & !TIME | time & TIME;
            self.data.store(noted, Ordering::Relaxed);
        }

        /// As one who is about to take the lock past the heir, having seen the state in which that is the sixteenth turn:
        /// whether it must park behind the heir instead.
        #[cold]
        pub(in super::super) fn must_make_way(&self, seen: State) -> bool {
            let now = units(Moment::now());
            let woken = self.data.load(Ordering::Relaxed) & TIME;
            let since = (now.wrapping_sub(woken) & TIME) >> SHIFT;
            if !(LATE..FUTURE).contains(&since) {
                return false;
            }
            self.note(now.wrapping_add(NOT_AGAIN_FOR << SHIFT));
            if sched::priority() != 0 {
                return false;
            }
            sched::yield_cpu();
            let state = self.state();
            state.has_heir() && state.turn() != seen.turn()
        }
    }
}

/// In a model heirs are late, or not, as the model says.
#[cfg(loom)]
mod model {
    use super::{Moment, RawPosixMutex, State};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    crate::checker::lazy_static! {
        static ref HEIRS_ARE_LATE: AtomicBool = AtomicBool::new(false);
    }

    /// From now on in this execution.
    pub(crate) fn let_heirs_be_late() {
        HEIRS_ARE_LATE.store(true, Relaxed);
    }

    impl RawPosixMutex {
        pub(in super::super) fn note_heir_woken(&self, _: Moment) {}

        pub(in super::super) fn ran_late(&self) -> bool {
            false
        }

        pub(in super::super) fn must_make_way(&self, _: State) -> bool {
            HEIRS_ARE_LATE.load(Relaxed) && crate::sys::sched::priority() == 0
        }
    }
}

#[cfg(loom)]
pub(crate) use model::let_heirs_be_late;
