//! The word, as numbers: which bit means what, who may come in, what a release leaves. Pure functions; nothing here waits
//! or wakes.
//!
//! ```text
//!   63            32 31  26 25 19 18 17   14 13  10 9 8 7 6 5 4 3 2 1 0
//!   ┌───────────────┬──────┬─────┬──┬───────┬──────┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┐
//!   │ readers, or   │OTHER │READ-│T'│COLLI- │ TURN │S│P│s│F│w│W│R│c│C│X│
//!   │ writer's owner│WAKES │ERS' │  │SIONS  │      │ │ │ │ │ │ │ │ │ │ │
//!   └───────────────┴──────┴─────┴──┴───────┴──────┴─┴─┴─┴─┴─┴─┴─┴─┴─┴─┘
//! ```
//!
//! | bits | name | meaning |
//! |------|------|---------|
//! | 32–63 | readers | how many hold the lock for reading by this word; under `WRITER`: who the writer is, if it said so |
//! | 0 X | `WRITER` | held for writing. Nobody else holds it: no reader, no claim, no slot |
//! | 1 C | `CLAIMED` | one thread has the sole right to become the writer: it holds the lock upgradably, or it drives out readers |
//! | 2 c | `CLAIM_WAITS` | the thread with the claim waits for the readers to leave: the last one wakes it |
//! | 3 R | `READERS_WAIT` | readers are queued |
//! | 4 W | `WRITERS_WAIT` | writers, or threads that want the claim, are queued |
//! | 5 w | `WOKEN` | one of those is awake and has not looked yet, since it was woken, or (under writer preference) its alarm rang: no need to wake another (private only) |
//! | 6 F | `FAST` | readers may hold the lock by a slot of the process's table (private only) |
//! | 7 s | `SLOTS` | some may: set with `FAST`, stays until a claimant has seen that all slots are empty |
//! | 8 P | `PREFER_WRITER` | the preference; 0 is reader preference |
//! | 9 S | `SHARED` | the scope; 0 is private |
//! | 10–13 | `TURN` | not 0: somebody has waited too long, newcomers queue behind; the number says how long for |
//! | 14–17 | `COLLISIONS` | how many readers, since the last write, found that another CPU had changed the word between their look and their compare-and-swap |
//! | 18 T' | `READERS_TURN` | the turn is the readers' (process-shared only, where nobody can look at the queue) |
//! | 18 | `REPORTED` | so many did that `bias.rs` was told (private only) |
//! | 19–25 | `READERS_WAKES` | how many steps have cleared `READERS_WAIT`, and let those in (process-shared only; wraps) |
//! | 26–31 | `OTHER_WAKES` | how many have cleared another's bit, and woken him (process-shared only; wraps) |
//! | 19–31 | `BIAS` | the number of this bias: which slots are this lock's (private only; 0 without `SLOTS`) |
//!
//! All zeros is an unlocked private lock of reader preference. A process-shared waiter sleeps on the low half; every
//! release that somebody may sleep for changes it, for good (`kernel.rs`).

/// The word of a lock at some moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

pub(super) const WRITER: u64 = 1 << 0;
pub(super) const CLAIMED: u64 = 1 << 1;
pub(super) const CLAIM_WAITS: u64 = 1 << 2;
pub(super) const READERS_WAIT: u64 = 1 << 3;
pub(super) const WRITERS_WAIT: u64 = 1 << 4;
pub(super) const WOKEN: u64 = 1 << 5;
pub(super) const FAST: u64 = 1 << 6;
pub(super) const SLOTS: u64 = 1 << 7;
pub(super) const PREFER_WRITER: u64 = 1 << 8;
pub(super) const SHARED: u64 = 1 << 9;
const TURN_ONE: u64 = 1 << 10;
pub(super) const TURN: u64 = 15 * TURN_ONE;
const COLLISIONS_ONE: u64 = 1 << 14;
pub(super) const COLLISIONS: u64 = 15 * COLLISIONS_ONE;
pub(super) const READERS_TURN: u64 = 1 << 18;
/// The same bit in a private lock, which has no use for `READERS_TURN`.
pub(super) const REPORTED: u64 = READERS_TURN;
const READERS_WAKES_ONE: u64 = 1 << 19;
pub(super) const READERS_WAKES: u64 = 0x7f * READERS_WAKES_ONE;
const OTHER_WAKES_ONE: u64 = 1 << 26;
pub(super) const OTHER_WAKES: u64 = 0x3f * OTHER_WAKES_ONE;
/// Of a private lock, which counts no wakes.
pub(super) const BIAS: u64 = READERS_WAKES | OTHER_WAKES;
pub(super) const BIAS_SHIFT: u32 = BIAS.trailing_zeros();
/// The largest number of a bias. The smallest is 1.
pub(super) const LAST_BIAS: u32 = (BIAS >> BIAS_SHIFT) as u32;

