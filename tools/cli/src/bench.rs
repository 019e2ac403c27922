//! `waitword bench`: arguments, progress bar, Ctrl-C. The tables are in [`tables`].

mod any;
mod publish;
pub(crate) mod tables;

use crate::out_file::OutFile;
use crate::stop::{STOPPED, stop_on_signals};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use waitword_bench::compare::compare;
use waitword_bench::harness::Context;
use waitword_bench::report::{Report, WorkloadReport};
use waitword_bench::workload::programs;
use waitword_bench::{Observer, Settings, WINDOW, Workload, has, locks, workloads};

const MOST_THREADS: u32 = 30_000;

/// The arguments of `waitword bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// The workloads to run; --list shows their names. Default: those that the five patches
    /// measured; with --full, all
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// List the workloads and exit
    #[arg(long)]
    list: bool,

    /// Measure every variant N times
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = at_least_one)]
    rounds: usize,

    /// Numbers of threads, for the workloads in which many threads wait; each number is a case
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [2, 16, 64, 512],
          value_parser = thread_count)]
    threads: Vec<usize>,

    /// Let N of 1024 critical sections sleep for 1 µs with the lock held
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1024))]
    naps: u32,

    /// Run all workloads, and also the cases that take long: 10,000 threads, critical sections of
    /// every length
    #[arg(long)]
    full: bool,

    /// In the workload `programs`, run only the programs whose names contain one of these texts
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    programs: Vec<String>,

    /// Measure only the peers whose names contain one of these texts (`none`: no peers). waitword
    /// and the baselines are always measured
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    peers: Option<Vec<String>>,

    /// Measure every variant beside an identical twin, to show how often noise looks like a
    /// difference
    #[arg(long)]
    twice: bool,

    /// Seed for the order of the contenders, which is drawn afresh for each round (default: random)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Milliseconds that each timed run lasts in the workloads on locks; less than 300 is good only
    /// for a quick look
    #[arg(long, value_name = "MS", default_value_t = WINDOW.as_millis() as u64,
          value_parser = clap::value_parser!(u64).range(1..=60_000))]
    window: u64,

    /// Keep rounds during which other processes used the CPUs, for a quick look on a machine that
    /// is never quiet
    #[arg(long)]
    keep_disturbed: bool,

    /// List the Debian packages that the workload `programs` needs and that are not installed, one
    /// per line, and exit
    #[arg(long)]
    missing_packages: bool,

    /// Print every row, not only the small tables at the end; the default if you name workloads
    #[arg(long)]
    all: bool,

    /// Skip the random loads, a few of which are measured at the end if you name no workloads
    #[arg(long)]
    no_any: bool,

    /// Also write the report to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Print what has changed since the run of this older report (written by --json)
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,

    /// Also write an HTML page: the published tables beside today's, plots, every figure
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Also write a summary as Markdown: what is won, what is lost, and why
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Measure all contenders under loads drawn at random from a seed
    Any(any::Args),
    /// Generate RESULTS.md and the tables in README and the docs from the stored reports
    Publish(publish::Args),
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number of at least 1".to_owned()),
        Ok(number) => Ok(number),
    }
}

