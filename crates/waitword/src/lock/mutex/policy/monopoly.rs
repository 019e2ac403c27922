//! A monopolized lock: one that the threads of a single CPU have to themselves.
//!
//! A second CPU does not help a lock if either of these holds:
//!
//! * Sections and gaps are shorter than the transfer of a cache line to another CPU. Two CPUs that
//!   pass the lock back and forth take it less often than one.
//! * The lock is **saturated**: a thread that has it to itself holds it for two thirds of the time,
//!   or more. Two CPUs would take it at most half as often again, if transfers and waits cost
//!   nothing. They use up to twice the CPU time, which may be limited by a quota or wanted by other
//!   processes.
//!
//! So one thread is left to use the lock for a while, and then another. ("Malthusian locks", Dice
//! 2017: the surplus is culled.) While a lock is monopolized,
//!
//! * the successor **naps**: it sleeps, remains the successor meanwhile, and reserves the lock once
//!   it wakes up. So the holder's CPU has the lock for the length of a nap, no unlock wakes a
//!   thread, and after that the lock is left to another thread;
//! * other waiters do not look at the word. They become the successor at once, or park behind it at
//!   once.
//!
//! Naps become longer while the lock is found monopolized. If the holder leaves the lock alone
//! meanwhile, no thread takes it until the nap ends. So the first nap is short, and after each one
//! the successor checks whether the lock is still in use. If it is not, the nap was *in vain*. Four
//! such naps in a row end a saturation, and put the naps at a lock of short sections on hold.
//!
//! Without these checks, bursts of 7 threads with 12 sections of 6 µs each ran at half of std's
//! rate. Bursts of 54 threads with 59 sections of 24 ns ran at 0.4 of it, with a busy process on
//! each CPU. Each thread was done before the nap ended.
//!
//! ```text
//!   CPU 0   A holds it, again and again ...................| finds it taken, successor, naps ....
//!   CPU 1   B samples, naps .............| reserves it     | B holds it, again and again ........
//! ```
//!
//! A process that uses up a CPU quota, or that shares the CPUs with other processes, gains less
//! from a second CPU: it pays for it with time that its other threads then lack. In such a process
//! a lock also counts as monopolized much sooner ([`Limits::SCARCE`]).
//!
//! The holder may depend on another thread to go on: it waits for a condvar. Then it wakes one of
//! the parked threads, past the napping successor (`unlock.rs`). Without that, the lock would be
//! idle until the nap ends, and naps would gain a queue nothing.
//!
//! # Samples
//!
//! * **Turns** show short sections and gaps. A waiter reads the count of turns in the word, twice,
//!   [`SAMPLE`] apart. It does so every 100 µs, and before each nap.
//! * **Use** shows saturation. The successor leaves the lock alone, and looks at the word every
//!   [`LOOK_EVERY`] for [`ENOUGH_TURNS`] turns. It does so once in 8 to 128 samples of turns, and
//!   before every fifth nap. The sample is inconclusive if the sections are so long that the
//!   successor stops looking, or if the holder sleeps.
//!
//! To the protocol (`private.rs`), a napping successor is one that gets no CPU. This file knows
//! no mutex and reads no clock.

use super::ROTATE_EVERY;
use core::time::Duration;

/// For how long turns are counted. In the first 150 to 250 ns of it the holder waits for the cache
/// line. A turn takes three atomic operations and the code between them, some 40 ns. So there are
/// fewer than 16 turns, at which the count in the word wraps. Tried: 400 ns, where a slow line hid
/// a monopoly.
pub(in super::super) const SAMPLE: Duration = Duration::from_nanos(600);
/// How often turns are counted, at most, if the lock has not been monopolized lately.
pub(in super::super) const SAMPLE_EVERY: u64 = 100_000;
/// The first nap. (The kernel adds 50 µs to each, and waking the CPU adds some more.)
const SHORTEST_NAP: u64 = 20_000;

