//! An unfair lock: a thread waits while others get the lock again and again.
//!
//! Evidence: most of the time that was lost at the lock was lost in waits during which the others
//! had it more than four times for each thread that uses it. In a queue, the others come once each.
//! If each release chose one of n threads by lot, a wait would see n others on average, and more
//! than 4 n in one wait out of fifty, which would hold a tenth of the time. So half of it is no
//! accident. A wait of less than 1 ms does not count: a lock of short sections is left to one CPU
//! for up to 0.5 ms at a time on purpose. What an rwlock does to its writers is another finding
//! (`starved.rs`).
//!
//! The other evidence is that a thread got the lock more than four times as often as another one,
//! which waited at half of its turns or more, while both used it. (Nobody knows how often a thread
//! would have liked to get it. So the finding says what was counted, and leaves the judgement to
//! the reader.)

use super::sums::{Bounded, Costs, Few, Sums, THREADS, grow, lost, weight};
use super::{Detector, Finding, Kind, Line, Run, capital, count};
use crate::text::time;
use waitword_record::format::{Object, Wait};

/// How many turns of the others for each thread are unfair.
const TURNS: u64 = 4;
/// A shorter wait is not unfair, in nanoseconds: two of the times for which the drop-in's mutex
/// leaves a lock to one CPU (`ROTATE_EVERY` in `crates/waitword/src/lock/mutex/policy`).
const SHORT: u64 = 1_000_000;

/// By lock.
#[derive(Debug, Default)]
pub(super) struct Unfair(Bounded<u64, Lock>);

#[derive(Debug, Default)]
struct Lock {
    sums: Sums,
    /// The threads that wait for it or keep others from it.
    users: Few<u32>,
    /// What each thread waits.
    threads: Bounded<u32, Share, THREADS>,
    /// The time lost in waits of at least [`SHORT`] that saw more than 1, 2, 4, ... turns of
    /// others.
    above: [u64; 17],
}

/// The waits of one thread.
#[derive(Debug, Default)]
struct Share {
    waits: u64,
    passed: u64,
    lost: u64,
    /// When the last one ended.
    last: u64,
}

impl Costs for Lock {
    fn cost(&self) -> u64 {
        self.sums.cost()
    }
}

impl Costs for Share {
    fn cost(&self) -> u64 {
        self.lost
    }
}

impl Detector for Unfair {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if !object.is_lock() || matches!(object, Object::Read | Object::Write) {
            return;
        }
        let lock = self.0.of(wait.address);
        lock.sums.add(thread, wait);
        lock.users.add(thread);
        if wait.holder != 0 {
            lock.users.add(wait.holder);
        }
        let share = lock.threads.of(thread);
        grow(&mut share.waits, weight(wait));
        grow(&mut share.passed, weight(wait).saturating_mul(wait.passed.into()));
        grow(&mut share.lost, lost(wait));
        share.last = share.last.max(wait.began.saturating_add(wait.took));
        for (power, above) in lock.above.iter_mut().enumerate() {
            if wait.took >= SHORT && u64::from(wait.passed) > 1 << power {
                grow(above, lost(wait));
            }
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().filter(|(_, lock)| {
            // The next power of two: rather too few findings than too many.
            let bound = (TURNS * lock.users.len() as u64).next_power_of_two().ilog2() as usize;
            let above = lock.above.get(bound).copied().unwrap_or(0);
            let sums = &lock.sums;
            // With more threads than are counted, the bound is not known.
            !lock.users.is_full() && above > sums.lost / 2 && run.matters(sums.lost, sums.waits)
        });
        let by_waits: Vec<Finding> =
            found.filter_map(|(lock, it)| finding(*lock, it, run)).collect();
        if !by_waits.is_empty() {
            return by_waits;
        }
        let matters = |lock: &Lock| run.matters(lock.sums.lost, lock.sums.waits);
        let all = self.0.iter().filter(|(_, lock)| matters(lock));
        all.filter_map(|(address, lock)| by_turns(*address, lock, run)).collect()
    }
}

/// Threads that got the lock unequally often, by their turns.
fn by_turns(address: u64, lock: &Lock, run: &Run<'_>) -> Option<Finding> {
    let counted = run.turns.get(&address)?;
    let first = counted.iter().map(|(_, turns)| turns.since).min()?;
    let soon = first.saturating_add(run.length / 10);
    // Those that used it from the beginning, and in the second half of the run still.
    let used: Vec<(u32, u64, &Share)> = counted
        .iter()
        .filter(|(_, turns)| turns.since <= soon && turns.count > 0)
        .filter_map(|(thread, turns)| Some((*thread, turns.count, lock.threads.get(thread)?)))
        .filter(|(_, _, share)| share.last >= first.saturating_add(run.length / 2))
        .collect();
    let (often, most, often_share) = *used.iter().max_by_key(|(_, count, _)| *count)?;
    let waits_often = |count: u64, share: &Share| share.waits.saturating_mul(2) >= count;
    let (seldom, least, share) = *used
        .iter()
        .filter(|(_, count, share)| waits_often(*count, share))
        .min_by_key(|(_, count, _)| *count)?;
    if most <= least.saturating_mul(TURNS) {
        return None;
    }
    let (waiter, _) = lock.sums.worst();
    let said = vec![
        Line::new(format!(
            "{} took lock {address:#x} {:.1} times as often as {}: {} to {}.",
            capital(&run.thread(often)),
            most as f64 / least as f64,
            run.thread(seldom),
            count(most, "time"),
            least,
        )),
        Line::at(
            format!(
                "The one that got it seldom waited {}, {} together; the other one {}. Mostly at",
                count(share.waits, "time"),
                time(share.lost),
                count(often_share.waits, "time"),
            ),
            waiter,
        ),
    ];
    let advice = "If both have as much to do, the lock favours one of them: a fair flavour costs \
                  throughput, which `waitword compare` measures. If not, nothing is wrong with \
                  the lock.";
    Some(Finding { kind: Kind::Unfair, lost: lock.sums.lost, said, advice })
}

fn finding(address: u64, lock: &Lock, run: &Run<'_>) -> Option<Finding> {
    let per_wait = |share: &Share| share.passed as f64 / share.waits.max(1) as f64;
    let (victim, worst) =
        lock.threads.iter().max_by(|(_, a), (_, b)| per_wait(a).total_cmp(&per_wait(b)))?;
    let (waiter, holder) = lock.sums.worst();
    let mut said = vec![
        Line::at(
            format!(
                "{} use lock {address:#x}; {}, the longest {}, mostly at",
                lock.users.shown("thread"),
                count(lock.sums.waits, "wait"),
                time(lock.sums.longest),
            ),
            waiter,
        ),
        Line::new(format!(
            "The others had it {:.0} times during one wait, on average. Most unfair to {}: {}, \
             {} together, {:.0} turns of others in each.",
            lock.sums.passed_per_wait(),
            run.thread(*victim),
            count(worst.waits, "wait"),
            time(worst.lost),
            per_wait(worst),
        )),
    ];
    if holder != 0 {
        said.push(Line::at("They released it mostly at", holder));
    }
    let advice = "A thread that unlocks and locks again at once leaves the others no time: do more \
                  in one section or less often, or work outside between two sections. A fair \
                  flavour costs throughput; `waitword compare` measures that.";
    Some(Finding { kind: Kind::Unfair, lost: lock.sums.lost, said, advice })
}
