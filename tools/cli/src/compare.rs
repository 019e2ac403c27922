//! `waitword compare`: which flavour is best for a program.
//!
//! Runs the program plain and on each flavour, one after the other, in rounds. A round's runs are
//! in random order, and each ratio is taken within a round, so a machine that becomes slower
//! changes no ratio. Each run must do what the plain program does (`check.rs`); a flavour that once
//! does not is out. If the plain program itself does something else, or the user stops it, the
//! complete rounds so far count.

mod answer;
mod check;
mod child;
mod show;

use crate::drop_in::{self, Flavour};
use crate::out_file::OutFile;
use crate::stop::{STOPPED, stop_on_signals};
use answer::Standing;
use anyhow::{Context as _, Result, bail};
use check::{Check, Expected};
use child::{Ended, Until};
use indicatif::{ProgressBar, ProgressStyle};
use regex::bytes::Regex;
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use waitword_bench::harness::Better;

/// The variant without the drop-in.
const PLAIN: &str = "plain";

/// The arguments of `waitword compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  waitword compare -- ./server-benchmark --threads 8
      Wall time of the plain program and of each flavour; all must print the same.
  waitword compare --rounds 21 --metric 'transactions: +([0-9.]+)' -- ./run-benchmark
      Compares the number that the program prints after 'transactions:'; more is better.

A difference of less than 5 % counts as none. CPU time includes that of children that the program
has waited for. Children that are left when the program ends are killed. Exit status: 0; 1 if a
variant is out; 2 for an error; 130 if you stop it.")]
pub(crate) struct Args {
    /// How often each variant runs. With fewer than 10 rounds, one better flavour of three cannot
    /// be told from chance
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// The flavours to compare with the plain program
    #[arg(long, value_name = "FLAVOUR,...", value_delimiter = ',', value_enum)]
    #[arg(default_value = "adaptive,throughput,wait-wake")]
    flavours: Vec<Flavour>,
    /// Compare the CPU time, and not the wall time
    #[arg(long, conflicts_with = "metric")]
    cpu: bool,
    /// Compare a number above 0 that the program prints: the first group of this regular
    /// expression, or all of what it matches, at its last match in stdout, or else in stderr
    #[arg(long, value_name = "REGEX")]
    metric: Option<Regex>,
    /// With --metric: a smaller number is better
    #[arg(long, requires = "metric")]
    smaller: bool,
    /// What each run must have in common with a plain one: `output` (stdout and the exit status),
    /// `status` (the default with --metric), or a shell command that reads a run's stdout and
    /// succeeds if it is right
    #[arg(long, value_name = "CHECK")]
    #[arg(
        default_value = "output",
        default_value_if("metric", clap::builder::ArgPredicate::IsPresent, "status")
    )]
    check: Check,
    /// What the program reads from stdin; otherwise it reads nothing
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// A run that takes longer is ended and has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Write every measurement to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM [ARGS]"
    )]
    command: Vec<OsString>,
}

/// What the variants are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Wall,
    Cpu,
    Metric,
}

