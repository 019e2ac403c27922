//! Waits with the same stack, for the same kind of object, kept by the same stack: a site.

use crate::read::{Fold, Process};
use crate::top::Top;
use std::collections::{HashMap, HashSet};
use waitword_record::format::{Ended, Object, Wait};

/// Further sites are added to the one with unknown stacks.
const MOST_SITES: usize = 1 << 16;
/// How many different objects and threads all sites together tell apart.
const MOST_MEMBERS: usize = 1 << 22;

/// What tells sites apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// What was waited for.
    pub object: Object,
    /// The waiter's stack.
    pub stack: u32,
    /// The stack of the thread that kept it; 0: unknown.
    pub holder_stack: u32,
}

/// What some waits add up to: those of a site, or those for a lock. Each counts as many times as it
/// stands for because of sampling, except in `longest`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// How many, also those that were not recorded because of sampling.
    pub count: u64,
    /// How long they took together, in nanoseconds.
    pub nanoseconds: u64,
    /// The longest of those that were recorded.
    pub longest: u64,
    /// How many ended by a deadline.
    pub timed_out: u64,
    /// How many were interrupted, cancelled, or in error.
    pub broken: u64,
    /// How many ended because the object was kept for the waiter.
    pub handed_over: u64,
    /// How often a waiter was woken and had to sleep again.
    pub in_vain: u64,
    /// How often other threads released the lock meanwhile.
    pub passed: u64,
    /// The part of `nanoseconds` during which the holder ran, ...
    pub running: u64,
    /// ... was runnable, but had no CPU, ...
    pub preempted: u64,
    /// ... and slept. The rest is unknown.
    pub asleep: u64,
    /// The system calls in which the holder slept (the number plus one), by `asleep`.
    pub calls: Top<u16>,
    /// The other locks that the holder waited for, by `nanoseconds`.
    pub next: Top<u64>,
    /// The number of different objects (in large recordings: at least).
    pub objects: usize,
    /// The number of different threads that waited (in large recordings: at least).
    pub threads: usize,
}

impl Site {
    /// Adds the waits of another site, but not its objects and threads.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (to, what) in [
            (&mut self.count, other.count),
            (&mut self.nanoseconds, other.nanoseconds),
            (&mut self.timed_out, other.timed_out),
            (&mut self.broken, other.broken),
            (&mut self.handed_over, other.handed_over),
            (&mut self.in_vain, other.in_vain),
            (&mut self.passed, other.passed),
            (&mut self.running, other.running),
            (&mut self.preempted, other.preempted),
            (&mut self.asleep, other.asleep),
        ] {
            *to = to.saturating_add(what);
        }
        self.longest = self.longest.max(other.longest);
        self.calls.merge(&other.calls);
        self.next.merge(&other.next);
    }

    /// Adds a wait, but not its object and thread.
    pub(crate) fn add(&mut self, wait: &Wait) {
        let weight = weight(wait);
        let took = wait.took.saturating_mul(weight);
        let add = |to: &mut u64, what: u64| *to = to.saturating_add(what);
        let part = |thousandths: u16| {
            let part = u128::from(took) * u128::from(thousandths.min(1000)) / 1000;
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let asleep = part(wait.asleep);
        add(&mut self.count, weight);
        add(&mut self.nanoseconds, took);
        self.longest = self.longest.max(wait.took);
        add(&mut self.running, part(wait.running));
        add(&mut self.preempted, part(wait.preempted));
        add(&mut self.asleep, asleep);
        add(&mut self.in_vain, weight.saturating_mul(wait.in_vain.into()));
        add(&mut self.passed, weight.saturating_mul(wait.passed.into()));
        if let Some(counter) = match wait.ended {
            ended if ended == Ended::TimedOut as u8 => Some(&mut self.timed_out),
            ended if ended == Ended::Broken as u8 => Some(&mut self.broken),
            ended if ended == Ended::HandedOver as u8 => Some(&mut self.handed_over),
            _ => None,
        } {
            add(counter, weight);
        }
        if wait.call != 0 {
            self.calls.add(wait.call, asleep);
        }
        if wait.next != 0 {
            self.next.add(wait.next, took);
        }
    }
}

/// How many waits this one stands for.
pub(crate) fn weight(wait: &Wait) -> u64 {
    1 << wait.weight_shift.min(32)
}

/// Sites in the making.
#[derive(Debug, Default)]
pub struct Sites {
    all: HashMap<Key, Growing>,
    members: usize,
}

#[derive(Debug, Default)]
struct Growing {
    site: Site,
    objects: HashSet<u64>,
    threads: HashSet<u32>,
}

