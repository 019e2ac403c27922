//! Compiles programs when a test needs them, and runs them with a watchdog.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs a command. If it does not end, kills it and fails.
pub(crate) fn run(command: &mut Command) -> Output {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut streams = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let out = std::thread::spawn(move || {
        let mut text = Vec::new();
        streams.0.read_to_end(&mut text).unwrap();
        text
    });
    let err = std::thread::spawn(move || {
        let mut text = Vec::new();
        streams.1.read_to_end(&mut text).unwrap();
        text
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Output {
        status,
        stdout: out.join().unwrap(),
        stderr: err.join().unwrap(),
    }
}

/// The texts that the command wrote to stdout and to stderr. Fails if the command failed.
pub(crate) fn texts(output: Output) -> (String, String) {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    (stdout, stderr)
}

/// The command `waitword run OPTIONS -- PROGRAM ARGS`.
pub(crate) fn under(options: &[&str], program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.arg("run").args(options).arg("--").arg(program);
    command.args(arguments);
    command
}

/// A compiled program, under a name that no other test uses.
pub(crate) struct Program(PathBuf);

impl Program {
    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Compiles a source in this directory with this command, to which the names of the output and the
/// source are added.
pub(crate) fn compile(compiler: &[&str], source: &str) -> Program {
    static LAST: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("waitword-raw-{}-{number}", std::process::id());
    let program = Program(std::env::temp_dir().join(name));
    let source = format!("{}/tests/raw_futex/{source}", env!("CARGO_MANIFEST_DIR"));
    let (compiler, options) = compiler.split_first().unwrap();
    let mut command = Command::new(compiler);
    command
        .args(options)
        .args(["-o", program.path()])
        .arg(&source);
    let output = run(&mut command);
    assert!(
        output.status.success(),
        "{source}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

pub(crate) const C: &[&str] = &["gcc", "-O2", "-Wall", "-Werror", "-pthread"];

/// A number in a summary's line, by its name: in `12 sleeps`, `sleeps` is 12.
pub(crate) fn number(summary: &str, what: &str) -> u64 {
    let line = summary
        .lines()
        .find(|line| line.starts_with("waitword: "))
        .unwrap_or_else(|| panic!("no summary: {summary}"));
    let (before, _) = line
        .split_once(&format!(" {what}"))
        .unwrap_or_else(|| panic!("no {what}: {line}"));
    let digits = before.rsplit([' ', '(']).next().unwrap();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{what}: {digits:?} in {line}"))
}
