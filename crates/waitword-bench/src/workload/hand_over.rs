//! `signal`: two threads hand over to each other by a condition variable.
//!
//! **Work.** One mutex, one condition variable a direction. Each thread, over and over: lock; wait for its turn;
//! give the turn; signal; unlock. *Signal with the mutex held*, or *after unlocking*. Both threads on one CPU; on a
//! CPU each; and 16 pairs of threads, each pair with a mutex of its own, wherever the scheduler likes.
//!
//! **Redraws** the signal benchmark of Jakub Jelinek's mail of 2005 (`FUTEX_WAKE_OP`). Its source is lost: this
//! definition is ours. Published, for one CPU: 0.655 s; with requeue 0.496 s; with wake_op 0.380 s, that is 1.72
//! times faster. The mail does not say of how many hand-overs; here it is as many as take some milliseconds, three
//! times, and the median.
//!
//! **Figures.** *time*: nanoseconds for one hand-over; of 16 pairs, of the whole by the sum of all pairs'
//! hand-overs. *switches*: context switches of the process, voluntary and not, for one hand-over. On one CPU the
//! ideal is 1. A signal that wakes the other at once, on a CPU of which the signaller still has the mutex, makes 2:
//! the woken runs into the mutex, sleeps again, and is woken a second time by the unlock. That is what the mail set
//! out to cure. (A few hundredths can be the benchmark's own: it looks now and then whether the players have
//! ended.)
//!
//! The C library's condition variable can lose a wake-up (see `workload::game`): not here, and if another does,
//! the watchdog names it.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, check};
use crate::locks::{BenchCondvar, every_condvar};
use crate::run::{Settings, Workload};
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::game::{Game, Signal};
use crate::workload::race::{Place, Took, race};
use crate::workload::{allowed_cpus, calibrate};
use std::rc::Rc;
use std::sync::Arc;

/// What the user calls by name.
pub const WORKLOAD: Workload = Workload {
    name: "signal",
    about: "two threads, one mutex, a condvar a direction: one hand-over by signal",
    patch: Some(crate::workload::Patch::WakeOp),
    milliseconds: 20,
    cases,
};

const METRICS: &[Metric] = &[
    Metric::less("time", "ns"),
    Metric::less("switches", "/hand-over"),
];

const BATCHES: usize = 3;
const BATCH_NANOSECONDS: f64 = 6e6;
const BATCH_NANOSECONDS_FULL: f64 = 60e6;
/// Turns of each player of the first batch by which the others are sized.
const FIRST: u64 = 64;

/// Who plays, and where.
const PLAYERS: [(&str, usize, Place); 3] = [
    ("one CPU", 1, Place::OneCpu),
    ("two CPUs", 1, Place::Spread),
    ("16 pairs", 16, Place::Free),
];
const SIGNALS: [(&str, Signal); 2] = [
    ("signal with the mutex held", Signal::Held),
    ("signal after unlocking", Signal::Unlocked),
];

fn cases(settings: &Settings) -> Vec<Case> {
    let two = allowed_cpus().len() > 1;
    let batch = if settings.full {
        BATCH_NANOSECONDS_FULL
    } else {
        BATCH_NANOSECONDS
    };
    let mut cases = Vec::new();
    for (where_, pairs, place) in PLAYERS {
        if place == Place::Spread && !two {
            continue;
        }
        for (how, signal) in SIGNALS {
            cases.push(case(
                format!("{where_}, {how}"),
                pairs,
                place,
                signal,
                batch,
            ));
        }
    }
    cases
}

fn case(name: String, pairs: usize, place: Place, signal: Signal, batch: f64) -> Case {
    let contenders = every_condvar!(nothing()).len();
    Case::new(name, METRICS, contenders, move |context| {
        let crew = Rc::new(Crew::new(2 * pairs, context)?);
        Ok(every_condvar!(contender(&crew, place, signal, batch)))
    })
}

fn nothing<C: BenchCondvar>() {}

