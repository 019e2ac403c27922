//! `calls`: the cost of one call that has nothing to do.
//!
//! **Work.** One thread repeats a call: a wait whose value does not match; a wake without waiters;
//! a requeue and a wake_op without waiters. On one word, and alternating between two words (requeue
//! and wake_op always take two). Private and shared.
//!
//! **Reproduces** the table in Eric Dumazet's mail of 2007 (PRIVATE futexes: cycles of a FUTEX_WAIT
//! whose value does not match, one word and "mixing 2 words", with getppid and others for
//! reference).
//!
//! Before the measurement, one thread sleeps on each futex and is woken by each call
//! (`workload::proof`). So any wait table already exists, and a call that never finds a waiter
//! because it does not look is detected.
//!
//! **Figures.** Nanoseconds per call, the median of five batches of some milliseconds. The kernel
//! has only 32-bit words, so every width of ours is compared with those. Each call is a function
//! that is called and returns ([`Called`]); *futex(2), inlined* shows the cost of the bare
//! instruction in a loop that never returns. `getppid`, also a function, is the floor of any system
//! call. *parking_lot_core* and *C++ atomic wait* answer within the process as ours does, on
//! private words.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
#[cfg(has_cpp)]
use crate::ops::CppAtomic;
use crate::ops::{BenchWord, Called, Futexes, Inlined, Kernel, Parked, Waited};
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::futexes::kernel_and_all_widths;
use crate::workload::proof;
use crate::workload::timing::{calibrate, nanoseconds};
use crate::workload::words::{Spacing, Words};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;
use syscalls::{Sysno, syscall0};

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "calls",
    about: "one call that has nothing to do: wrong value, no waiters",
    patch: Some(crate::patch::Patch::Private),
    milliseconds: 16,
    cases,
};

const METRICS: &[Metric] = &[Metric::less("", "ns")];
const BATCHES: usize = 5;
const BATCH_NANOSECONDS: f64 = 2e6;

/// The measured calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Wait,
    Wake,
    Requeue,
    WakeOp,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait, wrong value",
            Self::Wake => "wake, no waiters",
            Self::Requeue => "requeue, no waiters",
            Self::WakeOp => "wake_op, no waiters",
        }
    }

    /// Requeue and wake_op always take two words.
    fn mixings(self) -> &'static [(usize, &'static str)] {
        match self {
            Self::Wait | Self::Wake => &[(1, ", one word"), (2, ", mixing two")],
            Self::Requeue | Self::WakeOp => &[(2, "")],
        }
    }
}

fn cases(_: &Settings) -> Vec<Case> {
    let mut cases = Vec::new();
    for private in [true, false] {
        for call in [Call::Wait, Call::Wake, Call::Requeue, Call::WakeOp] {
            for &(words, mixing) in call.mixings() {
                let scope = if private { "private" } else { "shared" };
                let name = format!("{}, {scope}{mixing}", call.name());
                let count = contenders_of(call, private);
                cases.push(Case::new(name, METRICS, count, move |context| {
                    if private {
                        contenders::<true>(call, words, context)
                    } else {
                        contenders::<false>(call, words, context)
                    }
                }));
            }
        }
    }
    cases
}

/// Whether C++'s atomics have that call (on private words).
fn has_cpp(call: Call) -> bool {
    cfg!(has_cpp) && matches!(call, Call::Wait | Call::Wake)
}

fn contenders_of(call: Call, private: bool) -> usize {
    let peers = 1 + usize::from(has_cpp(call));
    7 + if private { peers } else { 0 }
}

