//! Priority inversion: a thread waits for one of lower priority, which gets no CPU.
//!
//! Evidence: at waits for locks whose holder had a lower priority than the waiter, the holder was
//! runnable without a CPU for at least a third of the time. Then other threads ran in place of the
//! one that the more urgent thread needed. How long a thread with a priority is kept waiting no
//! longer depends on its priority. (The priorities are those that the threads had last; a lock
//! that lends the holder the waiter's priority shows no such waits, as the holder then has a CPU.)

use super::sums::{Bounded, Few, Sums, grow};
use super::{Detector, Finding, Kind, Line, Run, capital, count};
use crate::text::time;
use waitword_record::format::{Object, Priority, Wait};

/// By the waiter's and the holder's thread.
#[derive(Debug, Default)]
pub(super) struct Inversion(Bounded<(u32, u32), Sums>);

impl Detector for Inversion {
    fn add(&mut self, thread: u32, object: Object, wait: &Wait) {
        if object.is_lock() && wait.holder != 0 {
            self.0.of((thread, wait.holder)).add(thread, wait);
        }
    }

    fn findings(&self, run: &Run<'_>) -> Vec<Finding> {
        let of = |thread: &u32| run.priorities.get(thread).copied().unwrap_or(Priority::UNKNOWN);
        let inverted: Vec<((u32, u32), &Sums)> = self
            .0
            .iter()
            .filter(|((waiter, holder), sums)| {
                of(waiter).is_before(of(holder))
                    && run.is_certain(sums.preempted, sums.lost, 1.0 / 3.0)
            })
            .map(|(threads, sums)| (*threads, sums))
            .collect();
        let (mut preempted, mut lost, mut waits) = (0, 0, 0);
        let (mut waiters, mut holders) = (Few::default(), Few::default());
        for ((waiter, holder), sums) in &inverted {
            grow(&mut preempted, sums.preempted);
            grow(&mut lost, sums.lost);
            grow(&mut waits, sums.waits);
            waiters.add(*waiter);
            holders.add(*holder);
        }
        let worst = inverted.iter().max_by_key(|(_, sums)| sums.preempted);
        let Some(((waiter, holder), sums)) = worst.filter(|_| run.matters(preempted, waits)) else {
            return Vec::new();
        };
        let percent = 100.0 * preempted as f64 / lost.max(1) as f64;
        let (at, released) = sums.worst();
        let mut said = vec![
            Line::new(format!(
                "In {} of {}, {} together, the holder was one of {} of lower priority. It was \
                 runnable without a CPU for {percent:.0} % of the time.",
                count(waits, "wait"),
                waiters.shown("thread"),
                time(lost),
                holders.shown("thread"),
            )),
            Line::at(
                capital(&format!("{}, of {}, waited at", run.thread(*waiter), of(waiter))),
                at,
            ),
        ];
        if released != 0 {
            let text = format!("{}, of {}, released it at", run.thread(*holder), of(holder));
            said.push(Line::at(capital(&text), released));
        }
        let advice = "Use a mutex with priority inheritance (PTHREAD_PRIO_INHERIT), which lends \
                      the holder the waiter's priority, or give all threads that share the lock \
                      the same priority. Niceness is not inherited.";
        vec![Finding { kind: Kind::Inversion, lost: preempted, said, advice }]
    }
}
