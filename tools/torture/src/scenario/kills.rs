//! Tortured: processes that wait and wake on shared words are killed by SIGKILL at any moment.
//!
//! A wake that a process was about to make, or had just received, dies with it. No futex can
//! prevent that. So the process that sees another die wakes all waiters of the words that it
//! shared, as the kernel does for robust mutexes. Then the survivors look again.
//!
//! Checked: after each kill the survivors make progress; in the end, all end; no word and no canary
//! is corrupted; tokens add up, except those in the hands of killed threads.

use super::shared::SharedWords;
use super::traffic::{Kind, kinds};
use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::crew::Crew;
use crate::memory;
use crate::nap::let_others_run;
use crate::parts::team::{self, Killing};
use crate::tokens::{Patience, Taken};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

const PROCESSES: usize = 4;
const KILLS: usize = 8;
/// More threads in total would leave too little time between kills.
const MOST_THREADS: usize = 64;
/// How many steps must be done after a kill before the next.
const STEPS_BETWEEN: u64 = 200;

pub(crate) fn run(context: &'static Context) -> Verdict {
    let shared = SharedWords::new(context);
    let kinds = kinds(&shared.words);
    // In shared memory: how many tokens of each kind were given and not yet taken.
    let memory = memory::shared_memory(size_of::<AtomicI64>() * kinds.len());
    // SAFETY: zeroed, aligned, large enough, never unmapped.
    let ledger: &[AtomicI64] = unsafe { std::slice::from_raw_parts(memory.cast(), kinds.len()) };
    while let Some(round) = context.next_round() {
        for tokens in &shared.words {
            tokens.reset();
        }
        ledger.iter().for_each(|sum| sum.store(0, SeqCst));
        let threads = (round.threads.min(MOST_THREADS) / PROCESSES).max(2);
        run_round(context, round, &shared, ledger, threads)?;
        shared.inspect()?;
        // Allows for the tokens in the hands of killed threads.
        adds_up(&kinds, ledger, KILLS * threads)?;
    }
    Ok(())
}

fn run_round(
    context: &'static Context,
    round: Round,
    shared: &SharedWords,
    ledger: &'static [AtomicI64],
    threads: usize,
) -> Verdict {
    let work = |process: usize| {
        let kinds = kinds(&shared.map_elsewhere().words);
        let kinds = &kinds[..];
        context.crew(round, |crew| {
            hire(crew, process * threads, threads, kinds, ledger);
            Ok(())
        })
    };
    let mut killer = Actor::new(context, "killer", round.seed_of("killer", 0));
    let killing =
        Killing { processes: PROCESSES, kills: KILLS, pause: 6_000, steps: STEPS_BETWEEN };
    let survivors = killing.run(context, &mut killer, &work, &mut |killer| {
        shared.inspect()?;
        wake_all(killer, shared)
    })?;
    for tokens in &shared.words {
        tokens.close(&mut killer)?;
    }
    team::end(context, survivors)
}

/// What a process that sees another die owes to the other processes.
pub(super) fn wake_all(master: &mut Actor, shared: &SharedWords) -> Verdict {
    for tokens in &shared.words {
        master.wake(tokens.spot, usize::MAX, u64::MAX)?;
    }
    Ok(())
}

/// Checks for each kind that the ledger agrees with the words, except for at most `most` tokens.
pub(super) fn adds_up(kinds: &[Kind], ledger: &[AtomicI64], most: usize) -> Verdict {
    for (&(tokens, colour), sum) in kinds.iter().zip(ledger) {
        let held = tokens.held(tokens.spot.word.load(), colour) as i64;
        let off = (sum.load(SeqCst) - held).unsigned_abs() as usize;
        if off > most {
            return Err(format!("{off} tokens appeared or vanished: {tokens:?}"));
        }
    }
    Ok(())
}

/// Hires givers and takers that go on until the words are closed.
pub(super) fn hire<'scope>(
    crew: &mut Crew<'scope, '_>,
    first: usize,
    threads: usize,
    kinds: &'scope [Kind],
    ledger: &'scope [AtomicI64],
) {
    for index in 0..threads {
        let number = first + index;
        if index % 2 == 0 {
            crew.spawn("giver", number, move |actor| give_on(actor, kinds, ledger));
        } else {
            crew.spawn("taker", number, move |actor| take_on(actor, kinds, ledger));
        }
    }
}

fn give_on(actor: &mut Actor, kinds: &[Kind], ledger: &[AtomicI64]) -> Verdict {
    loop {
        let kind = actor.dice.usize(0..kinds.len());
        let (tokens, colour) = kinds[kind];
        if tokens.is_closing() {
            return Ok(());
        }
        if tokens.held(tokens.spot.word.load(), colour) >= tokens.room().min(8)
            || !tokens.try_put(colour)
        {
            let_others_run();
            continue;
        }
        ledger[kind].fetch_add(1, SeqCst);
        actor.wake(tokens.spot, 1, tokens.mask(colour))?;
        actor.step();
        actor.dawdle();
    }
}

fn take_on(actor: &mut Actor, kinds: &[Kind], ledger: &[AtomicI64]) -> Verdict {
    loop {
        let kind = actor.dice.usize(0..kinds.len());
        let (tokens, colour) = kinds[kind];
        match tokens.take(actor, colour, Patience::Endless)? {
            Taken::Token => ledger[kind].fetch_sub(1, SeqCst),
            Taken::Closed => return Ok(()),
        };
    }
}
