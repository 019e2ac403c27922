//! `waitword bench any`: arguments, progress, tables.

use super::{STOPPED, stop_on_signals, tables};
use crate::out_file::OutFile;
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

/// What the user can ask for.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Draw the loads from these seeds; those below 1000 are for tuning
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [1])]
    seed: Vec<u64>,

    /// So many loads of each seed, in each family and surroundings
    #[arg(long, value_name = "N", default_value_t = 10)]
    cells: u32,

    /// Loads of these kinds: mutex, many-mutexes, rwlock, queue, pool, fork-join, burst
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = Family::ALL)]
    family: Vec<Family>,

    /// Beside these: quiet, pinned, one-cpu, busy-one, busy-all, half-quota
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [Beside::Quiet, Beside::BusyAll])]
    beside: Vec<Beside>,

    /// How often each contender is measured in a cell
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,

    /// How long, in milliseconds
    #[arg(long, value_name = "N", default_value_t = 300)]
    milliseconds: u64,

    /// Only these contenders
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    contenders: Option<Vec<Contender>>,

    /// Also the other flavours of our mutex
    #[arg(long)]
    flavours: bool,

    /// Keep rounds beside which others used the machine: for a look at a machine that is never
    /// quiet
    #[arg(long)]
    keep_disturbed: bool,

    /// Write the report to FILE, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write it as a page for a browser, too: a plot for each family, the worst loads first
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Run this one cell, long, and show who held and who waited
    #[arg(long, value_name = "CELL")]
    replay: Option<CellId>,

    /// Of a replay: the columns of the chart, and the microseconds of each
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
            println!("Stopped before the end: this is what there is.");
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

/// A few of each of the families that every program has, for the end of `waitword bench`. They come
/// from a seed that nobody tunes on.
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
            // With 64 threads and a busy machine, less may be over before any has had its turn.
            milliseconds: (settings.window.as_millis() as u64).max(100),
            drop_in: crate::drop_in::library::put_in_place()
                .map_err(|error| format!("{error:#}"))?,
        },
    };
    Ok(with_progress(&plan, context))
}

fn usual_contenders(flavours: bool) -> Vec<Contender> {
    Contender::ALL
        .into_iter()
        .filter(|who| flavours || !who.is_flavour())
        .collect()
}

fn replay_cell(id: CellId, args: &Args) -> Result<ExitCode, String> {
    let (columns, step) = args
        .chart
        .split_once(',')
        .and_then(|(columns, step)| Some((columns.parse().ok()?, step.parse().ok()?)))
        .ok_or("--chart: two numbers are needed, such as 120,5")?;
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
            "{who}: {:.4} M/s, {:.0} ns of CPU, waits {:.1} µs (p50), {:.1} (p99), {:.1} (p99.9), {:.1} (longest), \
             least {:.2} of most, {:.3} switches",
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
