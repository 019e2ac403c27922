//! A program that records its waits: how it is started, and where the recording is.
//!
//! `waitword profile`, `top` and `metrics` share this. The last two follow a [`Session`]: where
//! recordings grow, and what has to be kept until they are done with them.

use crate::deadlock::shell;
use crate::{drop_in, scratch};
use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use waitword_profile::attach::{Attached, Refusal, Request};
use waitword_profile::live::{Live, printable, source, source::Source};
use waitword_profile::remote::Remote;

/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program that can be run under the drop-in.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    name: &'a OsString,
    arguments: &'a [OsString],
    path: PathBuf,
    library: PathBuf,
}

impl<'a> Launch<'a> {
    /// Of a program and its arguments.
    ///
    /// # Errors
    /// There is no such program, the drop-in cannot serve it, or cannot be put in place.
    pub(crate) fn of(command: &'a [OsString]) -> Result<Self> {
        let Some((name, arguments)) = command.split_first() else {
            bail!("no program");
        };
        let path = drop_in::program::find(name)
            .with_context(|| format!("{}: not found", name.display()))?;
        drop_in::program::can_be_served(&path).with_context(|| name.display().to_string())?;
        let library = drop_in::library::put_in_place()?;
        Ok(Self { name, arguments, path, library })
    }

    /// The program's name, as the user wrote it.
    pub(crate) fn name(&self) -> String {
        self.name.display().to_string()
    }

    /// The command that runs the program and records into this directory. Waits that are shorter
    /// than `threshold` (nanoseconds) are not recorded.
    ///
    /// # Errors
    /// The current directory is unknown.
    pub(crate) fn command(&self, directory: &Path, threshold: u64) -> Result<Command> {
        let mut command = Command::new(&self.path);
        command
            .arg0(self.name)
            .args(self.arguments)
            .env("LD_PRELOAD", drop_in::before_others(self.library.as_os_str()))
            .env("WAITWORD", "on")
            .env("WAITWORD_RECORD", std::path::absolute(directory)?)
            .env("WAITWORD_RECORD_NS", threshold.to_string());
        Ok(command)
    }
}

/// How long a process that has just been started may take to begin its recording.
const TO_BEGIN: Duration = Duration::from_secs(1);
/// For how long to wait for a thread that begins the recording of a process that runs already.
const TO_FOLLOW: Duration = Duration::from_secs(10);

/// What is followed.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where recordings grow.
    pub(crate) source: Source,
    /// What is recorded, for the user: safe for a terminal.
    pub(crate) title: String,
    /// What must stay while the recording is followed.
    pub(crate) guard: Guard,
}

/// See [`Session::guard`].
#[derive(Debug)]
pub(crate) enum Guard {
    /// Nothing: the recordings are somebody else's.
    Nothing,
    /// A process that records for somebody else: its ID, and when it began.
    Process(u32, String),
    /// A process that records for us. It stops when this is dropped, and its recording goes.
    Attached(Attached),
    /// A program of our own.
    Program(Program),
}

/// A program that was started here. It ends when this is dropped, and its recording goes.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    status: Option<ExitStatus>,
    /// What it writes to stdout and stderr, if it does not share ours. Then its processes are a
    /// group of their own.
    output: Option<PathBuf>,
    /// Removed at last.
    _directory: TempDir,
}

impl Session {
    /// Follows the recording that another process makes in this directory.
    pub(crate) fn of_directory(directory: &Path) -> Self {
        let title = printable(&directory.display().to_string());
        Self { source: Source::Directory(directory.to_owned()), title, guard: Guard::Nothing }
    }

    /// Follows all processes of this user that record.
    pub(crate) fn of_user() -> Self {
        let title = "all processes of this user that record".to_owned();
        Self { source: Source::User, title, guard: Guard::Nothing }
    }

    /// Follows this process, for which it records already, or else has it record for us: waits of
    /// at least `threshold` nanoseconds. Waits for some seconds until it does. `None`: `stop` was
    /// set meanwhile.
    ///
    /// # Errors
    /// There is no such process, this user may not look at it, or it cannot record.
    pub(crate) fn of_process(
        pid: u32,
        threshold: u64,
        despite_filter: bool,
        stop: &AtomicBool,
    ) -> Result<Option<Self>> {
        let request = Request { threshold, patience: TO_FOLLOW, despite_filter };
        let began = Instant::now();
        loop {
            // It says why, if that may not be done.
            let remote = Remote::open(pid)?;
            let Some(start) = start_time(pid) else {
                bail!("process {pid} has ended");
            };
            let session = |source, guard| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                let title = format!("{} ({pid})", printable(name.trim_end()));
                Some(Self { source, title, guard })
            };
            let recordings = source::of_process(pid).with_context(|| format!("process {pid}"))?;
            if !recordings.is_empty() {
                return Ok(session(Source::Process(pid), Guard::Process(pid, start)));
            }
            match Attached::begin(pid, request, stop) {
                Ok(attached) => {
                    let source = Source::Directory(attached.directory().to_owned());
                    return Ok(session(source, Guard::Attached(attached)));
                }
                Err(Refusal::Stopped) => return Ok(None),
                // It may be about to execute the program, or to record for somebody else.
                Err(
                    Refusal::Unserved | Refusal::Ended | Refusal::Busy | Refusal::RecordsAlready(_),
                ) if began.elapsed() < TO_BEGIN => {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(refusal) => bail!(refused(&remote, &refusal)),
            }
        }
    }

