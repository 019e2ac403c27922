//! Looks before the run whether it can be run as asked: an error belongs there, and not an hour later.

use crate::args::Args;
use crate::context::STACK;
use crate::drop_in::DropIn;
use crate::fault::{Clock, Fault, Wanted};
use crate::record;
use crate::scenario::{self, Scenario};
use std::fs::OpenOptions;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::RwLock;
use std::thread::{Builder, scope};

/// What may be there beside the threads that are asked for: visitors, storms, those who watch and inject.
const MORE_THREADS: usize = 64;

/// The scenarios that are asked for, if nothing speaks against the run.
///
/// # Errors
/// What does.
pub(crate) fn check(args: &Args) -> Result<Vec<&'static Scenario>, String> {
    let scenarios = scenarios(args)?;
    if args.faults.0 == Wanted::These(vec![Fault::Clock]) && !args.clock_steps {
        return Err(
            "`--faults clock` sets the clock of the whole machine, and needs --clock-steps"
                .to_owned(),
        );
    }
    if args.clock_steps {
        Clock::may_be_set()
            .map_err(|error| format!("--clock-steps: the clock may not be set: {error}"))?;
    }
    if let Some(file) = &args.record {
        record::check(file)?;
    }
    if let Some(file) = &args.choices {
        can_be_written(file)?;
    }
    if let Some(file) = &args.drop_in_library {
        std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let most = args.threads.0.iter().max().copied().unwrap_or(0);
    // Each may have a visitor.
    can_be_there(2 * most + MORE_THREADS).map_err(|error| {
        format!("{most} threads and their visitors cannot be there at once: {error}. Give a smaller --threads, or raise the limit (ulimit -u, ulimit -v, pids.max)")
    })?;
    Ok(scenarios)
}

fn scenarios(args: &Args) -> Result<Vec<&'static Scenario>, String> {
    let all = scenario::all(args.drop_in);
    let foreign = |name: &&String| all.iter().all(|scenario| scenario.name != **name);
    if let Some(name) = args.only.iter().find(foreign) {
        return Err(match args.drop_in {
            None => format!("`{name}` is a scenario of --drop-in, which is not given"),
            Some(DropIn::On | DropIn::Off) => {
                format!("`{name}` is a scenario of the library, and none of --drop-in")
            }
        });
    }
    let is_wanted = |scenario: &&Scenario| {
        args.only.is_empty() || args.only.iter().any(|name| name == scenario.name)
    };
    Ok(all.iter().filter(is_wanted).collect())
}

/// Makes it, if it is not there.
///
/// # Errors
/// With the file's name.
pub(crate) fn can_be_written(file: &Path) -> Result<(), String> {
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened
        .map(drop)
        .map_err(|error| format!("{}: {error}", file.display()))
}

/// Starts so many threads, of which none goes before the last has come.
fn can_be_there(threads: usize) -> Result<(), String> {
    /// Of its own memory, beside the stack: the signal stack that Rust gives it, guard pages.
    const BESIDE: usize = 64 << 10;
    // First, since a thread whose signal stack cannot be had ends the process.
    has_room(threads * (STACK + BESIDE))
        .map_err(|error| format!("there is no room for their stacks ({error})"))?;
    let gate = RwLock::new(());
    scope(|scope| {
        let closed = gate.write();
        for number in 0..threads {
            let thread = Builder::new().stack_size(STACK);
            if let Err(error) = thread.spawn_scoped(scope, || drop(gate.read())) {
                return Err(format!("only {number} could be started ({error})"));
            }
        }
        drop(closed);
        Ok(())
    })
}

/// Whether so many bytes of the address space can be had.
fn has_room(bytes: usize) -> std::io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory, that nobody uses.
    let memory = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was mapped above, with this size.
    unsafe { libc::munmap(memory, bytes) };
    Ok(())
}
