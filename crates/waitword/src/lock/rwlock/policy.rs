//! Policy: all decisions of the readers-writer lock that are not facts of its word. Which waiter a
//! release serves, how many it wakes, when a waiter gets its turn and how long that lasts, and when
//! the lock is biased towards readers. (How long a waiter spins is decided in `park/spin/policy.rs`
//! for all locks. `word.rs` has the rules of the word.)
//!
//! Nothing here waits or wakes, reads a clock or changes a lock. A decision depends on the word, on
//! what the first waiter in the queue waits for, and on [`Surroundings`].
//!
//! # Which waiter is next
//!
//! The first row that applies decides:
//!
//! | waiters | reader preference | writer preference |
//! |-----------|-------------------------|-------------------------|
//! | `UPGRADABLE` holder | gets the lock as soon as the last reader has left | the same |
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
//! [`HERD`] writers. In the kernel's queue nothing is handed off, and the same waiters are woken.
//!
//! # When the lock is biased
//!
//! Biased readers cost writers: each write that finds the lock biased scans the slot table and
//! waits for the readers in it. So a lock becomes biased only if both are true:
//!
//! * Readers *took its word from each other* 120 times with no write in between. That is how often
//!   a reader's compare-and-swap failed because another CPU was faster. (The word counts up to 15
//!   in `COLLISIONS`, and `bias.rs` counts how often that was full. A write clears what the word
//!   holds of them.)
//! * At least four times the duration of the last revocation has passed since then. So all
//!   revocations together cost writers at most a fifth of their time (BRAVO's rule).
//!
//! Revoking the bias takes 1 to 4 µs. A reader saves 0.05 to 0.2 µs: two transfers of a cache line.
//! So a revocation costs as much as some 80 reads save. Two threads that only read, on two CPUs,
//! collide once in 30 to 1,500 reads, and need 4,000 to 180,000 reads for those 120.
//!
//! Measured with other thresholds: with 15 collisions, three of seven random loads with few writes
//! lost 1 to 6 % on two CPUs, and the others stayed as they were. 45 and 375 differ by less than
//! the noise on random loads with 0.1 to 50 % writes (`docs/constants.md`). Where a bias began
//! after four reads, loads with 0.1 to 12 % writes lost 5 to 20 % on two CPUs, compared with no
//! bias at all (`waitword bench any --family rwlock`, seeds 41 and 43).
//!
//! Readers that merely overlap are not counted. That would require counting all readers, and each
//! reader would find the word less simple. It costs 7 % of the rate of short reads with a few
//! writes.

use super::rank::{READ, READ_UPGRADABLY, UPGRADE, WRITE};
use super::word::{
    OTHER_WAKES, READERS_TURN, READERS_WAIT, READERS_WAKES, Release, Right, SLOTS, State, TURN,
    UPGRADABLE, UPGRADE_WAITS, WOKEN, WRITER, WRITERS_WAIT,
};
use core::time::Duration;

/// What a decision depends on besides the lock.
pub(super) trait Surroundings {
    /// The time on the monotonic clock.
    fn now(&self) -> Duration;
    /// Whether other processes compete for the CPUs.
    fn others_compete(&self) -> bool;
    /// Whether CPUs are idle, as far as this process can tell (`park/idle_cpus.rs`).
    fn cpus_are_idle(&self) -> bool;
}

/// Which waiters a release serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    None,
    /// All readers, and with them the first waiter for the upgradable lock, if it may have that.
    Readers {
        and_upgradable: bool,
    },
    /// The first waiter, a writer. It gets the lock.
    First,
    /// The first writer or waiter for the upgradable lock, or several of them. They look again.
    AWriter,
    /// The first waiter for the upgradable lock. It looks again. Under writer preference, only if
    /// no writer is queued before it.
    AnUpgradable,
    /// The `UPGRADABLE` holder. It gets the lock.
    Upgrader,
}

