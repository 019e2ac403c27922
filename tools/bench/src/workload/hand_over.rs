//! `signal`: two threads hand off to each other through a condition variable.
//!
//! **Work.** One mutex, one condition variable per direction. Each thread repeats: lock; wait for
//! its turn; pass the turn; signal; unlock. *Signal with the mutex held*, or *after unlocking*.
//! Both threads on one CPU; on one CPU each; and 16 pairs of threads, each pair with its own mutex,
//! placed by the scheduler.
//!
//! **Reproduces** the signal benchmark of Jakub Jelinek's mail of 2005 (`FUTEX_WAKE_OP`). Its
//! source is lost, so this definition is ours. Published, for one CPU: 0.655 s; with requeue 0.496
//! s; with wake_op 0.380 s, which is 1.72 times faster. The mail does not give the number of
//! hand-offs; here it is as many as take some milliseconds, three times, and the median.
//!
//! **Figures.** *time*: nanoseconds per hand-off; for 16 pairs, the total time divided by the sum
//! of all pairs' hand-offs. *switches*: context switches of the process, voluntary and not, per
//! hand-off. On one CPU the ideal is 1. If a signal wakes the other thread at once on a CPU whose
//! signaller still holds the mutex, it is 2: the woken thread blocks on the mutex, sleeps again,
//! and is woken a second time by the unlock. This is what the mail set out to cure.
//!
//! The C library's condition variable can lose a wake-up (see `workload::game`), but not here. If
//! another contender loses one, the watchdog names it.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Workload};
use crate::locks::{BenchCondvar, condvars, every_condvar};
use crate::settings::Settings;
use crate::workload::game::{Game, Signal};
use crate::workload::pairs::{self, MANY, ONE_CPU, Players, Plays, TWO_CPUS};
use crate::workload::proof;
use crate::workload::race::Place;
use std::rc::Rc;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "signal",
    about: "two threads, one mutex, a condvar a direction: one hand-over by signal",
    patch: Some(crate::patch::Patch::WakeOp),
    milliseconds: 28,
    cases,
};

const PLAYERS: [Players; 3] = [ONE_CPU, TWO_CPUS, MANY];
const SIGNALS: [(&str, Signal); 2] =
    [("signal with the mutex held", Signal::Held), ("signal after unlocking", Signal::Unlocked)];

fn cases(settings: &Settings) -> Vec<Case> {
    let batch = pairs::batch_nanoseconds(settings);
    let mut cases = Vec::new();
    for players in PLAYERS.into_iter().filter(Players::fit) {
        for (how, signal) in SIGNALS {
            let name = format!("{}, {how}", players.name);
            cases.push(case(name, players, signal, batch));
        }
    }
    cases
}

fn case(name: String, players: Players, signal: Signal, batch: f64) -> Case {
    pairs::case(name, players, condvars(), move |crew| {
        every_condvar!(contender(crew, players.place, signal, batch))
    })
}

pub(super) fn contender<C: BenchCondvar>(
    crew: &Rc<Crew>,
    place: Place,
    signal: Signal,
    batch: f64,
) -> Contender {
    let game = move || Signalled(Game::<C>::new(), signal);
    pairs::contender(C::NAME, crew, place, batch, game, proof::condvar::<C>)
}

/// A game, and when its players signal.
struct Signalled<C: BenchCondvar>(Game<C>, Signal);

impl<C: BenchCondvar> Plays for Signalled<C> {
    fn play(&self, player: usize, turns: u64) {
        self.0.play(player, turns, self.1);
    }

    fn turns(&self) -> u64 {
        self.0.turns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::allowed_cpus;
    use crate::harness::Context;
    use crate::workload::pairs::Pairs;
    use crate::workload::testing::measured;
    use std::sync::Arc;

    fn settings() -> Settings {
        Settings { rounds: 1, ..Settings::default() }
    }

    #[test]
    fn every_contender_hands_over_in_every_place() {
        let _guard = waitword_testkit::watch();
        let context = Context::new(settings(), Arc::default());
        for (_, signal) in SIGNALS {
            for place in [Place::OneCpu, Place::Spread, Place::Free] {
                let players = Players { name: "short", pairs: 2, place };
                let report = measured(case("short".to_owned(), players, signal, 2e5), &context);
                for variant in &report.variants {
                    let [time, switches] = &variant.metrics[..] else {
                        unreachable!("two metrics")
                    };
                    assert!(time.summary.median > 0.0, "{variant:?}");
                    assert!(switches.summary.median.is_finite(), "{variant:?}");
                }
            }
        }
    }

    #[test]
    fn on_one_cpu_a_hand_over_takes_a_switch() {
        let _guard = waitword_testkit::watch();
        let context = Context::new(settings(), Arc::default());
        let crew = Rc::new(Crew::new(2, &context).unwrap());
        let game = || Signalled(Game::<crate::locks::glibc::Condvar>::new(), Signal::Unlocked);
        let pairs = Pairs::new(&crew, Place::OneCpu, game);
        let measured = pairs.measure(500, &context).unwrap();
        assert_eq!(measured.operations, 3 * 2 * 500);
        assert!(measured.values[1] >= 0.9, "{measured:?}");
    }

    #[test]
    fn both_ways_to_signal_are_measured_in_every_place() {
        let names: Vec<String> = cases(&settings()).into_iter().map(|case| case.name).collect();
        let places = if allowed_cpus().len() > 1 { 3 } else { 2 };
        assert_eq!(names.len(), places * SIGNALS.len(), "{names:?}");
    }
}
