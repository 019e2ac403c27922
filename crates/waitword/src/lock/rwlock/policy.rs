//! Which waiter a release serves, how many it wakes, and how long a waiter waits before it takes a turn.
//! `state.rs` says which threads come in without a wait; `bias.rs`, when readers may hold the lock by
//! slots.
//!
//! Nothing here waits or wakes. A decision depends on the word, on what the first waiter in the queue
//! waits for, on the clock, and on whether other processes want the CPUs.
//!
//! | waiters | under reader preference | under writer preference |
//! |-----------|-------------------------|-------------------------|
//! | the claim's holder, for the readers to leave | gets the lock as soon as the last has left | the same |
//! | somebody has the turn (`TURN`) | whoever stands first in the queue gets the lock: a writer alone; a reader, and all readers with it | the same |
//! | a real-time thread stands first | it gets the lock (`rank.rs`) | the same |
//! | readers | all of them are *woken* when a writer leaves | the same, if no writer waits |
//! | writers | when nobody holds it, the first is *woken* | the same, before any reader |
//!
//! **Getting** the lock means that it is handed over: the word says that they hold it before they are woken, and nobody
//! can come between. Who is only **woken** looks again, and whoever is running may have been faster (barging): a lock that is held by
//! sleepers is a lock that nobody uses. One woken writer is enough (`WOKEN`): until it has looked, releases wake
//! no other. Beside other processes it is [`HERD`].

use super::state::{
    CLAIM_WAITS, CLAIMED, READERS_WAIT, Right, SLOTS, State, TURN, WOKEN, WRITER, WRITERS_WAIT,
};
#[cfg(not(loom))]
use crate::park::{idle_cpus, spin};
use crate::sys::clock::{Clock, Deadline, now};
use core::time::Duration;

/// Marks the kinds of a rwlock's waiters among all waiters of the process.
pub(super) const RWLOCK: u64 = u64::from_be_bytes(*b"RWlock\0\0");
/// Waits to read.
pub(super) const READ: u64 = RWLOCK | 1;
/// Waits to write.
pub(super) const WRITE: u64 = RWLOCK | 2;
/// Waits for the claim.
pub(super) const CLAIM: u64 = RWLOCK | 4;
/// Has the claim, and waits for the readers to leave.
pub(super) const TAKE_OVER: u64 = RWLOCK | 8;

/// Whom to take out of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    Nobody,
    /// All readers, and with them the first who wants the claim, if it may have it.
    Readers {
        and_claimant: bool,
    },
    /// The first, a writer, to get the lock.
    First,
    /// The first of the writers and of those who want the claim, to look again; or some of them.
    AWriter,
    /// The first who wants the claim, to look again; under writer preference only if no writer stands before.
    AClaimant,
    /// The holder of the claim, to get the lock.
    TheClaimsHolder,
}

