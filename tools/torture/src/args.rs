//! The command line of the torture.

use crate::fault::choice::Wanted;
use crate::fault::kind::Fault;
use crate::list;
use crate::slice::{DropIn, Sabotage};
use clap::ValueEnum;
use std::path::PathBuf;
use std::str::FromStr;

/// Torture the futexes: no wake-up may be lost, whatever else goes on.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How long to run in total; the scenarios share this time
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = seconds::<0>)]
    pub seconds: f64,

    /// Seed of all random choices; if not given, a random one is chosen and printed
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,

    /// Thread counts to go through: a list, or one number for 4, 16, 64, ... up to it
    #[arg(long, value_name = "LIST|MAX", default_value = "512")]
    pub threads: Threads,

    /// Run only these scenarios, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = scenario_name())]
    pub only: Vec<String>,

    /// Torture the pthread functions and the raw futexes of the drop-in; `off`: those of the C
    /// library and the kernel, for comparison
    #[arg(
        long,
        value_name = "on|off",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on",
        value_enum
    )]
    pub drop_in: Option<DropIn>,

    /// Use this drop-in instead of the one that the command carries
    #[arg(long, value_name = "FILE", hide = true)]
    pub drop_in_library: Option<PathBuf>,

    /// Which faults to inject meanwhile: `auto` (the seed chooses them for each slice), `none`,
    /// `all`, or names, separated by commas
    #[arg(long, value_name = "LIST", default_value = "auto")]
    pub faults: Faults,

    /// Also set the system clock forwards and back by up to 3 seconds, for the whole machine; it is
    /// corrected at the end
    #[arg(long)]
    pub clock_steps: bool,

    /// Run only this slice of each scenario: with the same seed, threads and faults, it makes the
    /// same choices
    #[arg(long, value_name = "K", requires = "seed")]
    pub slice: Option<u64>,

    /// Append the results of the run to this file, as a line of JSON
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Print the runs recorded in this file as a Markdown table
    #[arg(long, value_name = "FILE")]
    pub records: Option<PathBuf>,

    /// List the scenarios, what each checks, and the faults
    #[arg(long)]
    pub list: bool,

    /// Number of seconds without progress after which a scenario counts as hung
    #[arg(long, value_name = "N", default_value_t = 20.0, value_parser = seconds::<1>)]
    pub patience: f64,

    /// End each slice after this many rounds, whatever the time; 0: when its time is up
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub rounds: u64,

    /// Write every choice that comes from the seed alone to this file
    #[arg(long, value_name = "FILE", hide = true)]
    pub choices: Option<PathBuf>,

    /// Break the scenarios on purpose, to check that the torture notices
    #[arg(long, value_name = "NAME", hide = true)]
    pub sabotage: Option<Sabotage>,
}

/// A positive number of seconds, and at least `LEAST`. (With a patience of less than a second, a
/// scenario on a loaded machine would seem to hang.)
fn seconds<const LEAST: u64>(text: &str) -> Result<f64, String> {
    /// Almost four months.
    const MOST: f64 = 1e7;
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds >= LEAST as f64 && seconds <= MOST => Ok(seconds),
        _ if LEAST == 0 => Err(format!("not a number of seconds above 0, up to {MOST}")),
        _ => Err(format!("not a number of seconds from {LEAST} to {MOST}")),
    }
}

fn scenario_name() -> clap::builder::PossibleValuesParser {
    let all = [None, Some(DropIn::On)].into_iter().flat_map(list::all);
    clap::builder::PossibleValuesParser::new(all.map(|scenario| scenario.name))
}

/// Which faults to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub(crate) Wanted);

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |name: &str| {
            let known = || Fault::all().iter().map(|fault| fault.name());
            Fault::from_str(name.trim(), false).map_err(|_| {
                let known: Vec<_> = known().collect();
                format!("`{name}` is not one of auto, none, all, {}", known.join(", "))
            })
        };
        Ok(Self(match text {
            "auto" => Wanted::BySeed,
            "none" => Wanted::These(Vec::new()),
            "all" => Wanted::These(Fault::all().to_vec()),
            names => Wanted::These(names.split(',').map(one).collect::<Result<_, _>>()?),
        }))
    }
}

/// The thread counts that rounds use in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threads(pub Vec<usize>);

/// No scenario works with fewer threads.
const LEAST: usize = 4;
/// The board has a place for each thread of a scenario.
const MOST: usize = 2048;

impl FromStr for Threads {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text
            .split(',')
            .map(|number| match number.trim().parse() {
                Ok(number) if (LEAST..=MOST).contains(&number) => Ok(number),
                _ => Err(format!("`{number}` is not a number from {LEAST} to {MOST}")),
            })
            .collect::<Result<Vec<usize>, String>>()?;
        Ok(Self(match numbers[..] {
            [most] => {
                let mut steps: Vec<_> = std::iter::successors(Some(LEAST), |step| Some(step * 4))
                    .take_while(|&step| step < most)
                    .collect();
                steps.push(most);
                steps
            }
            _ => numbers,
        }))
    }
}

impl std::fmt::Display for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_positive_and_finite() {
        for nonsense in ["0", "-1", "nan", "inf", "1e9", "soon", ""] {
            assert!(seconds::<0>(nonsense).is_err(), "{nonsense}");
        }
        assert_eq!(seconds::<0>("0.5"), Ok(0.5));
        assert!(seconds::<1>("0.5").is_err());
    }

    #[test]
    fn faults_are_a_word_or_a_list() {
        let parse = |text: &str| text.parse::<Faults>().map(|faults| faults.0);
        assert_eq!(parse("auto"), Ok(Wanted::BySeed));
        assert_eq!(parse("none"), Ok(Wanted::These(Vec::new())));
        assert_eq!(parse("stop,hold"), Ok(Wanted::These(vec![Fault::Stop, Fault::Hold])));
        assert!(parse("stop,nothing").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn thread_counts_are_a_list_or_a_maximum() {
        let parse = |text: &str| text.parse::<Threads>().map(|threads| threads.0);
        assert_eq!(parse("512"), Ok(vec![4, 16, 64, 256, 512]));
        assert_eq!(parse("4"), Ok(vec![4]));
        assert_eq!(parse("8, 9"), Ok(vec![8, 9]));
        assert!(parse("3").is_err());
        assert!(parse("4,,8").is_err());
        assert!(parse("many").is_err());
    }
}
