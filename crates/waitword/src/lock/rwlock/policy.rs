//! Policy: which waiter a release serves, how many it wakes, and how long a waiter waits before it
//! takes a turn. `word.rs` decides which threads enter without waiting. `bias.rs` decides when
//! readers may hold the lock through slots.
//!
//! Nothing here waits or wakes. A decision depends on the word, on what the first waiter in the
//! queue waits for, on the clock, and on whether other processes compete for the CPUs.
//!
//! The first row that applies decides:
//!
//! | waiters | reader preference | writer preference |
//! |-----------|-------------------------|-------------------------|
//! | `CLAIMED` holder | gets the lock as soon as the last reader has left | the same |
//! | `TURN` is set | the first waiter gets the lock (1) | the same |
//! | a real-time thread is first | it gets the lock (`rank.rs`) | the same |
//! | readers | all are *woken* when a writer leaves | the same, if no writer waits |
//! | writers | if the lock is free, the first is *woken* | the same, before any reader |
//!
//! 1. A writer gets it alone. A reader gets it together with all other waiting readers.
//!
//! **Getting** the lock means a hand-off: the word records the new holder before that thread is
//! woken, so no other thread can take the lock in between. A waiter that is only **woken** looks at
//! the word again, and a running thread may be faster (barging): a lock that is handed to a
//! sleeping thread sits idle until that thread runs. One woken writer is enough (`WOKEN`): until it
//! has looked, releases wake no other. When other processes compete for the CPUs, a release wakes
//! [`HERD`] writers.

use super::word::{
    CLAIM_WAITS, CLAIMED, READERS_WAIT, Right, SLOTS, State, TURN, WOKEN, WRITER, WRITERS_WAIT,
};
#[cfg(not(loom))]
use crate::park::{idle_cpus, spin};
use crate::sys::clock::{Clock, Deadline, now};
use core::time::Duration;

/// Marks the kinds of an rwlock's waiters among all waiters of the process.
pub(super) const RWLOCK: u64 = u64::from_be_bytes(*b"RWlock\0\0");
/// Waits to read.
pub(super) const READ: u64 = RWLOCK | 1;
/// Waits to write.
pub(super) const WRITE: u64 = RWLOCK | 2;
/// Waits for the upgradable lock.
pub(super) const CLAIM: u64 = RWLOCK | 4;
/// Holds `CLAIMED` and waits for the readers to leave.
pub(super) const TAKE_OVER: u64 = RWLOCK | 8;

/// Which waiters to take out of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    Nobody,
    /// All readers, and with them the first waiter for the upgradable lock, if it may have that.
    Readers {
        and_claimant: bool,
    },
    /// The first waiter, a writer. It gets the lock.
    First,
    /// The first writer or waiter for the upgradable lock, or several of them. They look again.
    AWriter,
    /// The first waiter for the upgradable lock. It looks again. Under writer preference, only if
    /// no writer is queued before it.
    AClaimant,
    /// The `CLAIMED` holder. It gets the lock.
    TheClaimsHolder,
}

/// Which waiters are next if the word is `after` and `first` is the kind of the first waiter. If
/// `fair`, that waiter gets the lock.
pub(super) fn who_is_next(after: State, first: u64, fair: bool) -> Whom {
    let claim_is_free = !after.has(CLAIMED);
    if after.has(WRITER) {
        return Whom::Nobody;
    }
    if after.has(CLAIM_WAITS) && after.readers() == 0 {
        return match after.has(SLOTS) {
            // It waits for the slots first, and is not in the queue.
            true => Whom::Nobody,
            false => Whom::TheClaimsHolder,
        };
    }
    if fair || after.has(TURN) {
        return match first {
            READ => Whom::Readers {
                and_claimant: claim_is_free,
            },
            CLAIM if claim_is_free => Whom::Readers { and_claimant: true },
            WRITE if after.is_free() => Whom::First,
            _ => Whom::Nobody,
        };
    }
    if after.has(READERS_WAIT) && after.admits_reader(Right::Newcomer) {
        return Whom::Readers {
            and_claimant: claim_is_free,
        };
    }
    if !after.has(WRITERS_WAIT) || after.has(WOKEN) {
        return Whom::Nobody;
    }
    if after.is_free() {
        Whom::AWriter
    } else if claim_is_free {
        Whom::AClaimant
    } else {
        Whom::Nobody
    }
}

/// How many writers a release wakes when other processes compete for the CPUs.
///
/// A woken thread then waits milliseconds for a CPU, while the writers behind it sleep. A process
/// with fewer runnable threads gets less of the CPUs. With 13 threads, 2 % writes and a busy
/// process on each of two CPUs, half of the threads were runnable, and the process got 0.9 of the
/// CPU time that it gets with std's lock, which wakes all readers at once. On 12 random rwlocks
/// with competing busy processes (seeds 71 to 74), waking 4 writers or all of them gave 1.06 of the
/// throughput, and 2 gave 1.03. On 12 others (41 to 43), 4 gave 1.02 and all gave 1.00. On a quiet
/// machine, waking more than one loses up to half of the throughput where holders yield.
const HERD: u32 = 4;

