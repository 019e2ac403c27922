//! The process in which one scenario runs.
//!
//! The supervisor starts this very program again, with the same arguments and what to run in the environment.
//! So a scenario begins with a table that nobody has used, and with the environment that it asks for.

use crate::args::Sabotage;
use crate::board::Board;
use crate::choices::Choices;
use crate::context::{Context, mix};
use crate::drop_in::{self, DropIn};
use crate::fault::{self, Fault, Injector};
use crate::scenario::{self, exec::Passed};
use crate::watchdog::Watchdog;
use crate::{process, report};
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::time::{Duration, Instant};

/// The environment variable that makes a process a scenario's.
pub(crate) const VARIABLE: &str = "WAITWORD_TORTURE_SCENARIO";

/// The environment variable with the name of the file in which choices are written down.
pub(crate) const CHOICES: &str = "WAITWORD_TORTURE_CHOICES";

/// The exit status of a scenario that found something wrong.
pub(crate) const VIOLATED: u8 = 71;

/// What a scenario's process is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Order {
    pub(crate) scenario: String,
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
    pub(crate) threads: Vec<usize>,
    pub(crate) patience: f64,
    pub(crate) sabotage: Option<Sabotage>,
    /// Which of several processes that the scenario is run in, one after the other.
    pub(crate) slice: u64,
    pub(crate) drop_in: Option<DropIn>,
    /// The drop-in, if that is tortured.
    pub(crate) preload: Option<PathBuf>,
    pub(crate) faults: Vec<Fault>,
    /// How many rounds at most; 0: as many as there is time for.
    pub(crate) rounds: u64,
}

impl Order {
    pub(crate) fn to_text(&self) -> String {
        let threads: Vec<_> = self.threads.iter().map(usize::to_string).collect();
        let sabotage = self.sabotage.and_then(|name| name.to_possible_value());
        let sabotage = sabotage.map_or(String::new(), |name| name.get_name().to_owned());
        [
            self.scenario.clone(),
            self.seconds.to_string(),
            self.seed.to_string(),
            threads.join(","),
            self.patience.to_string(),
            sabotage,
            self.slice.to_string(),
            DropIn::to_text(self.drop_in),
            self.preload
                .as_ref()
                .map_or(String::new(), |path| path.display().to_string()),
            self.faults_text(),
            self.rounds.to_string(),
        ]
        .join(";")
    }

    /// What all choices of the slice come from.
    pub(crate) fn seed_of_slice(&self) -> u64 {
        match self.slice {
            0 => self.seed,
            slice => mix(self.seed ^ slice),
        }
    }

    /// The command that runs this slice again, with the same choices.
    pub(crate) fn command(&self) -> String {
        let threads: Vec<_> = self.threads.iter().map(usize::to_string).collect();
        let faults = match &self.faults[..] {
            [] => "none".to_owned(),
            _ => self.faults_text(),
        };
        let mut command = format!(
            "waitword torture --seed {} --only {} --threads {} --slice {} --seconds {} --faults {faults} --patience {}",
            self.seed,
            self.scenario,
            threads.join(","),
            self.slice,
            self.seconds,
            self.patience,
        );
        if self.faults.contains(&Fault::Clock) {
            command += " --clock-steps";
        }
        if let Some(drop_in) = self.drop_in {
            command += &format!(" --drop-in={}", DropIn::to_text(Some(drop_in)));
        }
        if self.rounds > 0 {
            command += &format!(" --rounds {}", self.rounds);
        }
        if let Some(sabotage) = self.sabotage.and_then(|name| name.to_possible_value()) {
            command += &format!(" --sabotage {}", sabotage.get_name());
        }
        command
    }

