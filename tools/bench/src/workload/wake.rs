//! `wake`: one thread wakes many that sleep on one word.
//!
//! **Work.** t threads sleep on one word; one thread wakes them w at a time, with as many calls as
//! needed: w = 1, and all at once.
//!
//! **Reproduces** `perf bench futex wake`.
//!
//! **Figures**, each the median of several herds. *wake calls*: microseconds from before the first
//! call until the last has returned, which is what perf prints. *all run*: until the last of the
//! woken threads has run, so a wake that returns early and leaves the work to other threads gains
//! nothing here. *system calls*: made by the waking thread, counted with a separate herd.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload};
use crate::ops::{Called, Futexes, Parked};
use crate::settings::Settings;
use crate::stats::median;
use crate::syscall_count;
use crate::usage::Usage;
use crate::workload::futexes::{KERNEL, OURS, OURS_WIDE};
use crate::workload::herd::{Herd, repetitions};
use crate::workload::timing::nanoseconds;
use crate::workload::words::{Spacing, Words};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "wake",
    about: "t threads asleep on one word, woken one at a time or all at once",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 131,
    cases,
};

pub(super) const CALLS: Metric = Metric::less("wake calls", "µs");
pub(super) const ALL_RUN: Metric = Metric::less("all run", "µs");
const SYSTEM_CALLS: Metric = Metric::less("system calls", "");

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for &threads in &settings.threads {
        for (at_once, how) in [(1, "one at a time"), (usize::MAX, "all at once")] {
            let name = format!("t = {threads}, {how}");
            let metrics = [CALLS, ALL_RUN, SYSTEM_CALLS];
            cases.push(Case::new(name, &metrics, 4, move |context| {
                let crew = Rc::new(Crew::new(threads, context)?);
                Ok(vec![
                    contender(KERNEL, &crew, at_once),
                    contender(OURS, &crew, at_once),
                    contender(OURS_WIDE, &crew, at_once),
                    contender(Called(Parked), &crew, at_once),
                ])
            }));
        }
    }
    cases
}

pub(super) fn contender<F: Futexes>(futex: F, crew: &Rc<Crew>, at_once: usize) -> Contender {
    let crew = crew.clone();
    let words = Arc::new(Words::<F::Word>::new(1, Spacing::Apart, true));
    Contender::named(futex.name(), move |context: &Context| {
        measure(futex, &crew, &words, at_once, context)
    })
}

fn measure<F: Futexes>(
    futex: F,
    crew: &Crew,
    words: &Arc<Words<F::Word>>,
    at_once: usize,
    context: &Context,
) -> Result<Measured, Failure> {
    let size = crew.size();
    let (mut calls, mut all_run) = (Vec::new(), Vec::new());
    let mut usage = Usage::default();
    for _ in 0..repetitions(size) {
        let herd = Herd::asleep(crew, futex, words, 1, context)?;
        let before = Usage::now();
        let start = Instant::now();
        let woken = wake_all(futex, &words[0], size, at_once);
        let returned = Instant::now();
        let last_ran = herd.when_all_ran(woken)?;
        usage += Usage::now() - before;
        calls.push(nanoseconds(start, returned) / 1e3);
        all_run.push(nanoseconds(start, last_ran) / 1e3);
        herd.finish(woken, context)?;
    }
    let herd = Herd::asleep(crew, futex, words, 1, context)?;
    let (woken, made) = syscall_count::count(|| wake_all(futex, &words[0], size, at_once));
    herd.finish(woken, context)?;
    Ok(Measured {
        values: vec![median(&calls), median(&all_run), made.map_or(f64::NAN, |made| made as f64)],
        operations: (size * calls.len()) as u64,
        usage,
    })
}

/// Wakes `size` sleepers, `at_once` with each call; stops at a call that wakes none, because all
/// were asleep before.
#[inline(always)]
fn wake_all<F: Futexes>(futex: F, word: &F::Word, size: usize, at_once: usize) -> usize {
    let mut woken = 0;
    while woken < size {
        match futex.wake(word, at_once) {
            0 => break,
            count => woken += count,
        }
    }
    woken
}
