//! Semaphores, barriers, once, events, latches, and wait and notify on the standard atomics: what
//! they promise, alone, with many threads, with signals and forks, and between processes.

mod atomic_wait;
mod barrier;
mod between_processes;
mod events;
mod forks;
mod freed;
mod historic;
mod once;
mod semaphore;
mod signals;

use std::time::Duration;
use waitword::{Deadline, Scope};
use waitword_testkit::Answer;

const SCOPES: [Scope; 2] = [Scope::Private, Scope::Shared];

/// Longer than any test takes.
fn far() -> Deadline {
    Deadline::after(Duration::from_secs(3600))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(2))
}

/// Entries in our table of a waiting thread.
fn entries(scope: Scope) -> usize {
    usize::from(scope == Scope::Private)
}

/// The answer of a crew's thread that returned a yes or a no.
fn answer(yes: bool) -> Answer {
    Ok(usize::from(yes))
}
