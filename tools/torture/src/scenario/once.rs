//! Tortured: many threads that come to the same `Once` at the same time. Some of those that execute
//! it leave it by unwinding.
//!
//! Checked: each is done once, and a thread that returns sees what was done; after an unwinding,
//! another thread does it.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::spot::{Spot, Word};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use waitword::{Once, OnceState, Scope};

/// How many `Once` objects a round has.
const ONCES: usize = 200;

/// Something that is done once.
#[derive(Default)]
struct Job {
    once: Once,
    /// Written by plain stores while it is done.
    begun: AtomicUsize,
    done: AtomicUsize,
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let jobs: &'static mut [Job] = Box::leak((0..ONCES).map(|_| Job::default()).collect());
    // SAFETY: leaked, and a `Once` is a single 32-bit atomic.
    let word = |job: &Job| unsafe { Word::at((&raw const job.once).cast_mut().cast(), 32) };
    let name = |job: &Job| context.name_word("once", word(job), Scope::Private);
    let spots: Vec<Spot> = jobs.iter().map(name).collect();
    while let Some(round) = context.next_round() {
        for job in &mut *jobs {
            *job = Job::default();
        }
        let (jobs, spots) = (&*jobs, &spots);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("comer", index, move |actor| {
                    let mut each = jobs.iter().zip(spots).enumerate();
                    each.try_for_each(|(number, (job, &spot))| come(actor, job, spot, number))
                });
            }
            Ok(())
        })?;
        for job in jobs {
            let (begun, done) = (job.begun.load(Relaxed), job.done.load(Relaxed));
            if done != 1 || begun < done || job.once.state() != OnceState::Done {
                return Err(format!("begun {begun} times, done {done} times"));
            }
        }
    }
    Ok(())
}

fn come(actor: &mut Actor, job: &Job, spot: Spot, number: usize) -> Verdict {
    let mut leaves = actor.dice.u32(0..3) == 0;
    let came = |actor: &mut Actor, leaves| {
        let work = |actor: &mut Actor| do_it(actor, job, spot, leaves);
        actor.is_at(spot, false);
        let came = catch_unwind(AssertUnwindSafe(|| match number % 2 {
            0 => job.once.execute(|| work(actor)),
            _ => job.once.call_once_force(|_| work(actor)),
        }));
        actor.is_elsewhere();
        came
    };
    while came(actor, leaves).is_err() {
        if !leaves {
            return Err("left by another thread's unwinding".to_owned());
        }
        leaves = false;
    }
    if job.done.load(Relaxed) == 0 {
        return Err("came back before it was done".to_owned());
    }
    actor.step();
    Ok(())
}

fn do_it(actor: &mut Actor, job: &Job, spot: Spot, leaves: bool) {
    job.begun.store(job.begun.load(Relaxed) + 1, Relaxed);
    actor.holds(spot);
    actor.dawdle();
    if actor.leaves_out() {
        actor.keeps(spot);
    }
    actor.releases(spot);
    if leaves {
        // Without the message of a panic.
        resume_unwind(Box::new(()));
    }
    let times = if actor.miscounts() { 2 } else { 1 };
    job.done.store(job.done.load(Relaxed) + times, Relaxed);
}
