//! Scenes of five to eight threads with many operations each, too large for loom to explore:
//! shuttle runs random schedules of them.
//!
//! What each thread does is also random, from the same seed (`checker/with_shuttle.rs`). A lost
//! wake-up shows as a deadlock, a livelock as too many steps. When a scene is over, no thread may
//! be queued or counted.
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

/// Schedules of each kind per scene.
const SCHEDULES: usize = 150;

/// Priority changes in a schedule: most errors need one or two (PCT's "depth"), those that involve
/// moves and growth a few more.
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
