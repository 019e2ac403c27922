//! One run of a program: its output, its end, and what it took.
//!
//! The program is the leader of a process group. Whatever is left of that group when the program
//! has ended, or when its time is over, is killed.

use crate::scratch;
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use waitword_bench::usage::Usage;

/// How soon the program is killed after the user has asked for that.
const PERIOD: Duration = Duration::from_millis(50);

/// What ends a program that does not end by itself.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    pub(super) limit: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// It was killed because it took longer than the limit.
    pub(super) is_late: bool,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) seconds: f64,
    pub(super) usage: Usage,
}

/// Runs the command until it ends or is ended.
///
/// # Errors
/// It cannot be started, or there is no room for its output.
pub(super) fn run(command: &mut Command, until: Until<'_>) -> Result<Ended> {
    // Files, because a pipe can fill up.
    let [mut stdout, mut stderr] = [scratch::file()?, scratch::file()?];
    command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).process_group(0);
    // SAFETY: the closure makes one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let began = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let id = child.id() as i32;
    let (seconds, is_late) = wait_until_it_has_ended(id, began, until)?;
    let (status, usage) = reap(id)?;
    let [stdout, stderr] = [&mut stdout, &mut stderr].map(contents);
    Ok(Ended { status, is_late, stdout: stdout?, stderr: stderr?, seconds, usage })
}

/// Waits for the end of the child, and kills what is left of its group. Returns how long it ran, in
/// seconds, and whether it was killed because it was late.
fn wait_until_it_has_ended(id: i32, began: Instant, until: Until<'_>) -> io::Result<(f64, bool)> {
    let is_late = AtomicBool::new(false);
    // SAFETY: a signal to the group of a child that has not been reaped: the number is in use.
    let kill = || unsafe { libc::kill(-id, libc::SIGKILL) };
    let seconds = std::thread::scope(|threads| {
        let (ended, end) = channel::<()>();
        threads.spawn({
            let (is_late, kill) = (&is_late, &kill);
            move || {
                while end.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                    is_late.store(began.elapsed() > until.limit, Relaxed);
                    if is_late.load(Relaxed) || until.stop.load(Relaxed) {
                        kill();
                        return;
                    }
                }
            }
        });
        let waited = wait_unreaped(id);
        let seconds = began.elapsed().as_secs_f64();
        drop(ended);
        waited.map(|()| seconds)
    });
    kill();
    Ok((seconds?, is_late.load(Relaxed)))
}

/// Waits for the end of the child, which stays a zombie, so that its number stays its own.
fn wait_unreaped(id: i32) -> io::Result<()> {
    loop {
        // SAFETY: all zeros is a valid `siginfo_t`, which the call fills in.
        let answer = unsafe {
            let mut info: libc::siginfo_t = core::mem::zeroed();
            libc::waitid(libc::P_PID, id as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        match io::Error::last_os_error() {
            _ if answer == 0 => return Ok(()),
            // The user's signal; the other thread kills the child.
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

fn reap(id: i32) -> io::Result<(ExitStatus, Usage)> {
    let mut status = 0;
    // SAFETY: all zeros is a valid `struct rusage`. The child has ended, so the call does not wait;
    // it fills in both.
    let (answer, used) = unsafe {
        let mut used: libc::rusage = core::mem::zeroed();
        (libc::wait4(id, &mut status, 0, &mut used), used)
    };
    match answer == id {
        true => Ok((ExitStatus::from_raw(status), Usage::from_rusage(&used))),
        false => Err(io::Error::last_os_error()),
    }
}

fn contents(file: &mut File) -> Result<Vec<u8>> {
    let mut contents = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut contents)?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration, stop: bool) -> Ended {
        let stop = AtomicBool::new(stop);
        run(Command::new("sh").args(["-c", script]), Until { limit, stop: &stop }).unwrap()
    }

    #[test]
    fn a_run_has_its_output_its_status_and_its_times() {
        let script = "echo out; echo err >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
                      exit 3";
        let ended = shell(script, LONG, false);
        assert_eq!((&ended.stdout[..], &ended.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!((ended.status.code(), ended.is_late), (Some(3), false));
        assert!(ended.seconds > 0.0 && ended.usage.cpu_seconds > 0.0, "{ended:?}");
    }

    #[test]
    fn a_run_that_takes_too_long_is_killed_with_its_children() {
        let ended = shell("sleep 1000 & sleep 1000", Duration::from_millis(100), false);
        assert!(ended.is_late && ended.seconds < LONG.as_secs_f64(), "{ended:?}");
    }

    #[test]
    fn the_user_can_stop_a_run() {
        let ended = shell("sleep 1000", LONG, true);
        assert_eq!((ended.status.signal(), ended.is_late), (Some(libc::SIGKILL), false));
        assert!(ended.seconds < LONG.as_secs_f64(), "{ended:?}");
    }

    #[test]
    fn a_child_that_outlives_the_program_is_killed() {
        let ended = shell("sleep 1000 & echo $!", LONG, false);
        let id: i32 = String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap();
        // SAFETY: sends no signal.
        let is_there = || unsafe { libc::kill(id, 0) } == 0;
        let is_zombie = || {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.contains(") Z ")
        };
        let began = Instant::now();
        while is_there() && !is_zombie() {
            assert!(began.elapsed() < LONG, "it still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_program_that_cannot_be_started_is_an_error() {
        let stop = AtomicBool::new(false);
        let until = Until { limit: LONG, stop: &stop };
        let error = run(&mut Command::new("/no/such/program"), until).unwrap_err();
        assert!(format!("{error:#}").contains("cannot start /no/such/program"), "{error:#}");
    }
}
