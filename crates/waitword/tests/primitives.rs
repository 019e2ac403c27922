//! Semaphores, barriers, once, events, latches, and wait and notify on the standard atomics: what
//! they promise, alone, with many threads, with signals and forks, and between processes.

mod common;
mod support;

#[path = "primitives/atomic_wait.rs"]
mod atomic_wait;
#[path = "primitives/barrier.rs"]
mod barrier;
#[path = "primitives/between_processes.rs"]
mod between_processes;
#[path = "primitives/events.rs"]
mod events;
#[path = "primitives/forks.rs"]
mod forks;
#[path = "primitives/freed.rs"]
mod freed;
#[path = "primitives/historic.rs"]
mod historic;
#[path = "primitives/once.rs"]
mod once;
#[path = "primitives/semaphore.rs"]
mod semaphore;
#[path = "primitives/signals.rs"]
mod signals;

use std::time::Duration;
use support::Answer;
use waitword::{Deadline, Scope};

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
