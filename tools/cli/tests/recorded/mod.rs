//! Programs of `tools/truth` for the tests of `top` and `metrics`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use waitword_testkit::command::output;

/// How long something may take. Nothing waits that long if all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Programs run this many times their usual two seconds: to the end of a test, which ends them.
pub(crate) const LONG: &str = "20";

pub(crate) fn waitword() -> &'static str {
    env!("CARGO_BIN_EXE_waitword")
}

/// Compiles a program of `tools/truth`.
pub(crate) fn compile(source: &str, place: &Path) -> PathBuf {
    let program = program_file(place, source);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../truth");
    let mut command = Command::new("cc");
    command.args(["-O2", "-g", "-pthread", "-fno-omit-frame-pointer", "-o"]);
    let compiled = output(command.arg(&program).arg(folder.join(source)));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    program
}

/// A program that another command records.
pub(crate) struct Recorded {
    profile: Child,
    program: Option<u32>,
}

impl Recorded {
    pub(crate) fn start(place: &Path, source: &str) -> Self {
        let program = compile(source, place);
        let mut command = Command::new(waitword());
        command.args(["profile", "-o"]).arg(place.join("recording")).arg("--").arg(&program);
        command.arg(LONG).stdout(Stdio::null()).stderr(Stdio::null());
        let mut recorded = Self { profile: command.spawn().unwrap(), program: None };
        let children = format!("/proc/{0}/task/{0}/children", recorded.profile.id());
        // Before it executes the program, the child is another `waitword`.
        let executes = |id: &u32| {
            let file = std::fs::read_link(format!("/proc/{id}/exe"));
            file.is_ok_and(|it| it == program_file(place, source))
        };
        let began = Instant::now();
        while recorded.program.is_none() {
            let ids = std::fs::read_to_string(&children).unwrap();
            let id = ids.split_whitespace().next().and_then(|id| id.parse().ok());
            recorded.program = id.filter(executes);
            assert!(began.elapsed() < PATIENCE, "{ids}");
            std::thread::sleep(Duration::from_millis(10));
        }
        recorded
    }

    /// The program's ID.
    pub(crate) fn id(&self) -> String {
        self.program.unwrap().to_string()
    }

    /// Ends the program, and then what records it.
    pub(crate) fn end(&mut self) {
        if self.profile.try_wait().unwrap().is_some() {
            return;
        }
        match self.program {
            // SAFETY: a plain call; the program's parent has not ended, and waits for it.
            Some(program) => drop(unsafe { libc::kill(program as i32, libc::SIGKILL) }),
            None => self.profile.kill().unwrap(),
        }
        self.profile.wait().unwrap();
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.end();
    }
}

/// Where [`compile`] puts the program.
fn program_file(place: &Path, source: &str) -> PathBuf {
    place.canonicalize().unwrap().join(source.replace(".c", ""))
}