/// One way to run the program, and what was measured. The numbers of all variants belong to the
/// same rounds: a round that was not complete has none.
#[derive(Debug, Serialize)]
struct Variant {
    name: String,
    wall_seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
    metric: Vec<f64>,
    /// Why it is no longer compared.
    failure: Option<String>,
    /// Compared with the plain program. `None` for that itself, and for a variant that is out.
    standing: Option<Standing>,
    #[serde(skip)]
    environment: Vec<(&'static str, OsString)>,
}

/// A comparison, as `--json` writes it.
#[derive(Debug, Serialize)]
struct Comparison {
    program: String,
    by: By,
    better: Better,
    rounds: usize,
    variants: Vec<Variant>,
    answer: String,
}

impl Variant {
    fn new(name: &str, environment: Vec<(&'static str, OsString)>) -> Self {
        Self {
            name: name.to_owned(),
            wall_seconds: Vec::new(),
            cpu_seconds: Vec::new(),
            metric: Vec::new(),
            failure: None,
            standing: None,
            environment,
        }
    }

    fn values(&self, by: By) -> &[f64] {
        match by {
            By::Wall => &self.wall_seconds,
            By::Cpu => &self.cpu_seconds,
            By::Metric => &self.metric,
        }
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match compare(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn compare(args: &Args) -> Result<ExitCode> {
    let program = Program::new(args)?;
    let json = args.json.as_deref().map(OutFile::open).transpose().map_err(anyhow::Error::msg)?;
    let mut variants = variants(&args.flavours)?;
    let bar = ProgressBar::new(u64::from(args.rounds) * variants.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos} of {len} runs, {eta} left: {msg}")?);
    bar.set_message("plain");
    let expected = program.expected(&variants[0])?;
    if let Some(expected) = &expected {
        if !expected.status.success() {
            bar.suspend(|| eprintln!("waitword: note: the program fails: {}", expected.status));
        }
        for _ in 0..args.rounds {
            if !round(&program, expected, &mut variants, &bar)? {
                break;
            }
        }
    }
    bar.finish_and_clear();
    let rounds = variants[0].wall_seconds.len();
    if rounds == 0 && program.is_stopped() {
        println!("Stopped before the end of the first round.");
        return Ok(ExitCode::from(STOPPED));
    }

    let by = program.by();
    let better = if args.smaller || by != By::Metric { Better::Less } else { Better::More };
    answer::assess(&mut variants, by, better);
    let answer = answer::answer(&variants, by, rounds);
    let name = args.command.iter().map(|word| word.to_string_lossy());
    let comparison = Comparison {
        program: name.collect::<Vec<_>>().join(" "),
        by,
        better,
        rounds,
        variants,
        answer,
    };
    print!("{}", show::text(&comparison));
    if let Some(json) = json {
        let text = serde_json::to_string_pretty(&comparison)?;
        json.write(&(text + "\n")).map_err(anyhow::Error::msg)?;
    }
    Ok(if program.is_stopped() {
        println!("Stopped before the end: these are the results so far.");
        ExitCode::from(STOPPED)
    } else if comparison.variants.iter().any(|variant| variant.failure.is_some()) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The plain program first, then the flavours.
fn variants(flavours: &[Flavour]) -> Result<Vec<Variant>> {
    let library = drop_in::library::put_in_place()?;
    let preload = drop_in::before_others(library.as_os_str());
    let mut variants = vec![Variant::new(PLAIN, vec![("WAITWORD", "off".into())])];
    for flavour in flavours {
        let name = flavour.name();
        if variants.iter().any(|variant| variant.name == name) {
            bail!("--flavours has {name} twice");
        }
        let environment = vec![
            ("LD_PRELOAD", preload.clone()),
            ("WAITWORD", "on".into()),
            ("WAITWORD_MUTEX", OsString::from(&name)),
        ];
        variants.push(Variant::new(&name, environment));
    }
    Ok(variants)
}

/// Runs each variant that is not out once, in random order. Returns false, and drops what it has
/// measured, if the user stopped it or the plain program did something else.
fn round(
    program: &Program<'_>,
    expected: &Expected,
    variants: &mut [Variant],
    bar: &ProgressBar,
) -> Result<bool> {
    let mut order: Vec<usize> = (0..variants.len()).collect();
    fastrand::shuffle(&mut order);
    let mut results = Vec::new();
    for number in order {
        let variant = &variants[number];
        if variant.failure.is_none() {
            bar.set_message(variant.name.clone());
            let ended = program.run(variant)?;
            let checked = match program.differs(expected, &ended)? {
                None => program.metric(&ended).map(|metric| (metric, ended)),
                Some(difference) => Err(difference),
            };
            if program.is_stopped() {
                return Ok(false);
            }
            results.push((number, checked));
        }
        bar.inc(1);
    }
    for (number, result) in &results {
        if let Err(difference) = result {
            variants[*number].failure = Some(difference.clone());
        }
    }
    if variants[0].failure.is_some() {
        return Ok(false);
    }
    for (number, result) in results {
        if let Ok((metric, ended)) = result {
            let variant = &mut variants[number];
            variant.wall_seconds.push(ended.seconds);
            variant.cpu_seconds.push(ended.usage.cpu_seconds);
            variant.metric.extend(metric);
        }
    }
    Ok(true)
}

/// The program, and what is measured of it.
struct Program<'a> {
    args: &'a Args,
    path: PathBuf,
    stop: Arc<AtomicBool>,
}

impl<'a> Program<'a> {
    fn new(args: &'a Args) -> Result<Self> {
        let name = &args.command[0];
        let path = drop_in::program::find(name)
            .with_context(|| format!("{}: not found", name.display()))?;
        drop_in::program::can_be_served(&path).with_context(|| name.display().to_string())?;
        if let Some(stdin) = &args.stdin {
            open(stdin)?;
        }
        Ok(Self { args, path, stop: stop_on_signals()? })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn by(&self) -> By {
        match (&self.args.metric, self.args.cpu) {
            (Some(_), _) => By::Metric,
            (None, true) => By::Cpu,
            (None, false) => By::Wall,
        }
    }

    fn run(&self, variant: &Variant) -> Result<Ended> {
        let [name, arguments @ ..] = self.args.command.as_slice() else {
            unreachable!("clap asks for a program");
        };
        let stdin = match &self.args.stdin {
            Some(path) => open(path)?.into(),
            None => Stdio::null(),
        };
        let mut command = Command::new(&self.path);
        std::os::unix::process::CommandExt::arg0(&mut command, name);
        command.args(arguments).stdin(stdin);
        for name in ["WAITWORD_FUTEX", "WAITWORD_MUTEX", "WAITWORD_SPIN_NS", "WAITWORD_SUMMARY"] {
            if variant.name == PLAIN {
                command.env_remove(name);
            }
        }
        child::run(command.envs(variant.environment.iter().cloned()), self.until())
    }

    fn until(&self) -> Until<'_> {
        Until { limit: Duration::from_secs(self.args.limit.into()), stop: &self.stop }
    }

    /// What is wrong with this run, if anything is.
    fn differs(&self, expected: &Expected, ended: &Ended) -> Result<Option<String>> {
        expected.differs(&self.args.check, ended, self.until())
    }

    /// What a plain run does: it runs twice, to find out whether it always does the same. `None` if
    /// the user has stopped it.
    fn expected(&self, plain: &Variant) -> Result<Option<Expected>> {
        let first = self.run(plain)?;
        if let Some(late) = check::late(&first, self.until()) {
            bail!("the plain program {late}");
        }
        let expected = Expected::new(first);
        let again = self.run(plain)?;
        let difference = self.differs(&expected, &again)?;
        if self.is_stopped() {
            return Ok(None);
        }
        match (&self.args.check, difference) {
            (_, None) => {}
            (Check::Command(_), Some(rejected)) => bail!("the plain program: {rejected}"),
            (_, Some(difference)) => bail!(
                "two plain runs differ, so a flavour's run cannot be checked (see --check): \
                 {difference}"
            ),
        }
        self.metric(&again).map_err(anyhow::Error::msg)?;
        Ok(Some(expected))
    }

    /// The number that the program has printed, if one is wanted.
    fn metric(&self, ended: &Ended) -> Result<Option<f64>, String> {
        let Some(regex) = &self.args.metric else {
            return Ok(None);
        };
        let texts = [&ended.stdout, &ended.stderr];
        let Some(last) = texts.iter().find_map(|text| regex.captures_iter(text).last()) else {
            return Err(format!("the output has no match of {regex}"));
        };
        let found = last.get(1).or(last.get(0)).map_or(&b""[..], |group| group.as_bytes());
        let text = String::from_utf8_lossy(found);
        match text.trim().parse() {
            Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(Some(number)),
            _ => Err(format!("'{text}' is not a number above 0 (see --metric)")),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| path.display().to_string())
}
