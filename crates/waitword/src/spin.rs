//! For how long a waiter stays awake before it sleeps.
//!
//! To sleep and to be woken takes 60 µs where the CPU has become idle; a waiter that is woken
//! sooner is better off awake. So the default is 60 µs at most, and the environment variable
//! `WAITWORD_SPIN_NS` sets it at first use. Within that a waiter goes by what was worth while at
//! the same lock, or in its last sleeps. After its first looks it yields its CPU to other threads
//! of the process, and with one CPU it sleeps at once.

use crate::park;
use core::time::Duration;

/// For how long a waiter stays awake, at most.
pub fn budget() -> Duration {
    park::budget()
}

/// Sets for how long a waiter stays awake at most, from the next wait on; zero means to sleep at
/// once. More than a second is taken as a second.
pub fn set_budget(budget: Duration) {
    park::set_budget(budget);
}