    /// The faults' names, separated by commas.
    pub(crate) fn faults_text(&self) -> String {
        let names: Vec<_> = self.faults.iter().map(|fault| fault.name()).collect();
        names.join(",")
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        fn number<T: FromStr>(text: &str) -> Option<T> {
            text.parse().ok()
        }
        let mut parts = text.split(';');
        let mut next = || parts.next();
        Some(Self {
            scenario: next()?.to_owned(),
            seconds: number(next()?)?,
            seed: number(next()?)?,
            threads: next()?.split(',').map(number).collect::<Option<_>>()?,
            patience: number(next()?)?,
            sabotage: match next()? {
                "" => None,
                name => Some(Sabotage::from_str(name, false).ok()?),
            },
            slice: number(next()?)?,
            drop_in: DropIn::from_text(next()?)?,
            preload: match next()? {
                "" => None,
                path => Some(path.into()),
            },
            faults: match next()? {
                "" => Vec::new(),
                names => (names.split(','))
                    .map(|name| Fault::from_str(name, false).ok())
                    .collect::<Option<_>>()?,
            },
            rounds: number(next()?)?,
        })
    }
}

/// Runs a scenario, if this process has been started to do that; its exit status then. To be called first
/// thing by a program that calls [`run`](crate::run) but whose arguments alone do not lead there.
pub fn run_if_child() -> Option<ExitCode> {
    let order = std::env::var(VARIABLE).ok()?;
    let Some(order) = Order::from_text(&order) else {
        eprintln!("torture: {VARIABLE} is for the torture's own use");
        return Some(ExitCode::FAILURE);
    };
    Some(run_scenario(&order))
}

fn run_scenario(order: &Order) -> ExitCode {
    process::die_with_parent();
    if let Err(error) = drop_in::verify(order) {
        eprintln!("torture: {error}");
        return ExitCode::FAILURE;
    }
    let mut all = scenario::all(order.drop_in).iter();
    let Some(scenario) = all.find(|one| one.name == order.scenario) else {
        eprintln!("torture: no scenario `{}`", order.scenario);
        return ExitCode::FAILURE;
    };
    let passed = Passed::from_environment();
    let board_file = (passed.as_ref()).map_or_else(Board::new_file, |passed| passed.board);
    let context: &'static Context = Box::leak(Box::new(Context {
        scenario: scenario.name,
        seed: order.seed_of_slice(),
        threads: order.threads.clone(),
        patience: Duration::from_secs_f64(order.patience),
        sabotage: order.sabotage,
        drop_in: order.drop_in,
        faults: order.faults.clone(),
        rounds: order.rounds,
        choices: Choices::from_environment(),
        ends: Instant::now() + Duration::from_secs_f64(order.seconds),
        board: Board::of_file(board_file),
        board_file,
        round: AtomicU64::new(0),
        words: Mutex::default(),
        objects: Mutex::default(),
        children: [const { AtomicI32::new(0) }; 64],
    }));
    if let Some(passed) = passed {
        // The process that was forked for the scenario is watched by another one.
        return ExitCode::from(scenario::exec::go_on(context, &passed));
    }
    if context.has(Fault::Memory) {
        fault::memory::install(context);
    }
    let watchdog = Watchdog::start(context);
    let injector = Injector::start(context);
    let verdict = (scenario.run)(context);
    injector.stop();
    watchdog.stop();
    match verdict {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            process::complain(&report::who_waits_for_what(context, &complaint));
            process::kill_all(context);
            ExitCode::from(VIOLATED)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_the_environment() {
        let mut order = Order {
            scenario: "tokens".to_owned(),
            seconds: 2.5,
            seed: u64::MAX,
            threads: vec![4, 512],
            patience: 20.0,
            sabotage: None,
            slice: 3,
            drop_in: None,
            preload: None,
            faults: Vec::new(),
            rounds: 0,
        };
        assert_eq!(Order::from_text(&order.to_text()), Some(order.clone()));
        order.sabotage = Some(Sabotage::SkipWake);
        order.faults = vec![Fault::Stop, Fault::Memory];
        order.drop_in = Some(DropIn::On);
        order.preload = Some("/cache/drop-in.so".into());
        assert_eq!(Order::from_text(&order.to_text()), Some(order));
        assert_eq!(Order::from_text("tokens"), None);
    }
}
