//! A condition variable: signal and broadcast, with and without waiters, with the mutex free and
//! held; a wait.
//!
//! With a priority-inheriting mutex, only the fast paths are counted: a signal ends the
//! wait in the kernel for good, so its waiters cannot be held in place.

use super::mutex::{cycle, unlock};
use super::rows::{Lock, Row};
use crate::costs::scene::{Apart, asleep, long_ago, on_stage, once_asleep, put};
use crate::locks::{BenchCondvar, BenchMutex};

/// The first rows need no waiters.
const FAST: usize = 3;

/// The operations of a condition variable.
pub(super) fn condvar<C: BenchCondvar>() -> Lock {
    #[rustfmt::skip]
    let rows: [Row; 8] = [
        ("signal, no waiters", || pair::<C>().0.signal(), new_pair::<C>),
        ("broadcast, no waiters", || pair::<C>().0.broadcast(), new_pair::<C>),
        ("wait, sleeps until it is signalled", wait::<C>, || {
            new_pair::<C>();
            pair::<C>().1.lock();
            once_asleep(|| pair::<C>().0.signal());
            wait::<C>();
            long_ago();
            once_asleep(|| pair::<C>().0.signal());
        }),
        ("signal, 1 waits, mutex free", || pair::<C>().0.signal(), waiting::<C, 1>),
        ("broadcast, 8 wait, mutex free", || pair::<C>().0.broadcast(), waiting::<C, 8>),
        ("signal, 1 waits, mutex held, and unlock", || {
            pair::<C>().0.signal();
            unlock(&*pair::<C>().1);
        }, || {
            waiting::<C, 1>();
            pair::<C>().1.lock();
        }),
        ("broadcast, 8 wait, mutex held, and unlock", || {
            pair::<C>().0.broadcast();
            unlock(&*pair::<C>().1);
        }, || {
            waiting::<C, 8>();
            pair::<C>().1.lock();
        }),
        ("broadcast, 64 wait, mutex held", || pair::<C>().0.broadcast(), || {
            waiting::<C, 64>();
            pair::<C>().1.lock();
        }),
    ];
    let inherits = C::NAME.ends_with("PI");
    let rows = if inherits { &rows[..FAST] } else { &rows };
    Lock { name: C::NAME.to_owned(), rows: rows.into() }
}

/// A condition variable and its mutex.
type Pair<C> = (Apart<C>, Apart<<C as BenchCondvar>::Mutex>);

/// Puts new ones on the stage and uses them once.
fn new_pair<C: BenchCondvar>() {
    put::<Pair<C>>((Apart(C::new()), Apart(C::Mutex::new())));
    cycle(&*pair::<C>().1);
    pair::<C>().0.signal();
    pair::<C>().0.broadcast();
}

#[inline(always)]
fn pair<C: BenchCondvar>() -> &'static Pair<C> {
    // SAFETY: every row of a condition variable puts both there first.
    unsafe { on_stage::<Pair<C>>() }
}

fn wait<C: BenchCondvar>() {
    // SAFETY: every caller has locked the mutex; it is the only one used with this condition
    // variable.
    unsafe { pair::<C>().0.wait(&pair::<C>().1) };
}

fn waiting<C: BenchCondvar, const WAITERS: usize>() {
    new_pair::<C>();
    asleep(WAITERS, || {
        pair::<C>().1.lock();
        wait::<C>();
    });
}
