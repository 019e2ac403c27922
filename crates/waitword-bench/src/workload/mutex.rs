//! `mutex`: t threads, one lock.
//!
//! **Work.** Thread i, on CPU i mod n, over and over: lock; L pauses; unlock; D pauses. All start together, by
//! spinning on a flag, and stop when a flag says so. With `--naps n`, n of each 1024 sections are a sleep of 1 µs
//! in place of the pauses, the lock held. In *the worst case*, all are, and each thread does a fixed number.
//!
//! **Redraws** Waiman Long's `perf bench futex mutex` (mail of 2016, throughput-optimized futexes), and its second
//! table, whose 100,000 sections a thread are scaled down: the rows are the same. That program also counts which calls
//! entered the kernel, steals and hand-offs, inside of its own locks; no such count can be had of a peer. Voluntary
//! switches say how often a thread has slept. Beyond the mail: what its reviewer asked for, the distribution of
//! the waits, and fairness.
//!
//! **Figures.** Two runs for each measurement. The first takes no times:
//!
//! | metric | of the first run |
//! |---|---|
//! | throughput | sections a second, all threads together; *more is better* |
//! | CPU | the threads' CPU time for a section: spinning is not free |
//! | fairness | Jain's index over the threads' counts: 1 if all have done the same, 1/t if one has done all |
//! | least, most | count of the least and of the most served thread, by the mean |
//! | switches, preempted | how often a thread slept, or had to give way, for a section |
//!
//! The second takes the time of every lock call, from before the call until after: *wait p50, p99, p99.9, max*. It
//! is a run of its own, since reading the clock twice takes longer than an uncontended lock and unlock, and half of
//! it would lie inside the section: the throughput would be of something else. A wait contains the reading of one
//! clock (some 10 ns; on some CPUs the clock moves on in steps of that size), and ends with the run at the latest:
//! no *max* is longer than that.
//!
//! With more threads than CPUs, the scheduler has its say: where a lock lets a thread run on, the thread keeps its CPU
//! until its time is over (some 4 ms), and not each of 64 has had a turn before the run's end. That is what a
//! user of such a lock sees in that time.

mod figures;

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured};
use crate::locks::{BenchMutex, every_mutex};
use crate::run::{Settings, Workload};
use crate::workload::crowd::{self, OUT_OF, Until, Work};
use crate::workload::guarded::Guarded;
use crate::workload::proof;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What the user calls by name.
pub const WORKLOAD: Workload = Workload {
    name: "mutex",
    about: "t threads on one mutex, L pauses inside, D outside: throughput, fairness, waits",
    patch: Some(crate::workload::Patch::ThroughputOptimized),
    milliseconds: 620,
    cases,
};

/// Held as long as the shortest, a usual and a long section.
const INSIDE: [u32; 3] = [5, 50, 500];
const OUTSIDE: [u32; 2] = [1, 50];

/// Threads and pauses inside, unless the user asks for others: as many as a minute is enough for.
const USUAL: [(usize, u32); 2] = [(2, 5), (16, 50)];

const WORST: Work = Work {
    inside: 0,
    outside: 1,
    naps: OUT_OF,
};
const WORST_THREADS: usize = 16;
/// A section of the worst case takes some 60 µs, for all threads one after the other: 100 ms.
const WORST_SECTIONS: u64 = 100;
const WORST_SECTIONS_FULL: u64 = 1000;

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    let of_user = settings.threads != Settings::default().threads;
    if settings.full || of_user {
        let threads: &[usize] = if of_user {
            &settings.threads
        } else {
            &crowd::ALL_THREADS
        };
        let outside = if settings.full {
            &OUTSIDE[..]
        } else {
            &OUTSIDE[..1]
        };
        for &threads in threads {
            for &outside in outside {
                for inside in INSIDE {
                    cases.push(for_a_time(threads, inside, outside, settings.naps));
                }
            }
        }
    } else {
        for (threads, inside) in USUAL {
            cases.push(for_a_time(threads, inside, OUTSIDE[0], settings.naps));
        }
    }
    let sections = if settings.full {
        WORST_SECTIONS_FULL
    } else {
        WORST_SECTIONS
    };
    cases.push(worst_case(WORST_THREADS, sections));
    cases
}

/// How many contenders there are.
fn contenders() -> usize {
    const fn one<M: BenchMutex>() {}
    every_mutex!(one()).len()
}

fn for_a_time(threads: usize, inside: u32, outside: u32, naps: u32) -> Case {
    let work = Work {
        inside,
        outside,
        naps,
    };
    let mut name = format!("t = {threads}, L = {inside}, D = {outside}");
    if naps > 0 {
        name += &format!(", naps {naps} of {OUT_OF}");
    }
    Case::new(name, figures::OF_TIME, contenders(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        // Without taking times, and with.
        let times = [context.settings.window; 2];
        Ok(every_mutex!(timed(&crew, work, times)))
    })
}

pub(super) fn timed<M: BenchMutex>(crew: &Rc<Crew>, work: Work, times: [Duration; 2]) -> Contender {
    let (crew, guarded) = (crew.clone(), Arc::new(Guarded::<M>::new()));
    let provers = crew.clone();
    let proof = move |context: &Context| proof::mutex::<M>(&provers, context);
    proof::proved(M::NAME, proof, move |context| {
        let [throughput, latency] = times.map(Until::Time);
        let throughput = crowd::run(&crew, &guarded, work, throughput, false, context)?;
        let latency = crowd::run(&crew, &guarded, work, latency, true, context)?;
        Ok(Measured {
            values: figures::of_time(&throughput, &latency),
            operations: figures::sections(&throughput) as u64,
            usage: figures::usage(&throughput),
        })
    })
}

fn worst_case(threads: usize, sections: u64) -> Case {
    let name =
        format!("worst case: t = {threads}, {sections} sections a thread, each a nap of 1 µs");
    Case::new(name, figures::OF_SECTIONS, contenders(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        Ok(every_mutex!(counted(&crew, WORST, sections)))
    })
}

fn counted<M: BenchMutex>(crew: &Rc<Crew>, work: Work, sections: u64) -> Contender {
    let (crew, guarded) = (crew.clone(), Arc::new(Guarded::<M>::new()));
    let provers = crew.clone();
    let proof = move |context: &Context| proof::mutex::<M>(&provers, context);
    proof::proved(M::NAME, proof, move |context| {
        let outcome = run_counted(&crew, &guarded, work, sections, context)?;
        Ok(Measured {
            values: figures::of_sections(&outcome),
            operations: figures::sections(&outcome) as u64,
            usage: figures::usage(&outcome),
        })
    })
}

/// With the waits' times: a nap is a thousand times as long as reading a clock.
fn run_counted<M: BenchMutex>(
    crew: &Crew,
    guarded: &Arc<Guarded<M>>,
    work: Work,
    sections: u64,
    context: &Context,
) -> Result<crowd::Outcome, Failure> {
    crowd::run(
        crew,
        guarded,
        work,
        Until::Sections(sections),
        true,
        context,
    )
}

#[cfg(test)]
mod tests;
