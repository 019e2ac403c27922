//! Waits with the same stack, for the same kind of object, kept by the same stack: a site.

use crate::read::Process;
use std::collections::HashMap;
use waitword_record::format::{Ended, Object};

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

/// The waits of a site.
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
    /// The part of `nanoseconds` during which the holder ran, ...
    pub running: u64,
    /// ... was runnable, but had no CPU, ...
    pub preempted: u64,
    /// ... and slept. The rest is unknown.
    pub asleep: u64,
    /// The number of different objects.
    pub objects: usize,
    /// The number of different threads that waited.
    pub threads: usize,
}

/// The sites of a process, those that lost the most time first.
pub fn sites(process: &Process) -> Vec<(Key, Site)> {
    #[derive(Default)]
    struct Growing {
        site: Site,
        objects: std::collections::HashSet<u64>,
        threads: std::collections::HashSet<u32>,
    }
    let mut all: HashMap<Key, Growing> = HashMap::new();
    for (thread, wait) in &process.waits {
        let Some(object) = wait.object() else {
            continue;
        };
        let key = Key { object, stack: wait.stack, holder_stack: wait.holder_stack };
        let growing = all.entry(key).or_default();
        let weight = 1_u64 << wait.weight_shift.min(32);
        let site = &mut growing.site;
        site.count = site.count.saturating_add(weight);
        site.nanoseconds = site.nanoseconds.saturating_add(wait.took.saturating_mul(weight));
        site.longest = site.longest.max(wait.took);
        let part = |thousandths: u16| {
            let took = u128::from(wait.took) * u128::from(weight);
            u64::try_from(took * u128::from(thousandths.min(1000)) / 1000).unwrap_or(u64::MAX)
        };
        site.running = site.running.saturating_add(part(wait.running));
        site.preempted = site.preempted.saturating_add(part(wait.preempted));
        site.asleep = site.asleep.saturating_add(part(wait.asleep));
        if wait.ended == Ended::TimedOut as u8 {
            site.timed_out = site.timed_out.saturating_add(weight);
        }
        growing.objects.insert(wait.address);
        growing.threads.insert(*thread);
    }
    let mut all: Vec<(Key, Site)> = all
        .into_iter()
        .map(|(key, Growing { site, objects, threads })| {
            (key, Site { objects: objects.len(), threads: threads.len(), ..site })
        })
        .collect();
    all.sort_by_key(|(key, site)| (core::cmp::Reverse(site.nanoseconds), key.stack));
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use waitword_record::format::{Tag, Wait};

    fn wait(object: Object, took: u64, stack: u32, holder_stack: u32) -> Wait {
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
        let all = sites(&process);
        assert_eq!((all[1].1.count, all[1].1.nanoseconds), (9, 1900));
        // A number that is none of ours is passed over.
        process.waits[0].1.object = 99;
        assert_eq!(sites(&process)[1].1.count, 1);
    }
}