    /// Begins to read what is recorded.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(crate) fn live(&self) -> Result<Live> {
        let mut live = Live::open(self.source.clone())?;
        if self.is_private() {
            live.discard();
        }
        match &self.guard {
            Guard::Process(pid, _) => live.look_below(format!("/proc/{pid}/root").into()),
            Guard::Attached(attached) => live.look_below(attached.root()),
            Guard::Nothing | Guard::Program(_) => {}
        }
        Ok(live)
    }

    /// Starts a program that records into a private directory.
    ///
    /// # Errors
    /// As for [`Launch::of`], or a file cannot be made.
    pub(crate) fn start(program: &[OsString], threshold: u64, output: &Output) -> Result<Self> {
        let launch = Launch::of(program)?;
        let directory = scratch::directory()?;
        let mut command = launch.command(directory.path(), threshold)?;
        let output = match output {
            Output::Shared => None,
            Output::Private => Some(directory.path().join("output")),
            Output::File(path) => Some(path.clone()),
        };
        if let Some(path) = &output {
            let file = open_output(path)?;
            // A Ctrl-C is for us, who then end the program with all its processes.
            command.process_group(0).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        }
        let child = command.spawn().with_context(|| launch.name())?;
        Ok(Self {
            source: Source::Directory(directory.path().to_owned()),
            title: format!("{} ({})", printable(&launch.name()), child.id()),
            guard: Guard::Program(Program { child, status: None, output, _directory: directory }),
        })
    }

    /// Whether nobody else reads the recording.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self.guard, Guard::Attached(_) | Guard::Program(_))
    }

    /// Whether what is followed has ended, and how. Never, for a directory and for all processes.
    pub(crate) fn ended(&mut self) -> Option<End> {
        match &mut self.guard {
            Guard::Nothing => None,
            Guard::Process(pid, start) => {
                (start_time(*pid).as_ref() != Some(start)).then_some(End::Unknown)
            }
            Guard::Attached(attached) => attached.has_ended().then_some(End::Unknown),
            Guard::Program(program) => program.ended().map(End::Status),
        }
    }

    /// The end of what the program has written, at most this many bytes of it.
    pub(crate) fn output_tail(&self, most: u64) -> Option<String> {
        use std::os::unix::fs::FileExt as _;
        let Guard::Program(program) = &self.guard else {
            return None;
        };
        let file = File::open(program.output.as_ref()?).ok()?;
        let of = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let most = most.min(of.len());
        let mut bytes = vec![0; most as usize];
        let len = file.read_at(&mut bytes, of.len() - most).ok()?;
        Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
    }
}

/// Why there is nothing to follow, and which command helps.
fn refused(remote: &Remote, refusal: &Refusal) -> String {
    let pid = remote.pid();
    let command = shell(&remote.command_line());
    match refusal {
        Refusal::Denied(why) => why.clone(),
        Refusal::NobodyFollowed(_) => format!(
            "process {pid} cannot begin to record its waits: {refusal}. If it hangs, see:\n  \
             waitword deadlock --pid {pid}"
        ),
        _ => format!(
            "process {pid} does not record its waits: {refusal}. To have it do so, start it \
             with:\n  waitword profile -- {command}\nTo look at it from outside:\n  \
             waitword profile --pid {pid}"
        ),
    }
}

/// How a process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A program of our own, like this.
    Status(ExitStatus),
    /// Somebody else's.
    Unknown,
}

/// When this process began, in the kernel's units. Another one may have its ID later. `None` if it
/// has ended, even if its parent does not know yet.
fn start_time(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18).filter(|_| !has_ended).map(str::to_owned)
}

/// Where a program writes.
#[derive(Debug)]
pub(crate) enum Output {
    /// To our own stdout and stderr. It also reads our stdin, and gets the terminal's signals.
    Shared,
    /// To a file beside the recording.
    Private,
    /// To this file, at its end.
    File(PathBuf),
}

impl Program {
    /// Asks the program to end, and ends it if it has not after this time.
    pub(crate) fn end(&mut self, patience: Duration) {
        if self.ended().is_none() {
            // It may have ended just now; it has not been waited for, so the ID is still its own.
            let id = Pid::from_child(&self.child);
            let _ = match self.output {
                Some(_) => kill_process_group(id, Signal::TERM),
                None => kill_process(id, Signal::TERM),
            };
            let began = Instant::now();
            while self.ended().is_none() && began.elapsed() < patience {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        if self.ended().is_none() {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end(PATIENCE);
    }
}

fn open_output(path: &Path) -> Result<File> {
    // Appends, so that stdout and stderr do not overwrite each other.
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_has_no_start() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let start = start_time(child.id());
        assert!(start.as_ref().is_some_and(|it| it.parse::<u64>().is_ok_and(|it| it > 0)));
        assert_eq!(start_time(child.id()), start);
        child.kill().unwrap();
        // Not waited for: a zombie, once it has been killed.
        while start_time(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
