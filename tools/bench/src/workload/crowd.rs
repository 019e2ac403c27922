//! Several threads on one lock, for a time or for a number of sections each: the loop of `mutex`,
//! `lockhammer` and `rates`.
//!
//! ```text
//! main                                  thread i, on CPU i mod n
//! ----                                  ------------------------
//! start the job                         set up histogram and affinity; ready
//! until all are ready                   until flag = go: pause (and yield if CPUs are short)
//! flag = go; read the clock             read its CPU time; then repeat:
//! sleep                                     lock; L pauses or a nap; unlock; D pauses
//! flag = stop; read the clock           read its CPU time, store its counts
//! ```
//!
//! Invariants: a number that the holder increments in two steps equals, at the end, the sum of all
//! threads' counts. A thread's CPU time covers only the loop.

use crate::cpus::{allowed_cpus, run_on};
use crate::crew::Crew;
use crate::harness::{Case, Context, Failure, check};
use crate::locks::BenchMutex;
use crate::pause::pause;
use crate::settings::Settings;
use crate::ticks;
use crate::usage::Usage;
use crate::workload::guarded::Guarded;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// [`Work::naps`] is the number of napping sections out of this many.
pub(super) const OUT_OF: u32 = 1024;
/// The requested nap. It takes longer: the kernel gives a timer 50 µs of slack.
const NAP: Duration = Duration::from_micros(1);

/// From half of two CPUs to 32 times as many.
pub(super) const ALL_THREADS: [usize; 5] = [1, 2, 4, 16, 64];

/// The cells of a workload that varies threads and loads. By default the usual ones; otherwise the
/// user's threads, or all threads with `full`, combined with all loads (with the user's threads but
/// without `full`, only the first two loads).
pub(super) fn cells<L: Copy>(
    settings: &Settings,
    usual: &[(usize, L)],
    loads: &[L],
    case: fn(usize, L) -> Case,
) -> Vec<Case> {
    let of_user = settings.has_threads();
    if !settings.full && !of_user {
        return usual.iter().map(|&(threads, load)| case(threads, load)).collect();
    }
    let threads = if of_user { &settings.threads[..] } else { &ALL_THREADS };
    let loads = if settings.full { loads } else { &loads[..2] };
    let of_threads = |&threads| loads.iter().map(move |&load| case(threads, load));
    threads.iter().flat_map(of_threads).collect()
}

/// The work of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Pauses with the lock held.
    pub(super) inside: u32,
    /// Pauses between unlocking and locking again.
    pub(super) outside: u32,
    /// This many of every [`OUT_OF`] sections nap with the lock held instead of pausing, evenly
    /// spread.
    pub(super) naps: u32,
}

/// When a thread is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// After this time.
    Time(Duration),
    /// After this many sections.
    Sections(u64),
}

/// The result of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Sections that it completed.
    pub(super) sections: u64,
    /// Nanoseconds from the common start to its own end.
    pub(super) took: f64,
    /// Its own CPU time and context switches.
    pub(super) usage: Usage,
}

/// The result of all threads.
pub(super) struct Outcome {
    /// Thread by thread.
    pub(super) threads: Vec<Served>,
    /// Nanoseconds from the start until all threads were stopped or had ended.
    pub(super) took: f64,
    /// Ticks that each lock call took; empty if the calls were not timed.
    pub(super) waits: Histogram<u32>,
}

const WAIT: u32 = 0;
const GO: u32 = 1;
const STOP: u32 = 2;

struct Shared<M> {
    guarded: Arc<Guarded<M>>,
    flag: AtomicU32,
    ready: AtomicUsize,
    done: AtomicUsize,
    base: Instant,
    results: Mutex<Vec<(usize, Served, Histogram<u32>)>>,
}

