//! A mutex of each flavour with six threads, some of them with deadlines.

use super::super::mutex::{FLAVOURS, Guarded, SUCCESSOR, Time};
use super::*;
use crate::sys::sched::set_priority;
use crate::{PosixFlavour, Scope};

/// Some turns of random kinds; returns how many succeeded.
fn turns(guarded: &Guarded) -> u32 {
    let turn = |_| match dice(6) {
        0 => guarded.try_turn(),
        1 | 2 => guarded.brief_turn(),
        3 => {
            guarded.fair_turn();
            true
        }
        _ => {
            guarded.turn();
            true
        }
    };
    (0..3).map(|round| u32::from(turn(round))).sum()
}

/// One holder at a time; no thread is left asleep, and nothing is left in the word.
fn six_take_turns(flavour: PosixFlavour, times: &'static [Time], scope: Scope) {
    stress(move || {
        let guarded = Guarded::with_scope(flavour, one_of(times), scope);
        let others = [(); 5].map(|()| spawn(&guarded, turns));
        let had = turns(&guarded) + join(others).iter().sum::<u32>();
        guarded.over(had);
    });
}

#[test]
fn six_take_turns_of_each_flavour() {
    for flavour in FLAVOURS {
        six_take_turns(flavour, &[Time::Stands], Scope::Private);
    }
}

#[test]
fn six_impatient_threads_take_turns() {
    six_take_turns(SUCCESSOR, &[Time::Passes, Time::PassesOnOneCpu], Scope::Private);
}

/// As `turns`, each as a thread of another priority. Turns with a deadline have the ordinary
/// priority, since lower-priority threads may be served once a waiter has given up.
fn turns_at_priorities(guarded: &Guarded) -> u32 {
    let turn = |_| {
        set_priority(one_of(&[0, 0, 1, 2]));
        match dice(6) {
            0 => guarded.try_turn(),
            1 => {
                set_priority(0);
                guarded.brief_turn()
            }
            2 => {
                guarded.fair_turn();
                true
            }
            _ => {
                guarded.turn();
                true
            }
        }
    };
    (0..3).map(|round| u32::from(turn(round))).sum()
}

#[test]
fn six_real_time_threads_and_others_take_turns() {
    const TIMES: &[Time] = &[Time::Stands, Time::Passes, Time::PassesOnOneCpu];
    for flavour in FLAVOURS {
        stress(move || {
            let guarded = Guarded::new(flavour, one_of(TIMES));
            let others = [(); 5].map(|()| spawn(&guarded, turns_at_priorities));
            let had = turns_at_priorities(&guarded) + join(others).iter().sum::<u32>();
            set_priority(0);
            guarded.over(had);
        });
    }
}

/// When time passes, waiters are impatient and the lock is reserved for them.
#[test]
fn six_processes_take_turns() {
    for flavour in FLAVOURS {
        six_take_turns(flavour, &[Time::Stands, Time::Passes], Scope::Shared);
    }
}
