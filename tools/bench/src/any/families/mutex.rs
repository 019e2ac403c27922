//! Lock, work, unlock, work.

use super::{Tally, check_counted};
use crate::any::crowd::{self, Job, Outcome};
use crate::harness::Failure;
use crate::locks::BenchMutex;

#[repr(C, align(128))]
struct Guarded<M> {
    lock: M,
    tally: Tally,
}

pub(in crate::any) fn run<M: BenchMutex>(job: Job<'_>) -> Result<Outcome, Failure> {
    let guarded = Box::new(Guarded { lock: M::new(), tally: Tally::default() });
    let outcome = crowd::run(job, |member| {
        while !member.is_over() {
            member.wait(|| guarded.lock.lock());
            guarded.tally.count();
            member.work_inside();
            // SAFETY: locked above; the lock is boxed and does not move.
            unsafe { guarded.lock.unlock() };
            member.work_outside();
        }
    });
    check_counted(guarded.tally.so_far(), &outcome)?;
    Ok(outcome)
}
