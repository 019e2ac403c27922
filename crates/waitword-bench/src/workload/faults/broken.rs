//! Contenders with a fault, which must not look like speed.
//!
//! | name | fault |
//! |---|---|
//! | `Open`, `Open...` | nobody is kept out |
//! | `SleepsOn...` | who waits is woken and sleeps on: a wake-up is lost, at once or after a few that are not |
//! | the others | an operation does not do what it says that it did |

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

/// Whose wake-up was lost.
fn sleep_for_ever() -> ! {
    loop {
        thread::park();
    }
}

/// How many wake-ups are not lost yet.
struct Spared(AtomicU32);

impl Spared {
    fn new(wakes: u32) -> Self {
        Self(AtomicU32::new(wakes))
    }

    /// One more. Whether it is lost.
    fn is_lost(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.0.fetch_update(SeqCst, SeqCst, less).is_err()
    }
}
