//! A child process, started plain or on the drop-in, with a time limit. Its output goes to files,
//! so that no pipe can fill up.
//!
//! A child is its own process group, and dies with the thread that started it.

use super::hang;
use super::need::find;
use super::place::Place;
use crate::harness::{Context, Failure};
use crate::usage::Usage;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A run that takes longer than this is hung.
const LIMIT: Duration = Duration::from_secs(180);
/// How many characters of a failed program's output are shown.
const SHOWN: usize = 2000;

/// How programs are started: plain, or through `waitword run`.
#[derive(Debug)]
pub(crate) struct Launcher<'a> {
    /// Words in front of the program's name; empty for a plain start.
    pub(crate) before: &'a [OsString],
    /// The benchmark run that this belongs to.
    pub(crate) context: &'a Context,
}

/// A program that ended successfully.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    /// Wall-clock time from start to end.
    pub(super) seconds: f64,
    pub(super) usage: Usage,
}

impl Ended {
    /// Its output: stdout, then stderr.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned() + &self.stderr
    }
}

impl<'a> Launcher<'a> {
    /// The same without the drop-in.
    pub(super) fn plain(&self) -> Self {
        Self { before: &[], ..*self }
    }

    /// Runs a command until it ends, which must be successful.
    pub(super) fn run<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Ended, Failure> {
        self.start(place, program, arguments)?.end()
    }

    /// Starts a command.
    pub(super) fn start<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Child<'a>, Failure> {
        start(self.before, self.context, place, program, arguments)
    }

    /// Runs a command that is not under test, always plain.
    pub(super) fn run_plain<A: AsRef<OsStr>>(
        &self,
        place: &Place,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Ended, Failure> {
        self.plain().run(place, program, arguments)
    }
}

fn start<'a, A: AsRef<OsStr>>(
    before: &[OsString],
    context: &'a Context,
    place: &Place,
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Child<'a>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("{program}: {error}"));
    let path = find(program).map_or_else(|| program.into(), OsString::from);
    let words: Vec<&OsStr> = before.iter().map(OsString::as_os_str).chain([&*path]).collect();
    let said = ["stdout", "stderr"]
        .map(|name| place.path(&format!("{name} of {program}").replace('/', "_")));
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args(arguments)
        .current_dir(place.directory())
        .env("LC_ALL", "C")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(File::create(&said[0]).map_err(failed)?)
        .stderr(File::create(&said[1]).map_err(failed)?)
        .process_group(0);
    // SAFETY: the closure makes one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let started = Instant::now();
    let child = command.spawn().map_err(failed)?;
    Ok(Child {
        program: program.to_owned(),
        id: child.id() as i32,
        started,
        said,
        context,
        waited_for: false,
    })
}

/// A running command. It is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Child<'a> {
    program: String,
    id: i32,
    started: Instant,
    said: [std::path::PathBuf; 2],
    context: &'a Context,
    waited_for: bool,
}

impl Child<'_> {
    /// Sends the command this signal and waits until it has ended.
    pub(super) fn stop(self, signal: i32) -> Result<Ended, Failure> {
        // SAFETY: the child has not been waited for, so the process ID is still its own.
        unsafe { libc::kill(self.id, signal) };
        self.end()
    }

    /// Fails if the command has ended, which a server should not do by itself.
    pub(super) fn is_running(&mut self) -> Result<(), Failure> {
        match self.poll()? {
            None => Ok(()),
            Some((status, _)) => Err(self.failed(&format!("ended at once: {status}"))),
        }
    }

    /// Waits until the command ends. If it fails or takes too long, the error contains its output.
    pub(super) fn end(mut self) -> Result<Ended, Failure> {
        let mut pause = Duration::from_micros(200);
        let (status, usage) = loop {
            if let Some(ended) = self.poll()? {
                break ended;
            }
            self.context.progressed();
            if self.context.is_stopped() {
                return Err(Failure::Stopped);
            }
            if self.started.elapsed() > LIMIT {
                let threads = hang::report(self.id);
                return Err(self.failed(&format!("did not end within {LIMIT:?}\n{threads}")));
            }
            std::thread::sleep(pause);
            // Poll more slowly in long runs. The end is noticed at most 1 % late.
            pause = (self.started.elapsed() / 100).clamp(pause, Duration::from_millis(50));
        };
        let seconds = self.started.elapsed().as_secs_f64();
        if !status.success() {
            return Err(self.failed(&status.to_string()));
        }
        Ok(Ended {
            stdout: fs::read(&self.said[0]).unwrap_or_default(),
            stderr: self.read(1),
            seconds,
            usage,
        })
    }

    fn poll(&mut self) -> Result<Option<(ExitStatus, Usage)>, Failure> {
        let mut status = 0;
        // SAFETY: all zeros is a valid `struct rusage`; the call fills in both.
        let (answer, used) = unsafe {
            let mut used: libc::rusage = core::mem::zeroed();
            let answer = libc::wait4(self.id, &mut status, libc::WNOHANG, &mut used);
            (answer, used)
        };
        match answer {
            0 => Ok(None),
            id if id == self.id => {
                self.waited_for = true;
                Ok(Some((ExitStatus::from_raw(status), Usage::from_rusage(&used))))
            }
            _ => Err(self.failed(&std::io::Error::last_os_error().to_string())),
        }
    }

    fn read(&self, channel: usize) -> String {
        String::from_utf8_lossy(&fs::read(&self.said[channel]).unwrap_or_default()).into_owned()
    }

    fn failed(&self, what: &str) -> Failure {
        let said = self.read(0) + &self.read(1);
        let from = said.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        Failure::new(format!("{}: {what}\n{}", self.program, said[from..].trim_end()))
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        // SAFETY: sends a signal to a process group that this type created. After its first process
        // has been waited for, other processes of the group may still exist. If there are none, the
        // call fails; IDs are not reused that quickly.
        unsafe { libc::kill(-self.id, libc::SIGKILL) };
        if !self.waited_for {
            // SAFETY: the process is our child; nothing is written.
            unsafe { libc::waitpid(self.id, core::ptr::null_mut(), 0) };
        }
    }
}

