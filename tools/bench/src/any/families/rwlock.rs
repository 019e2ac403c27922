//! Read or write, then work. A writer writes two numbers; a reader must never see only one of them.

use super::Tally;
use crate::any::cell::Load;
use crate::any::crowd::{self, Job, Outcome};
use crate::any::draw::rng_of;
use crate::harness::{Failure, check};
use crate::locks::BenchRwLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TABLE: usize = 1 << 10;

#[repr(C, align(128))]
struct Guarded<L> {
    lock: L,
    first: Tally,
    second: Tally,
}

pub(in crate::any) fn run<L: BenchRwLock>(job: Job<'_>) -> Result<Outcome, Failure> {
    let Load::RwLock { writes, dedicated } = job.cell.load else {
        return Err(Failure::new("not a cell of this family"));
    };
    let guarded =
        Box::new(Guarded { lock: L::new(), first: Tally::default(), second: Tally::default() });
    let (written, torn) = (AtomicU64::new(0), AtomicU64::new(0));
    // At least one thread writes and at least one reads.
    let writers = (f64::from(job.cell.threads) * writes).round() as usize;
    let writers = writers.clamp(1, job.cell.threads as usize - 1);
    let outcome = crowd::run(job, |member| {
        let mut rng = rng_of(job.cell.id, 1000 + member.number as u64);
        let does_write: Vec<bool> = (0..TABLE)
            .map(|_| match dedicated {
                true => member.number < writers,
                false => rng.f64() < writes,
            })
            .collect();
        let (mut own, mut seen_torn) = (0, 0);
        for &write in does_write.iter().cycle() {
            if member.is_over() {
                break;
            }
            if write {
                member.wait(|| guarded.lock.write_lock());
                guarded.first.count();
                member.work_inside();
                guarded.second.count();
                own += 1;
                // SAFETY: locked above; the lock is boxed and does not move.
                unsafe { guarded.lock.write_unlock() };
            } else {
                member.wait(|| guarded.lock.read_lock());
                let first = guarded.first.so_far();
                member.work_inside();
                seen_torn += u64::from(first != guarded.second.so_far());
                // SAFETY: locked above; the lock does not move; this thread holds no other read
                // lock on it.
                unsafe { guarded.lock.read_unlock() };
            }
            member.work_outside();
        }
        written.fetch_add(own, Relaxed);
        torn.fetch_add(seen_torn, Relaxed);
    });
    let (written, torn) = (written.into_inner(), torn.into_inner());
    check(torn == 0, || format!("{torn} readers saw half of a write"))?;
    let counted = guarded.first.so_far();
    check(counted == written, || {
        format!("{written} writes were done, but {counted} were counted under the lock")
    })?;
    Ok(outcome)
}