/// One reader.
pub(super) const READER: u64 = 1 << 32;
/// The most that can hold the lock at once. One more is refused.
pub(super) const MOST_READERS: u64 = i32::MAX as u64;
const LOW_HALF: u64 = READER - 1;

/// By what right somebody wants to come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    /// None: it has just come.
    Newcomer,
    /// It has waited, and whoever has the turn must share it.
    Waited,
    /// It holds the lock for reading already, or says so, or was woken to come in.
    Holder,
}

/// What a thread gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Reader,
    Writer,
    Claim,
    WriterToReader,
    WriterToClaim,
    ClaimToReader,
    /// Nothing: it only sees to it that nobody waits who need not.
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

    /// Without `bits` of those who are about to be woken, who sleep on the low half: it will not be as they announced it again.
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

    /// Whether others that waited when the word was `announced` have been woken since.
    #[inline]
    pub(super) fn has_woken_others_since(self, announced: State) -> bool {
        (self.0 ^ announced.0) & OTHER_WAKES != 0
    }

    /// `bits` set or cleared.
    #[inline]
    pub(super) fn having(self, bits: u64, set: bool) -> Self {
        if set {
            self.with(bits)
        } else {
            self.without(bits)
        }
    }

    /// How many hold it for reading, by the word.
    #[inline]
    pub(super) fn readers(self) -> u64 {
        if self.has(WRITER) { 0 } else { self.0 >> 32 }
    }

    /// The writer, if it said who it is; else 0.
    #[inline]
    pub(super) fn owner(self) -> u32 {
        if self.has(WRITER) {
            (self.0 >> 32) as u32
        } else {
            0
        }
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

    /// Whether nobody holds it by the word. Readers may by slots, if it has `SLOTS`.
    #[inline]
    pub(super) fn is_free(self) -> bool {
        !self.has(WRITER | CLAIMED) && self.readers() == 0
    }

    /// Whether a reader may come in.
    ///
    /// Under reader preference waiting writers do not keep it out, so that a thread that holds the lock can take it
    /// again, whatever others do; only somebody's turn does, and that only for a while (`Patience`).
    #[inline]
    pub(super) fn admits_reader(self, right: Right) -> bool {
        if self.has(WRITER) {
            return false;
        }
        let writers_wait = self.prefers_writers() && self.has(WRITERS_WAIT | WOKEN | CLAIM_WAITS);
        match right {
            Right::Newcomer => !writers_wait && !self.has(TURN),
            Right::Waited => !writers_wait,
            Right::Holder => true,
        }
    }

    /// Whether a newcomer may read by the word alone, whatever else the word says: others may read,
    /// and, under reader preference, wait. A part of what `admits_reader` allows, cheap to see.
    #[inline]
    pub(super) fn admits_reader_at_once(self) -> bool {
        const WAITERS: u64 = READERS_WAIT | WRITERS_WAIT | WOKEN | CLAIM_WAITS;
        const COUNTED: u64 = COLLISIONS | REPORTED;
        // Half of the readers that can be counted: so there is room for one more.
        const READERS: u64 = (MOST_READERS / 2) * READER;
        if self.has(!(READERS | COUNTED | CLAIMED | WAITERS | PREFER_WRITER)) {
            return false;
        }
        !(self.has(PREFER_WRITER) && self.has(WAITERS))
    }

    /// Whether a reader that stands in the word of a private lock may leave without a look at those who
    /// wait. (Who waits for a process-shared one is not found once the lock may be gone.)
    #[inline]
    pub(super) fn lets_reader_leave(self) -> bool {
        !self.has(SLOTS | SHARED)
            && self.readers() != 0
            && !self
                .after(Release::Reader)
                .calls_for_others(Release::Reader)
    }

    /// Whether a writer may come in, by the word; it must still see to the slots.
    #[inline]
    pub(super) fn admits_writer(self, right: Right) -> bool {
        self.is_free() && (right != Right::Newcomer || !self.has(TURN))
    }

    /// Whether the claim may be had by somebody who wants to hold the lock upgradably.
    #[inline]
    pub(super) fn admits_claimant(self, right: Right) -> bool {
        !self.has(CLAIMED) && self.admits_reader(right)
    }

    /// Whether readers may begin to hold it by slots: nobody waits, and nobody drives readers out.
    #[inline]
    pub(super) fn may_become_fast(self) -> bool {
        const AGAINST: u64 = WRITER
            | CLAIMED
            | CLAIM_WAITS
            | READERS_WAIT
            | WRITERS_WAIT
            | WOKEN
            | TURN
            | FAST
            | SHARED;
        !self.has(AGAINST)
    }

    /// With readers in slots from now on. Slots that may still stand keep their number.
    #[inline]
    pub(super) fn biased(self, number: u32) -> Self {
        let number = u64::from(number) << BIAS_SHIFT;
        let state = if self.has(SLOTS) {
            self
        } else {
            self.without(BIAS).with(number)
        };
        state.without(COLLISIONS | REPORTED).with(FAST | SLOTS)
    }

    /// Whether readers may hold it by slots of the same bias as in `earlier`, when they might.
    #[inline]
    pub(super) fn is_still_biased_as(self, earlier: State) -> bool {
        (self.0 ^ earlier.0) & (FAST | BIAS) == 0
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.readers() >= MOST_READERS
    }

    /// With so many more readers, of which there is room for.
    #[inline]
    pub(super) fn with_readers(self, count: u64) -> Self {
        debug_assert!(!self.has(WRITER));
        // Wrapping, here and below: another process may have written nonsense into a shared word.
        State(self.0.wrapping_add(count * READER))
    }

    /// Held for writing by `owner`. What was counted about readers begins anew: with a write between them, reads do not
    /// pay for what fast readers cost.
    #[inline]
    pub(super) fn with_writer(self, owner: u32) -> Self {
        debug_assert!(self.readers() == 0 && !self.has(FAST | SLOTS));
        let counted = match self.is_shared() {
            true => COLLISIONS,
            false => COLLISIONS | REPORTED,
        };
        self.without(CLAIMED | CLAIM_WAITS | counted)
            .with(WRITER | u64::from(owner) << 32)
    }

    /// Without what `release` gives up.
    #[inline]
    pub(super) fn after(self, release: Release) -> Self {
        let without_writer = State(self.0 & LOW_HALF & !WRITER);
        match release {
            Release::Reader => State(self.0.wrapping_sub(READER)),
            Release::Writer => without_writer,
            Release::WriterToReader => without_writer.with_readers(1),
            Release::WriterToClaim => without_writer.with(CLAIMED),
            Release::Claim => self.without(CLAIMED | CLAIM_WAITS),
            Release::ClaimToReader => self.without(CLAIMED | CLAIM_WAITS).with_readers(1),
            Release::Nothing => self,
        }
    }

    /// Whether `release`, which leaves this, must look after those who wait.
    #[inline]
    pub(super) fn calls_for_others(self, release: Release) -> bool {
        const ANYBODY: u64 = CLAIM_WAITS | READERS_WAIT | WRITERS_WAIT | TURN;
        if !self.has(ANYBODY) || release == Release::Reader && self.readers() != 0 {
            return false;
        }
        // Somebody is on its way who will see to the rest.
        let only_writers = !self.has(ANYBODY & !WRITERS_WAIT);
        !(only_writers && (self.has(WOKEN) || release == Release::Reader && self.has(CLAIMED)))
    }

    /// How long somebody has been waiting whose turn it is: 0 for nobody, then one more each time that is doubled.
    #[inline]
    pub(super) fn turn(self) -> u32 {
        ((self.0 & TURN) / TURN_ONE) as u32
    }

    /// With the turn at least this.
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

    /// Whether as many collided as can be counted here.
    #[inline]
    pub(super) fn collides_often(self) -> bool {
        self.0 & COLLISIONS == COLLISIONS
    }
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        const NAMES: [(u64, &str); 11] = [
            (WRITER, "WRITER"),
            (CLAIMED, "CLAIMED"),
            (CLAIM_WAITS, "CLAIM_WAITS"),
            (READERS_WAIT, "READERS_WAIT"),
            (WRITERS_WAIT, "WRITERS_WAIT"),
            (WOKEN, "WOKEN"),
            (FAST, "FAST"),
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn wakes_are_counted_beside_everything_else_and_wrap() {
        for (bit, field, other) in [
            (READERS_WAIT, READERS_WAKES, OTHER_WAKES),
            (WRITERS_WAIT, OTHER_WAKES, READERS_WAKES),
        ] {
            let first = State(!other);
            let mut state = first;
            for _ in 0..1 << field.count_ones() {
                let next = state.waking(bit);
                assert_ne!(next.low_half(), state.low_half());
                assert_eq!(next.0 | field, !(other | bit), "{next:?}");
                assert_eq!(next.has_let_readers_in_since(state), bit == READERS_WAIT);
                state = next;
            }
            assert_eq!(state, first.without(bit));
        }
        let wakes = READERS_WAKES | OTHER_WAKES;
        assert_eq!(wakes | READERS_TURN, LOW_HALF & !(READERS_TURN - 1));
        assert_eq!(wakes & READERS_TURN, 0);
    }
}
