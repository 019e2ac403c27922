//! `mutex`: t threads, one lock.
//!
//! **Work.** Thread i, on CPU i mod n, repeats: lock; L pauses; unlock; D pauses. All start
//! together by spinning on a flag, and stop when a flag is set. With `--naps n`, n of every 1024
//! sections sleep for 1 µs with the lock held instead of pausing. In *the worst case* all do, and
//! each thread does a fixed number of sections.
//!
//! **Reproduces** Waiman Long's `perf bench futex mutex` (mail of 2016, throughput-optimized
//! futexes) and its second table, whose 100,000 sections per thread are scaled down; the rows are
//! the same. That program also counts calls that entered the kernel, steals and hand-offs, inside
//! its own locks; these counts are not available for peers. Voluntary switches show how often a
//! thread has slept. Beyond the mail: the distribution of the waits, which its reviewer asked for,
//! and fairness.
//!
//! **Figures.** Each measurement is two runs. The first does not time the lock calls:
//!
//! | metric | of the first run |
//! |---|---|
//! | throughput | sections per second, all threads together; *more is better* |
//! | CPU | the threads' CPU time per section: spinning is not free |
//! | fairness | Jain's index over the threads' counts: 1 if all are equal, 1/t if one did all |
//! | least, most | count of the least and the most served thread, divided by the mean |
//! | switches, preempted | how often a thread slept, or was preempted, per section |
//!
//! The second run times every lock call, from before the call until after it: *wait p50, p99,
//! p99.9, max*. It is a separate run, because reading the clock twice takes longer than an
//! uncontended lock and unlock, and half of that would be inside the section: the throughput would
//! be of something else. A wait includes one clock reading (some 10 ns; on some CPUs the clock
//! advances in steps of that size), and ends with the run at the latest, so no *max* is longer than
//! that.
//!
//! With more threads than CPUs, the scheduler matters: if a lock lets a thread continue, the thread
//! keeps its CPU until its time slice is over (some 4 ms), and not every one of 64 threads gets a
//! turn within the run. A user of such a lock sees the same over that time.

mod figures;

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Workload};
use crate::locks::{BenchMutex, every_mutex, mutexes};
use crate::settings::Settings;
use crate::workload::crowd::{self, OUT_OF, Until, Work};
use crate::workload::guarded::Guarded;
use crate::workload::proof;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "mutex",
    about: "t threads on one mutex, L pauses inside, D outside: throughput, fairness, waits",
    patch: Some(crate::patch::Patch::ThroughputOptimized),
    milliseconds: 620,
    cases,
};

/// Sections that are as short as possible, usual, and long.
const INSIDE: [u32; 3] = [5, 50, 500];
const OUTSIDE: [u32; 2] = [1, 50];

/// Threads and pauses inside by default: as many cells as fit into a minute.
const USUAL: [(usize, u32); 2] = [(2, 5), (16, 50)];

const WORST: Work = Work { inside: 0, outside: 1, naps: OUT_OF };
const WORST_THREADS: usize = 16;
/// A section of the worst case takes some 60 µs, one thread after the other: 100 ms in all.
const WORST_SECTIONS: u64 = 100;
const WORST_SECTIONS_FULL: u64 = 1000;

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    let of_user = settings.has_threads();
    if settings.full || of_user {
        let threads: &[usize] = if of_user { &settings.threads } else { &crowd::ALL_THREADS };
        let outside = if settings.full { &OUTSIDE[..] } else { &OUTSIDE[..1] };
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
    let sections = if settings.full { WORST_SECTIONS_FULL } else { WORST_SECTIONS };
    cases.push(worst_case(WORST_THREADS, sections));
    cases
}

fn for_a_time(threads: usize, inside: u32, outside: u32, naps: u32) -> Case {
    let work = Work { inside, outside, naps };
    let mut name = format!("t = {threads}, L = {inside}, D = {outside}");
    if naps > 0 {
        name += &format!(", naps {naps} of {OUT_OF}");
    }
    Case::new(name, figures::OF_TIME, mutexes(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        // Without timing the lock calls, and with.
        let times = [context.settings.window; 2];
        Ok(every_mutex!(timed(&crew, work, times)))
    })
}

pub(super) fn timed<M: BenchMutex>(crew: &Rc<Crew>, work: Work, times: [Duration; 2]) -> Contender {
    let guarded = Arc::new(Guarded::<M>::new());
    proof::proved_by(crew, M::NAME, proof::mutex::<M>, move |crew, context| {
        let [throughput, latency] = times.map(Until::Time);
        let throughput = crowd::run(crew, &guarded, work, throughput, false, context)?;
        let latency = crowd::run(crew, &guarded, work, latency, true, context)?;
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
    Case::new(name, figures::OF_SECTIONS, mutexes(), move |context| {
        let crew = Rc::new(Crew::new(threads, context)?);
        Ok(every_mutex!(counted(&crew, WORST, sections)))
    })
}

fn counted<M: BenchMutex>(crew: &Rc<Crew>, work: Work, sections: u64) -> Contender {
    let guarded = Arc::new(Guarded::<M>::new());
    proof::proved_by(crew, M::NAME, proof::mutex::<M>, move |crew, context| {
        let outcome = run_counted(crew, &guarded, work, sections, context)?;
        Ok(Measured {
            values: figures::of_sections(&outcome),
            operations: figures::sections(&outcome) as u64,
            usage: figures::usage(&outcome),
        })
    })
}

/// Times the waits, too: a nap is a thousand times as long as reading a clock.
fn run_counted<M: BenchMutex>(
    crew: &Crew,
    guarded: &Arc<Guarded<M>>,
    work: Work,
    sections: u64,
    context: &Context,
) -> Result<crowd::Outcome, Failure> {
    crowd::run(crew, guarded, work, Until::Sections(sections), true, context)
}

#[cfg(test)]
mod tests;
