//! `waitword profile --pid`: a program that runs already.

use crate::deadlock::shell;
use crate::out_file::print;
use anyhow::{Result, bail};
use std::process::ExitCode;
use std::time::Duration;
use waitword_profile::remote::Remote;
use waitword_profile::sampled::{sample, text};

/// Profiles a running process: by looks from outside, which every program on glibc permits.
pub(super) fn profile_pid(pid: u32, duration: Duration) -> Result<ExitCode> {
    let remote = Remote::open(pid)?;
    if let Some(denied) = remote.denied() {
        bail!("{denied}");
    }
    sampled(&remote, duration)
}

/// Looks at the process at a low rate. Ends early if the process does, or by Ctrl-C.
fn sampled(remote: &Remote, duration: Duration) -> Result<ExitCode> {
    let stop = crate::stop::stop_on_signals()?;
    let mut symbols = remote.symbols();
    let command = shell(&remote.command_line());
    let sampled = sample(remote, &mut symbols, duration, &stop)?;
    print(&format!(
        "{}These are estimates. To see every wait and its holder, run the program with:\n  \
         waitword profile -- {command}\n",
        text(remote.pid(), &sampled, &mut symbols)
    ))?;
    Ok(ExitCode::SUCCESS)
}
