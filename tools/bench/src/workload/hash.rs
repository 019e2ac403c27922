//! `hash`: many threads, many words, no waiting.
//!
//! **Work.** Each of t threads has 1024 words of its own. It walks them in turn and waits on each
//! with a value that the word does not hold.
//!
//! **Reproduces** `perf bench futex hash`, which was made to stress the kernel's hash table. Ours
//! is not even reached when the value does not match; that is the point of the comparison.
//!
//! **Figures.** Operations per second and thread, from the start of the threads until the last is
//! done; *more is better*, so a ratio above 1 is in our favour. (perf runs for a fixed time. Here
//! each thread makes a fixed number of passes, determined beforehand, because 512 busy threads on
//! few CPUs stop late.)

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::ops::{Futexes, Waited};
use crate::settings::Settings;
use crate::usage::Usage;
use crate::workload::futexes::{KERNEL, OURS, OURS_WIDE};
use crate::workload::proof;
use crate::workload::timing::calibrate;
use crate::workload::words::{Spacing, Words};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "hash",
    about: "t threads walk 1024 words each, waiting with a wrong value (more is better)",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 108,
    cases,
};

const METRICS: &[Metric] = &[Metric::more("", "ops/s/thread")];
const WORDS_EACH: usize = 1024;
const TARGET_NANOSECONDS: f64 = 40e6;

fn cases(settings: &Settings) -> Vec<Case> {
    let case = |&threads: &usize| {
        Case::new(format!("t = {threads}"), METRICS, 3, move |context| {
            let crew = Rc::new(Crew::new(threads, context)?);
            Ok(vec![contender(KERNEL, &crew), contender(OURS, &crew), contender(OURS_WIDE, &crew)])
        })
    };
    settings.threads.iter().map(case).collect()
}

pub(super) fn contender<F: Futexes>(futex: F, crew: &Rc<Crew>) -> Contender {
    let count = crew.size() * WORDS_EACH;
    let words = Arc::new(Words::<F::Word>::new(count, Spacing::Packed, true));
    let proof = move |crew: &Crew, context: &Context| proof::futex(futex, true, crew, context);
    proof::proved_by(crew, &futex.name(), proof, move |crew, context| {
        measure(futex, crew, &words, context)
    })
}

fn measure<F: Futexes>(
    futex: F,
    crew: &Crew,
    words: &Arc<Words<F::Word>>,
    context: &Context,
) -> Result<Measured, Failure> {
    let passes = calibrate(TARGET_NANOSECONDS, 1, context, |passes| {
        walk(futex, crew, words, passes, context)
    })?;
    let before = Usage::now();
    let took = walk(futex, crew, words, passes, context)?;
    let usage = Usage::now() - before;
    let operations = passes * (WORDS_EACH * crew.size()) as u64;
    Ok(Measured {
        values: vec![operations as f64 / (took / 1e9) / crew.size() as f64],
        operations,
        usage,
    })
}

/// The threads' results.
struct Shared {
    walking: AtomicUsize,
    wrong: AtomicUsize,
    /// Nanoseconds from `base` until the last thread was done.
    took: AtomicU64,
    base: Instant,
}

/// Every thread walks its words `passes` times. Returns the nanoseconds until the last was done.
fn walk<F: Futexes>(
    futex: F,
    crew: &Crew,
    words: &Arc<Words<F::Word>>,
    passes: u64,
    context: &Context,
) -> Result<f64, Failure> {
    let shared = Arc::new(Shared {
        walking: AtomicUsize::new(crew.size()),
        wrong: AtomicUsize::new(0),
        took: AtomicU64::new(0),
        base: Instant::now(),
    });
    let (theirs, words) = (shared.clone(), words.clone());
    crew.start(move |number| {
        let first = number * WORDS_EACH;
        let mut wrong = 0;
        for _ in 0..passes {
            for index in first..first + WORDS_EACH {
                let waited = futex.wait(black_box(&words[index]), black_box(1));
                wrong += usize::from(waited != Waited::Mismatch);
            }
        }
        theirs.wrong.fetch_add(wrong, SeqCst);
        if theirs.walking.fetch_sub(1, SeqCst) == 1 {
            let took = theirs.base.elapsed().as_nanos() as u64;
            theirs.took.store(took, SeqCst);
        }
    });
    crew.finish(context)?;
    let wrong = shared.wrong.load(SeqCst);
    check(wrong == 0, || format!("{wrong} waits with a wrong value did not report a mismatch"))?;
    Ok(shared.took.load(SeqCst) as f64)
}
