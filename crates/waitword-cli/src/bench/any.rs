//! `waitword bench any`: arguments, progress, tables.

use super::{STOPPED, stop_on_signals};
use crate::out_file::OutFile;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use waitword_bench::Settings;
use waitword_bench::any::cell::{Beside, CellId, Family};
use waitword_bench::any::contender::Contender;
use waitword_bench::any::replay::replay;
use waitword_bench::any::rounds::{CellReport, Method};
use waitword_bench::any::summary::{Of, Ratios, To, ratios};
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

    /// Write the report to FILE, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

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
        None => Contender::ALL
            .into_iter()
            .filter(|who| args.flavours || !who.is_flavour())
            .collect(),
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
    let stop = stop_on_signals().map_err(|error| format!("signal handlers: {error}"))?;
    let context = Context::new(Settings::default(), stop);
    let plan = Plan {
        families: args.family.clone(),
        beside: args.beside.clone(),
        seeds: args.seed.clone(),
        cells: args.cells,
        contenders: contenders(args),
        method: method(args)?,
    };
    let bar = ProgressBar::new(1);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} cells  {elapsed}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let (report, failure) = measure(&plan, &context, |cell, done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(cell.cell.id.to_string());
    });
    bar.finish_and_clear();
    print!("{}", text(&report));
    if let Some(json) = json {
        let text = serde_json::to_string(&report).map_err(|error| error.to_string())?;
        json.write(&(text + "\n"))?;
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

/// Mean, tenth percentile and worst.
fn three(ratios: Option<Ratios>) -> String {
    ratios.map_or_else(String::new, |ratios| {
        format!("{:.2} {:.2} {:.2}", ratios.mean, ratios.tenth, ratios.worst)
    })
}

fn mean(ratios: Option<Ratios>) -> String {
    ratios.map_or_else(String::new, |ratios| format!("{:.2}", ratios.mean))
}

/// The tables: for each of ours, families beside things.
fn text(report: &AnyReport) -> String {
    let mut text = String::new();
    let peers: Vec<Contender> = Contender::ALL
        .into_iter()
        .filter(|who| !who.is_ours())
        .collect();
    for ours in [Contender::Waitword, Contender::DropIn] {
        let mut table = Table::new();
        table
            .load_style(ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled);
        let mut header = vec![
            format!("{ours}"),
            "cells".to_owned(),
            "throughput to best: mean, tenth, worst".to_owned(),
            "CPU".to_owned(),
        ];
        header.extend(
            peers
                .iter()
                .map(|peer| format!("to {peer}: throughput; CPU; p99.9")),
        );
        table.set_header(header);
        for family in Family::ALL {
            for beside in Beside::ALL {
                let of = |to, of| ratios(&report.cells, Some(family), Some(beside), ours, to, of);
                let Some(best) = of(To::Best, Of::Throughput) else {
                    continue;
                };
                let mut row = vec![
                    format!("{family}, {beside}"),
                    best.cells.to_string(),
                    three(Some(best)),
                    mean(of(To::Best, Of::Cpu)),
                ];
                row.extend(peers.iter().map(|&peer| {
                    let parts = Of::ALL.map(|figure| mean(of(To::Peer(peer), figure)));
                    parts.join("; ")
                }));
                table.add_row(row);
            }
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        text += &format!("{table}\n\n");
    }
    text += &worst(report, 10);
    text
}

/// The worst cells, and how to look at them.
fn worst(report: &AnyReport, count: usize) -> String {
    let mut all: Vec<(f64, Contender, &CellReport)> = Vec::new();
    for ours in [Contender::Waitword, Contender::DropIn] {
        let of = |cell| CellReport::ratio(cell, ours, To::Best, Of::Throughput);
        all.extend(
            report
                .cells
                .iter()
                .filter_map(|cell| Some((of(cell)?, ours, cell))),
        );
    }
    all.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    let mut text = "The worst cells (look at one by --replay):\n".to_owned();
    for (ratio, ours, cell) in all.into_iter().take(count) {
        let best = cell
            .other(To::Best)
            .map_or_else(String::new, |best| best.to_string());
        text += &format!(
            "{ratio:.2} {ours} of {best}: {} ({})\n",
            cell.cell.id, cell.cell
        );
    }
    text
}
