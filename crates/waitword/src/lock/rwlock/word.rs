//! The lock word: what each bit means, which threads it admits, and what a release leaves behind.
//! These are pure functions. Nothing in this module waits or wakes.
//!
//! ```text
//!   63            32 31  26 25 19 18 17   14 13  10 9 8 7 6 5 4 3 2 1 0
//!   ┌───────────────┬──────┬─────┬──┬───────┬──────┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┐
//!   │ readers, or   │OTHER │READ-│T'│COLLI- │ TURN │S│P│s│B│w│W│R│u│U│X│
//!   │ writer's owner│WAKES │ERS' │  │SIONS  │      │ │ │ │ │ │ │ │ │ │ │
//!   └───────────────┴──────┴─────┴──┴───────┴──────┴─┴─┴─┴─┴─┴─┴─┴─┴─┴─┘
//! ```
//!
//! | bits | name | meaning |
//! |------|------|---------|
//! | 32–63 | readers | number of readers in the word; under `WRITER`, the owner if it is known |
//! | 0 X | `WRITER` | locked for writing; excludes readers, `UPGRADABLE` and `SLOTS` |
//! | 1 U | `UPGRADABLE` | one thread has the exclusive right to become the writer (1) |
//! | 2 u | `UPGRADE_WAITS` | that thread waits for the readers to leave; the last one wakes it |
//! | 3 R | `READERS_WAIT` | readers are queued |
//! | 4 W | `WRITERS_WAIT` | writers, or threads that want the upgradable lock, are queued |
//! | 5 w | `WOKEN` | one of those is awake already: do not wake another (2) |
//! | 6 B | `BIASED` | the lock is biased: readers may hold it through a slot |
//! | 7 s | `SLOTS` | a slot may hold this lock (3) |
//! | 8 P | `PREFER_WRITER` | writer preference; 0 is reader preference |
//! | 9 S | `SHARED` | process-shared; 0 is private |
//! | 10–13 | `TURN` | not 0: a waiter has waited too long, and newcomers queue (4) |
//! | 14–17 | `COLLISIONS` | number of reader collisions since the last write (5) |
//! | 18 T' | `READERS_TURN` | process-shared: the turn belongs to the readers (6) |
//! | 18 | `REPORTED` | private: `COLLISIONS` was full once or more since the last write (9) |
//! | 19–25 | `READERS_WAKES` | process-shared: counts wake-ups of the queued readers (7) |
//! | 26–31 | `OTHER_WAKES` | process-shared: counts wake-ups of other waiters (7) |
//! | 19–31 | `BIAS` | private: the number of this bias; 0 without `SLOTS` (8) |
//!
//! 1. It either holds the upgradable lock, or is a writer that revokes the reader bias.
//! 2. Private only. Set when such a waiter is woken, or, under writer preference, when its re-check
//!    timer fires. Cleared when that waiter looks at the word.
//! 3. Set together with `BIASED`. Stays set until the `UPGRADABLE` holder has seen that all slots
//!    are empty. Both bits are used by private locks only.
//! 4. The value encodes how long that thread has waited.
//! 5. A reader collides if another CPU changes the word between the reader's load and its
//!    compare-and-swap.
//! 6. A private lock does not need the bit: its releases look at the queue.
//! 7. Each step that clears `READERS_WAIT` and so lets the readers in, or clears another waiter's
//!    bit and wakes that waiter, adds one. The counts wrap.
//! 8. The number identifies the slots that belong to this lock.
//! 9. The full count has been reported to `bias.rs`.
//!
//! # Which thread changes them
//!
//! * readers: set by a reader that enters, or a release that hands the lock to queued readers.
//!   Cleared by each of them when it leaves.
//! * `WRITER`: set by a writer that enters, or a release that hands it the lock. Cleared by the
//!   writer.
//! * `UPGRADABLE`: set by a thread that takes the upgradable lock, a release that hands it on, a
//!   writer that begins to revoke the bias, or a release that makes it begin. Cleared by its
//!   holder.
//! * `UPGRADE_WAITS`: set by the `UPGRADABLE` holder, before it waits. Cleared by the release that
//!   wakes it, or by itself.
//! * `READERS_WAIT`, `WRITERS_WAIT`: set by a waiter that queues (10). Cleared by a release, or a
//!   waiter that gives up, that leaves none queued (10).
//! * `TURN`: set by a waiter, when it queues again after its re-check timer. Cleared by the waiter
//!   that had it, once it has the lock or gives up.
//! * `BIASED`: set by a reader whose collision was one too many (`read.rs`). Cleared by the thread
//!   that begins to revoke the bias.
//! * `SLOTS`, `BIAS`: set by the same reader, with `BIASED`. Cleared by the `UPGRADABLE` holder,
//!   once all slots are empty.
//! * `COLLISIONS`, `REPORTED`: set by a reader that collides. Cleared by the next writer.
//!
//! 10. Private: under the bucket lock, in one step with the change of the queue.
//!
//! All zeros is an unlocked private lock with reader preference. A process-shared waiter sleeps on
//! the low half. Every release that a thread may sleep for changes the low half, and it stays
//! changed (`shared.rs`).

