//! Tortured: semaphores of both scopes: posts of one and of many, waits of every kind, with
//! deadlines, and waits that another thread interrupts, as cancellation does.
//!
//! Checked: every post is taken once, nothing is left, no thread waits forever. A wait ends early
//! only if its deadline has passed or another thread did interrupt it, and then it has taken
//! nothing.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::abi_support::{CancellableSemaphore as _, Interrupter};
use waitword::{Error, Scope, Semaphore};

const TAKEN: usize = 6_000;

/// The takers' interrupters, and how many takers are left to interrupt.
struct Takers {
    interrupters: Vec<Interrupter>,
    left: AtomicUsize,
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let make = |scope| Semaphore::with_scope(0, scope);
    let all: Vec<_> = [Scope::Private, Scope::Private, Scope::Shared]
        .map(|scope| Object::new(context, "semaphore", 64, scope, make(scope)))
        .into();
    let all = &all;
    while let Some(round) = context.next_round() {
        let takers = round.threads / 2;
        let quota = (TAKEN / takers).max(2);
        let crowd = &Takers {
            interrupters: (0..takers).map(|_| Interrupter::new()).collect(),
            left: AtomicUsize::new(takers),
        };
        context.crew(round, |crew| {
            for index in 0..takers {
                let semaphore = &all[index % all.len()];
                crew.spawn("taker", index, move |actor| {
                    let by = &crowd.interrupters[index];
                    let taken = (0..quota).try_for_each(|_| take(actor, semaphore, by));
                    crowd.left.fetch_sub(1, SeqCst);
                    taken
                });
                // As many posts as waits, for each semaphore.
                crew.spawn("poster", index, move |actor| {
                    let mut left = quota;
                    while left > 0 {
                        left -= post(actor, semaphore, left)?;
                        actor.dawdle();
                    }
                    Ok(())
                });
            }
            crew.spawn("interrupter", 0, move |actor| interrupt(actor, crowd));
            Ok(())
        })?;
        for semaphore in all {
            let value = semaphore.get().value();
            if value != 0 {
                return Err(format!("{value} posts were not taken"));
            }
            semaphore.renew(make(semaphore.scope));
        }
    }
    Ok(())
}

/// Posts once or several times, at most `most` times. Returns how often.
fn post(actor: &mut Actor, semaphore: &Object<Semaphore>, most: usize) -> Result<usize, String> {
    let count = match actor.dice.u32(0..4) {
        0 => actor.dice.usize(1..=most.min(5)),
        _ => 1,
    };
    let posted = match count {
        _ if actor.leaves_out() => Ok(()),
        _ if actor.miscounts() => semaphore.get().post_many(count as u32 + 1),
        1 => semaphore.get().post(),
        _ => semaphore.get().post_many(count as u32),
    };
    actor.step();
    posted.map(|()| count).map_err(|error| error.to_string())
}

/// Takes a token, in one way or another.
fn take(actor: &mut Actor, semaphore: &Object<Semaphore>, by: &Interrupter) -> Verdict {
    let (object, spot) = (semaphore.get(), semaphore.spot);
    loop {
        let deadline = (actor.dice.u32(0..3) == 0).then(|| actor.tiny_deadline());
        let until = deadline.is_some();
        let way = actor.dice.u32(0..6);
        let ended = match (way, deadline) {
            (0, _) if !object.try_wait() => continue,
            (0, _) => Ok(()),
            (1, _) => actor.wait_at(spot, until, || object.wait_interruptible(deadline)),
            (2..4, _) if semaphore.scope == Scope::Private => {
                actor.wait_at(spot, until, || object.wait_interruptible_by(deadline, by))
            }
            (_, Some(deadline)) => {
                let taken = actor.wait_at(spot, true, || object.wait_until(deadline));
                taken.then_some(()).ok_or(Error::TimedOut)
            }
            (_, None) => {
                actor.wait_at(spot, false, || object.wait());
                Ok(())
            }
        };
        match ended {
            Ok(()) => break,
            Err(Error::TimedOut) if until => actor.count(Count::Timeouts, 1),
            Err(Error::Interrupted) if (2..4).contains(&way) && by.is_interrupted() => {
                actor.count(Count::Interrupted, 1);
                by.clear();
            }
            Err(error) => return Err(format!("a wait ended with: {error}")),
        }
    }
    actor.count(Count::Woken, 1);
    actor.step();
    Ok(())
}

/// Interrupts takers at random, as long as there are any.
fn interrupt(actor: &mut Actor, crowd: &Takers) -> Verdict {
    while crowd.left.load(SeqCst) > 0 {
        crowd.interrupters[actor.dice.usize(0..crowd.interrupters.len())].interrupt();
        match actor.dice.u32(0..8) {
            0 => crate::actor::nap(actor.dice.u64(0..200)),
            _ => std::thread::yield_now(),
        }
    }
    Ok(())
}
