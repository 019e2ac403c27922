//! Real-time threads in the queue: which place they take, and what their turn is.
//!
//! POSIX's option "Thread Execution Scheduling" asks of `pthread_rwlock_*`, for threads under `SCHED_FIFO` and `SCHED_RR`: a reader waits for
//! writers of its own or a higher priority that wait; whoever has the highest priority gets the lock first, and of equals writers come before readers.
//!
//! | place | who |
//! |-------|-----|
//! | 2 × priority + 1 | waits to write, or for the claim, at this real-time priority |
//! | 2 × priority | waits to read at it |
//! | 1 | has waited before and must queue again |
//! | 0 | everybody else |
//!
//! The queue is in order of these, and in order of arrival within one. So whoever stands first tells what is due:
//!
//! * **A release hands the lock over** when a real-time thread stands first: to that writer alone, or to that reader and the readers before the
//!   first real-time writer.
//! * **A real-time writer takes the turn** (`TURN`) as it queues, and not after some milliseconds: newcomers queue up behind it. As always under
//!   reader preference a reader waits for a turn no longer than its owner has waited so far, 1 ms at first, since it may hold the lock already: that
//!   deadlock POSIX leaves to the program, and here there is none. (A reader of a higher priority than all writers that wait should come in at
//!   once; it does so at the next release, or after that millisecond.)
//!
//! Where no real-time thread waits this changes nothing. In the kernel's queue (process-shared locks) nobody can be chosen.

use super::policy::READ;
use crate::sys::sched;

/// The real-time priority of a waiter, 1 to 100; 0 for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank(u8);

/// Where it stands in a waiter's kind: `hand_over.rs` uses the bits below, and the mark of a rwlock those above.
const SHIFT: u32 = 8;
const MASK: u64 = 0xff << SHIFT;

impl Rank {
    /// No real-time thread.
    pub(super) const NONE: Self = Self(0);

    /// The calling thread's.
    pub(super) fn mine() -> Self {
        Self(sched::priority())
    }

    pub(super) fn is_real_time(self) -> bool {
        self.0 != 0
    }

    /// The kind under which such a waiter queues.
    pub(super) fn written_into(self, kind: u64) -> u64 {
        kind | u64::from(self.0) << SHIFT
    }

    /// What was written.
    pub(super) fn taken_out_of(kind: u64) -> (u64, Self) {
        (kind & !MASK, Self((kind >> SHIFT) as u8))
    }

    /// Its place in the queue: higher is further in front.
    pub(super) fn place(self, kind: u64, has_waited: bool) -> u8 {
        match self.0 {
            0 => u8::from(has_waited),
            priority => 2 * priority + u8::from(kind != READ),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::policy::WRITE;
    use super::*;

    #[test]
    fn writers_before_readers_of_their_priority_and_all_before_the_others() {
        let places = [
            Rank::NONE.place(WRITE, false),
            Rank::NONE.place(READ, true),
            Rank(1).place(READ, false),
            Rank(1).place(WRITE, true),
            Rank(2).place(READ, true),
            Rank(100).place(READ, false),
            Rank(100).place(WRITE, false),
        ];
        assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
        for priority in [0, 1, 100] {
            let kind = Rank(priority).written_into(WRITE);
            assert_eq!(Rank::taken_out_of(kind), (WRITE, Rank(priority)));
        }
    }
}
