//! A mutex of each flavour with six threads, some of them in a hurry.

use super::super::mutex::{FLAVOURS, Guarded, HEIR, Time, spawn};
use super::*;
use crate::Flavour;

/// Some turns of chance kinds; how many were had.
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

/// One holder at a time; nobody is left asleep, and nothing is left in the word.
fn six_take_turns(flavour: Flavour, times: &'static [Time]) {
    crowd(move || {
        let guarded = Guarded::new(flavour, one_of(times));
        let others = [(); 5].map(|()| spawn(&guarded, turns));
        let had = turns(&guarded) + join(others).iter().sum::<u32>();
        guarded.over(had);
    });
}

#[test]
fn six_take_turns_of_each_flavour() {
    for flavour in FLAVOURS {
        six_take_turns(flavour, &[Time::Stands]);
    }
}

#[test]
fn six_impatient_threads_take_turns() {
    six_take_turns(HEIR, &[Time::Passes, Time::PassesOnOneCpu]);
}

#[test]
fn six_threads_make_way_for_late_heirs() {
    six_take_turns(HEIR, &[Time::HeirsAreLate]);
}
