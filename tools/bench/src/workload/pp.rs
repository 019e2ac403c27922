//! `pp`: many pairs of threads, each pair in its own game.
//!
//! **Work.** g games, each with a mutex, a condition variable per side and a turn. Each player, i
//! times: lock; wait for its turn; pass the turn; signal the other player with the mutex held;
//! unlock. All players are released together, on small stacks (32 KiB), and placed by the
//! scheduler.
//!
//! **Reproduces** `pp -v -n 128 -i 1000 -S 32768` and `pp -v -n 1024 -i 10 -S 32768` of Ingo
//! Molnar's mail of 2003 (requeue). Its source is lost, so this definition is ours. The 128 games
//! have 100 exchanges here, and 1000 with `--full`. Published, for one and two 700 MHz CPUs: 1.111
//! s and 1.270 s (with requeue: 1.111 and 1.959); for the 1024 games 0.181 s and 0.394 s (with
//! requeue: 0.166 and 0.254).
//!
//! **Figures.** *all ended*: seconds from the release until the last player has ended. *CPU*: of
//! the whole process. *switches*: context switches, voluntary and not, per turn. A player alone on
//! a CPU needs one, because it sleeps once before each turn; fewer are possible if another game's
//! player is awake when its turn comes. The columns that every report has (`/op`) are per turn as
//! well.

use crate::crew::Crew;
use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::locks::{BenchCondvar, condvars, every_condvar};
use crate::settings::Settings;
use crate::workload::game::{Game, Signal};
use crate::workload::proof;
use crate::workload::race::{Place, race};
use std::rc::Rc;
use std::sync::Arc;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "pp",
    about: "many pairs of threads signal each other, each pair with a mutex of its own",
    patch: Some(crate::patch::Patch::Requeue),
    milliseconds: 158,
    cases,
};

const METRICS: &[Metric] =
    &[Metric::less("all ended", "s"), Metric::less("CPU", "s"), Metric::less("switches", "/turn")];

/// The number of games, and of exchanges per game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    games: usize,
    exchanges: u64,
}

const USUAL: [Size; 1] = [size(128, 100)];
/// The mail's sizes.
const FULL: [Size; 2] = [size(128, 1000), size(1024, 10)];
const STACK_BYTES: usize = 32768;

const fn size(games: usize, exchanges: u64) -> Size {
    Size { games, exchanges }
}

fn cases(settings: &Settings) -> Vec<Case> {
    let sizes = if settings.full { &FULL[..] } else { &USUAL[..] };
    sizes.iter().copied().map(case).collect()
}

fn case(size: Size) -> Case {
    let Size { games, exchanges } = size;
    let name = format!("{games} games of {exchanges} exchanges");
    Case::new(name, METRICS, condvars(), move |context| {
        let crew = Rc::new(Crew::with_stacks(2 * games, STACK_BYTES, context)?);
        Ok(every_condvar!(contender(&crew, exchanges)))
    })
}

pub(super) fn contender<C: BenchCondvar>(crew: &Rc<Crew>, exchanges: u64) -> Contender {
    let games: Arc<[Game<C>]> = (0..crew.size() / 2).map(|_| Game::new()).collect();
    proof::proved_by(crew, C::NAME, proof::condvar::<C>, move |crew, context| {
        measure(crew, &games, exchanges, context)
    })
}

fn measure<C: BenchCondvar>(
    crew: &Crew,
    games: &Arc<[Game<C>]>,
    exchanges: u64,
    context: &Context,
) -> Result<Measured, Failure> {
    let before: Vec<u64> = games.iter().map(Game::turns).collect();
    let theirs = games.clone();
    let play = move |number: usize| theirs[number / 2].play(number % 2, exchanges, Signal::Held);
    let took = race(crew, Place::Free, context, |_| (), play, || ())?;
    for (game, before) in games.iter().zip(before) {
        let turns = game.turns() - before;
        check(turns == 2 * exchanges, || {
            format!("{turns} turns in a game of {exchanges} exchanges")
        })?;
    }
    let turns = games.len() as u64 * 2 * exchanges;
    let usage = took.usage;
    Ok(Measured {
        values: vec![
            took.nanoseconds / 1e9,
            usage.cpu_seconds,
            usage.switches() as f64 / turns as f64,
        ],
        operations: turns,
        usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::testing::{full, measured};

    #[test]
    fn every_contender_ends_all_games() {
        let _guard = waitword_testkit::watch();
        let settings = Settings { rounds: 2, ..Settings::default() };
        let context = Context::new(settings, Arc::default());
        let report = measured(case(size(8, 20)), &context);
        for variant in &report.variants {
            assert_eq!(variant.operations, 2 * 8 * 2 * 20);
            let seconds = variant.metrics[0].summary.median;
            assert!(seconds > 0.0, "{}: {seconds} s", variant.name);
        }
    }

    #[test]
    fn the_full_cases_are_those_of_the_mail() {
        let full = full();
        let names: Vec<String> = cases(&full).into_iter().map(|case| case.name).collect();
        assert_eq!(names, ["128 games of 1000 exchanges", "1024 games of 10 exchanges"]);
    }
}