/// This many samples without a turn end a monopoly.
const MOST_WITHOUT: u32 = 4;
/// The time between two looks at how the lock is used.
pub(in super::super) const LOOK_EVERY: Duration = Duration::from_nanos(500);
/// After this many turns the use is known.
pub(in super::super) const ENOUGH_TURNS: u32 = 8;
/// The successor stops after this many looks, or after this many at one section. The use then stays
/// unknown: the section is long, or its thread has no CPU.
pub(in super::super) const MOST_LOOKS: u32 = 80;
pub(in super::super) const MOST_LOOKS_AT_ONE: u32 = 40;
/// After a nap, how many times the successor looks whether a free lock is taken.
pub(in super::super) const LOOKS_AFTER_NAP: u32 = 8;
/// With this many turns per sample (in quarters), the turns alone are conclusive.
const SHORTEST_TURNS: u32 = 8;
/// How many times the interval between samples of the use may double.
const MOST_DOUBLINGS: u32 = 4;
/// This many naps in vain, in a row, put naps on hold. A nap at a lock in use may look like one in
/// vain: the successor wakes up on the holder's CPU, and the holder was between two sections.
/// (Tried: 1, with holds of 1 to 64 samples: 0.96 of the throughput of 12 mutexes on a quiet
/// machine, where 4 has 1.00.)
const ENOUGH_IN_VAIN: u32 = 4;
/// The length of the first hold, in samples with turns. It doubles with each further nap in vain,
/// up to [`LONGEST_HOLD`].
const SHORTEST_HOLD: u32 = 8;
/// The shortest nap takes 70 µs with the kernel's slack, and samples are at least 100 µs apart. So
/// naps in vain cost 0.5 % of the time.
const LONGEST_HOLD: u32 = 128;
/// How many naps there are for one sample of the use.
const NAPS_FOR_ONE_USE: u32 = 4;

/// The limits beyond which a second CPU does not help.
#[derive(Clone, Copy)]
struct Limits {
    /// With this many turns per sample (in quarters), one CPU has more than two would have.
    monopolized: u32,
    /// A lock is saturated if it is held for this many hundredths of the time.
    saturated: u32,
    /// A lock that is held for less than this is far from saturated.
    far_from_saturated: u32,
    /// How many samples of turns there are for one of the use, which takes longer. The number
    /// doubles if that sample was inconclusive, or showed that the lock is far from saturated.
    turns_for_one_use: u32,
}

impl Limits {
    const USUAL: Self = Self {
        monopolized: MONOPOLIZED,
        saturated: SATURATED,
        far_from_saturated: 50,
        turns_for_one_use: TURNS_FOR_ONE_USE,
    };
    /// For a process that is throttled, or that competes with other processes for the CPUs. On 24
    /// mutexes and 24 queues with half of a CPU, with
    /// [`LONGEST_STAY_IF_THROTTLED`](crate::park::spin): 1.09 and 1.06 of the throughput with the
    /// usual limits.
    const SCARCE: Self = Self {
        monopolized: MONOPOLIZED / 2,
        saturated: SATURATED / 2,
        far_from_saturated: 20,
        turns_for_one_use: TURNS_FOR_ONE_USE / 4,
    };
}

/// This means sections and gaps of at most 110 to 140 ns, where a cache line moves in 100 to 250
/// ns. Tried: 8 and 10, which lose up to a tenth of the throughput where gaps are twice as long as
/// sections; 12 loses some of it.
const MONOPOLIZED: u32 = 13;
/// Tried (`docs/constants.md`): 40 to 80, within the noise; 101, which means never, has 0.97 of the
/// throughput with 1.17 of the CPU time.
const SATURATED: u32 = 67;
const TURNS_FOR_ONE_USE: u32 = 8;

/// How a lock is used while its successor leaves it alone.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Use {
    /// How many times the successor looked, and how many times it found the lock held.
    pub(in super::super) looks: u32,
    pub(in super::super) held: u32,
    /// How many times the lock was taken.
    pub(in super::super) turns: u32,
}

