//! The condvar with mutexes of every flavour: no signal lost, none doubled, and nothing left in
//! either queue.
//!
//! Threads wait for tokens: a signaller adds as many as it wakes, and each waiter takes one. A
//! waiter that sleeps although there is a token shows as a deadlock.

use super::mutex::{SUCCESSOR, Time};
use super::*;
use crate::checker::cell::UnsafeCell;
use crate::lock::{LockError, key_of};
use crate::private::waiter_table as process_waiter_table;
use crate::sys::sched::set_priority;
use crate::{PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex, Scope};

const FLAVOURS: [PosixFlavour; 2] = [SUCCESSOR, PosixFlavour::WaitWake];

/// Tokens, a mutex over them, and a condvar for threads that want one.
pub(super) struct Store {
    pub(super) mutex: RawPosixMutex,
    pub(super) condvar: RawCondvar,
    tokens: UnsafeCell<u32>,
}

impl Store {
    pub(super) fn new(flavour: PosixFlavour, time: Time) -> Arc<Self> {
        Self::with_scopes(flavour, time, Scope::Private, Scope::Private)
    }

    pub(super) fn with_scopes(
        flavour: PosixFlavour,
        time: Time,
        mutex: Scope,
        condvar: Scope,
    ) -> Arc<Self> {
        let options = PosixMutexOptions::new().flavour(flavour).scope(mutex);
        let mutex = options.build_model();
        time.begin(&mutex);
        Arc::new(Self {
            mutex,
            condvar: RawCondvar::with_scope(condvar),
            tokens: UnsafeCell::new(0),
        })
    }

    /// With the mutex held.
    pub(super) fn tokens(&self) -> u32 {
        // SAFETY: the mutex is held; loom complains if another thread could change it now.
        self.tokens.with(|tokens| unsafe { *tokens })
    }

    /// With the mutex held.
    pub(super) fn set(&self, to: u32) {
        // SAFETY: as above.
        self.tokens.with_mut(|tokens| unsafe { *tokens = to });
    }

    pub(super) fn unlock(&self) {
        // SAFETY: every caller has locked the mutex.
        unsafe { self.mutex.unlock() };
    }

    /// With the mutex held: one wait.
    pub(super) fn wait(&self) {
        // SAFETY: the mutex is held, and it is the only one used with this condvar.
        unsafe { self.condvar.wait(&self.mutex, None) }.unwrap();
    }

    /// Waits for a token and takes it.
    pub(super) fn take(&self) {
        self.mutex.lock();
        while self.tokens() == 0 {
            self.wait();
        }
        self.set(self.tokens() - 1);
        self.unlock();
    }

    /// One wait with a deadline that has passed. Returns whether it was signalled and whether it
    /// took a token.
    pub(super) fn take_briefly(&self) -> (bool, bool) {
        self.mutex.lock();
        let mut signalled = false;
        if self.tokens() == 0 {
            // SAFETY: the mutex is held, and it is the only one used with this condvar.
            let waited = unsafe { self.condvar.wait(&self.mutex, Some(&passed())) };
            signalled = waited.is_ok();
            assert!(signalled || waited == Err(LockError::TimedOut));
        }
        let found = self.tokens() > 0;
        if found {
            self.set(self.tokens() - 1);
        }
        self.unlock();
        (signalled, found)
    }

    /// Locks the mutex and adds tokens.
    pub(super) fn add(&self, tokens: u32) {
        self.mutex.lock();
        self.set(self.tokens() + tokens);
        self.unlock();
    }

    /// When all threads have ended: this many tokens are left, and nothing else.
    pub(super) fn over(&self, tokens: u32) {
        self.mutex.lock();
        assert_eq!(self.tokens(), tokens);
        self.unlock();
        self.mutex.assert_forgotten();
        assert!(!self.condvar.notify_one());
        let found = process_waiter_table().find_waiters(key_of(&self.condvar));
        assert!(found.is_none(), "a waiter is still counted");
    }
}

/// Explores a scene with a mutex of each flavour.
fn with_each_flavour(preemptions: usize, time: Time, scene: fn(&Arc<Store>, PosixFlavour)) {
    for flavour in FLAVOURS {
        check(preemptions, move || {
            let store = Store::new(flavour, time);
            scene(&store, flavour);
        });
    }
}

#[test]
fn a_signal_finds_its_waiter() {
    with_each_flavour(2, Time::Stands, |store, _| {
        let taker = spawn(store, Store::take);
        store.mutex.lock();
        store.set(1);
        store.condvar.notify_one();
        store.unlock();
        join([taker]);
        store.over(0);
    });
    with_each_flavour(2, Time::Stands, |store, _| {
        let taker = spawn(store, Store::take);
        store.add(1);
        store.condvar.notify_one();
        join([taker]);
        store.over(0);
    });
}