fn contenders<const PRIVATE: bool>(
    call: Call,
    words: usize,
    context: &Context,
) -> Result<Vec<Contender>, Failure> {
    let crew = Rc::new(Crew::new(1, context)?);
    fn one<F: Futexes, const PRIVATE: bool>(
        futex: F,
        (call, words): (Call, usize),
        crew: &Rc<Crew>,
    ) -> Contender {
        contender(futex, crew, call, words, PRIVATE)
    }
    let what = (call, words);
    let mut all = kernel_and_all_widths!(PRIVATE, |futex| one::<_, PRIVATE>(futex, what, &crew));
    all.push(one::<_, PRIVATE>(Inlined(Kernel::<PRIVATE>), what, &crew));
    if PRIVATE {
        all.push(one::<_, PRIVATE>(Called(Parked), what, &crew));
        #[cfg(has_cpp)]
        if has_cpp(call) {
            // A wake alone does not end a wait on it, so the proof does not apply.
            let body = measured(Called(CppAtomic), call, words, PRIVATE);
            all.push(Contender::named(CppAtomic.name(), body));
        }
    }
    all.push(Contender::named("getppid", |context: &Context| {
        measure(context, |calls| {
            for _ in 0..calls {
                black_box(getppid());
            }
            Ok(())
        })
    }));
    Ok(all)
}

#[inline(never)]
fn getppid() -> usize {
    // SAFETY: getppid takes no arguments and only returns a number.
    unsafe { syscall0(Sysno::getppid) }.unwrap_or(0)
}

pub(super) fn contender<F: Futexes>(
    futex: F,
    crew: &Rc<Crew>,
    call: Call,
    words: usize,
    private: bool,
) -> Contender {
    let crew = crew.clone();
    let proof = move |context: &Context| proof::futex(futex, private, &crew, context);
    let body = measured(futex, call, words, private);
    proof::proved(futex.name(), proof, body)
}

fn measured<F: Futexes>(
    futex: F,
    call: Call,
    words: usize,
    private: bool,
) -> impl FnMut(&Context) -> Result<Measured, Failure> {
    let memory = Words::<F::Word>::new(2, Spacing::Apart, private);
    move |context| {
        let (one, other) = (&memory[0], &memory[words - 1]);
        measure(context, |calls| match call {
            Call::Wait => wait_wrong_value(futex, one, other, calls),
            Call::Wake => finds_none(calls, |_, turn| {
                futex.wake(black_box(if turn { one } else { other }), 1)
            }),
            Call::Requeue => finds_none(calls, |_, _| {
                futex.requeue(black_box(one), black_box(other), 1, usize::MAX)
            }),
            Call::WakeOp => {
                finds_none(calls, |_, _| futex.wake_op(black_box(one), black_box(other)))
            }
        })
    }
}

/// Both words hold 0; the wait expects 1.
#[inline(always)]
fn wait_wrong_value<F: Futexes>(
    futex: F,
    one: &F::Word,
    other: &F::Word,
    calls: u64,
) -> Result<(), Failure> {
    let mut mismatches = 0;
    for call in 0..calls {
        let word = if call & 1 == 0 { one } else { other };
        let waited = futex.wait(black_box(word), black_box(1));
        mismatches += u64::from(waited == Waited::Mismatch);
    }
    check(mismatches == calls && one.load() == 0, || {
        format!("{mismatches} of {calls} waits reported a mismatch")
    })
}

#[inline(always)]
fn finds_none(calls: u64, mut call: impl FnMut(u64, bool) -> usize) -> Result<(), Failure> {
    let mut woken = 0;
    for number in 0..calls {
        woken += call(number, number & 1 == 0);
    }
    check(woken == 0, || format!("{calls} calls without waiters woke or moved {woken}"))
}

/// Nanoseconds per call; `batch` makes the given number of calls.
pub(super) fn measure(
    context: &Context,
    mut batch: impl FnMut(u64) -> Result<(), Failure>,
) -> Result<Measured, Failure> {
    let mut timed = |calls: u64| -> Result<f64, Failure> {
        let start = Instant::now();
        batch(calls)?;
        Ok(nanoseconds(start, Instant::now()))
    };
    let calls = calibrate(BATCH_NANOSECONDS, 256, context, &mut timed)?;
    let before = Usage::now();
    let batches: Result<Vec<f64>, Failure> = (0..BATCHES).map(|_| timed(calls)).collect();
    let usage = Usage::now() - before;
    Ok(Measured {
        values: vec![median(&batches?) / calls as f64],
        operations: calls * BATCHES as u64,
        usage,
    })
}
