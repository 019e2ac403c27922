//! How waiters wake up: how many are woken at once, whether a signalled one becomes the successor
//! (`signalled_are_successors` in `history.rs`), and when a successor is late.
//!
//! # Batched wake-ups
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
//! There are [`SOME`] of them, if the last [`LATELY`] woken waiters had the mutex without waiting;
//! [`MANY`], if the last thirty had, or if the last successor that came from a condvar ran only a
//! millisecond after it was woken. (More than 31 was tried, up to all at once, and gained nothing:
//! `waitword bench cond-perf`.) An extra waiter is a newcomer that never yields its place. If it
//! must park again, its wake-up was in vain, and waiters are woken one at a time again.
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
//! thread cannot run before the first. (With extra waiters only if no other processes compete for
//! the CPUs: otherwise the thread may run only milliseconds later.)
//!
//! Tried: making every signalled thread the successor, 0.93 of the throughput on 18 queues drawn at
//! random, and 0.55 on the worst of them, with 5 switches an item instead of 3; making none of them
//! the successor, three times the time of a broadcast to 512.
//!
//! # Late successors
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
//! where the yield gives the CPU to a thread of this process. A real-time thread does not yield:
//! the successor may have a lower priority, and would not run.
//!
//! A successor that waits for a CPU also keeps unlocks from waking other threads, for milliseconds
//! on a loaded machine or with many runnable threads. CPUs that become free meanwhile find nothing
//! to do. So an unlock whose successor is late wakes another waiter, at most once in 80 µs.
//!
//! On one CPU no successor counts as late, and no thread reads the clock. There only the running
//! thread keeps the successor from running, and the kernel divides that CPU. (A queue's consumer
//! that yielded after 80 µs left half of the items in the queue, and the producers got room for
//! only a few: 48 queues drawn at random had 0.93 of the throughput, one of them 0.44.)
//!
//! This file knows no mutex and reads no clock.

const TIME_SHIFT: u32 = 8;
const TIME: u32 = 0xffff << TIME_SHIFT;
/// Nanoseconds per unit of the time, as a shift.
const UNIT: u32 = 12;

/// A successor is late after this time. It wakes up in some 60 µs if its CPU had nothing to do, and
/// far sooner otherwise.
const LATE: u32 = 80_000 >> UNIT;
/// If a woken successor runs only after this time, the CPUs were busy. With free CPUs it takes far
/// less.
const BUSY: u32 = 1_000_000 >> UNIT;
/// For how long no other thread yields after one has.
const NOT_AGAIN_FOR: u32 = 200_000 >> UNIT;
/// A difference of this much or more means a time in the future: a thread has just yielded.
const FUTURE: u32 = 1 << 15;

const IN_A_ROW_SHIFT: u32 = 24;
const IN_A_ROW: u32 = 0x1f << IN_A_ROW_SHIFT;
const LATELY: u32 = 16;
const MOST_IN_A_ROW: u32 = 30 << IN_A_ROW_SHIFT;
const WAS_LATE: u32 = 31 << IN_A_ROW_SHIFT;
const SOME: usize = 7;
const MANY: usize = 31;

/// What the mutex remembers of how its waiters woke up.
///
/// | bits | meaning |
/// |------|---------|
/// | 8-23 | when the successor was appointed, in 4.096 µs of the monotonic clock, modulo 2^16 |
/// | 24-28 | how many in a row had the mutex at once, up to 30; 31: the last successor was late |
///
/// The other bits are left as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct WakeRecord(pub(in super::super) u32);

impl WakeRecord {
    /// How many waiters to wake beside the successor, if there are several CPUs.
    pub(in super::super) fn extras(self) -> usize {
        match self.0 & IN_A_ROW {
            WAS_LATE | MOST_IN_A_ROW => MANY,
            in_a_row if in_a_row >> IN_A_ROW_SHIFT >= LATELY => SOME,
            _ => 0,
        }
    }

