//! `scale`: the cost of an operation while many other threads sleep, each on its own word.
//!
//! **Work.** N threads sleep on N words (16, 256, 4096). Meanwhile other threads work on other
//! words: a wait with a wrong value, a wake and a requeue without waiters, two threads waiting for
//! each other on one CPU, and a wake of one sleeper.
//!
//! **Reproduces** nothing in particular. It asks whether operations on a table of fixed size (the
//! kernel's has 16 buckets per process by default) pay for unrelated sleepers.
//!
//! **Figures.** Nanoseconds per operation; the ratio is to *the same futex with 16 sleepers*, in
//! the same round: 1 means flat.
//!
//! With `--full` also: 10,000 threads asleep on one word and on 10,000 words; milliseconds to wake
//! all.

use crate::crew::{Crew, wait_to_be_woken};
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Named, Workload, check};
use crate::ops::{Futexes, Waited};
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::calls;
use crate::workload::futexes::{KERNEL, OURS};
use crate::workload::herd::Herd;
use crate::workload::ping_pong::{Placement, Spin, play};
use crate::workload::proof;
use crate::workload::timing::nanoseconds;
use crate::workload::words::{Spacing, Words};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "scale",
    about: "one operation while N other threads sleep, each on its own word (ratio: to N = 16)",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 355,
    cases,
};

const SLEEPERS: [usize; 3] = [16, 256, 4096];
const METRICS: &[Metric] =
    &[metric("wait"), metric("wake"), metric("requeue"), metric("hand-over"), metric("wake one")];
/// The words worked on; several, so that no figure depends on the bucket of a single word.
const WORKED_ON: usize = 64;
const WAKES: usize = 48;
const HANDOVERS: u64 = 128;
const GAMES: usize = 8;

const HERD: usize = 10_000;
const HERD_METRICS: &[Metric] = &[Metric::less("", "ms")];

const fn metric(name: &'static str) -> Metric {
    Metric::less(name, "ns")
}

fn cases(settings: &Settings) -> Vec<Case> {
    let contenders = 2 * SLEEPERS.len();
    let mut cases = vec![Case::new("other sleepers", METRICS, contenders, prepare)];
    if settings.full {
        for (words, where_) in [(1, "one word"), (HERD, "a word each")] {
            let name = format!("wake {HERD} threads on {where_}");
            cases.push(Case::new(name, HERD_METRICS, 2, move |context| {
                let crew = Rc::new(Crew::new(HERD, context)?);
                Ok(vec![herd_contender(KERNEL, &crew, words), herd_contender(OURS, &crew, words)])
            }));
        }
    }
    cases
}

/// The threads: the sleepers, two players, one that is woken.
pub(super) struct Crews {
    sleepers: Crew,
    players: Rc<Crew>,
    single: Rc<Crew>,
}

impl Crews {
    pub(super) fn new(
        sleepers: usize,
        players: &Rc<Crew>,
        single: &Rc<Crew>,
        context: &Context,
    ) -> Result<Rc<Self>, Failure> {
        Ok(Rc::new(Self {
            sleepers: Crew::new(sleepers, context)?,
            players: players.clone(),
            single: single.clone(),
        }))
    }
}

fn prepare(context: &Context) -> Result<Vec<Contender>, Failure> {
    let players = Rc::new(Crew::new(2, context)?);
    let single = Rc::new(Crew::new(1, context)?);
    let mut crews = Vec::new();
    for size in SLEEPERS {
        crews.push(Crews::new(size, &players, &single, context)?);
    }
    let mut contenders = Vec::new();
    for crews in &crews {
        contenders.push(contender(KERNEL, crews, 0));
    }
    for crews in &crews {
        let first = SLEEPERS.len();
        contenders.push(contender(OURS, crews, first));
    }
    Ok(contenders)
}

pub(super) fn contender<F: Futexes>(futex: F, crews: &Rc<Crews>, baseline: usize) -> Contender {
    let crews = crews.clone();
    let size = crews.sleepers.size();
    let beds = Arc::new(Words::<F::Word>::new(size, Spacing::Apart, true));
    let words = Arc::new(Words::<F::Word>::new(WORKED_ON, Spacing::Apart, true));
    let name = format!("{}, N = {size}", futex.name());
    let mut proved = false;
    let body = move |context: &Context| {
        let _spin = Spin::Off.set();
        if !proved {
            proof::futex(futex, true, &crews.single, context)?;
            proved = true;
        }
        let herd = Herd::asleep(&crews.sleepers, futex, &beds, size, context)?;
        let before = Usage::now();
        let work = Work { futex, words: &words, crews: &crews };
        let values = work.all(context)?;
        let usage = Usage::now() - before;
        let woken = (0..size).map(|bed| futex.wake(&beds[bed], 1)).sum();
        herd.finish(woken, context)?;
        Ok(Measured { values, operations: 0, usage })
    };
    Contender::against(baseline, Named(name, body))
}

