//! A slice: one of the processes that a scenario runs in, one after another, each with its own
//! faults. It defines what the process is given, and the command that runs it again.

use crate::fault::kind::Fault;
use crate::names::name_of;
use crate::seed::mix;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Which pthread functions are tortured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum DropIn {
    /// Those of the drop-in
    On,
    /// Those of the C library
    Off,
}

/// How the scenarios can be broken on purpose. The library itself is left unchanged: this tests the
/// torture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Sabotage {
    /// Leave out a wake now and then, so that a thread sleeps forever
    SkipWake,
    /// Now and then, count one more waiter as woken than was
    Miscount,
    /// Now and then, keep a waiter from its turn for so long that it counts as starved
    Starve,
    /// Now and then, let a waiter be overtaken by one that came later
    Overtake,
}

/// See the module documentation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slice {
    pub(crate) scenario: String,
    /// Counted from 0.
    pub(crate) number: u64,
    pub(crate) seconds: f64,
    /// The seed of the run.
    pub(crate) seed: u64,
    pub(crate) threads: Vec<usize>,
    /// In seconds.
    pub(crate) patience: f64,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) faults: Vec<Fault>,
    /// The maximum number of rounds; 0: as many as there is time for.
    pub(crate) rounds: u64,
    pub(crate) drop_in: Option<DropIn>,
    /// The drop-in, if it is tortured.
    pub(crate) preload: Option<PathBuf>,
}

impl Slice {
    /// # Errors
    /// A path that is not UTF-8.
    pub(crate) fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The seed that all choices of this slice derive from.
    pub(crate) fn seed_of_choices(&self) -> u64 {
        match self.number {
            0 => self.seed,
            number => mix(self.seed ^ number),
        }
    }

    /// The largest thread count of the slice.
    pub(crate) fn most_threads(&self) -> usize {
        self.threads.iter().max().copied().unwrap_or(0)
    }

    /// The command that runs the slice again with the same choices.
    pub(crate) fn command(&self) -> String {
        let threads: Vec<_> = self.threads.iter().map(usize::to_string).collect();
        let faults: Vec<_> = self.faults.iter().map(name_of).collect();
        let faults = match &faults[..] {
            [] => "none".to_owned(),
            some => some.join(","),
        };
        let mut command = format!(
            "waitword torture --seed {} --only {} --threads {} --slice {} --seconds {} --faults \
             {faults} --patience {}",
            self.seed,
            self.scenario,
            threads.join(","),
            self.number,
            self.seconds,
            self.patience,
        );
        if self.faults.contains(&Fault::Clock) {
            command += " --clock-steps";
        }
        if let Some(drop_in) = &self.drop_in {
            command += &format!(" --drop-in={}", name_of(drop_in));
        }
        if self.rounds > 0 {
            command += &format!(" --rounds {}", self.rounds);
        }
        if let Some(sabotage) = &self.sabotage {
            command += &format!(" --sabotage {}", name_of(sabotage));
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_comes_back_from_the_environment() {
        let slice = Slice {
            scenario: "tokens".to_owned(),
            number: 3,
            seconds: 2.5,
            seed: u64::MAX,
            threads: vec![4, 512],
            patience: 20.0,
            sabotage: Some(Sabotage::SkipWake),
            faults: vec![Fault::Stop, Fault::Memory],
            rounds: 0,
            drop_in: Some(DropIn::On),
            preload: Some("/cache/drop-in.so".into()),
        };
        let text = slice.to_text().expect("a path in UTF-8");
        assert_eq!(Slice::from_text(&text), Some(slice.clone()));
        assert_eq!(Slice::from_text("tokens"), None);
        let command = slice.command();
        assert!(
            command.ends_with(
                "--slice 3 --seconds 2.5 --faults stop,memory --patience 20 --drop-in=on \
                 --sabotage skip-wake"
            ),
            "{command}"
        );
    }
}