impl Fold for Sites {
    fn add(&mut self, thread: u32, wait: &Wait) {
        let Some(object) = wait.object() else {
            return;
        };
        let mut key = Key { object, stack: wait.stack, holder_stack: wait.holder_stack };
        if self.all.len() >= MOST_SITES && !self.all.contains_key(&key) {
            key = Key { stack: 0, holder_stack: 0, ..key };
        }
        let growing = self.all.entry(key).or_default();
        growing.site.add(wait);
        if self.members < MOST_MEMBERS {
            self.members += usize::from(growing.objects.insert(wait.address));
            self.members += usize::from(growing.threads.insert(thread));
        }
    }
}

impl Sites {
    /// Those that lost the most time first.
    pub fn finish(self) -> Vec<(Key, Site)> {
        let finished = |Growing { site, objects, threads }| Site {
            objects: objects.len(),
            threads: threads.len(),
            ..site
        };
        let mut all: Vec<(Key, Site)> =
            self.all.into_iter().map(|(key, growing)| (key, finished(growing))).collect();
        all.sort_by_key(|(key, site)| {
            (core::cmp::Reverse(site.nanoseconds), key.stack, key.holder_stack)
        });
        all
    }
}

/// The sites of a process that was [read](crate::read::read) with its waits, those that lost the
/// most time first.
pub fn sites(process: &Process) -> Vec<(Key, Site)> {
    let mut sites = Sites::default();
    for (thread, wait) in &process.waits {
        sites.add(*thread, wait);
    }
    sites.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use waitword_record::format::Tag;

    pub(crate) fn wait(object: Object, took: u64, stack: u32, holder_stack: u32) -> Wait {
        Wait {
            tag: Tag::Wait as u8,
            object: object as u8,
            ended: 0,
            weight_shift: 0,
            stack,
            began: 1000,
            took,
            address: 0x7000,
            holder: 0,
            holder_stack,
            waker: 0,
            in_vain: 0,
            passed: 0,
            running: 100,
            preempted: 0,
            asleep: 900,
            call: 0,
            next: 0,
        }
    }

    /// Three waits for locks at two sites, and one for work.
    pub(crate) fn process() -> Process {
        let waits = vec![
            (1, wait(Object::Mutex, 200, 1, 2)),
            (2, wait(Object::Mutex, 300, 1, 2)),
            (1, wait(Object::Write, 100, 1, 0)),
            (1, wait(Object::Condvar, 5000, 1, 0)),
        ];
        let mut process = Process { waits, ..Process::default() };
        process.stacks.insert(1, vec![0x10, 0x20]);
        process.stacks.insert(2, vec![0x30]);
        process
    }

    #[test]
    fn waits_are_summed_by_site_and_the_costliest_comes_first() {
        let all = sites(&process());
        let shown: Vec<_> =
            all.iter().map(|(key, site)| (key.object, site.count, site.nanoseconds)).collect();
        assert_eq!(
            shown,
            [(Object::Condvar, 1, 5000), (Object::Mutex, 2, 500), (Object::Write, 1, 100)]
        );
        let (_, mutex) = &all[1];
        assert_eq!((mutex.longest, mutex.threads, mutex.objects), (300, 2, 1));
        assert_eq!((mutex.running, mutex.preempted, mutex.asleep), (50, 0, 450));
    }

    #[test]
    fn a_sampled_wait_counts_as_many_as_it_stands_for() {
        let mut process = process();
        process.waits[0].1.weight_shift = 3;
        process.waits[0].1.in_vain = 2;
        process.waits[0].1.ended = Ended::HandedOver as u8;
        process.waits[1].1.call = 231;
        process.waits[1].1.next = 0x8000;
        let site = &sites(&process)[1].1;
        assert_eq!((site.count, site.nanoseconds, site.in_vain), (9, 1900, 16));
        assert_eq!((site.handed_over, site.timed_out), (8, 0));
        assert_eq!(site.calls.first(), Some((231, 270)));
        assert_eq!(site.next.first(), Some((0x8000, 300)));
        // A number that is none of ours is passed over.
        process.waits[0].1.object = 99;
        assert_eq!(sites(&process)[1].1.count, 1);
    }

    #[test]
    fn the_number_of_sites_is_limited_and_no_time_is_lost() {
        let mut sites = Sites::default();
        let more = MOST_SITES as u32 + 10;
        for stack in 1..=more {
            sites.add(1, &wait(Object::Mutex, 10, stack, 0));
        }
        let all = sites.finish();
        assert_eq!(all.len(), MOST_SITES + 1);
        assert_eq!((all[0].0.stack, all[0].1.count), (0, 10));
        assert_eq!(all.iter().map(|(_, site)| site.nanoseconds).sum::<u64>(), 10 * u64::from(more));
    }
}
