//! A mutex: lock and unlock, a failed `try_lock`; a lock that sleeps, and an unlock with sleepers.

use super::rows::{Lock, Row, SPINNING};
use crate::costs::scene::{
    Apart, asleep, elsewhere, long_ago, on_stage, put, spin_as_shipped, until, until_asleep,
};
use crate::locks::BenchMutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The operations of a mutex.
pub(super) fn mutex<M: BenchMutex>() -> Lock {
    #[rustfmt::skip]
    let rows: [Row; 5] = [
        ("lock, unlock", || cycle(the::<M>()), new::<M>),
        ("try_lock, it is held", || _ = the::<M>().try_lock(), || {
            new::<M>();
            the::<M>().lock();
        }),
        ("lock, sleeps", || the::<M>().lock(), || {
            new::<M>();
            hold_until_asleep(the::<M>());
            cycle(the::<M>());
            long_ago();
            hold_until_asleep(the::<M>());
        }),
        ("unlock, 1 sleeps", || unlock(the::<M>()), contended::<M, 1>),
        ("unlock, 3 sleep", || unlock(the::<M>()), contended::<M, 3>),
    ];
    Lock { name: M::NAME.to_owned(), rows: rows.into() }
}

/// One of our mutexes with spinning turned on, as shipped: what a lock does before it sleeps. The
/// clock limits the spin, and a stepped spin lasts as long as an unstepped one, so the row shows
/// the minimum.
pub(super) fn as_shipped<M: BenchMutex>() -> Lock {
    let sleeps: Row = (
        "lock, sleeps",
        || the::<M>().lock(),
        || {
            new::<M>();
            hold_until_asleep(the::<M>());
            cycle(the::<M>());
            long_ago();
            hold_until_asleep(the::<M>());
            spin_as_shipped();
        },
    );
    Lock { name: format!("{}{SPINNING}", M::NAME), rows: vec![sleeps] }
}

/// Puts a new one on the stage and uses it once.
fn new<M: BenchMutex>() {
    put(Apart(M::new()));
    cycle(the::<M>());
}

#[inline(always)]
fn the<M: BenchMutex>() -> &'static M {
    // SAFETY: every row of a mutex puts one there first.
    unsafe { on_stage::<Apart<M>>() }
}

#[inline(always)]
pub(super) fn cycle<M: BenchMutex>(mutex: &M) {
    mutex.lock();
    unlock(mutex);
}

#[inline(always)]
pub(super) fn unlock<M: BenchMutex>(mutex: &M) {
    // SAFETY: every caller has locked the mutex.
    unsafe { mutex.unlock() };
}

fn contended<M: BenchMutex, const SLEEPERS: usize>() {
    new::<M>();
    the::<M>().lock();
    asleep(SLEEPERS, || the::<M>().lock());
}

/// Lets another thread hold the mutex until the calling thread sleeps.
fn hold_until_asleep<M: BenchMutex>(mutex: &'static M) {
    let held = Arc::new(AtomicBool::new(false));
    let is_held = held.clone();
    elsewhere(move || {
        mutex.lock();
        held.store(true, SeqCst);
        until_asleep();
        unlock(mutex);
    });
    until(|| is_held.load(SeqCst));
}
