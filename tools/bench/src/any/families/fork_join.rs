//! Rounds between barriers: each thread does its part, and one of them does the work between two
//! rounds.

use crate::any::crowd::{self, Job, Outcome};
use crate::harness::{Failure, check};
use crate::locks::barrier::BenchBarrier;
use crate::locks::{BenchCondvar, BenchMutex};
use core::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The barrier that users of a library without one build from its mutex and condition variable.
#[repr(C, align(128))]
pub(in crate::any) struct Made<C: BenchCondvar> {
    mutex: C::Mutex,
    all: C,
    state: UnsafeCell<State>,
    threads: u32,
}

struct State {
    here: u32,
    round: u64,
}

// SAFETY: only the mutex's holder uses the state.
unsafe impl<C: BenchCondvar> Sync for Made<C> {}

impl<C: BenchCondvar> BenchBarrier for Made<C> {
    const NAME: &'static str = C::NAME;

    fn new(threads: u32) -> Self {
        Self {
            mutex: C::Mutex::new(),
            all: C::new(),
            state: UnsafeCell::new(State { here: 0, round: 0 }),
            threads,
        }
    }

    fn wait(&self) -> bool {
        self.mutex.lock();
        let state = self.state.get();
        // SAFETY: the mutex is held whenever the state is used, every waiter waits with this mutex,
        // and the barrier does not move while it is in use.
        unsafe {
            (*state).here += 1;
            let is_last = (*state).here == self.threads;
            if is_last {
                (*state).here = 0;
                (*state).round += 1;
                self.all.broadcast();
            } else {
                let round = (*state).round;
                loop {
                    self.all.wait(&self.mutex);
                    if (*state).round != round {
                        break;
                    }
                }
            }
            self.mutex.unlock();
            is_last
        }
    }
}

pub(in crate::any) fn run<B: BenchBarrier>(job: Job<'_>) -> Result<Outcome, Failure> {
    let barrier = Box::new(B::new(job.cell.threads));
    let (is_last_round, parts) = (AtomicBool::new(false), AtomicU64::new(0));
    let is_wrong = AtomicBool::new(false);
    let threads = u64::from(job.cell.threads);
    let outcome = crowd::run(job, |member| {
        for round in 1.. {
            member.work_inside();
            parts.fetch_add(1, Relaxed);
            if member.wait(|| barrier.wait()) {
                // All other threads wait at the barrier or are about to.
                if parts.load(Relaxed) != threads * round {
                    is_wrong.store(true, Relaxed);
                }
                member.work_outside();
                if member.is_over() {
                    is_last_round.store(true, Relaxed);
                }
            }
            member.wait(|| barrier.wait());
            if is_last_round.load(Relaxed) {
                break;
            }
        }
    });
    check(!is_wrong.into_inner(), || {
        "a barrier released a thread before all threads had arrived".to_owned()
    })?;
    Ok(outcome)
}
