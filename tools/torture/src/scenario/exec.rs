//! Tortured: processes on shared words that execute another program (execve), while their threads
//! are asleep, in the middle of a wake, anywhere. The new program is this one again: it maps the
//! words and goes on, and after a while does the same.
//!
//! The threads of the old program are gone as if they had been killed, and with them the wakes that
//! they were about to make or had just received. So the new program first wakes all waiters, as in
//! `kills.rs`.
//!
//! Checked: the processes make progress after each exec; all end; no word and no canary is
//! corrupted; tokens add up, except those in the hands of threads that are gone.

use super::kills::{adds_up, hire, wake_all};
use super::shared::SharedWords;
use super::traffic::kinds;
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::count::Count;
use crate::memory;
use crate::parts::team::{self, wait_for_progress};
use crate::process::complain;
use crate::slice::Sabotage;
use serde::{Deserialize, Serialize};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

const PROCESSES: usize = 3;
const MOST_THREADS: usize = 48;
/// In a round, by all processes together.
const EXECS: u64 = 12;
/// How many steps must be done before the words are checked again.
const STEPS: u64 = 200;
/// At least as many as the words have kinds of tokens.
const LEDGER: usize = 64;

/// The environment variable with which the old program passes a note to the new one.
const VARIABLE: &str = "WAITWORD_TORTURE_EXEC";

/// What a program passes on to the one that replaces it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Passed {
    /// Files in memory.
    pub(crate) board: i32,
    words: i32,
    ledger: i32,
    /// Which process this is, and how many threads it has.
    process: usize,
    threads: usize,
    /// How many programs the process ran before.
    generation: u64,
    round: Round,
}

impl Passed {
    pub(crate) fn from_environment() -> Option<Self> {
        serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
    }
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let shared = SharedWords::new(context);
    let kinds = kinds(&shared.words);
    let bytes = size_of::<AtomicI64>() * LEDGER;
    let file = memory::file_in_memory(bytes);
    let ledger = ledger_of(file);
    while let Some(round) = context.next_round() {
        for tokens in &shared.words {
            tokens.reset();
        }
        ledger.iter().for_each(|sum| sum.store(0, SeqCst));
        let passed = Passed {
            board: context.board_file,
            words: shared.file,
            ledger: file,
            process: 0,
            threads: (round.threads.min(MOST_THREADS) / PROCESSES).max(2),
            generation: 0,
            round,
        };
        run_round(context, &shared, passed)?;
        shared.inspect()?;
        // A process may be one exec ahead.
        let gone = (EXECS as usize + PROCESSES) * passed.threads;
        adds_up(&kinds, ledger, gone)?;
    }
    Ok(())
}

fn ledger_of(file: i32) -> &'static [AtomicI64] {
    let memory = memory::map_file(file, size_of::<AtomicI64>() * LEDGER);
    // SAFETY: aligned, large enough, never unmapped, and only ever used as these atomics.
    unsafe { std::slice::from_raw_parts(memory.cast(), LEDGER) }
}

fn run_round(context: &'static Context, shared: &SharedWords, passed: Passed) -> Verdict {
    let mut master = Actor::new(context, "master", passed.round.seed_of("master", 0));
    let before = context.totals();
    let children: Vec<_> = (0..PROCESSES)
        .map(|process| {
            team::start(context, process, &|process| work(context, Passed { process, ..passed }))
        })
        .collect();
    while context.totals().since(&before).of(Count::Execs) < EXECS {
        wait_for_progress(context, STEPS);
        shared.inspect()?;
        if context.board.is_violated() {
            return Err("one of the processes found a violation".to_owned());
        }
    }
    for tokens in &shared.words {
        tokens.close(&mut master)?;
    }
    team::end(context, children)
}

/// The new program's `main`. Returns its exit status.
pub(crate) fn go_on(context: &'static Context, passed: &Passed) -> u8 {
    context.board.forget(std::process::id());
    context.board.count(Count::Execs, 1);
    match work(context, *passed) {
        Ok(()) => 0,
        Err(complaint) => {
            complain(&format!("process {}: {complaint}\n", passed.process));
            context.board.violate();
            1
        }
    }
}

/// Gives and takes, until the words are closed or the process executes the next program.
fn work(context: &'static Context, passed: Passed) -> Verdict {
    let shared = SharedWords::of_file(context, passed.words);
    let ledger = ledger_of(passed.ledger);
    let kinds = &kinds(&shared.words)[..];
    let Passed { process, threads, generation, round, .. } = passed;
    let first = (generation as usize * PROCESSES + process) * (threads + 1);
    if generation > 0 {
        let mut newcomer = Actor::new(context, "newcomer", round.seed_of("newcomer", first));
        wake_all(&mut newcomer, &shared)?;
    }
    let shared = &shared;
    context.crew(round, |crew| {
        hire(crew, first, threads, kinds, ledger);
        crew.spawn("changer", first + threads, move |actor| {
            std::thread::sleep(Duration::from_micros(actor.dice.u64(0..8_000)));
            if shared.words.iter().any(|tokens| tokens.is_closing()) {
                return Ok(());
            }
            if context.slice.sabotage == Some(Sabotage::Miscount) {
                // More tokens than the threads that are gone can have had in their hands.
                ledger[0].fetch_add(1000 * threads as i64, SeqCst);
            }
            run_next(passed)
        });
        Ok(())
    })
}

/// Executes this program once more, in place of this process.
fn run_next(passed: Passed) -> Verdict {
    let next = Passed {
        board: memory::keep_open(passed.board),
        words: memory::keep_open(passed.words),
        ledger: memory::keep_open(passed.ledger),
        generation: passed.generation + 1,
        ..passed
    };
    let note = serde_json::to_string(&next).map_err(|error| error.to_string())?;
    let failed =
        Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).env(VARIABLE, note).exec();
    Err(format!("exec failed: {failed}"))
}