    /// After a successor that came from a condvar: whether it ran late.
    pub(in super::super) fn with_late(self, late: bool) -> Self {
        match late == (self.0 & IN_A_ROW == WAS_LATE) {
            true => self,
            false => self.with_in_a_row(if late { WAS_LATE } else { MOST_IN_A_ROW }),
        }
    }

    /// After one thread was signalled, not all of them.
    pub(in super::super) fn with_signal(self) -> Self {
        self.with_in_a_row(0)
    }

    /// After a woken waiter that had the mutex at once, or had not.
    pub(in super::super) fn with_woken(self, at_once: bool) -> Self {
        match at_once {
            true if self.0 & IN_A_ROW >= MOST_IN_A_ROW => self,
            true => Self(self.0 + (1 << IN_A_ROW_SHIFT)),
            false => self.with_in_a_row(0),
        }
    }

    fn with_in_a_row(self, in_a_row: u32) -> Self {
        Self(self.0 & !IN_A_ROW | in_a_row)
    }

    /// With a successor since `now`, in nanoseconds.
    pub(in super::super) fn with_successor(self, now: u64) -> Self {
        Self(self.0 & !TIME | units(now))
    }

    /// After a thread has yielded its CPU to the successor, or was about to: no other thread does
    /// so for a while.
    pub(in super::super) fn with_way_made(self, now: u64) -> Self {
        let later = units(now).wrapping_add(NOT_AGAIN_FOR << TIME_SHIFT);
        Self(self.0 & !TIME | later & TIME)
    }

    /// Whether the successor should have had the lock long ago.
    pub(in super::super) fn is_late(self, now: u64) -> bool {
        (LATE..FUTURE).contains(&self.since(now))
    }

    /// For a successor that runs now: whether that took so long that the CPUs must have been busy
    /// with other threads.
    pub(in super::super) fn ran_late(self, now: u64) -> bool {
        (BUSY..FUTURE).contains(&self.since(now))
    }

    /// How long there has been a successor.
    fn since(self, now: u64) -> u32 {
        (units(now).wrapping_sub(self.0 & TIME) & TIME) >> TIME_SHIFT
    }
}

fn units(nanoseconds: u64) -> u32 {
    ((nanoseconds >> UNIT) as u32) << TIME_SHIFT & TIME
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NEW: WakeRecord = WakeRecord(0);

    #[test]
    fn a_late_successor_brings_many_and_one_woken_in_vain_ends_it() {
        let late = NEW.with_late(true);
        assert_eq!((NEW.extras(), late.extras()), (0, MANY));
        // Waiters that have it at once do not raise the number further.
        assert_eq!(late.with_woken(true), late);
        let in_time = late.with_late(false);
        assert_eq!(in_time.extras(), MANY);
        assert_eq!(in_time.with_woken(false).extras(), 0);
        // Successors that are in time change nothing else.
        assert_eq!(NEW.with_late(false), NEW);
    }

    #[test]
    fn sixteen_in_a_row_bring_some_and_thirty_many() {
        let mut record = NEW;
        let mut after = |more| {
            (0..more).for_each(|_| record = record.with_woken(true));
            record.extras()
        };
        assert_eq!([15, 1, 13, 1, 40].map(&mut after), [0, SOME, SOME, MANY, MANY]);
        record = record.with_woken(false);
        assert_eq!((0..15).fold(record, |record, _| record.with_woken(true)).extras(), 0);
    }

    #[test]
    fn a_successor_is_late_after_a_while_until_a_thread_has_made_way() {
        const SECOND: u64 = 1_000_000_000;
        let record = WakeRecord(u32::MAX).with_successor(SECOND);
        let in_time = SECOND + 70_000;
        let late = SECOND + 90_000;
        assert!(!record.is_late(in_time) && record.is_late(late) && !record.ran_late(late));
        assert!(record.ran_late(SECOND + 1_100_000));
        let made = record.with_way_made(late);
        assert!(!made.is_late(late) && !made.is_late(late + 190_000));
        assert!(made.is_late(late + 300_000));
        // Nothing else has changed.
        assert_eq!(made.0 | TIME, u32::MAX);
    }
}
