//! A semaphore with some permits, which limits how many threads may be inside.

use crate::any::cell::Load;
use crate::any::crowd::{self, Job, Outcome};
use crate::harness::{Failure, check};
use crate::locks::semaphore::BenchSemaphore;
use crate::locks::{BenchCondvar, BenchMutex};
use core::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The semaphore that users of a library without one build from its mutex and condition variable.
#[repr(C, align(128))]
pub(in crate::any) struct Made<C: BenchCondvar> {
    mutex: C::Mutex,
    some: C,
    value: UnsafeCell<u32>,
}

// SAFETY: only the mutex's holder uses the value.
unsafe impl<C: BenchCondvar> Sync for Made<C> {}

impl<C: BenchCondvar> BenchSemaphore for Made<C> {
    const NAME: &'static str = C::NAME;

    fn new(value: u32) -> Self {
        Self { mutex: C::Mutex::new(), some: C::new(), value: UnsafeCell::new(value) }
    }

    fn wait(&self) {
        self.mutex.lock();
        // SAFETY: the mutex is held, every waiter waits with this mutex, and the semaphore does not
        // move while it is in use.
        unsafe {
            while *self.value.get() == 0 {
                self.some.wait(&self.mutex);
            }
            *self.value.get() -= 1;
            self.mutex.unlock();
        }
    }

    fn post(&self) {
        self.mutex.lock();
        // SAFETY: as above.
        unsafe {
            *self.value.get() += 1;
            self.mutex.unlock();
        }
        self.some.signal();
    }
}

pub(in crate::any) fn run<S: BenchSemaphore>(job: Job<'_>) -> Result<Outcome, Failure> {
    let Load::Pool { permits } = job.cell.load else {
        return Err(Failure::new("not a cell of this family"));
    };
    let semaphore = Box::new(S::new(permits));
    let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let outcome = crowd::run(job, |member| {
        let mut seen = 0;
        while !member.is_over() {
            member.wait(|| semaphore.wait());
            seen = seen.max(inside.fetch_add(1, Relaxed) + 1);
            member.work_inside();
            inside.fetch_sub(1, Relaxed);
            semaphore.post();
            member.work_outside();
        }
        most.fetch_max(seen, Relaxed);
    });
    let most = most.into_inner();
    check(most <= permits, || {
        format!("{most} threads were inside at once, with {permits} permits")
    })?;
    Ok(outcome)
}
