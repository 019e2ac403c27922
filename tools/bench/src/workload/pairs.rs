//! Pairs of threads that take turns, each pair in its own game: how `signal`, `semaphore` and
//! `queue` are measured.
//!
//! A batch is as many turns as take some milliseconds, determined in the first round; the result is
//! the median of three batches. *time*: the total divided by the sum of all pairs' hand-offs.
//! *switches*: context switches of the process, voluntary and not, per hand-off. (A few hundredths
//! can be the benchmark's own: it checks now and then whether the players have ended.)

use crate::cpus::allowed_cpus;
use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, check};
use crate::settings::Settings;
use crate::stats::median;
use crate::usage::Usage;
use crate::workload::proof::proved;
use crate::workload::race::{Place, Took, race};
use crate::workload::timing::calibrate;
use std::rc::Rc;
use std::sync::Arc;

/// The metrics of all of them.
pub(super) const METRICS: &[Metric] =
    &[Metric::less("time", "ns"), Metric::less("switches", "/hand-over")];

const BATCHES: usize = 3;
const BATCH_NANOSECONDS: f64 = 6e6;
const BATCH_NANOSECONDS_FULL: f64 = 60e6;
/// Turns of each player in the first batch, from which the size of the others is derived.
const FIRST: u64 = 64;

/// The pairs, and where they run.
pub(super) const ONE_CPU: Players = players("one CPU", 1, Place::OneCpu);
pub(super) const TWO_CPUS: Players = players("two CPUs", 1, Place::Spread);
pub(super) const MANY: Players = players("16 pairs", 16, Place::Free);

/// Some pairs at some place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Players {
    pub(super) name: &'static str,
    pub(super) pairs: usize,
    pub(super) place: Place,
}

const fn players(name: &'static str, pairs: usize, place: Place) -> Players {
    Players { name, pairs, place }
}

impl Players {
    /// Whether there are enough CPUs.
    pub(super) fn fit(&self) -> bool {
        self.place != Place::Spread || allowed_cpus().len() > 1
    }
}

/// How long a batch should take.
pub(super) fn batch_nanoseconds(settings: &Settings) -> f64 {
    if settings.full { BATCH_NANOSECONDS_FULL } else { BATCH_NANOSECONDS }
}

/// A game of two players in which each turn waits for one of the other player's.
pub(super) trait Plays: Send + Sync + 'static {
    /// Takes this many turns of player 0 or 1.
    fn play(&self, player: usize, turns: u64);
    /// Turns taken by both players so far; exact when no game is running.
    fn turns(&self) -> u64;
}

/// The case with this name; `prepare` makes `contenders` contenders for its crew.
pub(super) fn case(
    name: String,
    players: Players,
    contenders: usize,
    prepare: impl FnOnce(&Rc<Crew>) -> Vec<Contender> + 'static,
) -> Case {
    Case::new(name, METRICS, contenders, move |context| {
        let crew = Rc::new(Crew::new(2 * players.pairs, context)?);
        Ok(prepare(&crew))
    })
}

/// A contender whose pairs of threads play one `game` each, after passing `proof`.
pub(super) fn contender<G: Plays>(
    name: &str,
    crew: &Rc<Crew>,
    place: Place,
    batch: f64,
    game: impl Fn() -> G,
    proof: fn(&Crew, &Context) -> Result<(), Failure>,
) -> Contender {
    let pairs = Pairs::new(crew, place, game);
    let provers = crew.clone();
    let mut turns = None;
    proved(
        name,
        move |context| proof(&provers, context),
        move |context| {
            // Only in the first round; the number then stays the same.
            let turns = match turns {
                Some(turns) => turns,
                None => *turns.insert(pairs.turns_of_a_batch(batch, context)?),
            };
            pairs.measure(turns, context)
        },
    )
}

/// Games that are played at once.
pub(super) struct Pairs<G> {
    crew: Rc<Crew>,
    games: Arc<[G]>,
    place: Place,
}

impl<G: Plays> Pairs<G> {
    /// One game for each pair of the crew.
    pub(super) fn new(crew: &Rc<Crew>, place: Place, game: impl Fn() -> G) -> Self {
        Self { crew: crew.clone(), games: (0..crew.size() / 2).map(|_| game()).collect(), place }
    }

    /// How many turns each player takes in about `batch` nanoseconds.
    fn turns_of_a_batch(&self, batch: f64, context: &Context) -> Result<u64, Failure> {
        calibrate(batch, FIRST, context, |turns| Ok(self.play(turns, context)?.nanoseconds))
    }

    /// Measures three batches of this many turns of each player.
    pub(super) fn measure(&self, turns: u64, context: &Context) -> Result<Measured, Failure> {
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

    /// Plays this many turns of each player.
    fn play(&self, turns: u64, context: &Context) -> Result<Took, Failure> {
        let before: Vec<u64> = self.games.iter().map(Plays::turns).collect();
        let games = self.games.clone();
        let play = move |number: usize| games[number / 2].play(number % 2, turns);
        let took = race(&self.crew, self.place, context, |_| (), play, || ())?;
        for (game, before) in self.games.iter().zip(before) {
            let taken = game.turns() - before;
            check(taken == 2 * turns, || format!("{taken} hand-overs instead of {}", 2 * turns))?;
        }
        Ok(took)
    }
}
