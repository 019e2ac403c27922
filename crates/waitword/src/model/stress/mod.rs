//! Scenes of five to eight threads with many operations each, which loom cannot explore: shuttle takes schedules of them by chance.
//!
//! What each thread does is chance as well, and follows from the same seed (`checker/with_shuttle.rs`). A lost wake-up shows as a
//! deadlock, a livelock as too many steps; and when a scene is over nobody may be queued or counted.
//!
//! Run: `scripts/shuttle stress`

mod condvar;
mod futex;
mod mutex;
mod robust;
mod rwlock;
mod small;

use super::*;
use crate::checker::check_schedules;
use shuttle::rand::{Rng, thread_rng};

/// Schedules of each kind for one scene.
const SCHEDULES: usize = 150;

/// Changes of priorities in a schedule: most errors need one or two (PCT's "depth"), those with moves and growth in them some more.
const CHANGES: usize = 4;

fn stress(scene: impl Fn() + Send + Sync + 'static) {
    check_schedules(SCHEDULES, CHANGES, scene);
}

/// One of 0, 1, ..., `sides` - 1.
fn dice(sides: usize) -> usize {
    thread_rng().gen_range(0..sides)
}

fn one_of<T: Copy>(choices: &[T]) -> T {
    choices[dice(choices.len())]
}

fn join<R: 'static>(threads: impl IntoIterator<Item = thread::JoinHandle<R>>) -> Vec<R> {
    let results = threads.into_iter().map(|thread| thread.join().unwrap());
    results.collect()
}