/// The maximum number of waiters other than readers that a release takes, if the word is `state`.
pub(super) fn most_others(
    whom: Whom,
    state: State,
    is_beside_others: impl FnOnce() -> bool,
) -> u32 {
    // Under writer preference, one `WOKEN` bit keeps readers out for one writer.
    let may_be_herd = whom == Whom::AWriter && !state.prefers_writers();
    match may_be_herd && is_beside_others() {
        true => HERD,
        false => 1,
    }
}

/// How long a waiter waits before it first asks for a turn, under writer preference or when other
/// processes compete for the CPUs. Also the unit of turns. A turn may park and wake a hundred
/// readers, which takes as long.
const FIRST_ALARM: Duration = Duration::from_millis(1);
/// The same under reader preference if the threads of this process keep its CPUs busy: three time
/// slices.
///
/// A writer is late then because other threads run, and a turn delays all of them: every reader
/// that arrives parks, and so does the next writer. With 60 threads, 2 % writes and one CPU, 1 ms
/// gives half of the throughput of 10 and 50 ms, and a 99.9th percentile of the waits of 14 ms
/// instead of 7. On 66 random rwlocks (seeds 71 to 74, 81 to 84, and those of 101 to 108 whose
/// holders yield, sleep or do I/O), 10 ms gives 1.003 of the throughput of 1 ms on a quiet machine
/// and 1.03 on one CPU, with 0.96 of the CPU time and 0.93 and 0.89 of that percentile. With a busy
/// process on each CPU it gives 0.97 of the throughput: a process whose threads sleep longer gets
/// less of the CPUs.
#[cfg(not(loom))]
const FIRST_ALARM_IF_BUSY: Duration = Duration::from_millis(10);
/// The same under reader preference if CPUs are idle (`park/idle_cpus.rs`): twice as long as it
/// takes to wake a thread there. A late writer does no work meanwhile, and parking readers takes
/// CPU time that no thread needs.
const FIRST_ALARM_IF_IDLE: Duration = Duration::from_micros(100);
/// The turn of a waiter that has waited for [`FIRST_ALARM`]. (Turn 1 is for a waiter that has
/// waited less.)
pub(super) const FIRST_TURN: u32 = 2;
/// The longest interval of a re-check timer.
const LAST_ALARM: Duration = Duration::from_secs(1);

/// The delay of the first re-check of a wait, for a lock in this state. Under writer preference
/// writers come first anyway, and readers are meant to wait for them.
#[cfg(not(loom))]
fn first_alarm(
    state: State,
    is_beside_others: impl FnOnce() -> bool,
    are_cpus_idle: impl FnOnce() -> bool,
) -> Duration {
    if state.prefers_writers() || is_beside_others() {
        FIRST_ALARM
    } else if are_cpus_idle() {
        FIRST_ALARM_IF_IDLE
    } else {
        FIRST_ALARM_IF_BUSY
    }
}

/// The re-check timer of one wait, across all its sleeps.
pub(super) struct Alarms {
    /// When it fires next. Zero: the clock has not been read yet.
    next: Duration,
    step: Duration,
    /// How long the waiter had waited when the timer last fired. Zero: it has not fired yet.
    waited: Duration,
}

impl Alarms {
    pub(super) fn new() -> Self {
        Self::beginning_with(FIRST_ALARM)
    }

    pub(super) fn beginning_with(step: Duration) -> Self {
        Self {
            next: Duration::ZERO,
            step,
            waited: Duration::ZERO,
        }
    }

    /// Starts the timer before the first sleep, for a lock in this state. A wait that ends before
    /// needs no clock.
    pub(super) fn begin(&mut self, state: State) {
        // In a model, deadlines have always passed, and no clock is read.
        #[cfg(loom)]
        let _ = state;
        #[cfg(not(loom))]
        if self.next.is_zero() {
            self.step = first_alarm(state, spin::is_beside_others, idle_cpus::are_idle);
        }
        self.begin_awake();
    }

    /// Starts the timer for a wait that may well end without a sleep.
    pub(super) fn begin_awake(&mut self) {
        if !cfg!(loom) && self.next.is_zero() {
            self.next = now(Clock::Monotonic) + self.step;
        }
    }

    /// Returns when the timer fires next.
    pub(super) fn next(&self) -> Option<Deadline> {
        // In a model, a deadline has always passed. There the timer fires once, if the model is
        // about it.
        #[cfg(all(test, loom))]
        if self.have_rung() || !crate::model::rwlock::ALARMS_RING.get() {
            return None;
        }
        Some(Deadline::at(Clock::Monotonic, self.next))
    }

    /// Records that the timer has fired.
    pub(super) fn ring(&mut self) {
        self.waited += self.step;
        self.step = (self.step * 2).min(LAST_ALARM);
        self.next += self.step;
    }