/// Who is next when the word says `after`, and `first` stands first. `fair`: that one gets the lock.
pub(super) fn who_is_next(after: State, first: u64, fair: bool) -> Whom {
    let claim_is_free = !after.has(CLAIMED);
    if after.has(WRITER) {
        return Whom::Nobody;
    }
    if after.has(CLAIM_WAITS) && after.readers() == 0 {
        return match after.has(SLOTS) {
            // It waits for those in slots first, and stands in no queue.
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

/// How many writers a release wakes where other processes want the CPUs.
///
/// There, a woken thread waits milliseconds for a CPU. The writers behind it sleep meanwhile, and a
/// process with fewer runnable threads gets less of the CPUs: with 13 threads, 2 % writes and a busy
/// process on each of two CPUs, half of the threads were runnable, and the process had 0.9 of the
/// CPU time that it has with std's lock, which wakes all readers at once. 12 random rwlocks beside
/// busy processes (seeds 71 to 74): 1.06 of the throughput with 4 or with all, 1.03 with 2. 12 others
/// (41 to 43): 1.02 with 4, 1.00 with all. On a quiet machine more than one loses, up to half of
/// the throughput where holders yield.
const HERD: u32 = 4;

/// How many waiters other than readers a release takes at most, when the word says `state`.
pub(super) fn most_others(
    whom: Whom,
    state: State,
    is_beside_others: impl FnOnce() -> bool,
) -> u32 {
    // Under writer preference one `WOKEN` keeps readers out for one writer.
    let may_be_herd = whom == Whom::AWriter && !state.prefers_writers();
    match may_be_herd && is_beside_others() {
        true => HERD,
        false => 1,
    }
}

/// How long a waiter waits before it first asks for a turn, under writer preference or beside other
/// processes; also the unit of turns. A turn may park and wake a hundred readers, which takes as long.
const FIRST_ALARM: Duration = Duration::from_millis(1);
/// The same under reader preference if the threads of this process keep its CPUs busy: three time
/// slices.
///
/// There, a writer is late because other threads run, and a turn delays all of them: every reader
/// that comes parks, and so does the next writer. With 60 threads, 2 % writes and one CPU, 1 ms gives
/// half of the throughput of 10 and 50 ms, and a 99.9th percentile of the waits of 14 ms instead of 7.
/// On 66 random rwlocks (seeds 71 to 74, 81 to 84, and those of 101 to 108 whose holders yield, sleep
/// or do I/O), 10 ms gives 1.003 of the throughput of 1 ms on a quiet machine and 1.03 on one CPU, with
/// 0.96 of the CPU time and 0.93 and 0.89 of that percentile. Beside a busy process on each CPU it
/// gives 0.97 of the throughput: a process whose threads sleep for longer gets less of the CPUs.
#[cfg(not(loom))]
const FIRST_ALARM_IF_BUSY: Duration = Duration::from_millis(10);
/// The same under reader preference if CPUs are idle (`park/idle_cpus.rs`): twice as long as it takes
/// to wake a thread there. A late writer does no work meanwhile, and parking readers takes CPU time
/// that no thread needs.
const FIRST_ALARM_IF_IDLE: Duration = Duration::from_micros(100);
/// The turn of who has waited for [`FIRST_ALARM`]. (The one before it is of who has waited for less.)
pub(super) const FIRST_TURN: u32 = 2;
/// The most that alarms are apart.
const LAST_ALARM: Duration = Duration::from_secs(1);

/// How long it takes until the first alarm of a wait for a lock in this state. Under writer preference
/// writers come first anyway, and readers are to wait for them.
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

/// The alarms of one wait, over all its sleeps.
pub(super) struct Alarms {
    /// Zero: the clock has not been read yet.
    next: Duration,
    step: Duration,
    /// How long it has waited, as of the last one. Zero: none has rung yet.
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

    /// The first sleep begins, for a lock in this state: a wait that ends before needs no clock.
    pub(super) fn begin(&mut self, state: State) {
        // In a model deadlines have always passed, and no clock is read.
        #[cfg(loom)]
        let _ = state;
        #[cfg(not(loom))]
        if self.next.is_zero() {
            self.step = first_alarm(state, spin::is_beside_others, idle_cpus::are_idle);
        }
        self.begin_awake();
    }

    /// The same for a wait that may well end without a sleep.
    pub(super) fn begin_awake(&mut self) {
        if !cfg!(loom) && self.next.is_zero() {
            self.next = now(Clock::Monotonic) + self.step;
        }
    }

    /// When the next one is.
    pub(super) fn next(&self) -> Option<Deadline> {
        // In a model a deadline has always passed; there alarms ring once, if the model is about them.
        #[cfg(all(test, loom))]
        if self.have_rung() || !crate::model::rwlock::ALARMS_RING.get() {
            return None;
        }
        Some(Deadline::at(Clock::Monotonic, self.next))
    }

    /// One has rung.
    pub(super) fn ring(&mut self) {
        self.waited += self.step;
        self.step = (self.step * 2).min(LAST_ALARM);
        self.next += self.step;
    }

    pub(super) fn have_rung(&self) -> bool {
        !self.waited.is_zero()
    }

    /// The turn that is due to who has waited so long; 0 before the first alarm. Not the number of alarms: once they are
    /// `LAST_ALARM` apart they come faster than the time doubles.
    pub(super) fn turn(&self) -> u32 {
        let times = self.waited.as_nanos() / FIRST_ALARM.as_nanos();
        u32::from(self.have_rung()) + (times + 1).ilog2()
    }
}

/// How long a reader waits for the turn that the word speaks of: no longer than whoever took it had waited by then.
pub(super) fn length_of_turn(state: State) -> Duration {
    match state.turn() {
        1 => FIRST_ALARM_IF_IDLE,
        turn => FIRST_ALARM * (1 << turn.saturating_sub(FIRST_TURN)),
    }
}

/// How long a reader lets the turns of others keep it out.
pub(super) struct Patience {
    /// Decided by the first turn that it meets. One end for the whole wait: what disturbs its sleep does not make it longer.
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

// The turn is as long as a `Duration` and a deadline can say.
const _: () = assert!((TURN >> TURN.trailing_zeros()) < 31);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::state::{PREFER_WRITER, READER};
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
            // Others still hold it.
            (WRITERS_WAIT | READER, WRITE, Whom::AClaimant),
            (WRITERS_WAIT | CLAIMED, WRITE, Whom::Nobody),
            (both | WRITER, READ, Whom::Nobody),
            // The claim comes first.
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
        // Those who get the lock, not only a look.
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
            // A reader is still inside.
            let read = state.with_readers(1);
            assert_eq!(who_is_next(read, WRITE, false), Whom::Nobody);
        }
    }
}