/// The operations done while the sleepers sleep.
struct Work<'a, F: Futexes> {
    futex: F,
    words: &'a Arc<Words<F::Word>>,
    crews: &'a Crews,
}

impl<F: Futexes> Work<'_, F> {
    fn all(&self, context: &Context) -> Result<Vec<f64>, Failure> {
        Ok(vec![
            self.wait(context)?,
            self.finds_none(context, |word, _| self.futex.wake(black_box(word), 1))?,
            self.finds_none(context, |word, next| {
                let (word, next) = (black_box(word), black_box(next));
                self.futex.requeue(word, next, 1, usize::MAX)
            })?,
            self.handover(context)?,
            self.wake_one(context)?,
        ])
    }

    fn wait(&self, context: &Context) -> Result<f64, Failure> {
        let measured = calls::measure(context, |calls| {
            let mut wrong = 0;
            for call in 0..calls as usize {
                let word = black_box(&self.words[call % WORKED_ON]);
                wrong += u64::from(self.futex.wait(word, black_box(1)) != Waited::Mismatch);
            }
            check(wrong == 0, || format!("{wrong} waits did not mismatch"))
        })?;
        Ok(measured.values[0])
    }

    fn finds_none(
        &self,
        context: &Context,
        call: impl Fn(&F::Word, &F::Word) -> usize,
    ) -> Result<f64, Failure> {
        let measured = calls::measure(context, |calls| {
            let mut woken = 0;
            for number in 0..calls as usize {
                let next = (number + 1) % WORKED_ON;
                woken += call(&self.words[number % WORKED_ON], &self.words[next]);
            }
            check(woken == 0, || format!("{woken} woken without waiters"))
        })?;
        Ok(measured.values[0])
    }

    fn handover(&self, context: &Context) -> Result<f64, Failure> {
        let mut times = Vec::new();
        for game in 0..GAMES {
            let played = play(
                self.futex,
                &self.crews.players,
                self.words,
                game * (WORKED_ON / GAMES),
                Placement::OneCpu,
                HANDOVERS,
                context,
            )?;
            times.push(played.nanoseconds / played.handovers as f64);
        }
        Ok(median(&times))
    }

    fn wake_one(&self, context: &Context) -> Result<f64, Failure> {
        let crew = &self.crews.single;
        let mut times = Vec::new();
        for number in 0..WAKES {
            let index = number % WORKED_ON;
            let (futex, words) = (self.futex, self.words.clone());
            let strangers = futex.queued();
            let arrived = Arc::new(AtomicUsize::new(0));
            let theirs = arrived.clone();
            crew.start(move |_| {
                theirs.fetch_add(1, SeqCst);
                wait_to_be_woken(futex, &words[index], 0);
            });
            crew.until(context, || arrived.load(SeqCst) == 1)?;
            crew.until_all_sleep(1, context)?;
            let queued = || futex.queued() == strangers.map(|number| number + 1);
            crew.until(context, queued)?;
            let start = Instant::now();
            let woken = futex.wake(&self.words[index], 1);
            times.push(nanoseconds(start, Instant::now()));
            check(woken == 1, || format!("woke {woken} instead of one"))?;
            crew.finish(context)?;
        }
        Ok(median(&times))
    }
}

fn herd_contender<F: Futexes>(futex: F, crew: &Rc<Crew>, distinct: usize) -> Contender {
    let crew = crew.clone();
    let words = Arc::new(Words::<F::Word>::new(distinct, Spacing::Apart, true));
    Contender::named(futex.name(), move |context: &Context| {
        let herd = Herd::asleep(&crew, futex, &words, distinct, context)?;
        let before = Usage::now();
        let start = Instant::now();
        let woken = (0..distinct).map(|index| futex.wake(&words[index], usize::MAX)).sum();
        let took = nanoseconds(start, herd.when_all_ran(woken)?);
        let usage = Usage::now() - before;
        herd.finish(woken, context)?;
        Ok(Measured { values: vec![took / 1e6], operations: crew.size() as u64, usage })
    })
}
