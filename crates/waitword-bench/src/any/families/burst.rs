//! All are asleep for a while, and then want the mutex at once.
//!
//! A burst that has begun comes to its end, even after the window: operations and time are those of
//! the same whole bursts.

use super::{Job, Tally, check_counted};
use crate::any::cell::Load;
use crate::any::crowd::{self, Outcome};
use crate::harness::Failure;
use crate::locks::BenchMutex;
use crate::ops::{Futexes as _, Kernel, Waited};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The kernel's own futex: in nobody's way, whichever lock is measured.
const GATE: Kernel<false> = Kernel;

#[repr(C, align(128))]
struct Guarded<M> {
    lock: M,
    tally: Tally,
}

/// Where all sleep between two bursts.
#[derive(Default)]
struct Gate {
    /// Goes up by one with each burst, and when there is no other.
    burst: AtomicU32,
    is_closed: AtomicBool,
    /// Who has not done its part of this burst yet.
    busy: AtomicU32,
    /// Nanoseconds from a burst's begin to its end, all of them together.
    took: AtomicU64,
    began: Mutex<Option<Instant>>,
}

impl Gate {
    /// Whether there is another burst after this one.
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

    /// A thread has done its part. Whether it was the last.
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
    let guarded = Box::new(Guarded {
        lock: M::new(),
        tally: Tally::default(),
    });
    let gate = Gate::default();
    let threads = job.cell.threads;
    gate.begin(threads);
    let mut outcome = crowd::run(
        job.cell,
        job.time,
        job.is_traced,
        |member| {
            for burst in 0.. {
                for _ in 0..sections {
                    member.wait(|| guarded.lock.lock());
                    guarded.tally.count();
                    member.work_inside();
                    // SAFETY: locked above; boxed, it does not move.
                    unsafe { guarded.lock.unlock() };
                    member.work_outside();
                }
                // The last one of a burst begins the next.
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
        },
        || (),
    );
    check_counted(guarded.tally.so_far(), &outcome)?;
    // What lies between two bursts is the same for all.
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
        let mut cell = draw::cell(CellId {
            family: Family::Burst,
            seed: 1,
            number: 0,
            beside: Beside::Quiet,
        });
        cell.threads = 3;
        cell.load = Load::Burst {
            sections: 20_000,
            idle: 1.0,
        };
        let outcome = run::<Std>(Job {
            cell: &cell,
            time: Duration::from_nanos(1),
            is_traced: false,
        })
        .unwrap();
        assert_eq!(outcome.operations, [20_000; 3]);
        assert!(outcome.seconds > 0.0, "{}", outcome.seconds);
    }
}