/// A snapshot of the lock word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

pub(super) const WRITER: u64 = 1 << 0;
pub(super) const UPGRADABLE: u64 = 1 << 1;
pub(super) const UPGRADE_WAITS: u64 = 1 << 2;
pub(super) const READERS_WAIT: u64 = 1 << 3;
pub(super) const WRITERS_WAIT: u64 = 1 << 4;
pub(super) const WOKEN: u64 = 1 << 5;
pub(super) const BIASED: u64 = 1 << 6;
pub(super) const SLOTS: u64 = 1 << 7;
pub(super) const PREFER_WRITER: u64 = 1 << 8;
pub(super) const SHARED: u64 = 1 << 9;
const TURN_ONE: u64 = 1 << 10;
pub(super) const TURN: u64 = 15 * TURN_ONE;
const COLLISIONS_ONE: u64 = 1 << 14;
pub(super) const COLLISIONS: u64 = 15 * COLLISIONS_ONE;
pub(super) const READERS_TURN: u64 = 1 << 18;
/// The same bit in a private lock, which does not need `READERS_TURN`.
pub(super) const REPORTED: u64 = READERS_TURN;
const READERS_WAKES_ONE: u64 = 1 << 19;
pub(super) const READERS_WAKES: u64 = 0x7f * READERS_WAKES_ONE;
const OTHER_WAKES_ONE: u64 = 1 << 26;
pub(super) const OTHER_WAKES: u64 = 0x3f * OTHER_WAKES_ONE;
/// Used by private locks, which do not count wake-ups.
pub(super) const BIAS: u64 = READERS_WAKES | OTHER_WAKES;
pub(super) const BIAS_SHIFT: u32 = BIAS.trailing_zeros();
/// The largest bias number. The smallest is 1.
pub(super) const LAST_BIAS: u32 = (BIAS >> BIAS_SHIFT) as u32;

/// One reader.
pub(super) const READER: u64 = 1 << 32;
/// The maximum number of readers. One more is refused.
pub(super) const MOST_READERS: u64 = i32::MAX as u64;
pub(super) const LOW_HALF: u64 = READER - 1;

/// On what grounds a thread tries to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    /// None: it has just arrived.
    Newcomer,
    /// It has waited long enough. Another thread's turn no longer keeps it out.
    Waited,
    /// It holds the lock for reading already, or says so, or was woken to enter.
    Holder,
}

/// What a thread gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Reader,
    Writer,
    Upgradable,
    WriterToReader,
    WriterToUpgradable,
    UpgradableToReader,
    /// Nothing. The caller only lets in waiters that no longer need to wait.
    Nothing,
}

impl State {
    #[inline]
    pub(super) fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    #[inline]
    pub(super) fn with(self, bits: u64) -> Self {
        State(self.0 | bits)
    }

    #[inline]
    pub(super) fn without(self, bits: u64) -> Self {
        State(self.0 & !bits)
    }

    /// Clears `bits`, whose waiters are about to be woken, and counts the wake-up. Those waiters
    /// sleep on the low half, which does not return to the value that they announced.
    #[inline]
    pub(super) fn waking(self, bits: u64) -> Self {
        let (field, one) = match bits & READERS_WAIT {
            0 => (OTHER_WAKES, OTHER_WAKES_ONE),
            _ => (READERS_WAKES, READERS_WAKES_ONE),
        };
        let counted = self.0.wrapping_add(one) & field;
        State(self.0 & !(field | bits) | counted)
    }

    /// Whether the readers that waited when the word was `announced` have been let in since.
    #[inline]
    pub(super) fn has_let_readers_in_since(self, announced: State) -> bool {
        (self.0 ^ announced.0) & READERS_WAKES != 0
    }

