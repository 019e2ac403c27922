//! Compiles programs when a test needs them.

use std::process::Command;
use tempfile::TempPath;
#[allow(unused_imports, reason = "not every test uses both")]
pub(crate) use waitword_testkit::command::{output as run, texts};

/// The command `waitword run OPTIONS -- PROGRAM ARGS`.
pub(crate) fn under(options: &[&str], program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.arg("run").args(options).arg("--").arg(program);
    command.args(arguments);
    command
}

/// A compiled program, in a file that is removed with it.
pub(crate) struct Program(TempPath);

impl Program {
    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

/// Compiles a source in this directory with this command, to which the names of the output and the
/// source are added.
pub(crate) fn compile(compiler: &[&str], source: &str) -> Program {
    let place = tempfile::Builder::new().prefix("waitword-").tempfile();
    // Closed: a file that is open for writing cannot be executed.
    let program = Program(place.unwrap().into_temp_path());
    let source = format!("{}/tests/raw_futex/{source}", env!("CARGO_MANIFEST_DIR"));
    let (compiler, options) = compiler.split_first().unwrap();
    let mut command = Command::new(compiler);
    command.args(options).args(["-o", program.path()]).arg(&source);
    let output = run(&mut command);
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

pub(crate) const C: &[&str] = &["gcc", "-O2", "-Wall", "-Werror", "-pthread"];

/// A number in a summary's line, by its name: in `12 sleeps`, `sleeps` is 12.
pub(crate) fn number(summary: &str, what: &str) -> u64 {
    let line = summary
        .lines()
        .find(|line| line.starts_with("waitword: "))
        .unwrap_or_else(|| panic!("no summary: {summary}"));
    let (before, _) =
        line.split_once(&format!(" {what}")).unwrap_or_else(|| panic!("no {what}: {line}"));
    let digits = before.rsplit([' ', '(']).next().unwrap();
    digits.parse().unwrap_or_else(|_| panic!("{what}: {digits:?} in {line}"))
}
