//! I/O or sleep under a lock: threads wait because the holder sleeps.
//!
//! Evidence: at waits that one place of a program ends, the holder slept for at least half of the
//! time. Then most of what these threads lost would be gone if the holder slept elsewhere. A holder
//! that sleeps because it waits for another lock is a finding of its own (`chain.rs`).

use super::sums::{Bounded, Costs, Sums, Top, part};
use super::{Detector, Finding, Kind, Line, Run, count};
use crate::text::time;
use syscalls::Sysno;
use waitword_record::format::{Object, Wait};

/// The sites, by the holder's stack, or by the waiter's if the holder's is unknown.
#[derive(Debug, Default)]
pub(super) struct Asleep(Bounded<(u32, u32), Site>);

#[derive(Debug, Default)]
struct Site {
    sums: Sums,
    /// As they are recorded: the number plus one. Not every sleep is sampled.
    calls: Top<u16>,
}

impl Costs for Site {
    fn cost(&self) -> u64 {
        self.sums.cost()
    }
}

impl Detector for Asleep {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if !object.is_lock() || wait.next != 0 {
            return;
        }
        let waiter = if wait.holder_stack == 0 { wait.stack } else { 0 };
        let site = self.0.of((wait.holder_stack, waiter));
        site.sums.add(thread, wait);
        if wait.call != 0 {
            site.calls.add(wait.call, part(wait, wait.asleep));
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let found = self.0.iter().filter(|(_, site)| {
            let sums = &site.sums;
            run.is_certain(sums.asleep, sums.lost, 0.5) && run.matters(sums.asleep, sums.waits)
        });
        found.map(|(_, site)| finding(site)).collect()
    }
}

fn finding(site: &Site) -> Finding {
    let sums = &site.sums;
    let number = site.calls.first().map(|call| call - 1);
    let name = number.and_then(|number| Sysno::new(number.into())).map(|call| call.name());
    let (waiter, holder) = sums.worst();
    let percent = 100.0 * sums.asleep as f64 / sums.lost.max(1) as f64;
    let call = match (name, number) {
        (Some(name), _) => format!("in the system call {name}"),
        (None, Some(number)) => format!("in system call {number}"),
        (None, None) => "in a system call that is not known".to_owned(),
    };
    let waits_for_a_thread = name.is_some_and(|name| name.starts_with("futex"));
    let mut said = vec![
        Line::at(
            format!(
                "{} of {} for {}, the longest {}, mostly at",
                count(sums.waits, "wait"),
                sums.threads.shown("thread"),
                sums.locks.shown("lock"),
                time(sums.longest),
            ),
            waiter,
        ),
        Line::new(format!("For {percent:.0} % of that time the holder slept, {call}.")),
    ];
    if holder != 0 {
        said.push(Line::at("The holder released it at", holder));
    }
    let advice = match (waits_for_a_thread, name) {
        (true, _) => {
            "The holder waits for another thread (a condition variable, a semaphore, a raw futex) \
             with the lock held: release the lock first, or let it wait with this lock as the \
             condition variable's mutex."
        }
        (false, Some(name)) if name.contains("sleep") => {
            "Sleep after the unlock; to wait for an event, use a condition variable."
        }
        _ => {
            "Make the call before the lock or after the unlock: collect what it needs inside, or \
             hand it to a thread that does I/O without the lock."
        }
    };
    Finding { kind: Kind::Asleep, lost: sums.asleep, said, advice }
}
