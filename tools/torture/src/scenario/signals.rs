//! Tortured: wakes from signal handlers, as `sem_post` makes them, that interrupt threads anywhere:
//! while they lock the very same buckets, asleep, or on the way there. The storm comes from timers
//! and from a thread that signals others; alternately with and without `SA_RESTART`.
//!
//! Checked: no token is lost. Every other kind of token is for handlers to give, and only while
//! there is none of it, so no later wake makes up for one that was lost. The interrupted thread may
//! have to deliver its handler's wakes, which then are not counted. So at least as many waits
//! returned Ok as were counted. A wait is interrupted only if its thread did run a handler, and
//! with `SA_RESTART` only if it has a deadline.

use super::traffic::{Kind, Plan, give_all, kinds, nothing_left, private_words};
use crate::actor::{Actor, Verdict, count_signal, own_place};
use crate::context::Context;
use crate::count::Count;
use crate::parts::storm::{self, Targets};
use crate::tokens::{Patience, Taken};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use waitword::Error;

const TOKENS: usize = 3_000;
/// Threads that have a timer of their own.
const TIMED: usize = 4;
const TIMER_PERIOD: i64 = 60_000;

/// One handler in this many gives a whole burst: more wakes than are remembered for an interrupted
/// thread.
const BURST_EVERY: usize = 16;
const BURST: usize = 12;

/// What handlers give.
struct Storm {
    kinds: Vec<(Kind, AtomicUsize)>,
    turn: AtomicUsize,
}

static STORM: AtomicPtr<Storm> = AtomicPtr::new(std::ptr::null_mut());

pub(crate) fn run(context: &'static Context) -> Verdict {
    let words = private_words(context);
    let kinds = kinds(&words);
    let storm: &'static Storm = Box::leak(Box::new(Storm {
        kinds: kinds.iter().step_by(2).map(|&kind| (kind, AtomicUsize::new(0))).collect(),
        turn: AtomicUsize::new(0),
    }));
    STORM.store((&raw const *storm).cast_mut(), SeqCst);
    while let Some(round) = context.next_round() {
        let restarting = round.number % 2 == 1;
        storm::install(storm::SIGNAL, handler, restarting);
        let before = context.totals();
        let mut plan = Plan::new(round, &kinds, round.threads, TOKENS);
        for gifts in &mut plan.givers {
            gifts.retain(|gift| match storm.place_of(gift) {
                None => true,
                Some(left) => {
                    left.fetch_add(1, SeqCst);
                    false
                }
            });
        }
        let targets = &Targets::new(round.threads);
        context.crew(round, |crew| {
            let takers = plan.takers.len();
            for (index, (kind, quota)) in plan.takers.into_iter().enumerate() {
                crew.spawn("taker", index, move |actor| {
                    let _struck = Struck::new(targets, index, index < TIMED);
                    let mixed = index % 2 == 1 && storm.place_of(&kind).is_none();
                    let patience = if mixed { Patience::Mixed } else { Patience::Endless };
                    take_all_struck(actor, patience, kind, quota, restarting)
                });
            }
            for (index, gifts) in plan.givers.into_iter().enumerate() {
                crew.spawn("giver", index, move |actor| {
                    let _struck = Struck::new(targets, takers + index, index < TIMED);
                    give_all(actor, &gifts)
                });
            }
            crew.spawn("storm", 0, move |actor| targets.blow(actor, || storm.is_spent()));
            Ok(())
        })?;
        nothing_left(&words)?;
        let change = context.totals().since(&before);
        if change.of(Count::Woken) < change.of(Count::Wakes) {
            return Err("wakes counted more waiters than were woken".to_owned());
        }
    }
    Ok(())
}

