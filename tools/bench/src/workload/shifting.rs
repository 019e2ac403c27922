//! `shifting`: a load for which no fixed way of waiting is best.
//!
//! **Work.** 100 locks. Each thread repeats: draw a lock, with few locks drawn often (Zipf); lock;
//! a section; unlock; a pause. From phase to phase the number of threads rises from 1 to 64 and
//! falls again, the section alternates between pauses of 50 ns, pauses of 1 µs and a sleep of 1 µs
//! with the lock held, and *other* locks are the ones drawn often.
//!
//! **Reproduces** nothing. A program's locks are not all alike, nor the same all day; the goal is a
//! lock that is never far from the best. A phase lasts 20 ms, with `--full` 100 ms.
//!
//! **Figures.** Sections per second, in total and in each phase: *more is better*. A phase is named
//! by its number, its threads and its section. *best peer of each* is not a real contender: in each
//! phase (and in total) it is the best that any peer reached in that round. Likewise *best fixed
//! flavour of each* of ours: our adaptive mutex, which must adapt by itself, is compared with that
//! one. All other contenders are compared with the first, as everywhere.

mod zipf;

use crate::cpus::{allowed_cpus, run_on};
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::locks::{BenchMutex, every_mutex, ours};
use crate::ops::{Futexes, Kernel};
use crate::pause::{self, pause};
use crate::settings::Settings;
use crate::usage::Usage;
use crate::workload::guarded::Guarded;
use crate::workload::proof;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zipf::{LOCKS, Random, Zipf};

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "shifting",
    about: "100 mutexes under a load that changes: 1 to 64 threads, short and long sections (more \
            is better)",
    patch: Some(crate::patch::Patch::ThroughputOptimized),
    milliseconds: 268,
    cases,
};

const PHASES: usize = 13;
const THREADS: usize = 64;
/// How many threads work in each phase. Phase p uses section p mod 3.
const RAMP: [usize; PHASES] = [1, 2, 4, 8, 16, 32, THREADS, 32, 16, 8, 4, 2, 1];
const SECTIONS: [Section; 3] = [Section::Busy(50.0), Section::Busy(1000.0), Section::Nap];
/// Rank r is lock r + p × this, modulo [`LOCKS`]: the most popular locks of a phase are not among
/// those of the adjacent phases.
const MOVE: usize = 37;

const fn rate(name: &'static str) -> Metric {
    Metric::more(name, "ops/s")
}

/// The total, and the phases: number of the phase, threads, section.
const METRICS: [Metric; 1 + PHASES] = [
    rate("whole"),
    rate("1: 1 x 50 ns"),
    rate("2: 2 x 1 µs"),
    rate("3: 4 x nap"),
    rate("4: 8 x 50 ns"),
    rate("5: 16 x 1 µs"),
    rate("6: 32 x nap"),
    rate("7: 64 x 50 ns"),
    rate("8: 32 x 1 µs"),
    rate("9: 16 x nap"),
    rate("10: 8 x 50 ns"),
    rate("11: 4 x 1 µs"),
    rate("12: 2 x nap"),
    rate("13: 1 x 50 ns"),
];

/// The work with a lock held.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Section {
    /// Pauses for this many nanoseconds.
    Busy(f64),
    /// A sleep of [`NAP`].
    Nap,
}

/// The requested nap. It takes longer: the kernel gives a timer 50 µs of slack.
const NAP: Duration = Duration::from_micros(1);

fn cases(settings: &Settings) -> Vec<Case> {
    let names = every_mutex!(name());
    let phase = Duration::from_millis(if settings.full { 100 } else { 20 });
    vec![Case::new("ramp", &METRICS, names.len() + 2, move |context| {
        let crew = Rc::new(Crew::new(THREADS, context)?);
        let mut all = every_mutex!(contender(&crew, phase));
        let adaptive = <ours::Mutex<ours::Adaptive> as BenchMutex>::NAME;
        let those = |wanted: &dyn Fn(&str) -> bool| {
            (0..names.len()).filter(|&index| wanted(names[index])).collect()
        };
        let peers = those(&|name| !name.starts_with(OURS));
        let fixed = those(&|name| name.starts_with(OURS) && name != adaptive);
        let best_fixed = all.len() + 1;
        all.push(Contender::best_of("best peer of each", peers));
        all.push(Contender::best_of("best fixed flavour of each", fixed));
        for (contender, name) in all.iter_mut().zip(&names) {
            if *name == adaptive {
                contender.baseline = best_fixed;
            }
        }
        Ok(all)
    })]
}

/// The prefix of our contenders' names.
const OURS: &str = "waitword";

fn name<M: BenchMutex>() -> &'static str {
    M::NAME
}

