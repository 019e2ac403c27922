//! Contenders with a fault, which must not look like speed.
//!
//! | name | fault |
//! |---|---|
//! | `Open`, `Open...` | excludes no thread |
//! | `SleepsOn...` | a woken waiter sleeps on: a wake-up is lost at once or after a few good ones |
//! | the rest | an operation does not do what it reports |

mod futexes;
mod locks;
mod others;

pub(super) use futexes::{Liar, Lie, SleepsOn};
pub(super) use locks::{
    NeverHad, NeverWaits, OpenCondvar, OpenToReaders, SleepsOnCondvar, SleepsOnLock,
};
pub(super) use others::{OpenToAll, SleepsOnBarrier, SleepsOnEvent, SleepsOnSemaphore};

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

/// For a waiter whose wake-up was lost.
fn sleep_forever() -> ! {
    loop {
        thread::park();
    }
}

/// How many more wake-ups are not lost.
struct Spared(AtomicU32);

impl Spared {
    fn new(wakes: u32) -> Self {
        Self(AtomicU32::new(wakes))
    }

    /// Counts one wake-up and returns whether it is lost.
    fn is_lost(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(SeqCst, SeqCst, less).is_err()
    }
}
