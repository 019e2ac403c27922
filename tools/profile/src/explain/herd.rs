//! A thundering herd: threads that are woken together all want one lock, and queue at it.
//!
//! Evidence: a thread's wait at a condition variable ends, and within 50 µs it begins to wait for a
//! lock; at least four threads do so after waits at the same condition variable that the same
//! thread ended at the same instant, or, where the waker is not known, within the same 10 ms. 50 µs
//! is the time of a wake-up or several: a thread that has done something else in between is not
//! counted. It happens three times or more: once is how a program starts its threads.
//!
//! A recording does not tell a broadcast from signals in quick succession: a wait is taken to end
//! by the last one. Threads that are woken by either queue, and the text says so.
//!
//! The drop-in's broadcast moves its waiters to the mutex's queue, so that they sleep once and not
//! twice. They queue all the same: the recorder ends their wait for the condition variable at the
//! signal, and the rest is a wait for the mutex.

use super::sums::{Bounded, Costs, Few, Recent, Sums, Top, grow};
use super::{Detector, Finding, Kind, Line, Run, count};
use crate::text::time;
use std::collections::BTreeMap;
use waitword_record::format::{Ended, Object, Wait};

/// How soon after its wake-up a thread wants the lock, in nanoseconds.
const SOON: u64 = 50_000;
/// Wake-ups by an unknown thread that are so close together may be one, in nanoseconds.
const TOGETHER: u64 = 10_000_000;
/// How many threads are a herd.
const THREADS: usize = 4;
/// How often they have to be woken together.
const OFTEN: u64 = 3;

#[derive(Debug, Default)]
pub(super) struct Herd {
    /// The last wait of each thread at a condition variable.
    woken: Bounded<u32, Woken>,
    bursts: Recent<Burst, Sums>,
    /// By condition variable and lock: the bursts that are older.
    before: Bounded<(u64, u64), Bursts>,
}

#[derive(Debug, Default)]
struct Woken {
    condvar: u64,
    waker: u32,
    ended: u64,
}

impl Costs for Woken {
    fn cost(&self) -> u64 {
        self.ended
    }
}

impl Costs for Bursts {
    fn cost(&self) -> u64 {
        self.lost
    }
}

/// What waits of one burst have in common, and the instant or the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Burst {
    condvar: u64,
    lock: u64,
    waker: u32,
}

impl Detector for Herd {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object == Object::Condvar {
            let is_woken = [Ended::Got, Ended::HandedOver].map(|it| it as u8).contains(&wait.ended);
            let ended = if is_woken { wait.began.saturating_add(wait.took) } else { 0 };
            let woken = Woken { condvar: wait.address, waker: wait.waker, ended };
            *self.woken.of(thread) = woken;
        } else if object.is_lock()
            && let Some(woken) = self.woken.get(&thread)
            && woken.ended != 0
            && wait.began.checked_sub(woken.ended).is_some_and(|gap| gap <= SOON)
        {
            let Woken { condvar, waker, ended } = *woken;
            // The instant, or the beginning of the interval.
            let when = if waker == 0 { ended - ended % TOGETHER } else { ended };
            let (before, burst) = (&mut self.before, Burst { condvar, lock: wait.address, waker });
            let sums = self.bursts.of(when, burst, |burst, sums| {
                before.of((burst.condvar, burst.lock)).add(sums);
            });
            sums.add(thread, wait);
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let mut herds: BTreeMap<(u64, u64), Bursts> =
            self.before.iter().map(|(objects, before)| (*objects, before.clone())).collect();
        for (burst, sums) in self.bursts.iter() {
            herds.entry((burst.condvar, burst.lock)).or_default().add(sums);
        }
        let found = herds
            .iter()
            .filter(|(_, herd)| herd.number >= OFTEN && run.matters(herd.lost, herd.waits));
        found.map(|((condvar, lock), herd)| herd.finding(*condvar, *lock)).collect()
    }
}

/// The bursts at the same two objects.
#[derive(Clone, Debug, Default)]
struct Bursts {
    number: u64,
    waits: u64,
    lost: u64,
    threads: Few<u32>,
    waiters: Top<u32>,
}

impl Bursts {
    /// Adds a burst, if it is a herd.
    fn add(&mut self, sums: &Sums) {
        if sums.threads.len() < THREADS {
            return;
        }
        self.number += 1;
        grow(&mut self.waits, sums.waits);
        grow(&mut self.lost, sums.lost);
        sums.threads.iter().for_each(|thread| self.threads.add(*thread));
        self.waiters.add(sums.worst().0, sums.lost);
    }

    fn finding(&self, condvar: u64, lock: u64) -> Finding {
        let said = vec![
            Line::at(
                format!(
                    "{} for lock {lock:#x} began just after a wake-up at condition variable \
                     {condvar:#x}, mostly at",
                    count(self.waits, "wait"),
                ),
                self.waiters.first().unwrap_or(0),
            ),
            Line::new(format!(
                "{} were woken together, {}, {:.0} at a time, by a broadcast or by signals in \
                 quick succession, and queued at the lock for {} together.",
                self.threads.shown("thread"),
                count(self.number, "time"),
                self.waits as f64 / self.number.max(1) as f64,
                time(self.lost),
            )),
        ];
        let advice = "If it is a broadcast, wake only as many threads as can go on: \
                      pthread_cond_signal, once for each item. If these are signals, fewer \
                      threads that take several items each meet less often. If all must be \
                      woken, let them do without the lock.";
        Finding { kind: Kind::Herd, lost: self.lost, said, advice }
    }
}
