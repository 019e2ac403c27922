//! Tortured: wakes from signal handlers, as `sem_post` makes them, that interrupt threads anywhere: in
//! the locks of the very buckets, asleep, on the way there. The storm comes from timers and from a thread
//! that signals others; in turns with and without `SA_RESTART`.
//!
//! Checked: no token is lost. Every other kind of token is for handlers to give, and only while there is none
//! of it, so no later wake makes good for one that was lost. Handlers' wakes may have to be delivered by the
//! thread that they interrupted, and then are not counted, so at least as many waits returned Ok as were
//! counted. A wait is interrupted only if its thread did run a handler, and with `SA_RESTART` only if it has
//! a deadline.

use super::traffic::{Kind, Plan, give_all, kinds, nothing_left, private_words};
use crate::actor::{Actor, Verdict, count_signal, interrupted_place};
use crate::board::Count;
use crate::context::Context;
use crate::tokens::{Patience, Taken};
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::Error;

const TOKENS: usize = 3_000;
const SIGNAL: i32 = libc::SIGUSR1;
/// Threads that have a timer of their own.
const TIMED: usize = 4;
const TIMER_PERIOD: i64 = 60_000;

/// Every so many handlers, one gives a whole burst: more wakes than are remembered for an interrupted thread.
const BURST_EVERY: usize = 16;
const BURST: usize = 12;

/// What handlers give.
struct Storm {
    kinds: Vec<(Kind, AtomicUsize)>,
    turn: AtomicUsize,
}

static STORM: AtomicPtr<Storm> = AtomicPtr::new(std::ptr::null_mut());

pub(super) fn run(context: &'static Context) -> Verdict {
    let words = private_words(context);
    let kinds = kinds(&words);
    let storm: &'static Storm = Box::leak(Box::new(Storm {
        kinds: kinds
            .iter()
            .step_by(2)
            .map(|&kind| (kind, AtomicUsize::new(0)))
            .collect(),
        turn: AtomicUsize::new(0),
    }));
    STORM.store((&raw const *storm).cast_mut(), SeqCst);
    while let Some(round) = context.next_round() {
        let restarting = round.number % 2 == 1;
        install_handler(restarting);
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
        let targets: Vec<AtomicI32> = (0..round.threads).map(|_| AtomicI32::new(0)).collect();
        let targets = &targets;
        context.crew(round, |crew| {
            let takers = plan.takers.len();
            for (index, (kind, quota)) in plan.takers.into_iter().enumerate() {
                crew.spawn("taker", index, move |actor| {
                    let _struck = Struck::new(&targets[index], index < TIMED);
                    let mixed = index % 2 == 1 && storm.place_of(&kind).is_none();
                    let patience = if mixed {
                        Patience::Mixed
                    } else {
                        Patience::Endless
                    };
                    take_all_struck(actor, patience, kind, quota, restarting)
                });
            }
            for (index, gifts) in plan.givers.into_iter().enumerate() {
                crew.spawn("giver", index, move |actor| {
                    let _struck = Struck::new(&targets[takers + index], index < TIMED);
                    give_all(actor, &gifts)
                });
            }
            crew.spawn("storm", 0, move |actor| blow(actor, storm, targets));
            Ok(())
        })?;
        nothing_left(&words)?;
        let change = context.totals().since(&before);
        if change.of(Count::Woken) < change.of(Count::Wakes) {
            return Err("wakes have counted more than were woken".to_owned());
        }
    }
    Ok(())
}

/// Takes a quota; says whether interruptions were as they should be.
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
                Error::Interrupted if restarting && !timed => Err(
                    "a wait without a deadline was interrupted in spite of SA_RESTART".to_owned(),
                ),
                Error::Interrupted => Ok(()),
                other => Err(format!("a wait has failed: {other}")),
            })?;
        if taken == Taken::Closed {
            return Err("a word that nobody has closed is closed".to_owned());
        }
    }
    Ok(())
}

/// Signals threads at random until handlers have given all that is theirs to give.
fn blow(actor: &mut Actor, storm: &Storm, targets: &[AtomicI32]) -> Verdict {
    while storm.kinds.iter().any(|(_, left)| left.load(SeqCst) > 0) {
        for _ in 0..actor.dice.u32(1..8) {
            let target = &targets[actor.dice.usize(0..targets.len())];
            signal(target.load(SeqCst));
        }
        match actor.dice.u32(0..4) {
            0 => std::thread::sleep(Duration::from_micros(actor.dice.u64(0..200))),
            _ => std::thread::yield_now(),
        }
    }
    Ok(())
}

fn signal(thread: i32) {
    if thread != 0 {
        // SAFETY: passes numbers. The thread may have ended: then nobody is signalled, or another of this
        // process, which knows the signal too.
        unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, SIGNAL) };
    }
}

impl Storm {
    /// How many tokens of this kind are left for handlers to give, if it is theirs.
    fn place_of(&self, (tokens, colour): &Kind) -> Option<&AtomicUsize> {
        let is_same = |kind: &Kind| kind.0.spot.number == tokens.spot.number && kind.1 == *colour;
        let mut places = self.kinds.iter();
        places.find(|(kind, _)| is_same(kind)).map(|(_, left)| left)
    }

    /// Gives a token of the first kind, from `turn` on, that there is no token of.
    fn give_one(&self, turn: usize) {
        for step in 0..self.kinds.len() {
            let ((tokens, colour), left) = &self.kinds[(turn + step) % self.kinds.len()];
            if tokens.held(tokens.spot.word.load(), *colour) > 0
                || left
                    .try_update(SeqCst, SeqCst, |left| left.checked_sub(1))
                    .is_err()
            {
                continue;
            }
            if !tokens.try_put(*colour) {
                left.fetch_add(1, SeqCst);
                continue;
            }
            let woken = tokens.spot.wake(1, tokens.mask(*colour)).unwrap_or(0);
            if let Some(place) = interrupted_place() {
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

fn install_handler(restarting: bool) {
    // SAFETY: a whole `sigaction`; the handler calls only what is async-signal-safe.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = if restarting { libc::SA_RESTART } else { 0 };
        libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut())
    };
    assert_eq!(result, 0, "no handler");
}

/// A thread that the storm strikes, until it leaves; some have a timer as well.
struct Struck<'a> {
    place: &'a AtomicI32,
    timer: Option<libc::timer_t>,
}

impl<'a> Struck<'a> {
    fn new(place: &'a AtomicI32, timed: bool) -> Self {
        // SAFETY: asks for a number.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        place.store(thread, SeqCst);
        Self {
            place,
            timer: timed.then(|| timer_for(thread)),
        }
    }
}

fn timer_for(thread: i32) -> libc::timer_t {
    let period = libc::timespec {
        tv_sec: 0,
        tv_nsec: TIMER_PERIOD,
    };
    let times = libc::itimerspec {
        it_interval: period,
        it_value: period,
    };
    // SAFETY: whole structures, and a timer that this thread deletes before it ends.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        event.sigev_notify_thread_id = thread;
        let mut timer = std::mem::zeroed();
        let made = libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
        assert_eq!(made, 0, "no timer");
        libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
        timer
    }
}

impl Drop for Struck<'_> {
    fn drop(&mut self) {
        self.place.store(0, SeqCst);
        if let Some(timer) = self.timer {
            // SAFETY: made by this thread, and deleted once.
            unsafe { libc::timer_delete(timer) };
        }
    }
}
