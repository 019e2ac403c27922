//! `requeue`: sleepers are moved from one word to another without being woken.
//!
//! **Work.** t threads sleep on word A; one thread moves them to word B, q per call: one at a time,
//! and all at once. Then all are woken on B, which is not timed.
//!
//! **Reproduces** `perf bench futex requeue`, and the call that Ingo Molnar's mail of 2003
//! proposed.
//!
//! **Figures.** *moving*: microseconds for all t, the median of several herds. *system calls*: made
//! by the moving thread, counted with a separate herd.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
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
    name: "requeue",
    about: "t threads asleep on one word, moved to another one at a time or all at once",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 108,
    cases,
};

const METRICS: &[Metric] = &[Metric::less("moving", "µs"), Metric::less("system calls", "")];

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for &threads in &settings.threads {
        for (at_once, how) in [(1, "one at a time"), (usize::MAX, "all at once")] {
            let name = format!("t = {threads}, {how}");
            cases.push(Case::new(name, METRICS, 4, move |context| {
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
    let words = Arc::new(Words::<F::Word>::new(2, Spacing::Apart, true));
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
    let mut times = Vec::new();
    let mut usage = Usage::default();
    for _ in 0..repetitions(size) {
        let herd = Herd::asleep(crew, futex, words, 1, context)?;
        let before = Usage::now();
        let start = Instant::now();
        let moved = move_all(futex, words, size, at_once);
        times.push(nanoseconds(start, Instant::now()) / 1e3);
        usage += Usage::now() - before;
        wake_moved(futex, words, herd, moved, context)?;
    }
    let herd = Herd::asleep(crew, futex, words, 1, context)?;
    let (moved, made) = syscall_count::count(|| move_all(futex, words, size, at_once));
    wake_moved(futex, words, herd, moved, context)?;
    Ok(Measured {
        values: vec![median(&times), made.map_or(f64::NAN, |made| made as f64)],
        operations: (size * times.len()) as u64,
        usage,
    })
}

#[inline(always)]
fn move_all<F: Futexes>(futex: F, words: &Words<F::Word>, size: usize, at_once: usize) -> usize {
    let mut moved = 0;
    while moved < size {
        match futex.requeue(&words[0], &words[1], 0, at_once) {
            0 => break,
            count => moved += count,
        }
    }
    moved
}

/// By now all waiters must be on the second word, still asleep, and none on the first.
fn wake_moved<F: Futexes>(
    futex: F,
    words: &Words<F::Word>,
    herd: Herd<'_>,
    moved: usize,
    context: &Context,
) -> Result<(), Failure> {
    let ran = herd.woken();
    let left = futex.wake(&words[0], usize::MAX);
    let woken = futex.wake(&words[1], usize::MAX);
    check(ran == 0 && left == 0 && moved == woken, || {
        format!(
            "moved {moved}; {ran} ran meanwhile, {left} still on the first word, {woken} on the \
             second"
        )
    })?;
    herd.finish(woken, context)
}