/// The second signaller may come while the first one's waiter is on its way.
fn two_signals(flavour: PosixFlavour, time: Time, preemptions: usize) {
    check(preemptions, move || {
        let store = Store::new(flavour, time);
        let takers = [(); 2].map(|()| spawn(&store, Store::take));
        for _ in 0..2 {
            store.add(1);
            store.condvar.notify_one();
        }
        join(takers);
        store.over(0);
    });
}

#[test]
fn two_signals_find_two_waiters() {
    two_signals(SUCCESSOR, Time::Stands, 1);
    two_signals(SUCCESSOR, Time::Passes, 1);
    two_signals(SUCCESSOR, Time::SuccessorsAreLate, 1);
    two_signals(SUCCESSOR, Time::SuccessorsNap, 1);
    two_signals(SUCCESSOR, Time::OthersAreBusy, 1);
    two_signals(PosixFlavour::WaitWake, Time::Stands, 1);
}

/// With the mutex held, all waiters move; without it, one is woken and the others move to a mutex
/// that may be free or not.
fn broadcast(flavour: PosixFlavour, time: Time, with_mutex: bool, preemptions: usize) {
    check(preemptions, move || {
        let store = Store::new(flavour, time);
        let takers = [(); 2].map(|()| spawn(&store, Store::take));
        store.mutex.lock();
        store.set(2);
        if with_mutex {
            store.condvar.notify_all();
            store.unlock();
        } else {
            store.unlock();
            store.condvar.notify_all();
        }
        join(takers);
        store.over(0);
    });
}

#[test]
fn a_broadcast_with_the_mutex_held_finds_all() {
    broadcast(SUCCESSOR, Time::Stands, true, 2);
    broadcast(SUCCESSOR, Time::Passes, true, 1);
    broadcast(PosixFlavour::WaitWake, Time::Stands, true, 2);
}

#[test]
fn a_broadcast_with_the_mutex_held_finds_all_past_late_successors() {
    broadcast(SUCCESSOR, Time::SuccessorsAreLate, true, 2);
}

#[test]
fn a_broadcast_with_the_mutex_held_finds_all_past_napping_successors() {
    broadcast(SUCCESSOR, Time::SuccessorsNap, true, 2);
}

#[test]
fn a_broadcast_with_the_mutex_held_finds_all_beside_others() {
    broadcast(SUCCESSOR, Time::OthersAreBusy, true, 2);
}

#[test]
fn a_broadcast_without_the_mutex_finds_all() {
    broadcast(SUCCESSOR, Time::Stands, false, 2);
    broadcast(SUCCESSOR, Time::PassesOnOneCpu, false, 1);
    broadcast(SUCCESSOR, Time::PassesOnOneCpuSlowly, false, 1);
    broadcast(PosixFlavour::WaitWake, Time::Stands, false, 2);
}

#[test]
fn a_broadcast_without_the_mutex_finds_all_and_wakes_extra_waiters() {
    broadcast(SUCCESSOR, Time::ForExtras, false, 2);
}

#[test]
fn a_broadcast_without_the_mutex_finds_all_past_napping_successors() {
    broadcast(SUCCESSOR, Time::SuccessorsNap, false, 1);
}

#[test]
fn a_broadcast_without_the_mutex_finds_all_beside_others() {
    broadcast(SUCCESSOR, Time::OthersAreBusy, false, 2);
}

/// Two takers of these priorities, signalled one by one or all at once, with the mutex held or not;
/// a third thread wants the mutex.
fn takers_of_priorities(flavour: PosixFlavour, priorities: [u8; 2], all: bool, with_mutex: bool) {
    check(1, move || {
        let store = Store::new(flavour, Time::Stands);
        let takers = priorities.map(|priority| {
            spawn(&store, move |store| {
                set_priority(priority);
                store.take();
            })
        });
        let tell = |store: &Store| match all {
            true => drop(store.condvar.notify_all()),
            false => (0..2).for_each(|_| _ = store.condvar.notify_one()),
        };
        store.mutex.lock();
        store.set(2);
        if with_mutex {
            tell(&store);
        }
        store.unlock();
        if !with_mutex {
            tell(&store);
        }
        join(takers);
        store.over(0);
    });
}

#[test]
fn real_time_takers_are_found() {
    for flavour in FLAVOURS {
        for all in [false, true] {
            for with_mutex in [false, true] {
                takers_of_priorities(flavour, [0, 1], all, with_mutex);
                takers_of_priorities(flavour, [1, 2], all, with_mutex);
            }
        }
    }
}

/// Both takers are in the mutex's queue when its holder goes to sleep and wakes both.
#[test]
fn a_holder_that_goes_to_sleep_wakes_some() {
    check(1, || {
        let store = Store::new(SUCCESSOR, Time::ForExtras);
        let takers = [(); 2].map(|()| {
            spawn(&store, |store| {
                store.take();
                store.condvar.notify_all();
            })
        });
        store.mutex.lock();
        store.set(2);
        store.condvar.notify_all();
        while store.tokens() != 0 {
            store.wait();
        }
        store.unlock();
        join(takers);
        store.over(0);
    });
}

