//! `waitword profile --pid`: a program that runs already.

use super::watcher::Watcher;
use super::{Args, make_output, say_where};
use crate::deadlock::shell;
use crate::out_file::print;
use crate::report::recording;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use waitword_profile::attach::{Attached, Refusal, Request};
use waitword_profile::export::Recording;
use waitword_profile::profile::{Profile, USUAL_LISTED};
use waitword_profile::read::{Process, read};
use waitword_profile::remote::Remote;
use waitword_profile::sampled::{self, sample};
use waitword_profile::symbols::Files;
use waitword_profile::text;

/// The time between two looks whether it has ended.
const BETWEEN: Duration = Duration::from_millis(50);

/// Profiles a running process: records it, if it runs on waitword; otherwise by looks from outside,
/// which every program on glibc permits. Ends early if the process does, or by Ctrl-C.
pub(super) fn profile_pid(pid: u32, args: &Args) -> Result<ExitCode> {
    let stop = crate::stop::stop_on_signals()?;
    let duration = Duration::from_secs(args.seconds);
    if let Some(directory) = &args.output {
        make_output(directory)?;
    }
    let request =
        Request { threshold: args.threshold, patience: duration, despite_filter: args.force };
    let begun = Attached::begin(pid, request, &stop);
    if let (Some(directory), Err(_)) = (&args.output, &begun) {
        // Nothing will be in it.
        std::fs::remove_dir(directory)?;
    }
    match begun {
        Ok(attached) => record(attached, duration, args.output.as_deref(), &stop)?,
        Err(Refusal::RecordsAlready(directory)) => {
            let remote = Remote::open(pid)?;
            watch_own(&remote, &remote.path(&directory), duration, &stop)?;
        }
        Err(Refusal::Denied(why)) => bail!("{why}"),
        Err(Refusal::Stopped) => return Ok(ExitCode::from(crate::stop::STOPPED)),
        Err(refusal) => {
            if !matches!(refusal, Refusal::Unserved) {
                eprintln!("waitword: process {pid} is not recorded: {refusal}");
            }
            sampled(&Remote::open(pid)?, duration, &stop)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn record(
    mut attached: Attached,
    duration: Duration,
    output: Option<&Path>,
    stop: &AtomicBool,
) -> Result<()> {
    let watcher = Watcher::begin(attached.directory(), None);
    wait(duration, stop, || attached.has_ended());
    drop(watcher);
    attached.end();
    print(&summary(recording::profiles(attached.directory(), USUAL_LISTED)?, attached.root()))?;
    if let Some(output) = output {
        attached.copy_to(output)?;
        say_where(output);
    }
    Ok(())
}

/// Shows the waits of this time from a recording that the process makes by itself.
fn watch_own(
    remote: &Remote,
    directory: &Path,
    duration: Duration,
    stop: &AtomicBool,
) -> Result<()> {
    let its = || -> Result<Process> {
        let mut all = read(directory)?.into_iter();
        let Some(process) = all.rfind(|process| process.pid == remote.pid()) else {
            bail!("{}: no recording of process {}", directory.display(), remote.pid());
        };
        Ok(process)
    };
    let end = |began: u64, took: u64| began.saturating_add(took);
    let before = its()?.waits.iter().map(|(_, wait)| end(wait.began, wait.took)).max();
    wait(duration, stop, || remote.threads().is_err());
    let mut process = its()?;
    let all = process.waits.len();
    let is_new = |end| before.is_none_or(|before| end > before);
    process.waits.retain(|(_, wait)| is_new(end(wait.began, wait.took)));
    process.holds.retain(|(_, hold)| is_new(end(hold.began, hold.took)));
    let older = all - process.waits.len();
    Ok(print(&format!(
        "{}It records already, into {}: {older} of the waits there are older.\n",
        summary(vec![Profile::of(process)], remote.path(Path::new("/"))),
        directory.display(),
    ))?)
}

fn summary(profiles: Vec<Profile>, root: PathBuf) -> String {
    text::summary(&mut Recording::new(&profiles, &Rc::new(Files::below(root))))
}

/// Waits for so long, or until `has_ended`, or until `stop` is set.
fn wait(duration: Duration, stop: &AtomicBool, has_ended: impl Fn() -> bool) {
    let began = Instant::now();
    // Relaxed: the flag stands alone.
    while began.elapsed() < duration && !stop.load(Relaxed) && !has_ended() {
        std::thread::sleep(BETWEEN.min(duration.saturating_sub(began.elapsed())));
    }
}

/// Looks at the process at a low rate.
fn sampled(remote: &Remote, duration: Duration, stop: &AtomicBool) -> Result<()> {
    let mut symbols = remote.symbols();
    let command = shell(&remote.command_line());
    let sampled = sample(remote, &mut symbols, duration, stop)?;
    Ok(print(&format!(
        "{}These are estimates. To see every wait and its holder, run the program with:\n  \
         waitword profile -- {command}\n",
        sampled::text(remote.pid(), &sampled, &mut symbols)
    ))?)
}
