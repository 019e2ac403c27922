//! `waitword bench any`: arguments, progress, tables.

use super::tables;
use crate::out_file::OutFile;
use crate::stop::{STOPPED, stop_on_signals};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use waitword_bench::Settings;
use waitword_bench::any::cell::{Beside, CellId, Family};
use waitword_bench::any::contender::Contender;
use waitword_bench::any::replay::replay;
use waitword_bench::any::rounds::Method;
use waitword_bench::any::{AnyReport, Plan, draw, measure};
use waitword_bench::harness::{Context, Failure};

/// The arguments of `waitword bench any`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seeds to draw the loads from; seeds below 1000 are for tuning
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [1])]
    seed: Vec<u64>,

    /// Number of loads (cells) for each seed, family and surroundings
    #[arg(long, value_name = "N", default_value_t = 10)]
    cells: u32,

    /// Families of loads: mutex, many-mutexes, rwlock, queue, pool, fork-join, burst
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = Family::ALL)]
    family: Vec<Family>,

    /// Surroundings of the loads: quiet, pinned, one-cpu, busy-one, busy-all, half-quota
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_values_t = [Beside::Quiet, Beside::BusyAll]
    )]
    beside: Vec<Beside>,

    /// Measure each contender N times in each load
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,

    /// Milliseconds that each measurement lasts
    #[arg(long, value_name = "N", default_value_t = 300)]
    milliseconds: u64,

    /// Measure only these contenders
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    contenders: Option<Vec<Contender>>,

    /// Also measure the other flavours of waitword's mutex
    #[arg(long)]
    flavours: bool,

    /// Keep rounds during which other processes used the CPUs, for a quick look on a machine that
    /// is never quiet
    #[arg(long)]
    keep_disturbed: bool,

    /// Also write the report to FILE as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Also write an HTML page: a plot for each family, with the worst loads first
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Run only this load (such as mutex/quiet/7/12), and chart which threads held the lock and
    /// which waited
    #[arg(long, value_name = "CELL")]
    replay: Option<CellId>,

    /// For --replay: number of columns of the chart, and microseconds per column
    #[arg(long, value_name = "COLUMNS,MICROSECONDS", default_value = "120,5")]
    chart: String,
}

pub(super) fn run(args: &Args) -> ExitCode {
    let result = match args.replay {
        Some(cell) => replay_cell(cell, args),
        None => measure_cells(args),
    };
    result.unwrap_or_else(|message| {
        eprintln!("error: {message}");
        ExitCode::from(2)
    })
}

fn contenders(args: &Args) -> Vec<Contender> {
    match &args.contenders {
        Some(these) => these.clone(),
        None => usual_contenders(args.flavours),
    }
}

fn method(args: &Args) -> Result<Method, String> {
    Ok(Method {
        rounds: args.rounds,
        milliseconds: args.milliseconds,
        drop_in: crate::drop_in::library::put_in_place().map_err(|error| format!("{error:#}"))?,
    })
}

fn measure_cells(args: &Args) -> Result<ExitCode, String> {
    let json = args.json.as_deref().map(OutFile::open).transpose()?;
    let html = args.html.as_deref().map(OutFile::open).transpose()?;
    let stop = stop_on_signals().map_err(|error| format!("signal handlers: {error}"))?;
    let settings = Settings {
        rounds: args.rounds,
        seed: fastrand::u32(..).into(),
        keep_disturbed: args.keep_disturbed,
        ..Settings::default()
    };
    let context = Context::new(settings, stop);
    let plan = Plan {
        families: args.family.clone(),
        beside: args.beside.clone(),
        seeds: args.seed.clone(),
        cells: args.cells,
        contenders: contenders(args),
        method: method(args)?,
    };
    let (report, failure) = with_progress(&plan, &context);
    print!("{}", tables::any::text(&report));
    if let Some(json) = json {
        let text = serde_json::to_string(&report).map_err(|error| error.to_string())?;
        json.write(&(text + "\n"))?;
    }
    if let Some(html) = html {
        html.write(&waitword_report::any_html(&report))?;
    }
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(Failure::Stopped) => {
            println!("Stopped before the end: these are the results so far.");
            Ok(ExitCode::from(STOPPED))
        }
        Some(failure) => Err(failure.to_string()),
    }
}

fn with_progress(plan: &Plan, context: &Context) -> (AnyReport, Option<Failure>) {
    let bar = ProgressBar::new(1);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} cells  {elapsed}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let measured = measure(plan, context, |cell, done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(cell.cell.id.to_string());
    });
    bar.finish_and_clear();
    measured
}

/// Measures a few loads of the most common families, for the end of `waitword bench`. Their seed is
/// not one of those used for tuning.
pub(super) fn a_few(context: &Context) -> Result<(AnyReport, Option<Failure>), String> {
    const CELLS: u32 = 3;
    const MOST_ROUNDS: usize = 3;
    let settings = &context.settings;
    let plan = Plan {
        families: vec![Family::Mutex, Family::RwLock, Family::Queue],
        beside: vec![Beside::Quiet, Beside::BusyAll],
        seeds: vec![1000 + settings.seed % 1_000_000],
        cells: CELLS,
        contenders: usual_contenders(false),
        method: Method {
            rounds: settings.rounds.min(MOST_ROUNDS),
            // With 64 threads on a loaded machine, a shorter run may end before every thread has
            // run.
            milliseconds: (settings.window.as_millis() as u64).max(100),
            drop_in: crate::drop_in::library::put_in_place()
                .map_err(|error| format!("{error:#}"))?,
        },
    };
    Ok(with_progress(&plan, context))
}

fn usual_contenders(flavours: bool) -> Vec<Contender> {
    Contender::ALL.into_iter().filter(|who| flavours || !who.is_flavour()).collect()
}

fn replay_cell(id: CellId, args: &Args) -> Result<ExitCode, String> {
    let (columns, step) = args
        .chart
        .split_once(',')
        .and_then(|(columns, step)| Some((columns.parse().ok()?, step.parse().ok()?)))
        .ok_or("--chart: expected two numbers, such as 120,5")?;
    let method = method(args)?;
    let cell = draw::cell(id);
    println!("{id}: {cell}\n");
    for who in contenders(args) {
        if !who.is_there_for(id.family) {
            continue;
        }
        let replayed = replay(&cell, who, &method).map_err(|failure| failure.to_string())?;
        let figures = replayed.figures;
        println!(
            "{who}: {:.4} M ops/s, {:.0} ns CPU/op, waits {:.1} µs (p50), {:.1} (p99), {:.1} \
             (p99.9), {:.1} (longest), least/most served thread {:.2}, {:.3} switches/op",
            figures.throughput / 1e6,
            figures.cpu,
            figures.p50 / 1e3,
            figures.p99 / 1e3,
            figures.p999 / 1e3,
            figures.longest / 1e3,
            figures.spread,
            figures.switches,
        );
        println!("{}", replayed.chart(columns, step));
    }
    Ok(ExitCode::SUCCESS)
}
