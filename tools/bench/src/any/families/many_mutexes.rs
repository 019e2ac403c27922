//! Locks one of several mutexes, and in nested sections a second one inside it. Nested locks are
//! taken in the order of their indices, so that threads cannot deadlock.
//!
//! The Zipf distribution is computed here and not by `rand_distr`: another way to draw would change
//! the published loads.

use super::{Tally, check_counted};
use crate::any::cell::Load;
use crate::any::crowd::{self, Job, Outcome};
use crate::any::draw::rng_of;
use crate::harness::Failure;
use crate::locks::BenchMutex;
use fastrand::Rng;

/// Number of choices that a thread draws in advance and then cycles through.
const TABLE: usize = 1 << 12;

#[repr(C, align(128))]
struct Guarded<M> {
    lock: M,
    tally: Tally,
}

/// Chooses with the weights 1, 1/2^s, 1/3^s, ...
struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(places: u32, skew: f64) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=places)
            .map(|place| {
                sum += f64::from(place).powf(-skew);
                sum
            })
            .collect();
        Self { cumulated }
    }

    fn choose(&self, rng: &mut Rng) -> u32 {
        let all = self.cumulated.last().copied().unwrap_or(0.0);
        let at = rng.f64() * all;
        self.cumulated.partition_point(|&sum| sum <= at) as u32
    }
}

pub(in crate::any) fn run<M: BenchMutex>(job: Job<'_>) -> Result<Outcome, Failure> {
    let Load::ManyMutexes { locks, skew, nested } = job.cell.load else {
        return Err(Failure::new("not a cell of this family"));
    };
    let all: Vec<Guarded<M>> =
        (0..locks).map(|_| Guarded { lock: M::new(), tally: Tally::default() }).collect();
    let zipf = Zipf::new(locks, skew);
    let outcome = crowd::run(job, |member| {
        let mut rng = rng_of(job.cell.id, 1000 + member.number as u64);
        let chosen: Vec<[u32; 2]> = (0..TABLE)
            .map(|_| {
                let mut pair = [zipf.choose(&mut rng), zipf.choose(&mut rng)];
                pair.sort_unstable();
                pair
            })
            .collect();
        for &[first, second] in chosen.iter().cycle() {
            if member.is_over() {
                break;
            }
            let outer = &all[first as usize];
            let inner = (nested && second != first).then(|| &all[second as usize].lock);
            member.wait(|| {
                outer.lock.lock();
                if let Some(inner) = inner {
                    inner.lock();
                }
            });
            outer.tally.count();
            member.work_inside();
            if let Some(inner) = inner {
                // SAFETY: locked above; the locks do not move.
                unsafe { inner.unlock() };
            }
            // SAFETY: as above.
            unsafe { outer.lock.unlock() };
            member.work_outside();
        }
    });
    let counted = all.iter().map(|guarded| guarded.tally.so_far()).sum();
    check_counted(counted, &outcome)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_the_first_and_skew_0_none() {
        let mut rng = Rng::with_seed(3);
        let mut counts = |skew| {
            let zipf = Zipf::new(10, skew);
            let mut counts = [0_u32; 10];
            (0..100_000).for_each(|_| counts[zipf.choose(&mut rng) as usize] += 1);
            counts
        };
        let even = counts(0.0);
        assert!(even.iter().all(|&count| (9_500..10_500).contains(&count)), "{even:?}");
        let skewed = counts(1.0);
        // 1 of 1 + 1/2 + ... + 1/10.
        assert!((33_000..35_500).contains(&skewed[0]), "{skewed:?}");
        assert!(skewed.is_sorted_by(|one, other| one >= other), "{skewed:?}");
    }
}
