//! How long a private waiter spins before it sleeps.
//!
//! By default about as long as a sleep and a wake-up across CPUs cost, since a waiter that is woken
//! sooner is better off awake. The environment variable `WAITWORD_SPIN_NS` sets it at first use. There are
//! never more spinners than CPUs less one, and a waiter whose spins were in vain stops by itself.

use crate::park;
use core::time::Duration;

/// How long a waiter spins at most.
pub fn budget() -> Duration {
    park::budget()
}

/// Sets how long a waiter spins at most, from the next wait on; zero means to sleep at once. More than a
/// second is taken as a second.
pub fn set_budget(budget: Duration) {
    park::set_budget(budget);
}
