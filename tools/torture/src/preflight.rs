//! Checks before the run whether it can be run as asked: an error belongs there, not an hour later.

use crate::args::Args;
use crate::crew::STACK;
use crate::fault::choice::Wanted;
use crate::fault::clock::Clock;
use crate::fault::kind::Fault;
use crate::list::{self, Scenario};
use crate::record;
use crate::slice::DropIn;
use std::ptr::null_mut;
use std::sync::RwLock;
use std::thread::{Builder, scope};

/// Threads that may exist besides those asked for: visitors, storms, the watchdog and the
/// injectors.
const MORE_THREADS: usize = 64;

/// The scenarios that were asked for, if they can be run.
///
/// # Errors
/// What prevents the run.
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
            .map_err(|error| format!("--clock-steps: the clock cannot be set: {error}"))?;
    }
    if let Some(file) = &args.record {
        record::check(file)?;
    }
    if let Some(file) = &args.choices {
        record::can_be_written(file)?;
    }
    if let Some(file) = &args.drop_in_library {
        std::fs::metadata(file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let most = args.threads.0.iter().max().copied().unwrap_or(0);
    // Each may have a visitor.
    can_be_there(2 * most + MORE_THREADS).map_err(|error| {
        format!(
            "{most} threads and their visitors cannot exist at once: {error}. Give a smaller \
             --threads, or raise the limit (ulimit -u, ulimit -v, pids.max)"
        )
    })?;
    Ok(scenarios)
}

fn scenarios(args: &Args) -> Result<Vec<&'static Scenario>, String> {
    let all = list::all(args.drop_in);
    let foreign = |name: &&String| all.iter().all(|scenario| scenario.name != **name);
    if let Some(name) = args.only.iter().find(foreign) {
        return Err(match args.drop_in {
            None => format!("`{name}` is a scenario of --drop-in, which is not given"),
            Some(DropIn::On | DropIn::Off) => {
                format!("`{name}` is a scenario of the library, not of --drop-in")
            }
        });
    }
    let is_wanted = |scenario: &&Scenario| {
        args.only.is_empty() || args.only.iter().any(|name| name == scenario.name)
    };
    Ok(all.iter().filter(is_wanted).collect())
}

/// Starts `threads` threads, none of which ends before the last one has started.
fn can_be_there(threads: usize) -> Result<(), String> {
    /// Memory of a thread besides its stack: the signal stack that Rust allocates for it, guard
    /// pages.
    const BESIDE: usize = 64 << 10;
    // Checked first, because a thread that cannot allocate its signal stack aborts the process.
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

/// Whether this many bytes of address space are available.
fn has_room(bytes: usize) -> std::io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let memory = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was mapped above, with this size.
    unsafe { libc::munmap(memory, bytes) };
    Ok(())
}