    pub(super) fn have_rung(&self) -> bool {
        !self.waited.is_zero()
    }

    /// The turn that is due after such a wait; 0 if the timer has not fired. This is not the number
    /// of times that the timer has fired: once it fires every `LAST_ALARM`, that number grows
    /// faster than the waiting time doubles.
    pub(super) fn turn(&self) -> u32 {
        let times = self.waited.as_nanos() / FIRST_ALARM.as_nanos();
        u32::from(self.have_rung()) + (times + 1).ilog2()
    }
}

/// How long a reader waits for the turn in the word: no longer than the thread that took the turn
/// had waited by then.
pub(super) fn length_of_turn(state: State) -> Duration {
    match state.turn() {
        1 => FIRST_ALARM_IF_IDLE,
        turn => FIRST_ALARM * (1 << turn.saturating_sub(FIRST_TURN)),
    }
}

/// How long a reader lets other threads' turns keep it out.
pub(super) struct Patience {
    /// Set by the first turn that the reader meets. It holds for the whole wait: what disturbs the
    /// reader's sleep does not extend it.
    end: Option<Deadline>,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { end: None }
    }

    pub(super) fn end(&mut self, state: State) -> Deadline {
        *self
            .end
            .get_or_insert_with(|| Deadline::after(length_of_turn(state)))
    }
}

// A `Duration` and a deadline can represent the longest turn.
const _: () = assert!((TURN >> TURN.trailing_zeros()) < 31);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::word::{PREFER_WRITER, READER};
    use super::*;

    const ALL_READERS: Whom = Whom::Readers { and_claimant: true };

    #[test]
    fn who_is_next_by_preference() {
        let both = READERS_WAIT | WRITERS_WAIT;
        for (word, first, next) in [
            (both, WRITE, ALL_READERS),
            (both | PREFER_WRITER, READ, Whom::AWriter),
            (READERS_WAIT | PREFER_WRITER, READ, ALL_READERS),
            (WRITERS_WAIT, WRITE, Whom::AWriter),
            // One of them is awake.
            (WRITERS_WAIT | WOKEN, WRITE, Whom::Nobody),
            // A reader still holds it.
            (WRITERS_WAIT | READER, WRITE, Whom::AClaimant),
            (WRITERS_WAIT | CLAIMED, WRITE, Whom::Nobody),
            (both | WRITER, READ, Whom::Nobody),
            // The `CLAIMED` holder comes first.
            (both | CLAIMED | CLAIM_WAITS, READ, Whom::TheClaimsHolder),
        ] {
            let state = State(word);
            assert_eq!(who_is_next(state, first, false), next, "{state:?}");
        }
    }

    #[test]
    fn a_herd_of_writers_is_woken_beside_others_under_reader_preference_only() {
        let readers_first = State(WRITERS_WAIT);
        assert_eq!(most_others(Whom::AWriter, readers_first, || true), HERD);
        assert_eq!(most_others(Whom::AWriter, readers_first, || false), 1);
        let writers_first = readers_first.with(PREFER_WRITER);
        assert_eq!(most_others(Whom::AWriter, writers_first, || true), 1);
        // All others serve a single waiter.
        for whom in [Whom::First, Whom::AClaimant, Whom::TheClaimsHolder] {
            assert_eq!(most_others(whom, readers_first, || true), 1);
        }
        assert_eq!(most_others(ALL_READERS, readers_first, || true), 1);
    }

    #[test]
    fn the_first_alarm_by_preference_and_by_what_keeps_the_cpus_busy() {
        let (readers_first, writers_first) = (State(0), State(PREFER_WRITER));
        for (state, is_beside_others, are_cpus_idle, due) in [
            (readers_first, false, false, FIRST_ALARM_IF_BUSY),
            (readers_first, false, true, FIRST_ALARM_IF_IDLE),
            // CPUs that another process keeps busy look idle.
            (readers_first, true, true, FIRST_ALARM),
            (readers_first, true, false, FIRST_ALARM),
            (writers_first, false, true, FIRST_ALARM),
            (writers_first, false, false, FIRST_ALARM),
        ] {
            let first = first_alarm(state, || is_beside_others, || are_cpus_idle);
            assert_eq!(first, due, "{state:?}, {is_beside_others}, {are_cpus_idle}");
        }
    }

    #[test]
    fn whoever_stands_first_is_next_if_somebody_has_the_turn() {
        for preference in [0, PREFER_WRITER] {
            let state = State(READERS_WAIT | WRITERS_WAIT | preference).with_turn(FIRST_TURN);
            assert_eq!(who_is_next(state, WRITE, false), Whom::First);
            assert_eq!(who_is_next(state, READ, false), ALL_READERS);
            // A reader still holds the lock.
            let read = state.with_readers(1);
            assert_eq!(who_is_next(read, WRITE, false), Whom::Nobody);
        }
    }
}