/// What a successor samples before it may nap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Sample {
    Turns,
    Use,
    /// The use is known; no sample is needed.
    Nothing,
}

/// Decides from the samples whether the successor of a lock naps, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Monopoly {
    /// The mean number of turns in the last samples, in quarters; 0 if there were none.
    turns: u32,
    /// Samples without a turn since the last one with some. At a saturated lock this also counts
    /// naps at whose end the lock was left alone, since the last one at whose end it was in use.
    without: u32,
    /// For how many hundredths of the time the lock was held, as the mean of the last samples of
    /// its use; 0 if there were none.
    held: u32,
    /// How many samples in a row were inconclusive about the use, or showed the lock far from
    /// saturated.
    unused: u32,
    /// Samples of turns, or naps, since the last sample of the use.
    since: u32,
    /// The last nap, in nanoseconds; 0 if the lock is not monopolized.
    nap: u64,
    /// Naps in a row at whose end the lock was left alone.
    in_vain: u32,
    /// How many more samples with turns are not followed by a nap.
    on_hold: u32,
    /// The process is throttled (`park/spin/throttling.rs`), or competes with other processes for
    /// the CPUs (`yielding.rs`).
    cpu_is_scarce: bool,
}

impl Monopoly {
    fn limits(self) -> Limits {
        match self.cpu_is_scarce {
            true => Limits::SCARCE,
            false => Limits::USUAL,
        }
    }

    /// The next sample to take.
    pub(in super::super) fn next_sample(self) -> Sample {
        match self.is_saturated() {
            true if self.since < NAPS_FOR_ONE_USE => Sample::Nothing,
            true => Sample::Use,
            false if self.is_use_due() => Sample::Use,
            false => Sample::Turns,
        }
    }

    fn is_use_due(self) -> bool {
        let has_shortest_turns = self.are_short() && self.turns >= SHORTEST_TURNS;
        self.nap == 0
            && !has_shortest_turns
            && self.since >= self.limits().turns_for_one_use << self.unused
    }

    pub(in super::super) fn is_saturated(self) -> bool {
        self.held >= self.limits().saturated
    }

    fn next_nap(self) -> u64 {
        (self.nap * 2).clamp(SHORTEST_NAP, ROTATE_EVERY)
    }

    /// Records one more nap at a lock whose use is known, and returns its length.
    pub(in super::super) fn with_nap(self) -> (Self, u64) {
        let nap = self.next_nap();
        let since = self.since + 1;
        (Self { since, nap, ..self }, nap)
    }

    /// Records the end of a nap. `is_in_use`: the lock was in use then, and had not been left
    /// alone.
    pub(in super::super) fn with_nap_ended(self, is_in_use: bool) -> Self {
        if is_in_use {
            return Self { without: 0, in_vain: 0, ..self };
        }
        if !self.is_saturated() {
            return self.with_nap_in_vain();
        }
        let (next, _) = self.without_turns();
        match next.is_one() {
            true => next,
            // The use will look the same next time: sample it as seldom as possible.
            false => Self { since: 0, unused: MOST_DOUBLINGS, ..next },
        }
    }

    /// Records the end of a nap at a lock of short turns that was left alone meanwhile.
    fn with_nap_in_vain(self) -> Self {
        let in_vain = self.in_vain + 1;
        let Some(doublings) = in_vain.checked_sub(ENOUGH_IN_VAIN) else {
            return Self { in_vain, ..self };
        };
        let on_hold = (SHORTEST_HOLD << doublings).min(LONGEST_HOLD);
        Self {
            nap: 0,
            // Holds do not become longer than that.
            in_vain: in_vain - u32::from(on_hold == LONGEST_HOLD),
            on_hold,
            ..self
        }
    }

