//! Tortured: semaphores of every sort: waits of every kind, tries, deadlines, posts of one and of
//! many, by threads and by signal handlers, which interrupt waits anywhere, alternately with and
//! without `SA_RESTART`. Where that can be done, other threads interrupt waits too, as cancellation
//! does. All threads meet at a barrier at the end.
//!
//! Checked: all threads end; each semaphore's final value is its initial value plus posts minus
//! waits. A wait ends early only if its deadline has passed, if its thread did run a handler (with
//! `SA_RESTART` only if it has a deadline), or if another thread did interrupt it; then it has
//! taken nothing.

use crate::actor::{Actor, Verdict, count_signal, own_place};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits::{Barrier as _, Semaphore};
use crate::parts::storm::{self, Targets};
use crate::slice::Sabotage;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

const TOKENS: usize = 4_000;
const MOST_INITIAL: u32 = 2;

/// A semaphore.
struct Supply<S> {
    semaphore: S,
    initial: u32,
    /// How often handlers have yet to post it.
    left: AtomicUsize,
}

/// The supplies of a round.
struct Supplies<S>(Vec<Supply<S>>);

/// The supplies that handlers post, one after another.
static ALL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
static TURN: AtomicUsize = AtomicUsize::new(0);

/// Posts a semaphore that is for handlers to post.
extern "C" fn handler<S: Semaphore>(_signal: i32) {
    count_signal();
    // SAFETY: the calling thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: null, or supplies of this type, which are never freed.
    if let Some(Supplies(all)) = unsafe { ALL.load(SeqCst).cast::<Supplies<S>>().as_ref() } {
        let turn = TURN.fetch_add(1, SeqCst);
        for step in 0..all.len() {
            let supply = &all[(turn + step) % all.len()];
            let less = |left: usize| left.checked_sub(1);
            if supply.left.try_update(SeqCst, SeqCst, less).is_ok() {
                supply.semaphore.post();
                if let Some(place) = own_place() {
                    place.count(Count::Wakes, 1);
                    place.count(Count::Operations, 1);
                }
                break;
            }
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

impl<S: Semaphore> Supply<S> {
    /// Posts it once or several times, at most `most` times. Returns how often.
    fn post(&self, actor: &mut Actor, most: usize) -> Result<usize, String> {
        let count = match actor.dice.u32(0..4) {
            0 => actor.dice.usize(1..=most.min(5)),
            _ => 1,
        };
        let posted = match count {
            _ if actor.leaves_out() => true,
            1 => self.semaphore.post(),
            _ => self.semaphore.post_many(count as u32),
        };
        actor.count(Count::Wakes, count);
        actor.step();
        match posted {
            true => Ok(count),
            false => Err("a semaphore could not be posted".to_owned()),
        }
    }

    /// After all threads have ended: checks that the value is the initial one.
    fn over(&self) -> Verdict {
        let (value, initial) = (self.semaphore.value(), self.initial);
        if value != initial {
            return Err(format!("a semaphore holds {value} instead of {initial}"));
        }
        let taken = (0..=initial).filter(|_| self.semaphore.try_take());
        if taken.count() != initial as usize {
            return Err("a semaphore gave more or less than its value".to_owned());
        }
        self.semaphore.end()
    }
}

pub(crate) fn run<S: Semaphore>(context: &'static Context) -> Verdict {
    let supply = |semaphore| Supply { semaphore, initial: 0, left: AtomicUsize::new(0) };
    let all = S::all(context)?.into_iter().map(supply).collect();
    let all = Box::leak(Box::new(Supplies(all)));
    let barrier = S::Barrier::new(context, "barrier at the end", false);
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        ALL.store(std::ptr::null_mut(), SeqCst);
        let takers = round.threads / 2;
        let givers = round.threads - takers;
        let quota = (TOKENS / takers).max(1);
        // What each taker takes. This determines what must be posted, and by which giver.
        let wanted: Vec<usize> = (0..takers).map(|_| dice.usize(0..all.0.len())).collect();
        let mut shares = vec![vec![0; all.0.len()]; givers];
        for supply in &mut all.0 {
            // A spare permit would let the taker go on, and hide the post that was left out.
            supply.initial = match context.slice.sabotage {
                Some(Sabotage::SkipWake) => 0,
                _ => dice.u32(0..=MOST_INITIAL),
            };
            supply.semaphore.make(supply.initial)?;
            supply.left.store(0, SeqCst);
        }
        for &which in (0..quota).flat_map(|_| &wanted) {
            match dice.u32(0..4) {
                0 => *all.0[which].left.get_mut() += 1,
                _ => shares[dice.usize(0..givers)][which] += 1,
            }
        }
        let all = &*all;
        ALL.store(std::ptr::from_ref(all).cast_mut().cast(), SeqCst);
        let restarting = round.number % 2 == 1;
        storm::install(storm::SIGNAL, handler::<S>, restarting);
        let targets = &Targets::new(round.threads);
        let interrupters = usize::from(S::IS_INTERRUPTED);
        barrier.make(round.threads + 1 + interrupters)?;
        let barrier = &barrier;
        let left = &AtomicUsize::new(takers);
        context.crew(round, |crew| {
            for (index, which) in wanted.into_iter().enumerate() {
                crew.spawn("taker", index, move |actor| {
                    targets.strike_me(index);
                    for _ in 0..quota {
                        all.0[which].semaphore.take(actor, restarting)?;
                        actor.count(Count::Woken, 1);
                        actor.step();
                        if actor.miscounts() {
                            all.0[which].semaphore.post();
                        }
                    }
                    left.fetch_sub(1, SeqCst);
                    barrier.wait(actor).map(drop)
                });
            }
            for (index, mut share) in shares.into_iter().enumerate() {
                crew.spawn("giver", index, move |actor| {
                    targets.strike_me(takers + index);
                    while share.iter().any(|&count| count > 0) {
                        let which = actor.dice.usize(0..share.len());
                        if share[which] > 0 {
                            share[which] -= all.0[which].post(actor, share[which])?;
                            actor.dawdle();
                        }
                    }
                    barrier.wait(actor).map(drop)
                });
            }
            crew.spawn("storm", 0, move |actor| {
                // All threads are alive: they wait at the barrier for this one.
                let all_posted = || all.0.iter().all(|one| one.left.load(SeqCst) == 0);
                targets.blow(actor, all_posted)?;
                barrier.wait(actor).map(drop)
            });
            for index in 0..interrupters {
                crew.spawn("interrupter", index, move |actor| {
                    while left.load(SeqCst) > 0 {
                        S::interrupt_some(actor);
                    }
                    barrier.wait(actor).map(drop)
                });
            }
            Ok(())
        })?;
        barrier.end()?;
        all.0.iter().try_for_each(Supply::over)?;
    }
    Ok(())
}
