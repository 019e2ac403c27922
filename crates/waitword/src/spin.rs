//! How long a waiter stays awake before it sleeps.
//!
//! To sleep and be woken takes 60 µs where the CPU has become idle; for a shorter wait it is better
//! to stay awake. So the default is 60 µs at most. The environment variable `WAITWORD_SPIN_NS` sets
//! it at first use. Within this limit, a waiter goes by what paid off at the same lock, or in its
//! last sleeps. After its first looks it yields its CPU to other threads of the process. With one
//! CPU it sleeps at once.

use crate::park;
use core::time::Duration;

/// How long a waiter stays awake, at most.
pub fn budget() -> Duration {
    park::budget()
}

/// Sets how long a waiter stays awake at most, from the next wait on. Zero means to sleep at once.
/// More than a second counts as a second.
pub fn set_budget(budget: Duration) {
    park::set_budget(budget);
}