/// Has the whole crew do `work`. `timed`: measure every lock call.
pub(super) fn run<M: BenchMutex>(
    crew: &Crew,
    guarded: &Arc<Guarded<M>>,
    work: Work,
    until: Until,
    timed: bool,
    context: &Context,
) -> Result<Outcome, Failure> {
    let shared = Arc::new(Shared {
        guarded: guarded.clone(),
        flag: AtomicU32::new(WAIT),
        ready: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
        base: Instant::now(),
        results: Mutex::default(),
    });
    let before = shared.guarded.sections();
    let cpus = allowed_cpus();
    let (theirs, size) = (shared.clone(), crew.size());
    let limit = match until {
        Until::Time(_) => u64::MAX,
        Until::Sections(sections) => sections,
    };
    crew.start(move |number| {
        let crowded = size > cpus.len();
        run_on(&[cpus[number % cpus.len()]]);
        if timed {
            member::<M, true>(&theirs, number, work, limit, crowded);
        } else {
            member::<M, false>(&theirs, number, work, limit, crowded);
        }
        run_on(&cpus);
    });
    crew.until(context, || shared.ready.load(SeqCst) == size)?;
    let start = Instant::now();
    shared.flag.store(GO, SeqCst);
    match until {
        Until::Time(time) => std::thread::sleep(time),
        Until::Sections(_) => crew.until(context, || shared.done.load(SeqCst) == size)?,
    }
    shared.flag.store(STOP, SeqCst);
    let stopped = start.elapsed().as_nanos() as f64;
    crew.finish(context)?;

    let mut results = shared.results.lock().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(number, ..)| number);
    let mut waits = ticks::histogram();
    let since_start = start.duration_since(shared.base).as_nanos() as f64;
    let mut threads = Vec::new();
    for (_, served, theirs) in results.drain(..) {
        waits.add(theirs).map_err(|error| Failure::new(format!("adding up the waits: {error}")))?;
        threads.push(Served { took: (served.took - since_start).max(0.0), ..served });
    }
    let counted: u64 = threads.iter().map(|thread| thread.sections).sum();
    let guarded = shared.guarded.sections() - before;
    check(counted == guarded, || {
        format!(
            "two threads held the lock at once: {counted} sections were done, {guarded} counted"
        )
    })?;
    check(!timed || waits.len() == counted, || {
        format!("{} of {counted} waits were recorded", waits.len())
    })?;
    let took = match until {
        Until::Time(_) => stopped,
        Until::Sections(_) => threads.iter().map(|thread| thread.took).fold(0.0, f64::max),
    };
    Ok(Outcome { threads, took, waits })
}

fn member<M: BenchMutex, const TIMED: bool>(
    shared: &Shared<M>,
    number: usize,
    work: Work,
    limit: u64,
    crowded: bool,
) {
    let mut waits = ticks::histogram();
    shared.ready.fetch_add(1, SeqCst);
    while shared.flag.load(Relaxed) == WAIT {
        pause(20);
        if crowded {
            // Other threads on this CPU must get ready, too.
            std::thread::yield_now();
        }
    }
    let before = Usage::of_this_thread();
    let sections = section_after_section::<M, TIMED>(shared, work, limit, &mut waits);
    let usage = Usage::of_this_thread() - before;
    let served = Served { sections, took: shared.base.elapsed().as_nanos() as f64, usage };
    let results = shared.results.lock();
    results.unwrap_or_else(PoisonError::into_inner).push((number, served, waits));
    shared.done.fetch_add(1, SeqCst);
}

/// The measured loop, the same for every contender. Returns the number of sections done.
#[inline(never)]
fn section_after_section<M: BenchMutex, const TIMED: bool>(
    shared: &Shared<M>,
    work: Work,
    limit: u64,
    waits: &mut Histogram<u32>,
) -> u64 {
    let guarded = &*shared.guarded;
    let mut done = 0;
    let mut naps_due = 0;
    // Relaxed: no data is published through the flag.
    while done < limit && shared.flag.load(Relaxed) != STOP {
        let from = if TIMED { ticks::now() } else { 0 };
        guarded.lock.lock();
        let to = if TIMED { ticks::now() } else { 0 };
        guarded.count();
        naps_due += work.naps;
        if naps_due >= OUT_OF {
            naps_due -= OUT_OF;
            std::thread::sleep(NAP);
        } else {
            pause(work.inside);
        }
        // SAFETY: locked above; inside an `Arc`, it does not move.
        unsafe { guarded.lock.unlock() };
        done += 1;
        if TIMED {
            waits.saturating_record(to.saturating_sub(from));
        }
        pause(work.outside);
    }
    done
}
