//! Compiles a program, records it and has the recording explained.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use waitword_testkit::command::{output, output_within};
use waitword_testkit::seccomp::{call, refuse};
use waitword_testkit::{limit, until};

/// How much of the usual two seconds a program runs.
const LENGTH: &str = "0.3";
/// An ordinary user: `nobody`.
const NOBODY: u32 = 65534;

/// How a program is compiled and run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) has_frame_pointers: bool,
    /// Whether the kernel shows context switches.
    pub(crate) has_switches: bool,
    /// As an ordinary user, if the test runs as root.
    pub(crate) as_nobody: bool,
}

/// A program that has been recorded.
#[derive(Debug)]
pub(crate) struct Run {
    place: TempDir,
    pub(crate) stdout: String,
    /// What is shown if a check fails.
    pub(crate) shown: String,
}

impl Run {
    pub(crate) fn recording(&self) -> PathBuf {
        self.place.path().join("recording")
    }

    /// The value of `answer KEY VALUE`.
    pub(crate) fn answer(&self, key: &str) -> Option<f64> {
        answer(&self.stdout, key)
    }
}

fn answer(stdout: &str, key: &str) -> Option<f64> {
    let before = format!("answer {key} ");
    stdout.lines().find_map(|line| line.strip_prefix(&before)?.parse().ok())
}

fn is_root() -> bool {
    // SAFETY: it cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// The command, in a place where an ordinary user finds it, and with that user.
fn waitword(way: Way, place: &Path) -> Command {
    by_shell(None, way, place)
}

/// The same, started by this script of the shell, whose `$0` it is.
fn by_shell(script: Option<&str>, way: Way, place: &Path) -> Command {
    let mut program = PathBuf::from(env!("CARGO_BIN_EXE_waitword"));
    let as_nobody = way.as_nobody && is_root();
    if as_nobody {
        let copy = place.join("waitword");
        if !copy.exists() {
            std::fs::copy(program, &copy).unwrap();
        }
        program = copy;
    }
    let mut command = match script {
        None => Command::new(program),
        Some(script) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).arg(program);
            shell
        }
    };
    if as_nobody {
        command.uid(NOBODY).gid(NOBODY).env("XDG_CACHE_HOME", place.join("cache"));
    }
    command
}

/// Runs it in the way that is asked for. The filter applies to the thread that installs it and to
/// what that starts.
fn run_in(way: Way, mut command: Command, meanwhile: impl FnOnce() + Send) -> Output {
    let work = move || {
        if !way.has_switches {
            refuse(libc::EACCES, [call(libc::SYS_perf_event_open)]);
        }
        output_within(limit(60), &mut command, |_| meanwhile())
    };
    std::thread::scope(|threads| threads.spawn(work).join()).unwrap_or_else(|panic| {
        std::panic::resume_unwind(panic);
    })
}

fn compile(source: &str, place: &Path, way: Way) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../truth").join(source);
    let program = place.join("program");
    let mut command = match source.rsplit('.').next() {
        Some("rs") => {
            let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let mut command = Command::new(rustc);
            let answer = if way.has_frame_pointers { "yes" } else { "no" };
            command.args(["-O", "-g", "--edition", "2024", "-C"]);
            command.arg(format!("force-frame-pointers={answer}"));
            command
        }
        ending => {
            let mut command = Command::new(if ending == Some("cpp") { "c++" } else { "cc" });
            let answer = if way.has_frame_pointers {
                "-fno-omit-frame-pointer"
            } else {
                "-fomit-frame-pointer"
            };
            command.args(["-O2", "-g", "-pthread", answer]);
            command
        }
    };
    let compiled = output(command.arg("-o").arg(&program).arg(from));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

/// A directory that every user may use, with the program.
fn prepare(source: &str, way: Way) -> (TempDir, PathBuf) {
    let open = std::fs::Permissions::from_mode(0o777);
    let place = tempfile::Builder::new().tempdir().unwrap();
    std::fs::set_permissions(place.path(), open).unwrap();
    let program = compile(source, place.path(), way);
    (place, program)
}

/// Records a program that ends by itself.
pub(crate) fn recorded(source: &str, way: Way) -> Run {
    let (place, program) = prepare(source, way);
    let mut command = waitword(way, place.path());
    command.args(["profile", "-o"]).arg(place.path().join("recording"));
    command.arg("--").arg(&program).arg(LENGTH);
    let ended = run_in(way, command, || ());
    let [stdout, stderr] =
        [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    let shown = format!("{source} {way:?}\n{stdout}{stderr}");
    assert!(ended.status.success(), "{shown}");
    Run { place, stdout, shown }
}

/// Records a program that hangs, and ends it once it does. `key`: the answer that names one of its
/// threads that wait.
pub(crate) fn hung(source: &str, key: &str, way: Way) -> Run {
    let (place, program) = prepare(source, way);
    let said = place.path().join("stdout");
    let script = "exec \"$0\" profile -o \"$1\" -- \"$2\" >\"$3\"";
    let mut command = by_shell(Some(script), way, place.path());
    command.arg(place.path().join("recording")).arg(&program).arg(&said);
    let read = || std::fs::read_to_string(&said).unwrap_or_default();
    let ended = run_in(way, command, || {
        until(|| read().ends_with("ready\n"));
        let process = answer(&read(), key).and_then(|thread| process_of(thread as u32));
        let process = process.expect("the program").to_string();
        assert!(output(Command::new("kill").arg(process)).status.success());
    });
    let stdout = read();
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    let shown = format!("{source} {way:?}\n{stdout}{stderr}");
    assert_eq!(ended.status.code(), Some(128 + libc::SIGTERM), "{shown}");
    Run { place, stdout, shown }
}

/// The process of a thread.
fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// What `waitword explain` says, without line breaks.
pub(crate) fn explained(run: &Run, way: Way) -> String {
    let mut command = waitword(way, run.place.path());
    command.arg("explain").arg(run.recording());
    let ended = output(&mut command);
    let [stdout, stderr] =
        [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(ended.status.success() && stderr.is_empty(), "{stdout}{stderr}\n{}", run.shown);
    stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}
