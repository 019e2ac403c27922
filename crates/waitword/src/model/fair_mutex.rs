//! The fair mutex: it is handed off to each waiter in turn, and no thread touches it after the last
//! holder's turn.

use super::*;
use crate::checker::cell::UnsafeCell;
use crate::{PosixFlavour, PosixMutexOptions, RawPosixMutex};

struct Scene {
    mutex: RawPosixMutex,
    turns: UnsafeCell<u32>,
}

impl Scene {
    /// Whether this was turn number `of`.
    fn turn(&self, of: u32) -> bool {
        self.mutex.lock();
        // SAFETY: the mutex is held; loom checks that no other thread is here.
        let turns = self.turns.with_mut(|turns| unsafe {
            *turns += 1;
            *turns
        });
        self.mutex.hand_over();
        turns == of
    }
}

fn all_have_it(threads: u32, preemptions: usize, last_frees_it: bool) {
    check(preemptions, move || {
        let options = PosixMutexOptions::new().flavour(PosixFlavour::WaitWake);
        let scene = Arc::new(Scene { mutex: options.build_model(), turns: UnsafeCell::new(0) });
        let turn = move |scene: &Scene| {
            if scene.turn(threads) && last_frees_it {
                // No earlier hand-off touches it from here on.
                scene.mutex.pretend_to_free();
            }
        };
        let others: Vec<_> = (1..threads).map(|_| spawn(&scene, turn)).collect();
        turn(&scene);
        join(others);
        if !last_frees_it {
            scene.mutex.assert_forgotten();
        }
    });
}

#[test]
fn each_of_three_has_it() {
    all_have_it(3, 2, false);
}

#[test]
fn the_last_of_two_frees_it() {
    all_have_it(2, 3, true);
}
