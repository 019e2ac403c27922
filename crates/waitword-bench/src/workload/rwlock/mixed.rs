//! Every thread reads, and seldom writes: as many operations each, from a common start until the last has ended.

use super::Guarded;
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, check};
use crate::locks::{BenchRwLock, every_rwlock};
use crate::run::Settings;
use crate::workload::calibrate;
use crate::workload::race::{Place, Took, race};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const METRICS: &[Metric] = &[
    metric("time", "ns/op"),
    metric("ops", "/s"),
    metric("CPU", "ns/op"),
    metric("slept", "/op"),
    metric("preempted", "/op"),
];

const fn metric(name: &'static str, unit: &'static str) -> Metric {
    Metric { name, unit }
}

/// One write in so many operations; 0: none.
const PERIODS: [u64; 3] = [0, 100, 2];
const PERIODS_FULL: [u64; 5] = [0, 1000, 100, 10, 2];
const THREADS: [usize; 4] = [1, 2, 4, 16];
const THREADS_FULL: [usize; 5] = [1, 2, 4, 8, 16];

/// Operations of each thread in the first run by which the others are sized.
const FIRST: u64 = 256;

pub(super) fn cases(settings: &Settings) -> Vec<Case> {
    let of_user = settings.threads != Settings::default().threads;
    let threads: &[usize] = match settings.full {
        _ if of_user => &settings.threads,
        true => &THREADS_FULL,
        false => &THREADS,
    };
    let periods: &[u64] = if settings.full {
        &PERIODS_FULL
    } else {
        &PERIODS
    };
    let mut cases = Vec::new();
    for &threads in threads {
        for &period in periods {
            cases.push(case(threads, period, nanoseconds_of_a_run(threads)));
        }
    }
    cases
}

/// How long a run is to be. With more threads than CPUs, long enough for each to lose its CPU (after some 3 ms) several times, now
/// and then with the lock held: else there are never more than two at a time.
fn nanoseconds_of_a_run(threads: usize) -> f64 {
    match threads {
        0..=2 => 15e6,
        3..=4 => 25e6,
        5..=8 => 40e6,
        _ => 60e6,
    }
}

pub(super) fn case(threads: usize, period: u64, nanoseconds: f64) -> Case {
    let name = match period {
        0 => format!("t = {threads}, no writes"),
        _ => format!("t = {threads}, one write in {period}"),
    };
    let contenders = every_rwlock!(nothing()).len();
    Case::new(name, METRICS, contenders, move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        Ok(every_rwlock!(contender(&crew, period, nanoseconds)))
    })
}

fn nothing<L: BenchRwLock>() {}

fn contender<L: BenchRwLock>(crew: &Rc<Crew>, period: u64, nanoseconds: f64) -> Contender {
    let (crew, guarded) = (crew.clone(), Arc::new(Guarded::<L>::new()));
    let mut operations = None;
    Contender::named(L::NAME, move |context: &Context| {
        let operations = match operations {
            Some(operations) => operations,
            // In the first round: an operation takes what it takes in the others.
            None => {
                let fitting = calibrate(nanoseconds, FIRST, context, |each| {
                    Ok(run(&crew, &guarded, each, period, context)?.nanoseconds)
                })?;
                *operations.insert(power_of_two(fitting))
            }
        };
        measure(&crew, &guarded, operations, period, context)
    })
}

/// The nearest one, by their ratio.
fn power_of_two(number: u64) -> u64 {
    let below = 1 << number.max(1).ilog2();
    if number as f64 / below as f64 > core::f64::consts::SQRT_2 {
        2 * below
    } else {
        below
    }
}

fn measure<L: BenchRwLock>(
    crew: &Crew,
    guarded: &Arc<Guarded<L>>,
    each: u64,
    period: u64,
    context: &Context,
) -> Result<Measured, Failure> {
    let Took { nanoseconds, usage } = run(crew, guarded, each, period, context)?;
    let operations = each * crew.size() as u64;
    let all = operations as f64;
    Ok(Measured {
        values: vec![
            nanoseconds / all,
            all / (nanoseconds / 1e9),
            usage.cpu_seconds * 1e9 / all,
            usage.voluntary_switches as f64 / all,
            usage.involuntary_switches as f64 / all,
        ],
        operations,
        usage,
    })
}

/// `each` operations of each thread of the crew.
pub(super) fn run<L: BenchRwLock>(
    crew: &Crew,
    guarded: &Arc<Guarded<L>>,
    each: u64,
    period: u64,
    context: &Context,
) -> Result<Took, Failure> {
    let before = guarded.writes();
    let (theirs, threads) = (guarded.clone(), crew.size() as u64);
    let (writes, torn) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (their_writes, their_torn) = (writes.clone(), torn.clone());
    let operate = move |number: usize| {
        // Not all write at the same time.
        let first = 1 + number as u64 * period / threads;
        let done = operation_after_operation(&theirs, each, period, first);
        their_writes.fetch_add(done.writes, SeqCst);
        their_torn.fetch_add(done.torn, SeqCst);
    };
    let took = race(crew, Place::Spread, context, |_| (), operate, || ())?;
    let (writes, torn) = (writes.load(SeqCst), torn.load(SeqCst));
    let counted = guarded
        .writes()
        .map(|counted| counted.wrapping_sub(before[0]));
    check(counted == [writes; 2] && torn == 0, || {
        format!(
            "a writer was not alone: {writes} wrote, {counted:?} counted; {torn} readers saw half a write"
        )
    })?;
    Ok(took)
}

struct Done {
    writes: u64,
    /// Readers who saw a write that was half done.
    torn: u64,
}

/// What is measured: the same for every contender. The operation of number `first` and then one in `period` are writes;
/// with a period of 0, none.
#[inline(never)]
fn operation_after_operation<L: BenchRwLock>(
    guarded: &Guarded<L>,
    operations: u64,
    period: u64,
    first: u64,
) -> Done {
    let mut done = Done { writes: 0, torn: 0 };
    let mut until_write = if period == 0 { u64::MAX } else { first };
    for _ in 0..operations {
        until_write -= 1;
        if until_write == 0 {
            until_write = period;
            guarded.lock.write_lock();
            guarded.write();
            // SAFETY: locked above; in an `Arc`, it does not move.
            unsafe { guarded.lock.write_unlock() };
            done.writes += 1;
        } else {
            guarded.lock.read_lock();
            done.torn += u64::from(guarded.read());
            // SAFETY: locked above; it does not move; this thread has no other.
            unsafe { guarded.lock.read_unlock() };
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::power_of_two;

    #[test]
    fn the_nearest_power_of_two_is_at_most_a_factor_of_1_42_away() {
        assert_eq!([0, 1, 2, 3, 5, 6].map(power_of_two), [1, 1, 2, 4, 4, 8]);
        assert_eq!(power_of_two(1_400_000), 1 << 20);
        assert_eq!(power_of_two(1_600_000), 1 << 21);
    }
}
