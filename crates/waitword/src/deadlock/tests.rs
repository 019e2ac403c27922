use super::graph::{Graph, Link};
use crate::RawMutex;
use std::sync::Barrier;
use std::thread;
use waitword_testkit::{until, watch};

#[test]
fn a_change_since_the_first_look_is_no_deadlock() {
    let _watchdog = watch();
    let (a, b, both) = (&RawMutex::new(), &RawMutex::new(), &Barrier::new(2));
    thread::scope(|scope| {
        for (first, second) in [(a, b), (b, a)] {
            scope.spawn(move || {
                first.lock();
                both.wait();
                second.lock();
                // SAFETY: locked just above. The first lock is left to the main thread.
                unsafe { second.unlock() };
            });
        }
        let graph = loop {
            let graph = Graph::read();
            if !graph.deadlocks().is_empty() {
                break graph;
            }
            thread::yield_now();
        };
        let found = graph.deadlocks();
        assert_eq!((found.len(), found[0].len()), (1, 2));
        assert!(found[0].iter().all(Link::stands));
        // SAFETY: it is locked, by a thread that leaves the unlock to this one.
        unsafe { a.unlock() };
        until(|| !found[0].iter().all(Link::stands));
        // SAFETY: as for `a`.
        unsafe { b.unlock() };
    });
}
