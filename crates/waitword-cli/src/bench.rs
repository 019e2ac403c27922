//! `waitword bench`: arguments, progress bar, Ctrl-C; the tables are in [`tables`].

mod tables;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use waitword_bench::harness::Context;
use waitword_bench::report::{Report, WorkloadReport};
use waitword_bench::workload::programs;
use waitword_bench::{Observer, Settings, Workload, workloads};

/// Fewer rounds than this are good for a quick look only.
const ROUNDS_TO_QUOTE: usize = 5;
const STOPPED: u8 = 130;
const MOST_THREADS: u32 = 30_000;

/// What the user can ask for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which workloads to run (default: all but `programs`, and that with --full); see --list
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Show the workloads' names and end
    #[arg(long)]
    list: bool,

    /// How often every variant is measured
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    rounds: usize,

    /// How many threads wait, in the workloads where many do; one case each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [2, 16, 64, 512],
          value_parser = thread_count)]
    threads: Vec<usize>,

    /// Of each 1024 sections under a lock, let N sleep for 1 µs with the lock held
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1024))]
    naps: u32,

    /// Also the cases that take long: 10,000 threads, every length of sections
    #[arg(long)]
    full: bool,

    /// Of the whole programs (workload `programs`), those with one of these in their names
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    programs: Vec<String>,

    /// Name the Debian packages of the whole programs that are not installed, one a line, and end
    #[arg(long)]
    missing_packages: bool,

    /// Write the report to FILE, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a whole number of at least 1 is needed".to_owned()),
        Ok(number) => Ok(number),
    }
}

fn thread_count(text: &str) -> Result<usize, String> {
    match text.trim().parse::<u32>() {
        Ok(number) if (1..=MOST_THREADS).contains(&number) => Ok(number as usize),
        _ => Err(format!(
            "a list of numbers from 1 to {MOST_THREADS} is needed, such as 2,16,64"
        )),
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
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
    }
}

fn measure(args: &Args) -> Result<ExitCode, String> {
    let chosen = choose(&args.names, args.full)?;
    // Before the run, so that a mistyped path does not cost minutes.
    let json = args.json.as_deref().map(JsonFile::open).transpose()?;
    let stop = stop_on_signals().map_err(|error| format!("signal handlers: {error}"))?;
    let context = Context::new(settings(args), stop.clone());
    let mut screen = Screen::new();
    // Where it cannot be written or loaded, the rest is measured without it.
    if let Err(error) = crate::drop_in::library::load_beside_the_c_library() {
        eprintln!("waitword: the drop-in is not measured: {error:#}");
    }
    let report = waitword_bench::run(&chosen, &context, &mut screen);
    screen.bar.finish_and_clear();

    println!("{}", tables::bars(&report.bars));
    println!("{}", tables::header(&report));
    if args.rounds < ROUNDS_TO_QUOTE {
        println!("Fewer than {ROUNDS_TO_QUOTE} rounds: for a quick look, not to be quoted.");
    }
    if let Some(json) = json {
        json.write(&report)?;
    }
    Ok(if stop.load(Relaxed) {
        println!("Stopped before the end: this is what there is.");
        ExitCode::from(STOPPED)
    } else if report.complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The workloads of these names, in the benchmark's order; the usual ones if there are no names.
fn choose(names: &[String], full: bool) -> Result<Vec<Workload>, String> {
    let known = |name: &str| workloads().iter().any(|workload| workload.name == name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let known: Vec<_> = workloads().iter().map(|workload| workload.name).collect();
        let known = known.join(", ");
        return Err(format!(
            "no workload is called '{unknown}'; there are: {known}"
        ));
    }
    let wanted = |workload: &&Workload| match names {
        [] => workload.is_usual(full),
        _ => names.iter().any(|name| name == workload.name),
    };
    Ok(workloads().iter().filter(wanted).copied().collect())
}

/// The first Ctrl-C asks the run to stop, the second ends the process.
fn stop_on_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, STOPPED.into(), stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// The file for the report, opened before the run and written after it.
struct JsonFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> JsonFile<'a> {
    fn open(path: &'a Path) -> Result<Self, String> {
        // What is there stays until there is something better.
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Self { path, file })
    }

    fn write(self, report: &Report) -> Result<(), String> {
        let write = || -> std::io::Result<()> {
            // A device or a pipe cannot be cut.
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
            let mut out = BufWriter::new(&self.file);
            serde_json::to_writer_pretty(&mut out, report)?;
            writeln!(out)?;
            out.flush()
        };
        write().map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// The progress bar below, the tables above it as they come.
struct Screen {
    bar: ProgressBar,
}

impl Screen {
    fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed}  {msg}");
        // No thread draws it: a measurement is not to be disturbed by its own progress bar.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar }
    }
}

impl Observer for Screen {
    fn begin(&mut self, steps: u64) {
        self.bar.set_length(steps);
    }

    fn case(&mut self, workload: &str, case: &str) {
        self.bar.set_message(format!("{workload}: {case}"));
        self.bar.tick();
    }

    fn step(&mut self) {
        self.bar.inc(1);
    }

    fn workload(&mut self, report: &WorkloadReport) {
        self.bar
            .suspend(|| println!("{}", tables::workload(report)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = choose(&["wakes".to_owned()], false).unwrap_err();
        assert!(
            error.contains("'wakes'") && error.contains("wake-parallel"),
            "{error}"
        );
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
    fn numbers_out_of_range_are_refused() {
        assert_eq!(at_least_one("3"), Ok(3));
        assert!(at_least_one("0").is_err());
        assert!(at_least_one("-1").is_err());
        assert_eq!(thread_count("512"), Ok(512));
        assert!(thread_count("0").is_err());
        assert!(thread_count("many").is_err());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_found_out_first() {
        let error = JsonFile::open(Path::new("/no/such/folder/x.json")).err();
        assert!(error.unwrap().contains("/no/such/folder/x.json"));
    }
}
