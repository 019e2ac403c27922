//! All threads sleep for a while and then want the mutex at once.
//!
//! A burst that has begun is completed even after the window ends, so the operations and the time
//! cover the same whole bursts.

use super::{Tally, check_counted};
use crate::any::cell::Load;
use crate::any::crowd::{self, Job, Outcome};
use crate::harness::Failure;
use crate::locks::BenchMutex;
use crate::ops::{Futexes as _, Kernel, Waited};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The kernel's own futex, so that the gate does not disturb the lock under test.
const GATE: Kernel<false> = Kernel;

#[repr(C, align(128))]
struct Guarded<M> {
    lock: M,
    tally: Tally,
}

/// Where all threads sleep between two bursts.
#[derive(Default)]
struct Gate {
    /// Incremented at the start of each burst, and when there will be no further one.
    burst: AtomicU32,
    is_closed: AtomicBool,
    /// Threads that have not yet finished their part of this burst.
    busy: AtomicU32,
    /// Total nanoseconds of all bursts, each from its start to its end.
    took: AtomicU64,
    began: Mutex<Option<Instant>>,
}

impl Gate {
    /// Waits for the next burst. Returns false if there is none.
    fn wait_for_next(&self, burst: u32) -> bool {
        while self.burst.load(SeqCst) == burst {
            let _: Waited = GATE.wait(&self.burst, burst.into());
        }
        !self.is_closed.load(SeqCst)
    }

    fn open(&self, threads: u32) {
        self.begin(threads);
        self.let_through();
    }

    fn close(&self) {
        self.is_closed.store(true, SeqCst);
        self.let_through();
    }

    fn let_through(&self) {
        self.burst.fetch_add(1, SeqCst);
        GATE.wake(&self.burst, usize::MAX);
    }

    fn begin(&self, threads: u32) {
        self.busy.store(threads, SeqCst);
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Records that a thread has finished its part. Returns whether it was the last.
    fn is_last(&self) -> bool {
        let is_last = self.busy.fetch_sub(1, SeqCst) == 1;
        if is_last {
            let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
            let took = began.take().map_or(0, |began| began.elapsed().as_nanos());
            self.took.fetch_add(took as u64, SeqCst);
        }
        is_last
    }
}

pub(in crate::any) fn run<M: BenchMutex>(job: Job<'_>) -> Result<Outcome, Failure> {
    let Load::Burst { sections, idle } = job.cell.load else {
        return Err(Failure::new("not a cell of this family"));
    };
    let idle = Duration::from_nanos((idle * 1e3) as u64);
    let guarded = Box::new(Guarded { lock: M::new(), tally: Tally::default() });
    let gate = Gate::default();
    let threads = job.cell.threads;
    gate.begin(threads);
    let mut outcome = crowd::run(job, |member| {
        for burst in 0.. {
            for _ in 0..sections {
                member.wait(|| guarded.lock.lock());
                guarded.tally.count();
                member.work_inside();
                // SAFETY: locked above; the lock is boxed and does not move.
                unsafe { guarded.lock.unlock() };
                member.work_outside();
            }
            // The last thread of a burst starts the next one.
            if gate.is_last() {
                std::thread::sleep(idle);
                if member.is_over() {
                    gate.close();
                } else {
                    gate.open(threads);
                }
            }
            if !gate.wait_for_next(burst) {
                break;
            }
        }
    });
    check_counted(guarded.tally.so_far(), &outcome)?;
    // The time between two bursts is the same for all contenders, so it is left out.
    outcome.seconds = gate.took.into_inner() as f64 / 1e9;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::cell::{Beside, CellId, Family};
    use crate::any::draw;
    use crate::locks::stdlib::Mutex as Std;

    #[test]
    fn a_burst_longer_than_the_window_is_counted_whole() {
        let mut cell =
            draw::cell(CellId { family: Family::Burst, seed: 1, number: 0, beside: Beside::Quiet });
        cell.threads = 3;
        cell.load = Load::Burst { sections: 20_000, idle: 1.0 };
        let outcome =
            run::<Std>(Job { cell: &cell, time: Duration::from_nanos(1), is_traced: false })
                .unwrap();
        assert_eq!(outcome.operations, [20_000; 3]);
        assert!(outcome.seconds > 0.0, "{}", outcome.seconds);
    }
}