/// Parses the number that follows `before` in a text, skipping spaces between them.
pub(super) fn number_after(text: &str, before: &str) -> Result<f64, Failure> {
    let found = text.split_once(before).and_then(|(_, rest)| {
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].trim_end_matches('.').parse().ok()
    });
    found.ok_or_else(|| {
        Failure::new(format!("no number after {before:?} in the program's output:\n{text}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    fn shell(before: &[OsString], script: &str) -> Result<Ended, Failure> {
        let context = Context::new(Settings::default(), Arc::default());
        let launcher = Launcher { before, context: &context };
        launcher.run(&Place::new()?, "sh", ["-c", script])
    }

    #[test]
    fn a_good_end_has_its_output_and_its_usage() {
        let ended =
            shell(&[], "echo out; echo err >&2; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
                .unwrap();
        assert_eq!(ended.stdout, b"out\n");
        assert_eq!(ended.stderr, "err\n");
        assert!(ended.usage.cpu_seconds > 0.0 && ended.seconds > 0.0, "{ended:?}");
    }

    #[test]
    fn a_bad_end_says_what_was_said() {
        let failure = shell(&[], "echo the reason >&2; exit 3").unwrap_err().to_string();
        assert!(failure.contains("exit status: 3") && failure.contains("the reason"), "{failure}");
        let failure = shell(&[], "kill -SEGV $$").unwrap_err().to_string();
        assert!(failure.contains("signal: 11"), "{failure}");
    }

    #[test]
    fn what_stands_before_is_what_runs_it() {
        let before = ["env", "WAITWORD_TEST=there"].map(OsString::from);
        let ended = shell(&before, "echo $WAITWORD_TEST").unwrap();
        assert_eq!(ended.stdout, b"there\n");
    }

    #[test]
    fn the_user_can_stop_a_program() {
        let context = Context::new(Settings::default(), Arc::new(AtomicBool::new(true)));
        let launcher = Launcher { before: &[], context: &context };
        let place = Place::new().unwrap();
        let failure = launcher.run(&place, "sleep", ["1000"]).unwrap_err();
        assert_eq!(failure, Failure::Stopped);
    }

    #[test]
    fn a_hang_is_reported_thread_by_thread() {
        let context = Context::new(Settings::default(), Arc::default());
        let place = Place::new().unwrap();
        let launcher = Launcher { before: &[], context: &context };
        let mut child = launcher.start(&place, "sleep", ["1000"]).unwrap();
        child.is_running().unwrap();
        let report = hang::report(child.id);
        assert!(report.contains("sleep 1000"), "{report}");
        assert!(report.contains("state "), "{report}");
    }

    #[test]
    fn numbers_are_found_where_they_are_said() {
        assert_eq!(number_after("total time:   2.5s\n", "total time:"), Ok(2.5));
        assert_eq!(number_after("took 12. Then", "took"), Ok(12.0));
        assert!(number_after("took long", "took").is_err());
        assert!(number_after("", "took").is_err());
    }
}
