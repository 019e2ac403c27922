//! `wake-parallel`: several threads wake sleepers on one word.
//!
//! **Work.** t threads sleep on one word; w other threads wake t/w of them each, with one call.
//!
//! **Reproduces** `perf bench futex wake-parallel`: the wakers contend for the bucket's lock.
//!
//! **Figures**, each the median of several herds. *per waker*: microseconds of one waker's call,
//! averaged over the wakers, which is what perf prints. *all run*: from the start of the wakers
//! until the last of the woken threads has run.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload};
use crate::ops::Futexes;
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::futexes::{KERNEL, OURS};
use crate::workload::herd::{Herd, repetitions};
use crate::workload::timing::nanoseconds;
use crate::workload::wake::ALL_RUN;
use crate::workload::words::{Spacing, Words};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "wake-parallel",
    about: "t threads asleep on one word, woken by w wakers, t/w each",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 110,
    cases,
};

const PER_WAKER: Metric = Metric::less("per waker", "µs");
const WAKERS: [usize; 2] = [2, 8];

fn cases(settings: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for &threads in &settings.threads {
        for wakers in WAKERS {
            if threads < wakers {
                continue;
            }
            let name = format!("t = {threads}, w = {wakers}");
            cases.push(Case::new(name, &[PER_WAKER, ALL_RUN], 2, move |context| {
                let sleepers = Rc::new(Crew::new(threads, context)?);
                let wakers = Rc::new(Crew::new(wakers, context)?);
                Ok(vec![contender(KERNEL, &sleepers, &wakers), contender(OURS, &sleepers, &wakers)])
            }));
        }
    }
    cases
}

pub(super) fn contender<F: Futexes>(futex: F, sleepers: &Rc<Crew>, wakers: &Rc<Crew>) -> Contender {
    let (sleepers, wakers) = (sleepers.clone(), wakers.clone());
    let words = Arc::new(Words::<F::Word>::new(1, Spacing::Apart, true));
    Contender::named(futex.name(), move |context: &Context| {
        measure(futex, &sleepers, &wakers, &words, context)
    })
}

/// Sums over the wakers.
#[derive(Default)]
struct Sum {
    woken: AtomicUsize,
    nanoseconds: AtomicU64,
}

fn measure<F: Futexes>(
    futex: F,
    sleepers: &Crew,
    wakers: &Crew,
    words: &Arc<Words<F::Word>>,
    context: &Context,
) -> Result<Measured, Failure> {
    let (size, parts) = (sleepers.size(), wakers.size());
    let (mut per_waker, mut all_run) = (Vec::new(), Vec::new());
    let mut usage = Usage::default();
    for _ in 0..repetitions(size) {
        let herd = Herd::asleep(sleepers, futex, words, 1, context)?;
        let sum = Arc::new(Sum::default());
        let (theirs, words) = (sum.clone(), words.clone());
        let before = Usage::now();
        let start = Instant::now();
        wakers.start(move |number| {
            // The first waker also takes the remainder of the division.
            let share = size / parts + if number == 0 { size % parts } else { 0 };
            let start = Instant::now();
            let woken = futex.wake(&words[0], share);
            let took = start.elapsed().as_nanos() as u64;
            theirs.nanoseconds.fetch_add(took, SeqCst);
            theirs.woken.fetch_add(woken, SeqCst);
        });
        let last_ran = herd.wait_until_all_ran();
        usage += Usage::now() - before;
        wakers.finish(context)?;
        herd.finish(sum.woken.load(SeqCst), context)?;
        let took = sum.nanoseconds.load(SeqCst) as f64;
        per_waker.push(took / parts as f64 / 1e3);
        all_run.push(nanoseconds(start, last_ran) / 1e3);
    }
    Ok(Measured {
        values: vec![median(&per_waker), median(&all_run)],
        operations: (size * per_waker.len()) as u64,
        usage,
    })
}