    /// Records a sample of the use, and returns the nap that follows; 0 for none. `None` is an
    /// inconclusive sample.
    pub(in super::super) fn with_use(self, seen: Option<Use>) -> (Self, u64) {
        let Some(seen) = seen.filter(|seen| seen.turns > 1) else {
            let (next, nap) = self.without_turns();
            return (next.with_use_noted(false), nap);
        };
        let share = seen.held * 100 / seen.looks;
        let held = match self.held {
            0 => share,
            mean => (mean * 3 + share) / 4,
        };
        // At a saturated lock, this count is left to the ends of naps.
        let without = if self.is_saturated() { self.without } else { 0 };
        let next = Self { held, without, ..self };
        let next = next.with_use_noted(held >= self.limits().far_from_saturated);
        let nap = match next.is_saturated() {
            true => self.next_nap(),
            false => 0,
        };
        (Self { nap, ..next }, nap)
    }

    /// Restarts the count of samples until the next one of the use.
    fn with_use_noted(self, may_be_saturated: bool) -> Self {
        let unused = match may_be_saturated {
            true => 0,
            false => (self.unused + 1).min(MOST_DOUBLINGS),
        };
        Self { since: 0, unused, ..self }
    }

    /// Records a sample in which no thread took the lock: the holder has lost its CPU, or its
    /// sections are longer than the sample.
    fn without_turns(self) -> (Self, u64) {
        let without = self.without + 1;
        if without < MOST_WITHOUT {
            return (Self { without, ..self }, 0);
        }
        let held = if self.is_saturated() { 0 } else { self.held };
        let next = Self { turns: 0, without: 0, nap: 0, held, ..self };
        (next, 0)
    }

    /// Records a sample of this many turns that took this many nanoseconds. Returns the nap of a
    /// successor that counted it; 0 if it does not nap.
    pub(in super::super) fn with(self, turns: u32, took: u64) -> (Self, u64) {
        // Either the use is known and is sampled next, or the waiter itself was preempted, and the
        // count of turns may have wrapped.
        if self.is_saturated() || took >= 2 * SAMPLE.as_nanos() as u64 {
            return (self, 0);
        }
        let since = (self.since + 1).min(self.limits().turns_for_one_use << MOST_DOUBLINGS);
        let seen = Self { since, ..self };
        if turns == 0 {
            return seen.without_turns();
        }
        let turns = match self.turns {
            0 => turns * 4,
            mean => (mean * 3 + turns * 4) / 4,
        };
        let nap = match turns >= self.limits().monopolized && self.on_hold == 0 {
            true => self.next_nap(),
            false => 0,
        };
        let next = Self { turns, without: 0, nap, on_hold: self.on_hold.saturating_sub(1), ..seen };
        (next, nap)
    }

    /// Whether the lock is monopolized.
    pub(in super::super) fn is_one(self) -> bool {
        self.nap != 0
    }

    /// Whether the last samples showed turns.
    pub(in super::super) fn are_short(self) -> bool {
        self.turns != 0 && self.without < 2
    }

    /// Packs the state for the lock's record.
    pub(in super::super) fn to_bits(self) -> u64 {
        u64::from(self.on_hold) << 56
            | u64::from(self.in_vain) << 52
            | self.nap << 32
            | u64::from(self.since) << 24
            | u64::from(self.held) << 16
            | u64::from(self.unused) << 12
            | u64::from(self.without) << 8
            | u64::from(self.turns)
    }

    pub(in super::super) fn from_bits(bits: u64, cpu_is_scarce: bool) -> Self {
        Self {
            cpu_is_scarce,
            turns: (bits & 0xff) as u32,
            without: (bits >> 8 & 0xf) as u32,
            unused: (bits >> 12 & 0xf) as u32,
            held: (bits >> 16 & 0xff) as u32,
            since: (bits >> 24 & 0xff) as u32,
            nap: bits >> 32 & 0xf_ffff,
            in_vain: (bits >> 52 & 0xf) as u32,
            on_hold: (bits >> 56) as u32,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
