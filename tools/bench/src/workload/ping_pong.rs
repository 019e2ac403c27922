//! `ping-pong`: two threads wait for each other.
//!
//! **Work.** One word holds whose turn it is. Each thread repeats: wait until it is its turn; pass
//! the turn; wake. Both on one CPU, on one CPU each, and placed by the scheduler.
//!
//! **Reproduces** no particular public benchmark: it is the hand-off at the bottom of every lock
//! and queue.
//!
//! **Figures.** Nanoseconds per hand-off (half a round trip), the median of three batches. On one
//! CPU the ideal is one context switch per hand-off. *spin off*: a waiter sleeps at once; *spin
//! on*: it first spins for the default time. The kernel's futex never spins; *futex(2), spinning*
//! is the kernel's behind a spin of the same length, and makes no call when no thread sleeps.
//!
//! *futex(2), inlined* is the kernel's futex in a loop that never returns. [`Called`] explains why
//! it is shown and why it is not the baseline.

use crate::cpus::{allowed_cpus, run_on};
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
#[cfg(has_cpp)]
use crate::ops::CppAtomic;
use crate::ops::{BenchWord, Called, Futexes, Inlined, Kernel, Parked, Spinning};
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::futexes::{KERNEL, OURS, OURS_WIDE};
use crate::workload::proof;
use crate::workload::timing::{calibrate, nanoseconds};
use crate::workload::words::{Spacing, Words};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use waitword::spin;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "ping-pong",
    about: "two threads wait for and wake each other; spin off and on",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 44,
    cases,
};

const METRICS: &[Metric] = &[Metric::less("", "ns")];
const BATCHES: usize = 3;
const BATCH_NANOSECONDS: f64 = 8e6;
/// Hand-offs before the clock starts, until both threads have settled on their CPUs.
const WARM_UP: u64 = 16;

/// Where the two threads run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    OneCpu,
    TwoCpus,
    Free,
}

impl Placement {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let two = allowed_cpus().len() > 1;
        [Self::OneCpu, Self::TwoCpus, Self::Free]
            .into_iter()
            .filter(move |placement| two || *placement != Self::TwoCpus)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneCpu => "one CPU",
            Self::TwoCpus => "two CPUs",
            Self::Free => "unbound",
        }
    }

    fn bind(self, player: usize, cpus: &[usize]) {
        match self {
            Self::OneCpu => run_on(&cpus[..1]),
            Self::TwoCpus => run_on(&[cpus[player]]),
            Self::Free => run_on(cpus),
        }
    }
}

/// Whether our waiters spin before they sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spin {
    Off,
    On,
}

/// Restores the spin budget when dropped.
pub(super) struct SpinGuard(Duration);

impl Spin {
    pub(super) fn set(self) -> SpinGuard {
        let guard = SpinGuard(spin::budget());
        if self == Self::Off {
            spin::set_budget(Duration::ZERO);
        }
        guard
    }
}

impl Drop for SpinGuard {
    fn drop(&mut self) {
        spin::set_budget(self.0);
    }
}

fn cases(_: &Settings) -> Vec<Case> {
    let case = |placement: Placement| {
        let count = 8 + usize::from(cfg!(has_cpp));
        Case::new(placement.name(), METRICS, count, move |context| {
            let crew = Rc::new(Crew::new(2, context)?);
            let mut all = vec![
                contender(KERNEL, "", &crew, placement, Spin::Off, true),
                contender(Inlined(Kernel::<true>), "", &crew, placement, Spin::Off, true),
                contender(OURS, ", spin off", &crew, placement, Spin::Off, true),
                contender(OURS, ", spin on", &crew, placement, Spin::On, true),
                contender(OURS_WIDE, ", spin off", &crew, placement, Spin::Off, true),
                contender(OURS_WIDE, ", spin on", &crew, placement, Spin::On, true),
                contender(Called(Parked), "", &crew, placement, Spin::On, true),
                game(Called(Spinning), &crew, placement),
            ];
            #[cfg(has_cpp)]
            all.push(game(Called(CppAtomic), &crew, placement));
            Ok(all)
        })
    };
    Placement::all().map(case).collect()
}