    /// Whether other waiters have been woken since the word was `announced`.
    #[inline]
    pub(super) fn has_woken_others_since(self, announced: State) -> bool {
        (self.0 ^ announced.0) & OTHER_WAKES != 0
    }

    /// Sets or clears `bits`.
    #[inline]
    pub(super) fn having(self, bits: u64, set: bool) -> Self {
        if set { self.with(bits) } else { self.without(bits) }
    }

    /// The number of readers in the word. Readers in slots are not counted.
    #[inline]
    pub(super) fn readers(self) -> u64 {
        if self.has(WRITER) { 0 } else { self.0 >> 32 }
    }

    /// The writer's owner number, or 0 if there is no writer or it gave none.
    #[inline]
    pub(super) fn owner(self) -> u32 {
        if self.has(WRITER) { (self.0 >> 32) as u32 } else { 0 }
    }

    #[inline]
    pub(super) fn low_half(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(super) fn prefers_writers(self) -> bool {
        self.has(PREFER_WRITER)
    }

    #[inline]
    pub(super) fn is_shared(self) -> bool {
        self.has(SHARED)
    }

    /// Whether the word shows no holder. With `SLOTS`, readers may still hold the lock through
    /// slots.
    #[inline]
    pub(super) fn is_free(self) -> bool {
        !self.has(WRITER | UPGRADABLE) && self.readers() == 0
    }

    /// Whether a reader may enter.
    ///
    /// Under reader preference, waiting writers do not keep readers out. So a thread that holds the
    /// lock can always acquire it again. Besides a writer, only a turn keeps readers out, and only
    /// for a while (`Patience`).
    #[inline]
    pub(super) fn admits_reader(self, right: Right) -> bool {
        if self.has(WRITER) {
            return false;
        }
        let writers_wait = self.prefers_writers() && self.has(WRITERS_WAIT | WOKEN | UPGRADE_WAITS);
        match right {
            Right::Newcomer => !writers_wait && !self.has(TURN),
            Right::Waited => !writers_wait,
            Right::Holder => true,
        }
    }

    /// The cheap common case of [`admits_reader`](Self::admits_reader): whether a newcomer may add
    /// itself to the word. Other readers may be in the word and, under reader preference, threads
    /// may wait.
    #[inline]
    pub(super) fn admits_reader_at_once(self) -> bool {
        const WAITERS: u64 = READERS_WAIT | WRITERS_WAIT | WOKEN | UPGRADE_WAITS;
        const COUNTED: u64 = COLLISIONS | REPORTED;
        // Half of the maximum number of readers, so there is room for one more.
        const READERS: u64 = (MOST_READERS / 2) * READER;
        if self.has(!(READERS | COUNTED | UPGRADABLE | WAITERS | PREFER_WRITER)) {
            return false;
        }
        !(self.has(PREFER_WRITER) && self.has(WAITERS))
    }

    /// Whether a reader counted in the word of a private lock may leave without looking at the
    /// waiters. (Not for process-shared locks: once the lock may have been freed, its waiters
    /// cannot be found.)
    #[inline]
    pub(super) fn lets_reader_leave(self) -> bool {
        !self.has(SLOTS | SHARED)
            && self.readers() != 0
            && !self.after(Release::Reader).must_serve(Release::Reader)
    }

    /// Whether a writer may enter, going by the word. It must still check the slots.
    #[inline]
    pub(super) fn admits_writer(self, right: Right) -> bool {
        self.is_free() && (right != Right::Newcomer || !self.has(TURN))
    }

    /// Whether a thread that wants the upgradable lock may have it.
    #[inline]
    pub(super) fn admits_upgradable(self, right: Right) -> bool {
        !self.has(UPGRADABLE) && self.admits_reader(right)
    }

    /// Whether the lock may become biased: no thread waits, and no thread revokes a bias.
    #[inline]
    pub(super) fn may_become_biased(self) -> bool {
        const AGAINST: u64 = WRITER
            | UPGRADABLE
            | UPGRADE_WAITS
            | READERS_WAIT
            | WRITERS_WAIT
            | WOKEN
            | TURN
            | BIASED
            | SHARED;
        !self.has(AGAINST)
    }

    /// Makes the lock biased. If slots may still be occupied, the bias keeps its number.
    #[inline]
    pub(super) fn biased(self, number: u32) -> Self {
        let number = u64::from(number) << BIAS_SHIFT;
        let state = if self.has(SLOTS) { self } else { self.without(BIAS).with(number) };
        state.without(COLLISIONS | REPORTED).with(BIASED | SLOTS)
    }

    /// Whether readers may still hold the lock through slots of the bias in `earlier`, which had
    /// one.
    #[inline]
    pub(super) fn is_still_biased_as(self, earlier: State) -> bool {
        (self.0 ^ earlier.0) & (BIASED | BIAS) == 0
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.readers() >= MOST_READERS
    }

    /// Adds `count` readers. There must be room for them.
    #[inline]
    pub(super) fn with_readers(self, count: u64) -> Self {
        debug_assert!(!self.has(WRITER));
        // Wrapping, here and below: another process may have written garbage into a shared word.
        State(self.0.wrapping_add(count * READER))
    }

    /// Locked for writing by `owner`. Resets the collision counters: if there are writes between
    /// the reads, the reads do not pay for what a bias costs.
    #[inline]
    pub(super) fn with_writer(self, owner: u32) -> Self {
        debug_assert!(self.readers() == 0 && !self.has(BIASED | SLOTS));
        let counted = match self.is_shared() {
            true => COLLISIONS,
            false => COLLISIONS | REPORTED,
        };
        self.without(UPGRADABLE | UPGRADE_WAITS | counted).with(WRITER | u64::from(owner) << 32)
    }

    /// The word without what `release` gives up.
    #[inline]
    pub(super) fn after(self, release: Release) -> Self {
        let without_writer = State(self.0 & LOW_HALF & !WRITER);
        match release {
            Release::Reader => State(self.0.wrapping_sub(READER)),
            Release::Writer => without_writer,
            Release::WriterToReader => without_writer.with_readers(1),
            Release::WriterToUpgradable => without_writer.with(UPGRADABLE),
            Release::Upgradable => self.without(UPGRADABLE | UPGRADE_WAITS),
            Release::UpgradableToReader => self.without(UPGRADABLE | UPGRADE_WAITS).with_readers(1),
            Release::Nothing => self,
        }
    }

    /// Whether `release`, which leaves this word, must look at the waiters.
    #[inline]
    pub(super) fn must_serve(self, release: Release) -> bool {
        const WAITING: u64 = UPGRADE_WAITS | READERS_WAIT | WRITERS_WAIT | TURN;
        if !self.has(WAITING) || release == Release::Reader && self.readers() != 0 {
            return false;
        }
        // A thread that is already awake will take care of the rest.
        let only_writers = !self.has(WAITING & !WRITERS_WAIT);
        !(only_writers && (self.has(WOKEN) || release == Release::Reader && self.has(UPGRADABLE)))
    }

    /// How long the thread that has the turn has waited: 0 if no thread has it, then one more each
    /// time the wait doubles.
    #[inline]
    pub(super) fn turn(self) -> u32 {
        ((self.0 & TURN) / TURN_ONE) as u32
    }

    /// Raises the turn to at least `turn`.
    pub(super) fn with_turn(self, turn: u32) -> Self {
        let turn = turn.max(self.turn()).min((TURN / TURN_ONE) as u32);
        State(self.0 & !TURN | (u64::from(turn) * TURN_ONE))
    }

    /// Counts a reader whose compare-and-swap failed.
    #[inline]
    pub(super) fn with_collision(self) -> Self {
        match self.collides_often() {
            true => self,
            false => State(self.0 + COLLISIONS_ONE),
        }
    }

    /// Whether the collision counter is full.
    #[inline]
    pub(super) fn collides_often(self) -> bool {
        self.0 & COLLISIONS == COLLISIONS
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const NAMES: [(u64, &str); 11] = [
            (WRITER, "WRITER"),
            (UPGRADABLE, "UPGRADABLE"),
            (UPGRADE_WAITS, "UPGRADE_WAITS"),
            (READERS_WAIT, "READERS_WAIT"),
            (WRITERS_WAIT, "WRITERS_WAIT"),
            (WOKEN, "WOKEN"),
            (BIASED, "BIASED"),
            (SLOTS, "SLOTS"),
            (PREFER_WRITER, "PREFER_WRITER"),
            (SHARED, "SHARED"),
            (TURN, "TURN"),
        ];
        match self.readers() {
            0 => f.write_str("free of readers")?,
            readers => write!(f, "{readers} readers")?,
        }
        for (bit, name) in NAMES {
            if self.has(bit) {
                write!(f, " {name}")?;
            }
        }
        match (self.has(READERS_TURN), self.is_shared()) {
            (true, true) => f.write_str(" READERS_TURN"),
            (true, false) => f.write_str(" REPORTED"),
            (false, _) => Ok(()),
        }
    }
}