/// Takes a quota; checks that interruptions were legitimate.
fn take_all_struck(
    actor: &mut Actor,
    patience: Patience,
    (tokens, colour): Kind,
    quota: usize,
    restarting: bool,
) -> Verdict {
    for _ in 0..quota {
        let taken =
            tokens.take_unless(actor, colour, patience, |actor, error, timed| match error {
                Error::Mismatch | Error::TimedOut => Ok(()),
                Error::Interrupted if !actor.was_interrupted() => {
                    Err("a wait was interrupted though no handler has run".to_owned())
                }
                Error::Interrupted if restarting && !timed => {
                    Err("a wait without a deadline was interrupted in spite of SA_RESTART"
                        .to_owned())
                }
                Error::Interrupted => Ok(()),
                other => Err(format!("a wait failed: {other}")),
            })?;
        if taken == Taken::Closed {
            return Err("a word that was not closed is closed".to_owned());
        }
    }
    Ok(())
}

impl Storm {
    /// Whether handlers have given all that is theirs to give.
    fn is_spent(&self) -> bool {
        self.kinds.iter().all(|(_, left)| left.load(SeqCst) == 0)
    }

    /// How many tokens of this kind handlers have yet to give, if it is theirs.
    fn place_of(&self, (tokens, colour): &Kind) -> Option<&AtomicUsize> {
        let is_same = |kind: &Kind| kind.0.spot.number == tokens.spot.number && kind.1 == *colour;
        let mut places = self.kinds.iter();
        places.find(|(kind, _)| is_same(kind)).map(|(_, left)| left)
    }

    /// Gives a token of the first kind, from `turn` on, that has none.
    fn give_one(&self, turn: usize) {
        for step in 0..self.kinds.len() {
            let ((tokens, colour), left) = &self.kinds[(turn + step) % self.kinds.len()];
            if tokens.held(tokens.spot.word.load(), *colour) > 0
                || left.try_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err()
            {
                continue;
            }
            if !tokens.try_put(*colour) {
                left.fetch_add(1, SeqCst);
                continue;
            }
            let woken = tokens.spot.wake(1, tokens.mask(*colour)).unwrap_or(0);
            if let Some(place) = own_place() {
                place.count(Count::Wakes, woken);
                place.count(Count::Operations, 1);
            }
            return;
        }
    }
}

/// Gives what is for handlers to give.
extern "C" fn handler(_signal: i32) {
    count_signal();
    // SAFETY: null or a storm that lives as long as the process.
    let Some(storm) = (unsafe { STORM.load(SeqCst).as_ref() }) else {
        return;
    };
    let turn = storm.turn.fetch_add(1, SeqCst);
    let tokens = if turn % BURST_EVERY == 0 { BURST } else { 1 };
    for number in 0..tokens {
        storm.give_one(turn + number);
    }
}

/// A thread that the storm strikes, until this is dropped. Some also have a timer.
struct Struck<'a> {
    targets: &'a Targets,
    index: usize,
    timer: Option<libc::timer_t>,
}

impl<'a> Struck<'a> {
    fn new(targets: &'a Targets, index: usize, timed: bool) -> Self {
        let thread = targets.strike_me(index);
        Self { targets, index, timer: timed.then(|| timer_for(thread)) }
    }
}

fn timer_for(thread: u32) -> libc::timer_t {
    let period = libc::timespec { tv_sec: 0, tv_nsec: TIMER_PERIOD };
    let times = libc::itimerspec { it_interval: period, it_value: period };
    // SAFETY: whole structures, and a timer that this thread deletes before it ends.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = storm::SIGNAL;
        event.sigev_notify_thread_id = thread as i32;
        let mut timer = std::mem::zeroed();
        let made = libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        assert_eq!(made, 0, "no timer");
        libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
        timer
    }
}

impl Drop for Struck<'_> {
    fn drop(&mut self) {
        self.targets.spare(self.index);
        if let Some(timer) = self.timer {
            // SAFETY: made by this thread, and deleted once.
            unsafe { libc::timer_delete(timer) };
        }
    }
}
