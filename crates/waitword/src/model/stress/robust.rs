//! A robust mutex with six threads, some of which die at a random step.

use super::super::robust::Play;
use super::*;
use crate::lock::robust::step::Step;

#[test]
fn some_of_five_die_anywhere() {
    stress(|| {
        let play = Play::new();
        let mortals = [(); 3].map(|()| {
            spawn(&play, |play| {
                play.turn_and_die(one_of(&Step::ALL));
            })
        });
        let others = [(); 2].map(|()| {
            spawn(&play, |play| {
                play.turn();
                play.turn();
            })
        });
        play.turn();
        join(mortals);
        join(others);
        play.finish();
    });
}
