//! A condvar with four waiters, one waiter with a deadline, two signallers and one broadcaster; and
//! one with an interrupter.

use super::super::condvar::Store;
use super::super::interrupt;
use super::super::mutex::{SUCCESSOR, Time};
use super::*;
use crate::private::waiter_table as process_waiter_table;
use crate::sys::sched::set_priority;
use crate::{PosixFlavour, Scope};

/// Adds tokens and signals as many waiters, with the mutex held or after the unlock.
fn put(store: &Store, time: Time, tokens: u32, broadcast: bool) {
    let tell = || match broadcast {
        true => {
            // The last signal has ended the batches.
            if matches!(time, Time::ForExtras) {
                store.mutex.let_many_be_woken();
            }
            store.condvar.notify_all();
        }
        false => (0..tokens).for_each(|_| _ = store.condvar.notify_one()),
    };
    store.mutex.lock();
    store.set(store.tokens() + tokens);
    let holds_it = dice(2) == 0;
    if holds_it {
        tell();
    }
    store.unlock();
    if !holds_it {
        tell();
    }
}

/// No thread sleeps while there is a token, and no signal is spent on a waiter that gives up.
fn no_thread_sleeps_beside_a_token(flavour: PosixFlavour, times: &'static [Time]) {
    no_thread_sleeps_in(flavour, times, Scope::Private, Scope::Private, &[0]);
}

/// `priorities`: a waiter uses one of these for each wait.
fn no_thread_sleeps_in(
    flavour: PosixFlavour,
    times: &'static [Time],
    mutex: Scope,
    condvar: Scope,
    priorities: &'static [u8],
) {
    const TAKERS: u32 = 4;
    const TAKES: u32 = 2;
    stress(move || {
        let time = one_of(times);
        let store = Store::with_scopes(flavour, time, mutex, condvar);
        let takers = [(); TAKERS as usize].map(|()| {
            spawn(&store, |store| {
                (0..TAKES).for_each(|_| {
                    set_priority(one_of(priorities));
                    store.take();
                });
            })
        });
        let hasty = spawn(&store, |store| {
            let found = (0..3).map(|_| u32::from(store.take_briefly().1));
            found.sum::<u32>()
        });
        let signallers = [(); 2].map(|()| {
            spawn(&store, move |store| {
                put(store, time, 1, false);
                put(store, time, 2, false);
            })
        });
        put(&store, time, TAKERS * TAKES - 6, true);
        join(signallers);
        let taken = join([hasty])[0];
        put(&store, time, taken, dice(2) == 0);
        join(takers);
        store.over(0);
    });
}

#[test]
fn with_a_successor_no_thread_sleeps_beside_a_token() {
    no_thread_sleeps_beside_a_token(SUCCESSOR, &[Time::Stands, Time::Passes]);
}

#[test]
fn with_a_late_successor_and_extras_no_thread_sleeps_beside_a_token() {
    const TIMES: &[Time] = &[
        Time::Passes,
        Time::PassesOnOneCpu,
        Time::PassesOnOneCpuSlowly,
        Time::ForExtras,
        Time::SuccessorsNap,
        Time::SuccessorsAreLate,
    ];
    no_thread_sleeps_beside_a_token(SUCCESSOR, TIMES);
}

#[test]
fn with_wait_wake_no_thread_sleeps_beside_a_token() {
    no_thread_sleeps_beside_a_token(PosixFlavour::WaitWake, &[Time::Stands]);
}

#[test]
fn between_processes_no_thread_sleeps_beside_a_token() {
    for flavour in [SUCCESSOR, PosixFlavour::WaitWake] {
        const TIMES: &[Time] = &[Time::Stands, Time::Passes];
        no_thread_sleeps_in(flavour, TIMES, Scope::Shared, Scope::Shared, &[0]);
        // A signaller may be in another process; all waiters are in this one.
        no_thread_sleeps_in(flavour, TIMES, Scope::Private, Scope::Shared, &[0]);
    }
}

#[test]
fn no_real_time_thread_sleeps_beside_a_token() {
    const TIMES: &[Time] = &[Time::Stands, Time::Passes, Time::ForExtras];
    for flavour in [SUCCESSOR, PosixFlavour::WaitWake] {
        let (mutex, condvar) = (Scope::Private, Scope::Private);
        no_thread_sleeps_in(flavour, TIMES, mutex, condvar, &[0, 0, 1, 2]);
    }
}

/// As above, with two waiters that are interrupted and three that are not.
#[test]
fn no_signal_is_spent_on_an_interrupted_waiter() {
    for flavour in [SUCCESSOR, PosixFlavour::WaitWake] {
        stress(move || {
            let store = interrupt::Store::new(flavour);
            let spawn = |work: fn(&interrupt::Store) -> u32| {
                let store = store.clone();
                thread::spawn(move || work(&store))
            };
            // Both receive the one request.
            let interrupted = [(); 2].map(|()| spawn(|store| store.take_if_signalled().into()));
            let patient = [(); 3].map(|()| {
                spawn(|store| {
                    store.take();
                    0
                })
            });
            let interrupter = spawn(|store| {
                store.interrupts.request(&process_waiter_table().parkers);
                0
            });
            (0..3).for_each(|_| store.put());
            join([interrupter]);
            // A waiter that has not received it waits for a token.
            (0..2).for_each(|_| store.put());
            let _ = join(interrupted);
            join(patient);
        });
    }
}
