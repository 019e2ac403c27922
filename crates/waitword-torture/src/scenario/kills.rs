//! Tortured: processes that wait and wake on shared words are killed by SIGKILL at any moment.
//!
//! A wake that a process was about to make, or had just been given, dies with it; no futex can help that.
//! So whoever sees a process die wakes all waiters of the words that it shared, as the kernel does for robust
//! mutexes; then the survivors look again.
//!
//! Checked: after each kill the survivors go on and get something done; in the end, all come to theirs; no
//! word and no canary is corrupted; tokens add up but for those in the hands of killed threads.

use super::shared::{SharedWords, start};
use super::traffic::{Kind, kinds};
use crate::actor::{Actor, Verdict};
use crate::board::Count;
use crate::context::{Context, Round};
use crate::process::{self, Ended};
use crate::tokens::{Patience, Taken};
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

const PROCESSES: usize = 4;
const KILLS: usize = 8;
/// More threads in all would leave too little time between kills.
const MOST_THREADS: usize = 64;
/// What must get done after a kill before the next.
const STEPS_BETWEEN: u64 = 200;

pub(super) fn run(context: &'static Context) -> Verdict {
    let shared = SharedWords::new(context);
    let kinds = kinds(&shared.words);
    // In shared memory: how many tokens were given and not yet taken, of each kind.
    let memory = process::shared_memory(size_of::<AtomicI64>() * kinds.len());
    // SAFETY: zeroed, aligned, large enough, never unmapped.
    let ledger: &[AtomicI64] = unsafe { std::slice::from_raw_parts(memory.cast(), kinds.len()) };
    while let Some(round) = context.next_round() {
        for tokens in &shared.words {
            tokens.reset();
        }
        ledger.iter().for_each(|sum| sum.store(0, SeqCst));
        let threads = (round.threads.min(MOST_THREADS) / PROCESSES).max(2);
        let killed = run_round(context, round, &shared, ledger, threads)?;
        shared.inspect()?;
        for (&(tokens, colour), sum) in kinds.iter().zip(ledger) {
            let held = tokens.held(tokens.spot.word.load(), colour) as i64;
            let off = (sum.load(SeqCst) - held).unsigned_abs() as usize;
            if off > killed * threads {
                return Err(format!("{off} tokens appeared or vanished: {tokens:?}"));
            }
        }
    }
    Ok(())
}

/// How many processes were killed.
fn run_round(
    context: &'static Context,
    round: Round,
    shared: &SharedWords,
    ledger: &'static [AtomicI64],
    threads: usize,
) -> Result<usize, String> {
    let work = |process: usize| {
        let kinds = kinds(&shared.map_elsewhere().words);
        let kinds = &kinds[..];
        context.crew(round, |crew| {
            for index in 0..threads {
                let number = process * threads + index;
                if index % 2 == 0 {
                    crew.spawn("giver", number, move |actor| give_on(actor, kinds, ledger));
                } else {
                    crew.spawn("taker", number, move |actor| take_on(actor, kinds, ledger));
                }
            }
            Ok(())
        })
    };
    let mut master = Actor::new(context, "killer", round.seed_of("killer", 0));
    let mut children: Vec<i32> = (0..PROCESSES)
        .map(|process| start(context, process, &work))
        .collect();
    for turn in 0..KILLS {
        std::thread::sleep(Duration::from_micros(master.dice.u64(0..6_000)));
        let victim = children.swap_remove(master.dice.usize(0..children.len()));
        process::kill(victim);
        match process::reap(context, victim)? {
            Ended::Killed(libc::SIGKILL) => {}
            other => return Err(format!("process {victim} has ended by itself: {other:?}")),
        }
        master.count(Count::Kills, 1);
        wake_all(&mut master, shared)?;
        wait_for_progress(context);
        shared.inspect()?;
        let work = &work;
        children.push(start(context, PROCESSES + turn, work));
    }
    for tokens in &shared.words {
        tokens.close(&mut master)?;
    }
    for child in children {
        let ended = process::reap(context, child)?;
        if ended != Ended::Exited(0) {
            return Err(format!(
                "a survivor, process {child}, has ended so: {ended:?}"
            ));
        }
    }
    Ok(KILLS)
}

/// What the one who sees a process die owes to the others.
pub(super) fn wake_all(master: &mut Actor, shared: &SharedWords) -> Verdict {
    for tokens in &shared.words {
        master.wake(tokens.spot, usize::MAX, u64::MAX)?;
    }
    Ok(())
}

/// Until the survivors have done something. Should they not, the watchdog sees to it.
pub(super) fn wait_for_progress(context: &Context) {
    let done = || context.totals().of(Count::Operations);
    let before = done();
    while done() < before + STEPS_BETWEEN {
        std::thread::sleep(Duration::from_micros(100));
    }
}

pub(super) fn give_on(actor: &mut Actor, kinds: &[Kind], ledger: &[AtomicI64]) -> Verdict {
    loop {
        let kind = actor.dice.usize(0..kinds.len());
        let (tokens, colour) = kinds[kind];
        if tokens.is_closing() {
            return Ok(());
        }
        if tokens.held(tokens.spot.word.load(), colour) >= tokens.room().min(8)
            || !tokens.try_put(colour)
        {
            std::thread::yield_now();
            continue;
        }
        ledger[kind].fetch_add(1, SeqCst);
        actor.wake(tokens.spot, 1, tokens.mask(colour))?;
        actor.step();
        actor.dawdle();
    }
}

pub(super) fn take_on(actor: &mut Actor, kinds: &[Kind], ledger: &[AtomicI64]) -> Verdict {
    loop {
        let kind = actor.dice.usize(0..kinds.len());
        let (tokens, colour) = kinds[kind];
        match tokens.take(actor, colour, Patience::Endless)? {
            Taken::Token => ledger[kind].fetch_sub(1, SeqCst),
            Taken::Closed => return Ok(()),
        };
    }
}
