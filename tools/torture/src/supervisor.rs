//! Runs the scenarios, each in a process of its own; shows their progress; adds up the counts.

use crate::args::Args;
use crate::child;
use crate::count::{Count, Totals};
use crate::drop_in;
use crate::fault::choice;
use crate::fault::clock::Clock;
use crate::fault::kind::Fault;
use crate::fault::stop::Outside;
use crate::list::Scenario;
use crate::preflight;
use crate::process::CANNOT;
use crate::protocol::{CHOICES, VARIABLE, VIOLATED};
use crate::record::{self, Record};
use crate::slice::{DropIn, Slice};
use crate::summary::{self, Line};
use crate::watchdog::{COUNTS_LINE, HUNG};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How much longer than its own watchdog's patience a scenario's process may be silent. That
/// watchdog could hang too.
const GRACE: Duration = Duration::from_secs(10);

/// The least time of a slice, in seconds: it has one round in any case, and the value can be given
/// on the command line.
const LEAST: f64 = 0.001;

/// Runs the torture. Success means that no scenario has failed.
///
/// `drop_in` returns the path of the drop-in as a file. It is called only if the drop-in is
/// tortured.
pub fn run(args: &Args, drop_in: &dyn Fn() -> Result<PathBuf, String>) -> ExitCode {
    if let Some(code) = child::run_if_child() {
        return code;
    }
    if args.list {
        println!("{}\n{}", summary::scenarios(args.drop_in), summary::all_faults());
        return ExitCode::SUCCESS;
    }
    let ended = match &args.records {
        Some(file) => record::table_of(file).map(|table| {
            print!("{table}");
            true
        }),
        None => run_and_report(args, drop_in),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether no scenario has failed.
fn run_and_report(
    args: &Args,
    drop_in: &dyn Fn() -> Result<PathBuf, String>,
) -> Result<bool, String> {
    let scenarios = preflight::check(args)?;
    let preload = match (&args.drop_in, &args.drop_in_library) {
        (Some(DropIn::On), Some(path)) => Some(path.clone()),
        (Some(DropIn::On), None) => Some(drop_in()?),
        _ => None,
    };
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let lines = run_all(args, scenarios, seed, preload.as_deref());
    println!("{}", summary::table(&lines));
    println!("{}", summary::faults(&lines));
    for line in &lines {
        if let Some(why) = &line.failure {
            println!("FAILED: {}: {why}", line.scenario);
        }
    }
    if let Some(file) = &args.record {
        Record::new(args.drop_in, seed, &lines).append_to(file)?;
    }
    let holds = lines.iter().all(|line| line.failure.is_none());
    if holds {
        println!("No wake-up was lost.");
    }
    Ok(holds)
}

fn run_all(args: &Args, chosen: Vec<&Scenario>, seed: u64, preload: Option<&Path>) -> Vec<Line> {
    let each = args.seconds / chosen.len() as f64;
    println!(
        "torture: {} scenarios, {each:.1} s each, threads {}, seed {seed}",
        chosen.len(),
        args.threads,
    );
    let bar = ProgressBar::new(chosen.len() as u64 * 1000);
    let style = "{bar:30} {elapsed_precise} {msg}";
    bar.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let mut lines = Vec::new();
    for (index, scenario) in chosen.into_iter().enumerate() {
        let first = Slice {
            scenario: scenario.name.to_owned(),
            number: args.slice.unwrap_or(0),
            seconds: each,
            seed,
            threads: args.threads.0.clone(),
            patience: args.patience,
            sabotage: args.sabotage,
            faults: Vec::new(),
            rounds: args.rounds,
            drop_in: args.drop_in,
            preload: preload.map(Path::to_owned),
        };
        let show = |share: f64, totals: &Totals| {
            bar.set_position(index as u64 * 1000 + (share.min(1.0) * 1000.0) as u64);
            bar.set_message(format!(
                "{}: {} operations, {} waits, {} wakes",
                scenario.name,
                HumanCount(totals.of(Count::Operations)),
                HumanCount(totals.of(Count::Waits)),
                HumanCount(totals.of(Count::Wakes)),
            ));
        };
        let line = run_scenario(scenario, first, args, &show);
        if bar.is_hidden() {
            println!("{}", summary::one(&line));
        }
        lines.push(line);
    }
    bar.finish_and_clear();
    lines
}

/// Runs one scenario for its time, in several processes one after another, each with its own
/// faults.
fn run_scenario(
    scenario: &Scenario,
    first: Slice,
    args: &Args,
    show: &dyn Fn(f64, &Totals),
) -> Line {
    let started = Instant::now();
    let mut line = Line {
        scenario: scenario.name,
        totals: Totals::default(),
        took: Duration::ZERO,
        failure: None,
    };
    for number in first.number.. {
        let left = first.seconds - started.elapsed().as_secs_f64();
        let is_first = number == first.number;
        if (!is_first && (left <= 0.0 || args.slice.is_some())) || line.failure.is_some() {
            break;
        }
        let mut faults =
            choice::chosen(&args.faults.0, args.clock_steps, first.seed, scenario.name, number);
        faults.retain(|fault| !scenario.without.contains(fault));
        let slice = Slice {
            number,
            seconds: left.clamp(LEAST, scenario.slice.as_secs_f64()),
            faults,
            ..first.clone()
        };
        let before = line.totals;
        let show = |totals: &Totals| {
            let mut all = before;
            all.add(totals);
            show(started.elapsed().as_secs_f64() / first.seconds, &all);
        };
        let ran = run_process(scenario, &slice, args.choices.as_deref(), &show);
        // What was found until then must not be lost.
        let (totals, failure) = ran.unwrap_or_else(|error| {
            let failure = format!("its process could not be run: {error}");
            (Totals::default(), Some(failure))
        });
        line.totals.add(&totals);
        if failure.is_some() {
            println!("again, with the same choices: {}", slice.command());
        }
        line.failure = failure.map(|failure| format!("{failure} (slice {number})"));
    }
    line.took = started.elapsed();
    line
}

fn run_process(
    scenario: &Scenario,
    slice: &Slice,
    choices: Option<&Path>,
    show: &dyn Fn(&Totals),
) -> std::io::Result<(Totals, Option<String>)> {
    let mut command = Command::new(std::env::current_exe()?);
    if slice.drop_in == Some(DropIn::Off) {
        command.env_remove(drop_in::PRELOAD);
    }
    let mut child = command
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, slice.to_text()?)
        .envs(scenario.environment.iter().copied())
        .envs(drop_in::environment(slice))
        .envs(choices.map(|file| (CHOICES, file)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let seed = slice.seed_of_choices();
    let has = |fault| slice.faults.contains(&fault);
    let clock = has(Fault::Clock).then(|| Clock::start(seed)).transpose();
    let clock = clock.inspect_err(|_| {
        // The process must not go on alone. If it is gone already, that is fine too.
        let _ = child.kill().and_then(|()| child.wait());
    })?;
    let outside = has(Fault::Stop).then(|| Outside::start(child.id(), seed));
    let (totals, silent) = listen(&mut child, slice, show);
    // Before the child is waited for, because it must still have its number, and must not stay
    // stopped.
    let mut counted = Totals::default();
    counted.0[Count::Stops as usize] = outside.map_or(0, Outside::end);
    counted.0[Count::ClockSteps as usize] = clock.map_or(0, Clock::end);
    counted.add(&totals);
    if silent {
        child.kill()?;
        child.wait()?;
        let failure = "its process and its watchdog fell silent, and it was killed";
        return Ok((counted, Some(failure.to_owned())));
    }
    Ok((counted, failure_of(child.wait()?)))
}

/// Reads the output of a scenario's process to its end. Returns whether it fell silent instead.
fn listen(child: &mut Child, slice: &Slice, show: &dyn Fn(&Totals)) -> (Totals, bool) {
    let lines = lines_of(child);
    let silence = Duration::from_secs_f64(slice.patience) + GRACE;
    let mut totals = Totals::default();
    loop {
        match lines.recv_timeout(silence) {
            Ok(line) => match line.strip_prefix(COUNTS_LINE).and_then(Totals::from_line) {
                Some(now) => {
                    totals = now;
                    show(&totals);
                }
                None => eprintln!("{line}"),
            },
            Err(RecvTimeoutError::Disconnected) => return (totals, false),
            Err(RecvTimeoutError::Timeout) => return (totals, true),
        }
    }
}

fn lines_of(child: &mut Child) -> Receiver<String> {
    let (to, from) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if to.send(line).is_err() {
                    break;
                }
            }
        });
    }
    from
}

fn failure_of(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(HUNG), _) => Some("hung; which thread waits for what is printed above".to_owned()),
        (Some(code), _) if code == i32::from(VIOLATED) => {
            Some("an invariant was violated, as printed above".to_owned())
        }
        (Some(code), _) if code == CANNOT => Some(
            "the machine did not let it continue, as printed above: this says nothing about what \
             is tortured"
                .to_owned(),
        ),
        (Some(code), _) => Some(format!("its process ended with status {code}")),
        (None, signal) => {
            Some(format!("its process was killed by signal {}", signal.unwrap_or_default()))
        }
    }
}