/// For a futex whose waiter does not wake while its word is unchanged, so that the proof does not
/// apply. The game changes the word; a wait that does not wait shows up there as a lost turn.
fn game<F: Futexes>(futex: F, crew: &Rc<Crew>, placement: Placement) -> Contender {
    let crew = crew.clone();
    let words = Arc::new(Words::<F::Word>::new(1, Spacing::Apart, true));
    Contender::named(futex.name(), move |context: &Context| {
        measure(context, |handovers| play(futex, &crew, &words, 0, placement, handovers, context))
    })
}

pub(super) fn contender<F: Futexes>(
    futex: F,
    remark: &str,
    crew: &Rc<Crew>,
    placement: Placement,
    spin: Spin,
    private: bool,
) -> Contender {
    let words = Arc::new(Words::<F::Word>::new(1, Spacing::Apart, private));
    let name = format!("{}{remark}", futex.name());
    let proof = move |crew: &Crew, context: &Context| proof::futex(futex, private, crew, context);
    proof::proved_by(crew, &name, proof, move |crew, context| {
        let _spin = spin.set();
        measure(context, |handovers| play(futex, crew, &words, 0, placement, handovers, context))
    })
}

/// Measures several games; `game` plays the given number of hand-offs.
fn measure(
    context: &Context,
    game: impl Fn(u64) -> Result<Played, Failure>,
) -> Result<Measured, Failure> {
    let handovers =
        calibrate(BATCH_NANOSECONDS, 64, context, |handovers| Ok(game(handovers)?.nanoseconds))?;
    let mut times = Vec::new();
    let mut usage = Usage::default();
    for _ in 0..BATCHES {
        let played = game(handovers)?;
        times.push(played.nanoseconds / played.handovers as f64);
        usage += played.usage;
    }
    Ok(Measured { values: vec![median(&times)], operations: handovers * BATCHES as u64, usage })
}

/// The result of one game.
#[derive(Clone, Copy, Debug)]
pub(super) struct Played {
    pub(super) nanoseconds: f64,
    pub(super) handovers: u64,
    usage: Usage,
}

/// Plays one game of at least `handovers` on word `index`, by the two threads of `crew`.
pub(super) fn play<F: Futexes>(
    futex: F,
    crew: &Crew,
    words: &Arc<Words<F::Word>>,
    index: usize,
    placement: Placement,
    handovers: u64,
    context: &Context,
) -> Result<Played, Failure> {
    let turns_each = handovers.div_ceil(2);
    let played: Arc<Mutex<Option<Played>>> = Arc::default();
    let (theirs, game) = (played.clone(), words.clone());
    let cpus = allowed_cpus();
    crew.start(move |player| {
        placement.bind(player, &cpus);
        let (word, me) = (&game[index], player as u64);
        for _ in 0..WARM_UP {
            take_turn(futex, word, me);
        }
        let (usage, start) = (Usage::now(), Instant::now());
        for _ in 0..turns_each {
            take_turn(futex, word, me);
        }
        if player == 0 {
            let nanoseconds = nanoseconds(start, Instant::now());
            *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(Played {
                nanoseconds,
                handovers: 2 * turns_each,
                usage: Usage::now() - usage,
            });
        }
        run_on(&cpus);
    });
    crew.finish(context)?;
    check(words[index].load() == 0, || "the turn was lost".to_owned())?;
    let played = played.lock().unwrap_or_else(PoisonError::into_inner);
    played.ok_or_else(|| Failure::new("the first player did not end the game"))
}

/// Waits until the word holds `me`, passes the turn to the other thread, and wakes it.
#[inline(always)]
fn take_turn<F: Futexes>(futex: F, word: &F::Word, me: u64) {
    let other = 1 - me;
    while word.load() != me {
        futex.wait(word, other);
    }
    word.store(other);
    let woken = futex.wake(word, 1);
    assert!(woken <= 1, "two players, and {woken} were woken");
}