/// A waiter that was signalled reports it, and one that timed out was not signalled: a signal that
/// found a waiter is reported by exactly one.
fn timeout(flavour: PosixFlavour, all: bool) {
    check(2, move || {
        let store = Store::new(flavour, Time::Stands);
        let brief = spawn(&store, Store::take_briefly);
        store.add(1);
        let signals = match all {
            true => store.condvar.notify_all(),
            false => usize::from(store.condvar.notify_one()),
        };
        let (signalled, found) = brief.join().unwrap();
        assert_eq!(usize::from(signalled), signals);
        assert!(found || !signalled, "signalled before there was a token");
        store.over(u32::from(!found));
    });
}

#[test]
fn a_timeout_and_a_signal_agree_on_which_was_first() {
    for flavour in FLAVOURS {
        timeout(flavour, false);
        timeout(flavour, true);
    }
}

/// While the mutex is held, a signal moves the waiter to it; there its deadline no longer ends the
/// wait.
#[test]
fn a_timeout_meets_a_requeue() {
    with_each_flavour(2, Time::Passes, |store, _| {
        let brief = spawn(store, Store::take_briefly);
        store.mutex.lock();
        store.set(1);
        let signals = usize::from(store.condvar.notify_one());
        store.unlock();
        let (signalled, found) = brief.join().unwrap();
        assert_eq!(usize::from(signalled), signals);
        store.over(u32::from(!found));
    });
}

/// One signal, two waiters, one of which gives up: either the other gets the signal, or the one
/// that gave up reports that it was signalled.
#[test]
fn a_timeout_takes_no_signal_with_it() {
    with_each_flavour(1, Time::Stands, |store, _| {
        let patient = spawn(store, Store::take);
        let brief = spawn(store, Store::take_briefly);
        store.add(1);
        store.condvar.notify_one();
        let (_, found) = brief.join().unwrap();
        if found {
            store.add(1);
            store.condvar.notify_one();
        }
        join([patient]);
        store.over(0);
    });
}

#[test]
fn a_signal_meets_a_broadcast() {
    with_each_flavour(2, Time::Stands, |store, _| {
        let taker = spawn(store, Store::take);
        let other = spawn(store, |store| {
            store.add(1);
            usize::from(store.condvar.notify_one())
        });
        let all = store.condvar.notify_all();
        assert!(all + other.join().unwrap() <= 2);
        join([taker]);
        store.over(0);
    });
}

/// Signalled waiters do not touch the condvar again: its memory may be freed.
#[test]
fn the_broadcaster_frees_it() {
    for flavour in FLAVOURS {
        for with_mutex in [false, true] {
            check(2, move || {
                let store = Store::new(flavour, Time::Stands);
                let taker = spawn(&store, |store| {
                    store.mutex.lock();
                    store.set(1);
                    while store.tokens() == 1 {
                        store.wait();
                    }
                    store.unlock();
                });
                // Loop until the taker waits.
                loop {
                    store.mutex.lock();
                    if store.tokens() == 1 {
                        break;
                    }
                    store.unlock();
                    thread::yield_now();
                }
                store.set(2);
                if with_mutex {
                    store.condvar.notify_all();
                    store.condvar.pretend_to_free();
                    store.unlock();
                } else {
                    store.unlock();
                    store.condvar.notify_all();
                    store.condvar.pretend_to_free();
                }
                join([taker]);
            });
        }
    }
}

/// Two signallers, one of which ends the other's search loop: the queue is exact at all times.
#[test]
fn two_broadcasts_count_each_waiter_once() {
    with_each_flavour(3, Time::Stands, |store, _| {
        let brief = spawn(store, Store::take_briefly);
        let other = spawn(store, |store| store.condvar.notify_all());
        let counted = store.condvar.notify_all() + other.join().unwrap();
        let (signalled, _) = brief.join().unwrap();
        assert_eq!(counted, usize::from(signalled));
        store.over(0);
    });
}

/// The waiter gives up and waits again with another mutex; a signaller that has read the earlier
/// mutex detects the change.
#[test]
fn a_signal_does_not_move_a_waiter_to_the_mutex_of_an_earlier_wait() {
    with_each_flavour(2, Time::Passes, |store, flavour| {
        let earlier = PosixMutexOptions::new().flavour(flavour).build_model();
        let signaller = spawn(store, |store| {
            store.condvar.notify_one();
            store.add(1);
            store.condvar.notify_one();
        });
        earlier.lock();
        // SAFETY: the mutex is held, and no other thread waits.
        let _ = unsafe { store.condvar.wait(&earlier, Some(&passed())) };
        // SAFETY: locked above.
        unsafe { earlier.unlock() };
        store.take();
        join([signaller]);
        store.over(0);
        earlier.assert_forgotten();
    });
}