/// Whether a look at the queue takes a waiter out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serve {
    Take,
    Pass,
    /// Neither this waiter nor any behind it.
    Stop,
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
pub(super) const HERD: u32 = 4;

/// How long a waiter waits before it first asks for a turn, under writer preference or when other
/// processes compete for the CPUs. Also the unit of turns. A turn may park and wake a hundred
/// readers, which takes as long.
pub(super) const FIRST_ALARM: Duration = Duration::from_millis(1);
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
pub(super) const FIRST_ALARM_IF_BUSY: Duration = Duration::from_millis(10);
/// The same under reader preference if CPUs are idle (`park/idle_cpus.rs`): twice as long as it
/// takes to wake a thread there. A late writer does no work meanwhile, and parking readers takes
/// CPU time that no thread needs.
pub(super) const FIRST_ALARM_IF_IDLE: Duration = Duration::from_micros(100);
/// The turn of a waiter that has waited for [`FIRST_ALARM`]. (Turn 1 is for a waiter that has
/// waited less.)
pub(super) const FIRST_TURN: u32 = 2;
/// The longest interval of a re-check timer.
const LAST_ALARM: Duration = Duration::from_secs(1);

/// For how many times the duration of a revocation the lock stays unbiased.
const TIMES_THE_COST: u64 = 4;
/// A longer revocation counts as this long. A reader that is waited for longer sleeps or has lost
/// its CPU, and any reader, biased or not, costs writers that.
const MOST_COST: u64 = Duration::from_micros(4).as_nanos() as u64;
/// The number of reports (of 15 collisions each) with no write in between after which a lock
/// becomes biased.
pub(super) const REPORTS: u32 = 8;

/// The decisions.
pub(super) struct Policy;

impl Policy {
    /// Which waiters of a private lock are next if the word is `after` and `first` is the kind of
    /// the first waiter. If `fair`, that waiter gets the lock.
    pub(super) fn next(after: State, first: u64, fair: bool) -> Next {
        let upgradable_is_free = !after.has(UPGRADABLE);
        if after.has(WRITER) {
            return Next::None;
        }
        if after.has(UPGRADE_WAITS) && after.readers() == 0 {
            return match after.has(SLOTS) {
                // It waits for the slots first, and is not in the queue.
                true => Next::None,
                false => Next::Upgrader,
            };
        }
        let all_readers = Next::Readers { and_upgradable: upgradable_is_free };
        if fair || after.has(TURN) {
            return match first {
                READ => all_readers,
                READ_UPGRADABLY if upgradable_is_free => all_readers,
                WRITE if after.is_free() => Next::First,
                _ => Next::None,
            };
        }
        if after.has(READERS_WAIT) && after.admits_reader(Right::Newcomer) {
            return all_readers;
        }
        if !after.has(WRITERS_WAIT) || after.has(WOKEN) {
            Next::None
        } else if after.is_free() {
            Next::AWriter
        } else if upgradable_is_free {
            Next::AnUpgradable
        } else {
            Next::None
        }
    }

    /// Whether `next` includes a waiter of this kind. (Readers include every reader.)
    pub(super) fn serves(
        next: Next,
        kind: u64,
        is_real_time: bool,
        prefers_writers: bool,
    ) -> Serve {
        let takes = match next {
            Next::None => return Serve::Stop,
            // The readers behind it wait for it.
            Next::Readers { .. } if kind == WRITE && is_real_time => return Serve::Stop,
            Next::Readers { and_upgradable } => {
                kind == READ || and_upgradable && kind == READ_UPGRADABLY
            }
            Next::First => true,
            Next::AWriter => kind == WRITE || kind == READ_UPGRADABLY,
            // A writer that came earlier.
            Next::AnUpgradable if kind == WRITE && prefers_writers => return Serve::Stop,
            Next::AnUpgradable => kind == READ_UPGRADABLY,
            Next::Upgrader => kind == UPGRADE,
        };
        match takes {
            true => Serve::Take,
            false => Serve::Pass,
        }
    }