fn thread_count(text: &str) -> Result<usize, String> {
    match text.trim().parse::<u32>() {
        Ok(number) if (1..=MOST_THREADS).contains(&number) => Ok(number as usize),
        _ => Err(format!("expected a list of numbers from 1 to {MOST_THREADS}, such as 2,16,64")),
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match &args.command {
        Some(Command::Any(args)) => return any::run(args),
        Some(Command::Publish(args)) => return publish::run(args),
        None => {}
    }
    if args.list {
        for workload in workloads() {
            println!("{:14} {}", workload.name, workload.about);
        }
        return ExitCode::SUCCESS;
    }
    if args.missing_packages {
        for package in programs::missing_packages(&settings(args)) {
            println!("{package}");
        }
        return ExitCode::SUCCESS;
    }
    match measure(args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

fn settings(args: &Args) -> Settings {
    Settings {
        rounds: args.rounds,
        threads: args.threads.clone(),
        naps: args.naps,
        full: args.full,
        programs: args.programs.clone(),
        peers: args.peers.clone(),
        twice: args.twice,
        seed: args.seed.unwrap_or_else(|| fastrand::u32(..).into()),
        window: Duration::from_millis(args.window),
        keep_disturbed: args.keep_disturbed,
    }
}

fn measure(args: &Args) -> Result<ExitCode, String> {
    let chosen = choose(&args.names, args.full)?;
    check_peers(args.peers.as_deref().unwrap_or_default())?;
    // Opened before the run, so that a mistyped path fails at once.
    let old = args.compare.as_deref().map(Report::read).transpose()?;
    let json = args.json.as_deref().map(OutFile::open).transpose()?;
    let html = args.html.as_deref().map(OutFile::open).transpose()?;
    let markdown = args.markdown.as_deref().map(OutFile::open).transpose()?;
    let stop = stop_on_signals().map_err(|error| format!("signal handlers: {error}"))?;
    let context = Context::new(settings(args), stop.clone());
    let all = args.all || !args.names.is_empty();
    let mut screen = Screen::new(all);
    // If the drop-in cannot be written or loaded, everything else is measured without it.
    if let Err(error) = crate::drop_in::library::load_beside_the_c_library() {
        eprintln!("waitword: the drop-in is not measured: {error:#}");
    }
    let mut report = waitword_bench::run(&chosen, &context, &mut screen);
    screen.bar.finish_and_clear();
    if args.names.is_empty() && !args.no_any && !args.twice && !stop.load(Relaxed) {
        let (any, failure) = any::a_few(&context)?;
        report.complete &= failure.is_none();
        if let Some(failure) = failure {
            eprintln!("waitword: random loads: {failure}");
        }
        report.any = Some(any);
    }

    if all {
        println!("{}", tables::bars(&report.bars));
        println!("{}", tables::header(&report));
    }
    if args.twice {
        println!("{}", tables::twins(&report));
    }
    if let Some(old) = old {
        println!("{}", tables::comparison(&compare(&old, &report)));
    }
    print!("{}", tables::glance(&report));
    if let Some(json) = json {
        let text = serde_json::to_string(&report).map_err(|error| error.to_string())?;
        json.write(&(text + "\n"))?;
    }
    if let Some(html) = html {
        html.write(&waitword_report::html(&report))?;
    }
    if let Some(markdown) = markdown {
        markdown.write(&waitword_report::markdown(&report))?;
    }
    Ok(if stop.load(Relaxed) {
        println!("Stopped before the end: these are the results so far.");
        ExitCode::from(STOPPED)
    } else if report.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The workloads with these names, in the benchmark's order; the default ones if `names` is empty.
fn choose(names: &[String], full: bool) -> Result<Vec<Workload>, String> {
    let known = |name: &str| workloads().iter().any(|workload| workload.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let known: Vec<_> = workloads().iter().map(|workload| workload.name).collect();
        let known = known.join(", ");
        return Err(format!("no workload is called '{unknown}'; the workloads are: {known}"));
    }
    let wanted = |workload: &&Workload| match names {
        [] => workload.is_usual(full),
        _ => names.iter().any(|name| name == workload.name),
    };
    Ok(workloads().iter().filter(wanted).copied().collect())
}

/// Checks that each text is part of some peer's name.
fn check_peers(parts: &[String]) -> Result<(), String> {
    let names = locks::names();
    let known = |part: &str| names.iter().any(|name| has(name, part));
    match parts.iter().find(|part| *part != "none" && !known(part)) {
        None => Ok(()),
        Some(unknown) => {
            let ours = |name: &&String| !locks::is_ours(name);
            let names: Vec<&str> = names.iter().filter(ours).map(String::as_str).collect();
            let names = names.join("; ");
            Err(format!("no peer is called '{unknown}'; the peers are: {names}"))
        }
    }
}

/// The progress bar. Tables are printed above it as workloads finish.
struct Screen {
    bar: ProgressBar,
    /// Whether to print every row.
    all: bool,
    began: Instant,
}

/// The resolution of the progress bar.
const PARTS: f64 = 1000.0;

/// The estimated time left, as text; empty while too little is done for an estimate.
fn time_left(part: f64, left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        _ if part < 0.02 => String::new(),
        0..60 => format!("{seconds} s left"),
        _ => format!("{} min {:02} s left", seconds / 60, seconds % 60),
    }
}

impl Screen {
    fn new(all: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(PARTS as u64), ProgressDrawTarget::stderr());
        let style =
            ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed}  {prefix}  {msg}");
        // No background thread draws the bar: it would disturb the measurement.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, all, began: Instant::now() }
    }
}

impl Observer for Screen {
    fn case(&mut self, workload: &str, case: &str) {
        self.bar.set_message(format!("{workload}: {case}"));
        self.bar.tick();
    }

    fn progress(&mut self, part: f64) {
        let part = part.clamp(0.0, 1.0);
        let left = self.began.elapsed().mul_f64((1.0 - part) / part.max(1e-3));
        self.bar.set_prefix(time_left(part, left));
        self.bar.set_position((part * PARTS) as u64);
    }

    fn workload(&mut self, report: &WorkloadReport) {
        if self.all {
            self.bar.suspend(|| println!("{}", tables::workload(report)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = choose(&["wakes".to_owned()], false).unwrap_err();
        assert!(error.contains("'wakes'") && error.contains("wake-parallel"), "{error}");
    }

    #[test]
    fn no_names_are_all_names_and_some_come_in_the_usual_order() {
        assert_eq!(choose(&[], true).unwrap().len(), workloads().len());
        let chosen = choose(&["scale".to_owned(), "calls".to_owned()], false).unwrap();
        let names: Vec<_> = chosen.iter().map(|workload| workload.name).collect();
        assert_eq!(names, ["calls", "scale"]);
    }

    #[test]
    fn whole_programs_are_run_by_their_name_or_in_full() {
        let has = |chosen: Vec<Workload>| chosen.iter().any(|workload| workload.name == "programs");
        assert!(!has(choose(&[], false).unwrap()));
        assert!(has(choose(&[], true).unwrap()));
        assert!(has(choose(&["programs".to_owned()], false).unwrap()));
    }

    #[test]
    fn an_unknown_peer_is_answered_with_the_known_ones() {
        let check = |parts: &[&str]| {
            check_peers(&parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(check(&["Parking", "std", "futex(2)"]), Ok(()));
        assert_eq!(check(&["none"]), Ok(()));
        let error = check(&["std", "abseil"]).unwrap_err();
        assert!(error.contains("'abseil'") && error.contains("parking_lot"), "{error}");
        assert!(!error.contains("waitword"), "{error}");
    }

    #[test]
    fn the_time_left_is_told_when_something_is_known() {
        let left = |part, seconds| time_left(part, Duration::from_secs(seconds));
        assert_eq!(left(0.01, 900), "");
        assert_eq!(left(0.5, 9), "9 s left");
        assert_eq!(left(0.5, 69), "1 min 09 s left");
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(at_least_one("3"), Ok(3));
        assert!(at_least_one("0").is_err());
        assert!(at_least_one("-1").is_err());
        assert_eq!(thread_count("512"), Ok(512));
        assert!(thread_count("0").is_err());
        assert!(thread_count("many").is_err());
    }
}
