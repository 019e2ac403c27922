//! Runs the scenarios, each in a process of its own; shows how far they are; adds up.

use crate::args::Args;
use crate::board::{Count, Totals};
use crate::child::{self, Order, VARIABLE, VIOLATED};
use crate::drop_in::{self, DropIn};
use crate::scenario::{self, Scenario};
use crate::summary::{self, Line};
use crate::watchdog::{COUNTS_LINE, HUNG};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How much longer than its own watchdog's patience a scenario's process may be silent: that watchdog, too,
/// could hang.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the torture; success if no scenario has failed.
///
/// `drop_in` says where the drop-in lies as a file, and is asked if it is that which is tortured.
pub fn run(args: &Args, drop_in: &dyn Fn() -> Result<PathBuf, String>) -> ExitCode {
    if let Some(code) = child::run_if_child() {
        return code;
    }
    if args.list {
        println!("{}", summary::list(args.drop_in));
        return ExitCode::SUCCESS;
    }
    let preload = match (&args.drop_in, &args.drop_in_library) {
        (Some(DropIn::On), Some(path)) => Ok(Some(path.clone())),
        (Some(DropIn::On), None) => drop_in().map(Some),
        _ => Ok(None),
    };
    let lines = preload
        .map_err(std::io::Error::other)
        .and_then(|preload| run_all(args, preload.as_deref()));
    match lines {
        Ok(lines) => {
            println!("{}", summary::table(&lines));
            let failed: Vec<_> = lines.iter().filter(|line| line.failure.is_some()).collect();
            for line in &failed {
                let why = line.failure.as_deref().unwrap_or_default();
                println!("FAILED: {}: {why}", line.scenario);
            }
            if failed.is_empty() {
                println!("No wake-up was lost.");
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(args: &Args, preload: Option<&Path>) -> std::io::Result<Vec<Line>> {
    let chosen: Vec<&Scenario> = scenario::all(args.drop_in)
        .iter()
        .filter(|one| args.only.is_empty() || args.only.iter().any(|name| name == one.name))
        .collect();
    if chosen.is_empty() {
        let error = "none of these scenarios: those of the drop-in need --drop-in, the others must not have it";
        return Err(std::io::Error::other(error));
    }
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let each = args.seconds.max(0.0) / chosen.len() as f64;
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
        let order = Order {
            scenario: scenario.name.to_owned(),
            seconds: each,
            seed,
            threads: args.threads.0.clone(),
            patience: args.patience,
            sabotage: args.sabotage,
            slice: 0,
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
        let line = run_scenario(scenario, order, &show)?;
        if bar.is_hidden() {
            println!("{}", summary::one(&line));
        }
        lines.push(line);
    }
    bar.finish_and_clear();
    Ok(lines)
}

/// Runs one scenario for its time, in several processes one after the other if it wants that.
fn run_scenario(
    scenario: &Scenario,
    order: Order,
    show: &dyn Fn(f64, &Totals),
) -> std::io::Result<Line> {
    let started = Instant::now();
    let mut line = Line {
        scenario: scenario.name,
        totals: Totals::default(),
        took: Duration::ZERO,
        failure: None,
    };
    for slice in 0.. {
        let left = order.seconds - started.elapsed().as_secs_f64();
        if (slice > 0 && left <= 0.0) || line.failure.is_some() {
            break;
        }
        let seconds = match scenario.slice {
            Some(longest) => left.min(longest.as_secs_f64()),
            None => left,
        };
        let order = Order {
            slice,
            seconds,
            ..order.clone()
        };
        let before = line.totals;
        let (totals, failure) = run_process(scenario, &order, &|totals| {
            let mut all = before;
            all.add(totals);
            show(
                started.elapsed().as_secs_f64() / order.seconds.max(0.001),
                &all,
            );
        })?;
        line.totals.add(&totals);
        line.failure = failure;
        if scenario.slice.is_none() {
            break;
        }
    }
    line.took = started.elapsed();
    Ok(line)
}

fn run_process(
    scenario: &Scenario,
    order: &Order,
    show: &dyn Fn(&Totals),
) -> std::io::Result<(Totals, Option<String>)> {
    let mut command = Command::new(std::env::current_exe()?);
    if order.drop_in == Some(DropIn::Off) {
        command.env_remove(drop_in::PRELOAD);
    }
    let mut child = command
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, order.to_text())
        .envs(scenario.environment.iter().copied())
        .envs(drop_in::environment(order))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = lines_of(&mut child);
    let silence = Duration::from_secs_f64(order.patience) + GRACE;
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
            Err(RecvTimeoutError::Disconnected) => {
                let failure = failure_of(child.wait()?);
                return Ok((totals, failure));
            }
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                let failure = "its process fell silent, watchdog and all, and was killed";
                return Ok((totals, Some(failure.to_owned())));
            }
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
        (Some(HUNG), _) => Some("hung; who waits on what is printed above".to_owned()),
        (Some(code), _) if code == i32::from(VIOLATED) => {
            Some("an invariant was violated, as printed above".to_owned())
        }
        (Some(code), _) => Some(format!("its process ended with status {code}")),
        (None, signal) => Some(format!(
            "its process was killed by signal {}",
            signal.unwrap_or_default()
        )),
    }
}