fn contender<C: BenchCondvar>(
    crew: &Rc<Crew>,
    place: Place,
    signal: Signal,
    batch: f64,
) -> Contender {
    let pairs = Pairs {
        crew: crew.clone(),
        games: (0..crew.size() / 2).map(|_| Game::<C>::new()).collect(),
        place,
        signal,
    };
    let mut turns = None;
    Contender::named(C::NAME, move |context: &Context| {
        // In the first round: a turn takes what it takes in the others.
        let turns = match turns {
            Some(turns) => turns,
            None => *turns.insert(pairs.turns_of_a_batch(batch, context)?),
        };
        pairs.measure(turns, context)
    })
}

/// Some games that are played at once.
struct Pairs<C: BenchCondvar> {
    crew: Rc<Crew>,
    games: Arc<[Game<C>]>,
    place: Place,
    signal: Signal,
}

impl<C: BenchCondvar> Pairs<C> {
    /// How many turns each player takes in about so many nanoseconds.
    fn turns_of_a_batch(&self, batch: f64, context: &Context) -> Result<u64, Failure> {
        calibrate(batch, FIRST, context, |turns| {
            Ok(self.play(turns, context)?.nanoseconds)
        })
    }

    fn measure(&self, turns: u64, context: &Context) -> Result<Measured, Failure> {
        let (mut times, mut switches) = (Vec::new(), Vec::new());
        let mut usage = Usage::default();
        let hand_overs = self.crew.size() as u64 * turns;
        for _ in 0..BATCHES {
            let took = self.play(turns, context)?;
            times.push(took.nanoseconds / hand_overs as f64);
            switches.push(took.usage.switches() as f64 / hand_overs as f64);
            usage += took.usage;
        }
        Ok(Measured {
            values: vec![median(&times), median(&switches)],
            operations: hand_overs * BATCHES as u64,
            usage,
        })
    }

    /// So many turns of each player.
    fn play(&self, turns: u64, context: &Context) -> Result<Took, Failure> {
        let before: Vec<u64> = self.games.iter().map(Game::turns).collect();
        let (games, signal) = (self.games.clone(), self.signal);
        let play = move |number: usize| games[number / 2].play(number % 2, turns, signal);
        let took = race(&self.crew, self.place, context, |_| (), play, || ())?;
        for (game, before) in self.games.iter().zip(before) {
            let taken = game.turns() - before;
            check(taken == 2 * turns, || {
                format!("{taken} hand-overs instead of {}", 2 * turns)
            })?;
        }
        Ok(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::run_case;
    use crate::watchdog;

    fn settings() -> Settings {
        Settings {
            rounds: 1,
            ..Settings::default()
        }
    }

    #[test]
    fn every_contender_hands_over_in_every_place() {
        let _guard = watchdog::guard("signal");
        let context = Context::new(settings(), Arc::default());
        for (_, signal) in SIGNALS {
            for place in [Place::OneCpu, Place::Spread, Place::Free] {
                let case = case("short".to_owned(), 2, place, signal, 2e5);
                let count = case.contenders;
                let (report, failure) = run_case(case, &context, &mut |_| ());
                assert_eq!(failure, None);
                let report = report.unwrap();
                assert_eq!(report.variants.len(), count);
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
        let _guard = watchdog::guard("signal, one CPU");
        let context = Context::new(settings(), Arc::default());
        let pairs = Pairs {
            crew: Rc::new(Crew::new(2, &context).unwrap()),
            games: [Game::<crate::locks::glibc::Condvar>::new()].into(),
            place: Place::OneCpu,
            signal: Signal::Unlocked,
        };
        let measured = pairs.measure(500, &context).unwrap();
        assert_eq!(measured.operations, 3 * 2 * 500);
        assert!(measured.values[1] >= 0.9, "{measured:?}");
    }

    #[test]
    fn both_ways_to_signal_are_measured_in_every_place() {
        let names: Vec<String> = cases(&settings())
            .into_iter()
            .map(|case| case.name)
            .collect();
        let places = if allowed_cpus().len() > 1 { 3 } else { 2 };
        assert_eq!(names.len(), places * SIGNALS.len(), "{names:?}");
    }
}
