//! Selects the next lock: few are drawn often, many seldom (Zipf's law: the k-th most popular is
//! drawn 1/k as often as the first).
//!
//! A table, because `rand_distr` computes powers and logarithms for each draw, which would take
//! longer than an uncontended lock. And a generator of its own: each draw is part of the measured
//! loop, and another one would draw other locks than those of the published figures.

/// The number of locks.
pub(super) const LOCKS: usize = 100;
const ENTRIES: usize = 4096;

/// The rank for each of `ENTRIES` equally likely draws, so that a draw costs one load.
pub(super) struct Zipf([u8; ENTRIES]);

impl Zipf {
    pub(super) fn new() -> Self {
        let weight = |rank: usize| 1.0 / (rank + 1) as f64;
        let all: f64 = (0..LOCKS).map(weight).sum();
        let mut table = [0; ENTRIES];
        let (mut rank, mut up_to) = (0, weight(0) / all);
        for (draw, entry) in table.iter_mut().enumerate() {
            while (draw as f64 + 0.5) / ENTRIES as f64 > up_to && rank + 1 < LOCKS {
                rank += 1;
                up_to += weight(rank) / all;
            }
            *entry = rank as u8;
        }
        Self(table)
    }

    /// The rank, from 0, that this random number selects.
    #[inline(always)]
    pub(super) fn rank(&self, random: u64) -> usize {
        // The high bits are the better ones.
        usize::from(self.0[(random >> 52) as usize % ENTRIES])
    }
}

/// A random number generator, fast and good enough to choose a lock (xorshift*).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: usize) -> Self {
        Self((seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_wanted_twice_as_often_as_the_second_and_none_never() {
        let (zipf, mut random) = (Zipf::new(), Random::new(7));
        let mut drawn = [0_u32; LOCKS];
        for _ in 0..1_000_000 {
            drawn[zipf.rank(random.next())] += 1;
        }
        let ratio = |rank: usize| f64::from(drawn[0]) / f64::from(drawn[rank]);
        assert!((1.9..2.1).contains(&ratio(1)), "{drawn:?}");
        assert!((9.0..11.0).contains(&ratio(9)), "{drawn:?}");
        assert!(drawn.iter().all(|&count| count > 0), "{drawn:?}");
    }

    #[test]
    fn threads_draw_differently() {
        let draws = |seed| {
            let mut random = Random::new(seed);
            (0..8).map(move |_| random.next()).collect::<Vec<_>>()
        };
        assert_ne!(draws(0), draws(1));
    }
}
