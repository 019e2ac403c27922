//! Whether the kernel lets us look at a process, and if not, why, and what the user can do.
//!
//! The kernel's own check decides (ptrace(2), "Ptrace access mode checking"). Its errors say
//! little, so this looks for the reason.

use anyhow::{Error, Result, anyhow, bail};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Whether memory and stacks of the process may be read.
///
/// # Errors
/// They may not; the error says why, and what to do.
pub(super) fn check(pid: u32) -> Result<()> {
    // The kernel asks for the same right as for reading memory.
    match fs::read(format!("/proc/{pid}/syscall")) {
        Ok(_) => Ok(()),
        // A first thread that has ended has no stack. Then another thread's file tells.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        Err(error) => Err(explain(pid, &error)),
    }
}

/// Why a file of the process could not be read.
pub(super) fn explain(pid: u32, error: &io::Error) -> Error {
    let Ok(place) = fs::metadata(format!("/proc/{pid}")) else {
        return anyhow!("there is no process {pid}");
    };
    let own = fs::metadata("/proc/self").map(|it| it.uid()).unwrap_or(u32::MAX);
    if own != 0 && place.uid() != own {
        return anyhow!(
            "process {pid} belongs to user {}, or has more rights than its user: \
             only root may look into it",
            place.uid()
        );
    }
    let scope = fs::read_to_string(YAMA).unwrap_or_default();
    let help = match scope.trim() {
        "1" => {
            "a process may look only into those that it has started. Start the program with \
             `waitword profile --watch 5 -- PROGRAM`, use sudo, or have root write 0 there"
        }
        "2" => "only root may look into other processes. Use sudo",
        "3" => "no process may look into another one until the next boot",
        _ => return anyhow!("the kernel does not let this user look into process {pid}: {error}"),
    };
    anyhow!("{YAMA} is {}: {help}", scope.trim())
}

/// Refuses processes whose registers and layouts are not those of x86-64.
pub(super) fn check_class(pid: u32) -> Result<()> {
    use io::Read as _;
    let mut start = [0; 5];
    let read =
        fs::File::open(format!("/proc/{pid}/exe")).and_then(|mut it| it.read_exact(&mut start));
    if read.is_ok() && start[..4] == *b"\x7fELF" && start[4] != 2 {
        bail!("process {pid} is a 32-bit program: only 64-bit programs can be looked into");
    }
    Ok(())
}