    /// The maximum number of waiters other than readers that a release takes.
    pub(super) fn most_others(next: Next, prefers_writers: bool, on: &impl Surroundings) -> u32 {
        // Under writer preference, one `WOKEN` bit keeps readers out for one writer.
        let may_be_herd = next == Next::AWriter && !prefers_writers;
        match may_be_herd && on.others_compete() {
            true => HERD,
            false => 1,
        }
    }

    /// Which sleepers a release of a process-shared lock wakes if it leaves `after`, and the new
    /// word.
    pub(super) fn next_in_kernel(after: State, release: Release) -> (State, Next) {
        const ALL_READERS: Next = Next::Readers { and_upgradable: false };
        if after.has(UPGRADE_WAITS) && after.readers() == 0 {
            return (after.waking(UPGRADE_WAITS), Next::Upgrader);
        }
        let readers_may = after.admits_reader(Right::Newcomer)
            || after.has(READERS_TURN)
            // No other thread is there to take the turn.
            || !after.has(WRITERS_WAIT | UPGRADABLE);
        if after.has(READERS_WAIT) && !after.has(WRITER) && readers_may {
            return (after.waking(READERS_WAIT | READERS_TURN), ALL_READERS);
        }
        if after.has(WRITERS_WAIT) && after.is_free() {
            return (after.waking(WRITERS_WAIT), Next::AWriter);
        }
        let left_upgradable = matches!(
            release,
            Release::Upgradable | Release::UpgradableToReader | Release::WriterToReader
        );
        if after.has(WRITERS_WAIT) && left_upgradable && !after.has(UPGRADABLE) {
            // Writers keep sleeping.
            let new = after.waking(WRITERS_WAIT).with(WRITERS_WAIT);
            return (new, Next::AnUpgradable);
        }
        if !after.has(READERS_WAIT | WRITERS_WAIT | UPGRADE_WAITS) {
            // The turn of a thread that is gone.
            return (after.without(TURN | READERS_TURN), Next::None);
        }
        (after, Next::None)
    }

    /// Whether a process-shared lock is free and kept for the thread that has the turn. No reader
    /// holds it, so a waiting reader cannot be keeping its own thread waiting.
    pub(super) fn is_kept(state: State) -> bool {
        let is_free = match state.has(UPGRADE_WAITS) {
            true => !state.has(WRITER) && state.readers() == 0,
            false => state.has(WRITERS_WAIT) && state.is_free(),
        };
        is_free && state.has(TURN) && !state.has(READERS_TURN)
    }

    /// Whether it has been kept for the same turn since it was `announced`, as far as the word
    /// shows.
    pub(super) fn was_kept_since(announced: State, state: State) -> bool {
        const SAME: u64 = TURN | READERS_WAKES | OTHER_WAKES;
        Self::is_kept(announced) && Self::is_kept(state) && (announced.0 ^ state.0) & SAME == 0
    }

    /// Whether newcomers must wait from the moment that such a waiter queues, and not after some
    /// milliseconds.
    pub(super) fn takes_turn_at_once(kind: u64, is_real_time: bool) -> bool {
        kind != READ && is_real_time
    }

    /// Whether a reader that must wait while the word is in this `state` waits only for another
    /// thread's turn, which its [`Patience`] limits.
    pub(super) fn waits_for_turn(state: State) -> bool {
        !state.prefers_writers() && !state.has(WRITER)
    }

    /// How long a reader waits for the turn in the word: no longer than the thread that took the
    /// turn had waited by then.
    pub(super) fn length_of_turn(state: State) -> Duration {
        match state.turn() {
            1 => FIRST_ALARM_IF_IDLE,
            turn => FIRST_ALARM * (1 << turn.saturating_sub(FIRST_TURN)),
        }
    }

