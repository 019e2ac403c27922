//! A monopolized lock: one that the threads of one CPU have to themselves.
//!
//! Where sections and gaps are shorter than it takes to move a cache line to another CPU, a lock is
//! taken most often if nobody else looks at it: two CPUs that pass it to and fro take it less often,
//! and use twice the CPU time. ("Malthusian locks", Dice 2017: the surplus is culled.)
//!
//! Only the word can tell, which counts turns while there is an heir. A waiter counts them for
//! [`SAMPLE`], now and then at each lock (`nap.rs`); if there is no heir it becomes it for
//! that. While a lock is monopolized,
//!
//! * the heir **naps**: it sleeps, remains the heir meanwhile, and has the lock reserved once it
//!   wakes up. So the holder's CPU has the lock for the length of a nap, no unlock wakes anybody, and
//!   the lock is left to another thread after that;
//! * others do not look. They become the heir at once, or park behind it at once.
//!
//! Naps become longer while the lock is found monopolized before each. If the holder leaves the lock
//! alone meanwhile, nobody may have it until the nap ends: that is why the first one is short.
//!
//! ```text
//!   CPU 0   A holds it, again and again ......................| finds it taken, is the heir, naps ...
//!   CPU 1   B counts turns, naps          | has it reserved | B holds it, again and again ..........
//! ```
//!
//! To the protocol (`throughput.rs`) an heir that naps is one that gets no CPU. This file knows no
//! mutex and reads no clock.

use super::policy::ROTATE_EVERY;
use core::time::Duration;

/// For how long turns are counted. The first 150 to 250 ns of it the holder waits for its line. A turn
/// takes three atomic operations and the way to them, some 40 ns: so there are fewer than 16, which is
/// what the word counts to. Tried: 400 ns, where a slow line hid a monopoly.
pub(super) const SAMPLE: Duration = Duration::from_nanos(600);
/// As many turns in a sample, in quarters, are more than two CPUs would have: sections and gaps of
/// 110 to 140 ns at most, where a cache line moves in 100 to 250 ns. Tried: 8 and 10, which lose up to
/// a tenth of the throughput where gaps are twice as long as sections; 12, some of it.
const MONOPOLIZED: u32 = 13;
/// The first nap. (The kernel adds 50 µs to each, and the CPU's wake-up some more.)
const SHORTEST_NAP: u64 = 20_000;

/// So many samples without a turn end it.
const MOST_WITHOUT: u32 = 4;

/// Whether, and for how long, the heir of a lock naps: by the turns that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Monopoly {
    /// The mean of the last samples' turns, in quarters; 0 if there were none.
    turns: u32,
    /// Samples without a turn since one with some.
    without: u32,
    /// The last nap, in nanoseconds; 0: the lock is not monopolized.
    nap: u64,
}

impl Monopoly {
    /// With a sample more, of so many turns, which took so long. And the nap of an heir that counted
    /// it; 0: it does not nap.
    pub(super) fn with(self, turns: u32, took: u64) -> (Self, u64) {
        // If the waiter itself was preempted, 16 turns more may have passed.
        if took >= 2 * SAMPLE.as_nanos() as u64 {
            return (self, 0);
        }
        // The holder has lost its CPU. Or its sections are longer than that.
        if turns == 0 {
            let without = self.without + 1;
            let next = match without < MOST_WITHOUT {
                true => Self { without, ..self },
                false => Self::default(),
            };
            return (next, 0);
        }
        let turns = match self.turns {
            0 => turns * 4,
            mean => (mean * 3 + turns * 4) / 4,
        };
        let nap = match turns >= MONOPOLIZED {
            true => (self.nap * 2).clamp(SHORTEST_NAP, ROTATE_EVERY),
            false => 0,
        };
        let without = 0;
        (
            Self {
                turns,
                without,
                nap,
            },
            nap,
        )
    }

    /// Whether the lock is monopolized.
    pub(super) fn is_one(self) -> bool {
        self.nap != 0
    }

    /// Whether turns were seen in the last samples.
    pub(super) fn are_short(self) -> bool {
        self.turns != 0 && self.without < 2
    }

    /// As a lock's record keeps it.
    pub(super) fn to_bits(self) -> u64 {
        self.nap << 16 | u64::from(self.without) << 8 | u64::from(self.turns)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        Self {
            turns: (bits & 0xff) as u32,
            without: (bits >> 8 & 0xff) as u32,
            nap: bits >> 16,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const TOOK: u64 = SAMPLE.as_nanos() as u64;

    /// A record, and the naps of heirs that counted so many turns, one after another.
    fn naps(monopoly: &mut Monopoly, turns: &[u32]) -> Vec<u64> {
        let nap = |&turns: &u32| {
            let (next, nap) = monopoly.with(turns, TOOK);
            assert_eq!(Monopoly::from_bits(next.to_bits()), next);
            *monopoly = next;
            nap
        };
        turns.iter().map(nap).collect()
    }

    #[test]
    fn naps_become_longer_while_the_lock_is_monopolized_and_end_with_that() {
        let mut monopoly = Monopoly::default();
        let first = naps(&mut monopoly, &[4; 8]);
        assert_eq!(
            first[..3],
            [SHORTEST_NAP, 2 * SHORTEST_NAP, 4 * SHORTEST_NAP]
        );
        assert_eq!(first[7], ROTATE_EVERY);
        // One sample among others does not decide.
        assert_eq!(naps(&mut monopoly, &[3]), [ROTATE_EVERY]);
        assert_eq!(naps(&mut monopoly, &[1, 2]), [0, 0]);
        assert!(!monopoly.is_one() && monopoly.are_short());
        assert_eq!(naps(&mut monopoly, &[15]), [SHORTEST_NAP]);
    }

    #[test]
    fn a_holder_without_a_cpu_says_nothing_and_one_that_goes_on_for_long_ends_it() {
        let mut monopoly = Monopoly::default();
        naps(&mut monopoly, &[4; 8]);
        assert_eq!(naps(&mut monopoly, &[0, 0, 0]), [0; 3]);
        assert!(monopoly.is_one() && !monopoly.are_short());
        assert_eq!(naps(&mut monopoly, &[4]), [ROTATE_EVERY]);
        assert!(monopoly.are_short());
        naps(&mut monopoly, &[0; 4]);
        assert_eq!(monopoly, Monopoly::default());
    }

    #[test]
    fn a_sample_that_took_too_long_is_none() {
        let mut monopoly = Monopoly::default();
        naps(&mut monopoly, &[4]);
        assert_eq!(monopoly.with(15, 2 * TOOK), (monopoly, 0));
    }
}