pub(super) fn contender<M: BenchMutex>(crew: &Rc<Crew>, phase: Duration) -> Contender {
    let locks: Arc<[Guarded<M>]> = (0..LOCKS).map(|_| Guarded::new()).collect();
    proof::proved_by(crew, M::NAME, proof::mutex::<M>, move |crew, context| {
        measure(crew, &locks, phase, context)
    })
}

/// Values of [`Shared::phase`] other than a phase's number.
const BEFORE: u32 = u32::MAX;
const AFTER: u32 = u32::MAX - 1;
/// Threads without work in a phase sleep here, apart from the measured waits (see [`crate::crew`]).
const GATE: Kernel<false> = Kernel;

struct Shared<M> {
    locks: Arc<[Guarded<M>]>,
    zipf: Zipf,
    /// Pauses of each of [`SECTIONS`]; `None` is a nap.
    pauses: [Option<u32>; SECTIONS.len()],
    /// The current phase: threads check it before each section, and sleep on it.
    phase: AtomicU32,
    /// The sections of all threads in each phase, and their CPU usage.
    sum: Mutex<([u64; PHASES], Usage)>,
}

fn measure<M: BenchMutex>(
    crew: &Crew,
    locks: &Arc<[Guarded<M>]>,
    length: Duration,
    context: &Context,
) -> Result<Measured, Failure> {
    let shared = Arc::new(Shared {
        locks: locks.clone(),
        zipf: Zipf::new(),
        pauses: SECTIONS.map(|section| match section {
            Section::Busy(nanoseconds) => Some(pause::lasting(nanoseconds)),
            Section::Nap => None,
        }),
        phase: AtomicU32::new(BEFORE),
        sum: Mutex::default(),
    });
    let guarded = || locks.iter().map(Guarded::sections).sum::<u64>();
    let before = guarded();
    let (theirs, cpus) = (shared.clone(), allowed_cpus());
    crew.start(move |number| {
        run_on(&[cpus[number % cpus.len()]]);
        member(&theirs, number);
        run_on(&cpus);
    });
    let turn_to = |phase: u32| {
        shared.phase.store(phase, SeqCst);
        GATE.wake(&shared.phase, usize::MAX);
        Instant::now()
    };
    let mut times = [0.0; PHASES];
    let mut from = turn_to(0);
    for (phase, time) in times.iter_mut().enumerate() {
        std::thread::sleep(length);
        let next = phase as u32 + 1;
        let to = turn_to(if next == PHASES as u32 { AFTER } else { next });
        *time = to.duration_since(from).as_nanos() as f64 / 1e9;
        from = to;
    }
    crew.finish(context)?;

    let (sections, usage) = *shared.sum.lock().unwrap_or_else(PoisonError::into_inner);
    let counted: u64 = sections.iter().sum();
    let guarded = guarded() - before;
    check(counted == guarded, || {
        format!("two threads held a lock at once: {counted} sections were done, {guarded} counted")
    })?;
    let mut values = vec![counted as f64 / times.iter().sum::<f64>()];
    values.extend(sections.iter().zip(times).map(|(&sections, time)| sections as f64 / time));
    Ok(Measured { values, operations: counted, usage })
}

fn member<M: BenchMutex>(shared: &Shared<M>, number: usize) {
    let before = Usage::of_this_thread();
    let done = phase_after_phase(shared, number);
    let usage = Usage::of_this_thread() - before;
    let mut sum = shared.sum.lock().unwrap_or_else(PoisonError::into_inner);
    for (sum, done) in sum.0.iter_mut().zip(done) {
        *sum += done;
    }
    sum.1 += usage;
}

/// The measured loop, the same for every contender. Returns the number of sections done in each
/// phase; a section counts for the phase in which it began.
#[inline(never)]
fn phase_after_phase<M: BenchMutex>(shared: &Shared<M>, number: usize) -> [u64; PHASES] {
    let mut done = [0; PHASES];
    let mut random = Random::new(number);
    loop {
        // Relaxed: no data is published through it.
        let now = shared.phase.load(Relaxed);
        let phase = now as usize;
        if now == AFTER {
            return done;
        }
        if now == BEFORE || number >= RAMP[phase] {
            GATE.wait(&shared.phase, now.into());
            continue;
        }
        let rank = shared.zipf.rank(random.next());
        let guarded = &shared.locks[(rank + phase * MOVE) % LOCKS];
        guarded.lock.lock();
        guarded.count();
        match shared.pauses[phase % SECTIONS.len()] {
            Some(times) => pause(times),
            None => std::thread::sleep(NAP),
        }
        // SAFETY: locked above; inside an `Arc`, it does not move.
        unsafe { guarded.lock.unlock() };
        done[phase] += 1;
        pause(1);
    }
}

#[cfg(test)]
mod tests;
