//! The types that Rust's std and parking_lot also have: once cells, the fair mutex, permits,
//! options; constants of every lock; and which traits each type has, compared with theirs.

mod bounds;
mod fair_mutex;
mod lazy_lock;
mod once_lock;
mod permits;
mod statics;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::table::{self, Waiter};
use waitword_testkit::{Answer, Crew};

/// How many threads wait in the table for a word of this object.
fn waiters_in<T>(object: &T) -> usize {
    let mut waiters = vec![Waiter::default(); 4096];
    let found = table::snapshot(&mut waiters).waiters;
    assert!(found <= waiters.len());
    let begin = (&raw const *object).addr();
    let words = begin..begin + size_of::<T>();
    let is_in = |waiter: &&Waiter| words.contains(&waiter.address);
    waiters[..found].iter().filter(is_in).count()
}

/// The answers of `count` threads of the crew, as soon as all have answered.
fn all_answers(crew: &Crew, count: usize) -> Vec<(usize, Answer)> {
    let mut answers = Vec::new();
    while answers.len() < count {
        answers.extend(crew.settle());
    }
    answers.sort();
    answers
}

/// Whether the call was left by unwinding.
fn unwinds(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// A panic without a message.
fn fail() -> ! {
    resume_unwind(Box::new(()))
}

/// Counts how often a value is dropped, together with its clones.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn count(&self) -> usize {
        self.0.load(SeqCst)
    }

    fn counted(&self) -> Counted {
        Counted(self.clone())
    }
}

struct Counted(Drops);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, SeqCst);
    }
}
