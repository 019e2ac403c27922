//! The rounds. Each round measures all contenders of a cell, in a newly drawn order.
//!
//! A round during which something else ran is repeated. A cell that gets no quiet rounds is not
//! measured. If busy processes are part of the cell, their CPU use cannot be distinguished from
//! that of unrelated processes.

use super::cell::{Beside, Cell};
use super::child::{Answer, CHILD, Figures, Order};
use super::contender::Contender;
use super::quota::{Keeper, Quota};
use super::surroundings::{Busy, confine};
use crate::harness::{Context, Failure};
use crate::usage::LoadWatch;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How to measure.
#[derive(Clone, Debug)]
pub struct Method {
    /// How often each contender is measured in a cell.
    pub rounds: usize,
    /// Length of one measurement, in milliseconds.
    pub milliseconds: u64,
    /// Path of the drop-in.
    pub drop_in: PathBuf,
}

/// A cell and its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellReport {
    /// The cell.
    pub cell: Cell,
    /// Rounds that were repeated because something else ran meanwhile.
    pub repeated: usize,
    /// Rounds during which something else ran, kept on request. Do not publish these.
    pub disturbed: usize,
    /// What enforced the quota, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Keeper>,
    /// Figures of each contender, one per round.
    pub contenders: Vec<(Contender, Vec<Figures>)>,
}

/// Repeated rounds allowed per cell, in addition to its number of rounds.
const REPEATS: usize = 3;
/// Under a quota, a window is longer by this factor: 300 ms are only three periods of the quota.
const PERIODS: u64 = 2;
/// Pause before a round is repeated.
const WAIT: Duration = Duration::from_millis(500);

/// Measures a cell.
///
/// # Errors
/// A contender misbehaved or could not be started, or the machine was never quiet.
pub(super) fn measure(
    cell: &Cell,
    contenders: &[Contender],
    method: &Method,
    context: &Context,
) -> Result<CellReport, Failure> {
    let family = cell.id.family;
    let there = contenders.iter().filter(|who| who.is_there_for(family));
    let mut report = CellReport {
        cell: *cell,
        repeated: 0,
        disturbed: 0,
        quota: Quota::of(cell.id.beside).map(|quota| quota.keeper()),
        contenders: there.map(|&who| (who, Vec::new())).collect(),
    };
    let busy = Busy::beside(cell.id.beside)?;
    let mut rng =
        Rng::with_seed(context.settings.seed ^ cell.id.seed << 32 ^ u64::from(cell.id.number));
    let mut kept = 0;
    while kept < method.rounds {
        let watch = LoadWatch::start();
        let round = round(&report, method, &mut rng, context)?;
        let can_tell = !matches!(cell.id.beside, Beside::BusyOne | Beside::BusyAll);
        if can_tell && watch.was_disturbed() {
            if !context.settings.keep_disturbed {
                report.repeated += 1;
                if report.repeated > REPEATS + method.rounds {
                    return Err(Failure::Disturbed(cell.id.to_string()));
                }
                std::thread::sleep(WAIT);
                continue;
            }
            report.disturbed += 1;
        }
        kept += 1;
        for (figures, (_, rounds)) in round.into_iter().zip(&mut report.contenders) {
            rounds.push(figures);
        }
    }
    drop(busy);
    Ok(report)
}

/// Measures each contender once. The figures are in the report's order.
fn round(
    report: &CellReport,
    method: &Method,
    rng: &mut Rng,
    context: &Context,
) -> Result<Vec<Figures>, Failure> {
    let mut order: Vec<usize> = (0..report.contenders.len()).collect();
    rng.shuffle(&mut order);
    let mut figures = vec![None; order.len()];
    for place in order {
        if context.is_stopped() {
            return Err(Failure::Stopped);
        }
        let (contender, _) = report.contenders[place];
        let order = Order {
            cell: report.cell,
            contender,
            milliseconds: match report.quota {
                Some(_) => method.milliseconds * PERIODS,
                None => method.milliseconds,
            },
            is_traced: false,
        };
        context.measures(format!("{}: {contender}", report.cell.id));
        let answer = carry_out(&order, method)?;
        context.progressed();
        figures[place] = Some(answer.figures);
    }
    Ok(figures.into_iter().flatten().collect())
}

/// Has a child process carry out the order.
pub(super) fn carry_out(order: &Order, method: &Method) -> Result<Answer, Failure> {
    let Order { cell, contender, .. } = order;
    let failed = |what: &str| Failure::new(format!("{}: {contender}: {what}", cell.id));
    let io = |error: std::io::Error| failed(&error.to_string());
    let mut command = Command::new(std::env::current_exe().map_err(io)?);
    command
        .arg(CHILD)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if *contender == Contender::DropIn {
        command.env("LD_PRELOAD", &method.drop_in);
    }
    confine(&mut command, cell.id.beside);
    let quota = Quota::of(cell.id.beside);
    if let Some(quota) = &quota {
        quota.confine(&mut command).map_err(io)?;
    }
    let mut child = command.spawn().map_err(io)?;
    let text = serde_json::to_string(order).map_err(Failure::new)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes()).map_err(io)?;
    }
    let id = child.id();
    let end = || child.wait_with_output();
    let ended = match &quota {
        Some(quota) => quota.keep(id, end),
        None => end(),
    };
    let ended = ended.map_err(io)?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(failed(&format!("{}: {}", ended.status, said.trim())));
    }
    serde_json::from_slice(&ended.stdout).map_err(|error| failed(&error.to_string()))
}
