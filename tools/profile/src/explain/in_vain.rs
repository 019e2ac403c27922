//! Wake-ups in vain: a condition variable wakes threads that have nothing to do.
//!
//! It has this from a broadcast where one thread can go on, or from one condition variable for
//! different conditions. There are two kinds of evidence:
//!
//! * Of threads that were signalled at the same instant, at least two waited again within 20 µs of
//!   having the mutex, and at least one did something else for 200 µs or longer. That has to be so
//!   in nine of ten such broadcasts: if all wait again at once, their work may be that short (each
//!   counts something, say), and now and then one of them loses its CPU.
//! * A wait in which the thread was woken and slept again ([`Wait::in_vain`]).
//!
//! There have to be ten such wake-ups, and at least as many as waits at the condition variable that
//! ended otherwise. A wake-up takes about 10 µs of CPU time, so what they cost is estimated; it has
//! to be 1 % of the run.

use super::sums::{Bounded, Costs, Recent, Sums, grow, weight};
use super::{Detector, Finding, Kind, Line, Run};
use crate::text::time;
use std::collections::BTreeMap;
use waitword_record::USUAL_THRESHOLD;
use waitword_record::format::{Ended, Object, Wait};

/// A thread that waits again so soon has done nothing, in nanoseconds.
const AT_ONCE: u64 = 20_000;
/// A thread that waits again no sooner has gone on.
const LONG: u64 = 200_000;

#[derive(Debug, Default)]
pub(super) struct InVain {
    condvars: Bounded<u64, Condvar>,
    /// The last wake-up of each thread.
    woken: Bounded<u32, Woken>,
    /// By condition variable and instant.
    broadcasts: Recent<u64, Broadcast>,
    /// By condition variable: those that are older.
    before: Bounded<u64, Broadcasts>,
}

#[derive(Debug, Default)]
struct Condvar {
    sums: Sums,
    in_vain: u64,
}

#[derive(Debug, Default)]
struct Woken {
    condvar: u64,
    signalled: u64,
    /// Since when it has the mutex.
    runs: u64,
}

/// What the threads did that were signalled together.
#[derive(Debug, Default)]
struct Broadcast {
    waited_again: u64,
    went_on: u64,
}

/// The broadcasts at one condition variable after which two threads or more waited again at once.
#[derive(Clone, Copy, Debug, Default)]
struct Broadcasts {
    number: u64,
    /// Those after which another one went on.
    for_few: u64,
    /// The threads that waited again after one of those.
    in_vain: u64,
}

impl Broadcasts {
    fn add(&mut self, one: &Broadcast) {
        if one.waited_again >= 2 {
            self.number += 1;
            if one.went_on >= 1 {
                self.for_few += 1;
                grow(&mut self.in_vain, one.waited_again);
            }
        }
    }

    fn in_vain(&self) -> u64 {
        if self.for_few >= self.number - self.number / 10 { self.in_vain } else { 0 }
    }
}

impl Costs for Condvar {
    fn cost(&self) -> u64 {
        self.in_vain.max(self.sums.waits)
    }
}

impl Costs for Woken {
    fn cost(&self) -> u64 {
        self.runs
    }
}

impl Costs for Broadcasts {
    fn cost(&self) -> u64 {
        self.in_vain
    }
}

impl Detector for InVain {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        let ended = wait.began.saturating_add(wait.took);
        if object != Object::Condvar {
            let woken = self.woken.of(thread);
            if object.is_lock() && wait.began.checked_sub(woken.runs) == Some(0) {
                // The wait for the mutex.
                woken.runs = ended;
            }
            return;
        }
        let condvar = self.condvars.of(wait.address);
        condvar.sums.add(thread, wait);
        grow(&mut condvar.in_vain, weight(wait).saturating_mul(wait.in_vain.into()));
        let woken = self.woken.of(thread);
        if woken.condvar == wait.address && woken.signalled != 0 {
            let before = &mut self.before;
            let broadcast = self.broadcasts.of(woken.signalled, woken.condvar, |condvar, it| {
                before.of(condvar).add(it);
            });
            match wait.began.checked_sub(woken.runs) {
                Some(..=AT_ONCE) => grow(&mut broadcast.waited_again, weight(wait)),
                Some(LONG..) => grow(&mut broadcast.went_on, weight(wait)),
                Some(_) | None => {}
            }
        }
        let is_woken = wait.ended != Ended::TimedOut as u8 && wait.waker != 0;
        let signalled = if is_woken { ended } else { 0 };
        *woken = Woken { condvar: wait.address, signalled, runs: ended };
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let mut together: BTreeMap<u64, Broadcasts> =
            self.before.iter().map(|(condvar, before)| (*condvar, *before)).collect();
        for (condvar, broadcast) in self.broadcasts.iter() {
            together.entry(condvar).or_default().add(broadcast);
        }
        let all = self.condvars.iter().map(|(address, it)| {
            let waited_again = together.get(address).map_or(0, Broadcasts::in_vain);
            (*address, it, it.in_vain, waited_again)
        });
        let found = all.filter(|(_, it, slept_again, waited_again)| {
            let in_vain = slept_again.saturating_add(*waited_again);
            let others = it.sums.waits.saturating_sub(*waited_again);
            in_vain >= others.max(10) && cost(in_vain) >= run.length / 100
        });
        found
            .map(|(address, it, slept_again, waited_again)| {
                finding(address, &it.sums, slept_again, waited_again)
            })
            .collect()
    }
}

fn cost(in_vain: u64) -> u64 {
    in_vain.saturating_mul(USUAL_THRESHOLD)
}

fn finding(address: u64, sums: &Sums, slept_again: u64, waited_again: u64) -> Finding {
    let lost = cost(slept_again.saturating_add(waited_again));
    let mut said = vec![Line::at(
        format!(
            "{} wait at condition variable {address:#x} ({} ended), mostly at",
            sums.threads.shown("thread"),
            sums.waits,
        ),
        sums.worst().0,
    )];
    if waited_again > 0 {
        said.push(Line::new(format!(
            "At least {waited_again} times a thread was woken together with others, one of which \
             went on, and waited again at once.",
        )));
    }
    if slept_again > 0 {
        said.push(Line::new(format!(
            "Within a wait a thread was woken and slept again {slept_again} times.",
        )));
    }
    said.push(Line::new(format!(
        "At about {} of CPU time for each wake-up, that is {}.",
        time(USUAL_THRESHOLD),
        time(lost),
    )));
    let advice = "Use a condition variable for each condition, and signal it once for each thread \
                  that can go on, instead of a broadcast. For a queue of items, a semaphore counts \
                  them.";
    Finding { kind: Kind::InVain, lost, said, advice }
}
