//! The process in which one scenario runs.
//!
//! The supervisor starts this same program again, with the same arguments, and passes in the
//! environment what to run. So a scenario begins with an unused table, and with the environment
//! that it asks for.

use crate::board::Board;
use crate::choices::Choices;
use crate::context::Context;
use crate::fault::injector::Injector;
use crate::fault::kind::Fault;
use crate::fault::memory;
use crate::protocol::{VARIABLE, VIOLATED};
use crate::scenario::exec::{self, Passed};
use crate::slice::Slice;
use crate::{drop_in, list, process, report, watchdog};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::time::{Duration, Instant};

/// Runs a scenario, if this process was started for one, and returns its exit status. A program
/// that calls [`run`](crate::run), but does not always get there from its arguments alone, must
/// call this first.
pub fn run_if_child() -> Option<ExitCode> {
    let slice = std::env::var(VARIABLE).ok()?;
    let Some(slice) = Slice::from_text(&slice) else {
        eprintln!("torture: {VARIABLE} is for the torture's own use");
        return Some(ExitCode::FAILURE);
    };
    Some(run_scenario(slice))
}

fn run_scenario(slice: Slice) -> ExitCode {
    process::die_with_parent();
    if let Err(error) = drop_in::verify(&slice) {
        eprintln!("torture: {error}");
        return ExitCode::FAILURE;
    }
    let mut all = list::all(slice.drop_in).iter();
    let Some(scenario) = all.find(|one| one.name == slice.scenario) else {
        eprintln!("torture: no scenario `{}`", slice.scenario);
        return ExitCode::FAILURE;
    };
    let passed = Passed::from_environment();
    let board_file = (passed.as_ref()).map_or_else(Board::new_file, |passed| passed.board);
    let context: &'static Context = Box::leak(Box::new(Context {
        seed: slice.seed_of_choices(),
        choices: Choices::from_environment(),
        ends: Instant::now() + Duration::from_secs_f64(slice.seconds),
        slice,
        board: Board::of_file(board_file),
        board_file,
        round: AtomicU64::new(0),
        words: Mutex::default(),
        objects: Mutex::default(),
        children: [const { AtomicI32::new(0) }; 64],
    }));
    if let Some(passed) = passed {
        // Another process watches the one that was forked for the scenario.
        return ExitCode::from(exec::go_on(context, &passed));
    }
    if context.has(Fault::Memory) {
        memory::install(context);
    }
    let watchdog = watchdog::start(context);
    let injector = Injector::start(context);
    let verdict = (scenario.run)(context);
    injector.stop();
    watchdog.stop();
    match verdict {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            process::complain(&report::waits(context, &complaint));
            process::kill_all(context);
            ExitCode::from(VIOLATED)
        }
    }
}
