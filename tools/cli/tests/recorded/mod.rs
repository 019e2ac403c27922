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
    compile_from("../truth", source, place)
}

/// Compiles `attach/program.c`, which does not end by itself.
pub(crate) fn compile_endless(place: &Path) -> PathBuf {
    compile_from("tests/attach", "program.c", place)
}

fn compile_from(folder: &str, source: &str, place: &Path) -> PathBuf {
    let program = program_file(place, source);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
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

/// A program on the drop-in that does not record; killed at the end.
pub(crate) struct Served(Child);

impl Served {
    /// Runs this program with this argument.
    pub(crate) fn start(program: &Path, argument: &str) -> Self {
        let mut command = Command::new(waitword());
        command.args(["run", "--"]).arg(program).arg(argument).stdout(Stdio::null());
        let served = Self(command.spawn().unwrap());
        let began = Instant::now();
        let maps = || std::fs::read_to_string(format!("/proc/{}/maps", served.id())).unwrap();
        let program = program.to_str().unwrap();
        while !(maps().contains(program) && maps().contains("libwaitword_pthread")) {
            assert!(began.elapsed() < PATIENCE, "{}", maps());
            std::thread::sleep(Duration::from_millis(10));
        }
        served
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// Whether it is being recorded.
    pub(crate) fn records(&self) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.id())).unwrap();
        maps.contains(".rings")
    }

    /// Waits until it is not recorded any more; it goes on.
    #[track_caller]
    pub(crate) fn until_it_is_left_alone(&mut self) {
        let began = Instant::now();
        while self.records() {
            assert!(began.elapsed() < PATIENCE, "it records");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(self.0.try_wait().unwrap(), None, "it has ended");
    }

    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where [`compile`] puts the program.
fn program_file(place: &Path, source: &str) -> PathBuf {
    place.canonicalize().unwrap().join(source.replace(".c", ""))
}
