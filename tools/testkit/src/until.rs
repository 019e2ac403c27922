//! Waits for a condition that another thread makes true. If none does, the watchdog ends the
//! process.

use std::time::Duration;
use waitword::table::{self, Waiter};

/// Waits until `condition` holds.
pub fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// How many waiters the table has for the word at this address.
pub fn waiters_at<A>(word: &A) -> usize {
    let mut waiters = vec![Waiter::default(); 8192];
    let snapshot = table::snapshot(&mut waiters);
    assert!(snapshot.waiters <= waiters.len());
    waiters.truncate(snapshot.waiters);
    let address = (&raw const *word).addr();
    waiters.iter().filter(|waiter| waiter.address == address).count()
}

/// Waits until the table has `count` waiters for this word.
pub fn until_waiting<A>(word: &A, count: usize) {
    until(|| waiters_at(word) == count);
}
