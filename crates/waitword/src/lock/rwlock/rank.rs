//! Waiters in the queue: what each waits for, the place of real-time threads, and their turn.
//!
//! POSIX's option "Thread Execution Scheduling" requires the following of `pthread_rwlock_*` for
//! threads under `SCHED_FIFO` and `SCHED_RR`. A reader waits for waiting writers of its own or a
//! higher priority. The thread with the highest priority gets the lock first. At equal priority,
//! writers come before readers.
//!
//! | place | waiter |
//! |-------|-----|
//! | 2 × priority + 1 | waits to write, or for the upgradable lock, at this real-time priority |
//! | 2 × priority | waits to read at this real-time priority |
//! | 1 | has waited before and must queue again |
//! | 0 | all others |
//!
//! The queue is ordered by place, and by arrival within one place. So the first waiter determines
//! what is due:
//!
//! * **A release hands the lock off** if the first waiter is a real-time thread: to that writer
//!   alone, or to that reader and the readers before the first real-time writer.
//! * **A real-time writer takes the turn** (`TURN`) as it queues, not after some milliseconds:
//!   newcomers queue behind it. As always under reader preference, a reader waits for a turn no
//!   longer than its owner has waited so far, 1 ms at first, because the reader may hold the lock
//!   already. POSIX leaves the resulting deadlock to the program; here there is none. (A reader of
//!   a higher priority than all waiting writers should enter at once. It enters at the next
//!   release, or after that millisecond.)
//!
//! Nothing changes where no real-time thread waits. In the kernel's queue (process-shared locks) no
//! waiter can be chosen.

use crate::sys::sched;

/// Marks the kinds of an rwlock's waiters among all waiters of the process.
pub(super) const RWLOCK: u64 = u64::from_be_bytes(*b"RWlock\0\0");
/// Waits to read.
pub(super) const READ: u64 = RWLOCK | 1;
/// Waits to write.
pub(super) const WRITE: u64 = RWLOCK | 2;
/// Waits for the upgradable lock.
pub(super) const READ_UPGRADABLY: u64 = RWLOCK | 4;
/// Holds `UPGRADABLE` and waits for the readers to leave.
pub(super) const UPGRADE: u64 = RWLOCK | 8;

/// The real-time priority of a waiter, 1 to 100; 0 for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank(u8);

/// The position of the rank in a waiter's kind. `hand_off.rs` uses the bits below, and the mark of
/// an rwlock is in the bits above.
const SHIFT: u32 = 8;
const MASK: u64 = 0xff << SHIFT;

impl Rank {
    /// Not a real-time thread.
    pub(super) const NONE: Self = Self(0);

    /// The calling thread's rank.
    pub(super) fn mine() -> Self {
        Self(sched::priority())
    }

    pub(super) fn is_real_time(self) -> bool {
        self.0 != 0
    }

    /// The kind under which a waiter with this rank queues.
    pub(super) fn written_into(self, kind: u64) -> u64 {
        kind | u64::from(self.0) << SHIFT
    }

    /// Splits such a kind into the plain kind and the rank.
    pub(super) fn taken_out_of(kind: u64) -> (u64, Self) {
        (kind & !MASK, Self((kind >> SHIFT) as u8))
    }

    /// Its place in the queue. Higher places are further in front.
    pub(super) fn place(self, kind: u64, has_waited: bool) -> u8 {
        match self.0 {
            0 => u8::from(has_waited),
            priority => 2 * priority + u8::from(kind != READ),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
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
