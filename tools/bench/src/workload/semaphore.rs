//! `semaphore`: two threads hand off to each other through semaphores.
//!
//! **Work.** Two semaphores, one per direction; only the first has a token. Each thread repeats:
//! take the token of its own semaphore, waiting for it; take its turn; post the other semaphore.
//! Both on one CPU; on one CPU each; and with `--full` 16 pairs of threads, each pair with its own
//! semaphores, placed by the scheduler.
//!
//! **Reproduces** no particular public benchmark: it is `signal` and `ping-pong` for semaphores.
//! The cost of a wait and a post without waiting is in `uncontended`.
//!
//! **Figures.** *time*: nanoseconds per hand-off; *switches*: context switches of the process per
//! hand-off (see `workload::pairs`). On one CPU the ideal is 1.
//!
//! nsync, absl, parking_lot and Rust's standard library have no semaphore.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Workload};
use crate::locks::semaphore::{BenchSemaphore, every_semaphore};
use crate::settings::Settings;
use crate::workload::pairs::{self, MANY, ONE_CPU, Players, Plays, TWO_CPUS};
use crate::workload::proof;
use crate::workload::race::Place;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "semaphore",
    about: "two threads, a semaphore a direction: one hand-over by post",
    patch: None,
    milliseconds: 17,
    cases,
};

fn cases(settings: &Settings) -> Vec<Case> {
    let mut all = vec![ONE_CPU, TWO_CPUS];
    if settings.full {
        all.push(MANY);
    }
    let batch = pairs::batch_nanoseconds(settings);
    let case = |players: Players| case(players, batch);
    all.into_iter().filter(Players::fit).map(case).collect()
}

fn case(players: Players, batch: f64) -> Case {
    fn nothing<S: BenchSemaphore>() {}
    let contenders = every_semaphore!(nothing()).len();
    pairs::case(players.name.to_owned(), players, contenders, move |crew| {
        every_semaphore!(contender(crew, players.place, batch))
    })
}

pub(super) fn contender<S: BenchSemaphore>(crew: &Rc<Crew>, place: Place, batch: f64) -> Contender {
    let game = Posted::<S>::new;
    pairs::contender(S::NAME, crew, place, batch, game, proof::semaphore::<S>)
}

/// One game.
#[repr(align(128))]
struct Posted<S> {
    semaphores: [S; 2],
    /// Turns taken. The lowest bit is the player whose turn it is.
    turns: AtomicU64,
}

impl<S: BenchSemaphore> Posted<S> {
    /// A game in which it is player 0's first turn.
    fn new() -> Self {
        Self { semaphores: [S::new(1), S::new(0)], turns: AtomicU64::new(0) }
    }
}

impl<S: BenchSemaphore> Plays for Posted<S> {
    #[inline(never)]
    fn play(&self, player: usize, turns: u64) {
        let [mine, others] = [&self.semaphores[player], &self.semaphores[1 - player]];
        for _ in 0..turns {
            mine.wait();
            // Relaxed, a load and a store: the semaphores provide the ordering. A turn out of order
            // does not count, and the sum reveals it.
            let so_far = self.turns.load(Relaxed);
            if so_far % 2 == player as u64 {
                self.turns.store(so_far + 1, Relaxed);
            }
            others.post();
        }
    }

    fn turns(&self) -> u64 {
        self.turns.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crew::Crew;
    use crate::workload::pairs::Pairs;
    use crate::workload::testing::{context, is_positive, measured};

    #[test]
    fn every_contender_hands_over_in_every_place() {
        let _guard = waitword_testkit::watch();
        for players in [ONE_CPU, TWO_CPUS, MANY] {
            is_positive(&measured(case(players, 2e5), &context()));
        }
    }

    /// A semaphore that always has a token.
    struct Bottomless;

    impl BenchSemaphore for Bottomless {
        const NAME: &'static str = "bottomless";
        fn new(_: u32) -> Self {
            Self
        }
        fn wait(&self) {}
        fn post(&self) {}
    }

    #[test]
    fn a_semaphore_that_lets_every_thread_through_is_detected_by_the_turns() {
        let _guard = waitword_testkit::watch();
        let context = context();
        let crew = Rc::new(Crew::new(2, &context).unwrap());
        let pairs = Pairs::new(&crew, Place::OneCpu, Posted::<Bottomless>::new);
        let failure = pairs.measure(1000, &context).unwrap_err().to_string();
        assert!(failure.contains("instead of 2000"), "{failure}");
    }
}
