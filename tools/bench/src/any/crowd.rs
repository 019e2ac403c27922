//! Threads that do a cell's work for some time, each with its own account.
//!
//! ```text
//! main                               member
//! ----                               ------
//! wait until all are ready           bind to a CPU if the cell says so; draw its times; ready
//! sleep                              read the clock and its CPU time; until the time is over:
//! set the flag; read the clock           wait for the lock, and record how long it took
//!                                        work, release the lock, work
//!                                    read its CPU time; return its account
//! ```
//!
//! The window begins when the first member starts. `main` itself may get a CPU only after the
//! members have had theirs, which takes 100 ms and more with tens of threads on two CPUs.

use super::cell::{Beside, Cell};
use super::draw::rng_of;
use super::interlude::Interludes;
use super::timeline::{Event, Timeline};
use super::work::work;
use crate::cpus::{allowed_cpus, run_on};
use crate::ticks;
use crate::usage::Usage;
use core::time::Duration;
use hdrhistogram::Histogram;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Instant;

/// Number of times that a thread draws in advance and then cycles through.
const TABLE: usize = 1 << 10;
/// What to run.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) cell: &'a Cell,
    pub(super) time: Duration,
    pub(super) is_traced: bool,
}

/// What all threads did.
pub(super) struct Outcome {
    /// Seconds from the start to the end.
    pub(super) seconds: f64,
    /// Operations of each thread.
    pub(super) operations: Vec<u64>,
    /// Resource usage of the threads.
    pub(super) usage: Usage,
    /// Length of the waits, in ticks.
    pub(super) waits: Histogram<u32>,
    /// One timeline per thread, if requested.
    pub(super) timelines: Vec<Timeline>,
}

impl Outcome {
    /// Corrects the counts when two threads counted each operation.
    pub(super) fn halve(&mut self) {
        for operations in &mut self.operations {
            *operations /= 2;
        }
    }
}

/// The flag that ends the work.
pub(super) struct Over(AtomicBool);

impl Over {
    /// Whether the time is over.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        // Relaxed: no other data is ordered by the flag.
        self.0.load(Relaxed)
    }
}

/// A thread that does a cell's work, and its account.
pub(super) struct Member<'a> {
    /// From 0.
    pub(super) number: usize,
    over: &'a Over,
    inside: Vec<u32>,
    outside: Vec<u32>,
    interludes: Option<Interludes>,
    at: usize,
    operations: u64,
    waits: Histogram<u32>,
    timeline: Option<Timeline>,
}

impl<'a> Member<'a> {
    fn new(cell: &Cell, number: usize, over: &'a Over, is_traced: bool) -> Self {
        let mut rng = rng_of(cell.id, 1 + number as u64);
        Self {
            number,
            over,
            inside: cell.inside.table(TABLE, &mut rng),
            outside: cell.outside.table(TABLE, &mut rng),
            interludes: cell.interlude.map(|(which, part)| Interludes::new(which, part, &mut rng)),
            at: number * 31 % TABLE,
            operations: 0,
            waits: ticks::histogram(),
            timeline: is_traced.then(Timeline::new),
        }
    }

    /// Whether the thread has to stop.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.over.is_over()
    }

    /// Waits for something, and records how long that took.
    #[inline(always)]
    pub(super) fn wait<T>(&mut self, wait: impl FnOnce() -> T) -> T {
        let from = ticks::now_unordered();
        let result = wait();
        let to = ticks::now_unordered();
        self.waits.saturating_record(to.saturating_sub(from));
        if let Some(timeline) = &mut self.timeline {
            timeline.push(from, Event::Waits);
            timeline.push(to, Event::Holds);
        }
        result
    }

    /// Does the work of a section, or the interlude that replaces it, and counts one operation.
    #[inline(always)]
    pub(super) fn work_inside(&mut self) {
        let at = self.at & (TABLE - 1);
        match &mut self.interludes {
            Some(interludes) if interludes.is_due(at) => interludes.do_one(),
            _ => work(self.inside[at]),
        }
        self.operations += 1;
    }

    /// Does the work until the next section. The lock has been released.
    #[inline(always)]
    pub(super) fn work_outside(&mut self) {
        if let Some(timeline) = &mut self.timeline {
            timeline.push(ticks::now_unordered(), Event::Works);
        }
        work(self.outside[self.at & (TABLE - 1)]);
        self.at += 1;
    }
}

/// Runs `body` on each of the cell's threads. `body` must return soon after [`Member::is_over`]
/// returns true.
pub(super) fn run(job: Job<'_>, body: impl Fn(&mut Member<'_>) + Sync) -> Outcome {
    run_to_end(job, || {}, body)
}

/// The same, with an `end` that wakes threads which would otherwise wait forever once the time is
/// over; it is called repeatedly until all threads have ended.
pub(super) fn run_to_end(
    job: Job<'_>,
    end: impl Fn(),
    body: impl Fn(&mut Member<'_>) + Sync,
) -> Outcome {
    let Job { cell, time, is_traced } = job;
    let threads = cell.threads as usize;
    let over = &Over(AtomicBool::new(false));
    let gate = &Barrier::new(threads + 1);
    let cpus = allowed_cpus();
    let is_bound = cell.id.beside == Beside::Pinned;
    let (body, cpus) = (&body, &cpus);
    std::thread::scope(|scope| {
        let members: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn(move || {
                    if is_bound {
                        run_on(&[cpus[number % cpus.len()]]);
                    }
                    let mut member = Member::new(cell, number, over, is_traced);
                    gate.wait();
                    let began = Instant::now();
                    let before = Usage::of_this_thread();
                    body(&mut member);
                    let usage = Usage::of_this_thread() - before;
                    (began, usage, member)
                })
            })
            .collect();
        gate.wait();
        std::thread::sleep(time);
        over.0.store(true, SeqCst);
        let ended = Instant::now();
        while members.iter().any(|member| !member.is_finished()) {
            end();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut began = ended;
        let mut outcome = Outcome {
            seconds: 0.0,
            operations: Vec::new(),
            usage: Usage::default(),
            waits: ticks::histogram(),
            timelines: Vec::new(),
        };
        for member in members {
            let (its_beginning, usage, member) = member.join().expect("it has not panicked");
            began = began.min(its_beginning);
            outcome.operations.push(member.operations);
            outcome.usage += usage;
            outcome.waits.add(member.waits).expect("of the same range");
            outcome.timelines.extend(member.timeline);
        }
        outcome.seconds = (ended - began).as_secs_f64();
        outcome
    })
}