    /// The delay of the first re-check of a wait, for a lock in this state. Under writer preference
    /// writers come first anyway, and readers are meant to wait for them.
    fn first_recheck(state: State, on: &impl Surroundings) -> Duration {
        if state.prefers_writers() || on.others_compete() {
            FIRST_ALARM
        } else if on.cpus_are_idle() {
            FIRST_ALARM_IF_IDLE
        } else {
            FIRST_ALARM_IF_BUSY
        }
    }

    /// Whether readers have collided often enough for a bias: they have made so many `reports`
    /// since the last write.
    pub(super) fn collide_enough(reports: u32) -> bool {
        reports >= REPORTS
    }

    /// Whether the time has come at which the lock may be biased again, in nanoseconds.
    pub(super) fn may_be_biased(not_before: u64, on: &impl Surroundings) -> bool {
        nanoseconds(on) >= not_before
    }

    /// Before which time a lock does not become biased again whose bias was revoked from `began`
    /// until now, in nanoseconds.
    pub(super) fn next_bias(began: u64, on: &impl Surroundings) -> u64 {
        let now = nanoseconds(on);
        now + now.saturating_sub(began).min(MOST_COST) * TIMES_THE_COST
    }

    /// Whether no further reader may enter while a writer revokes the bias.
    pub(super) fn revocation_bars_readers(state: State) -> bool {
        state.prefers_writers()
    }
}

pub(super) fn nanoseconds(on: &impl Surroundings) -> u64 {
    on.now().as_nanos() as u64
}

/// When a waiter looks at the lock again by itself, across all sleeps of one wait.
pub(super) struct Recheck {
    /// When the timer fires next. Zero: the clock has not been read yet.
    next: Duration,
    step: Duration,
    /// How long the waiter had waited when the timer last fired. Zero: it has not fired yet.
    waited: Duration,
}

impl Recheck {
    pub(super) fn new() -> Self {
        Self { next: Duration::ZERO, step: FIRST_ALARM, waited: Duration::ZERO }
    }

    /// Starts the timer before the first sleep, for a lock in this state. A wait that ends before
    /// needs no clock.
    pub(super) fn begin(&mut self, state: State, on: &impl Surroundings) {
        if self.next.is_zero() {
            self.step = Policy::first_recheck(state, on);
        }
        self.begin_awake(on);
    }

    /// Starts the timer for a wait that may well end without a sleep.
    pub(super) fn begin_awake(&mut self, on: &impl Surroundings) {
        if self.next.is_zero() {
            self.next = on.now() + self.step;
        }
    }

    /// Returns when the timer fires next.
    pub(super) fn next(&self) -> Duration {
        self.next
    }

    /// Records that the timer has fired.
    pub(super) fn fire(&mut self) {
        self.waited += self.step;
        self.step = (self.step * 2).min(LAST_ALARM);
        self.next += self.step;
    }

    pub(super) fn has_fired(&self) -> bool {
        !self.waited.is_zero()
    }

    /// The turn that is due after such a wait; 0 if the timer has not fired. This is not the number
    /// of times that the timer has fired: once it fires every `LAST_ALARM`, that number grows
    /// faster than the waiting time doubles.
    pub(super) fn turn(&self) -> u32 {
        let times = self.waited.as_nanos() / FIRST_ALARM.as_nanos();
        u32::from(self.has_fired()) + (times + 1).ilog2()
    }
}

/// How long a reader lets other threads' turns keep it out.
pub(super) struct Patience {
    /// Set by the first turn that the reader meets. It holds for the whole wait: what disturbs the
    /// reader's sleep does not extend it.
    end: Option<Duration>,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { end: None }
    }

    pub(super) fn end(&mut self, state: State, on: &impl Surroundings) -> Duration {
        *self.end.get_or_insert_with(|| on.now().saturating_add(Policy::length_of_turn(state)))
    }
}

// A `Duration` and a deadline can represent the longest turn.
const _: () = assert!((TURN >> TURN.trailing_zeros()) < 31);
