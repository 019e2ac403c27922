//! Builds and runs the suite's programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use waitword_testkit::command::output_within;

/// A program ends its own hanging cases after a minute at the latest, unless configured otherwise.
const PATIENCE: Duration = Duration::from_secs(1500);

/// The directory of the sources.
const SOURCES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/waitword-pthread/conformance");

/// A program of the suite.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    source: &'static str,
    library: Option<&'static str>,
    /// Further options for compiling the library.
    library_flags: &'static [&'static str],
    plugin: Option<&'static str>,
    with_drop_in: LinkedWithDropIn,
    variables: Vec<(&'static str, &'static str)>,
    has_real_time_threads: bool,
}

/// What is linked with the drop-in; usually nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkedWithDropIn {
    Nothing,
    Program,
    Plugin,
}

/// What the program runs on.
#[derive(Clone, Copy)]
pub(crate) enum Under<'a> {
    Glibc,
    DropIn,
    /// With another library preloaded, too.
    GlibcAnd(&'a Path),
    DropInAnd(&'a Path),
    /// With an environment variable.
    DropInWith(&'a str, &'a str),
}

/// A program that has been built.
pub(crate) struct Built<'a> {
    program: &'a Program,
    path: PathBuf,
    /// The program's directory, which is removed with this value.
    _directory: TempDir,
}

/// A program's output and the names of its cases.
pub(crate) struct Output {
    pub(crate) cases: Vec<String>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Program {
    pub(crate) fn new(source: &'static str) -> Self {
        let (name, _) = source.split_once('.').expect("a source has an ending");
        Self {
            name,
            source,
            library: None,
            library_flags: &[],
            plugin: None,
            with_drop_in: LinkedWithDropIn::Nothing,
            variables: Vec::new(),
            has_real_time_threads: false,
        }
    }

    /// Links the program with a shared library built from this source.
    pub(crate) fn with_library(mut self, source: &'static str) -> Self {
        self.library = Some(source);
        self
    }

    /// Adds options for compiling the library.
    pub(crate) fn with_library_flags(mut self, flags: &'static [&'static str]) -> Self {
        self.library_flags = flags;
        self
    }

    /// Builds a `plugin.so` from this source beside the program, for the program to load.
    pub(crate) fn with_plugin(mut self, source: &'static str) -> Self {
        self.plugin = Some(source);
        self
    }

    pub(crate) fn linked_with_drop_in(mut self, what: LinkedWithDropIn) -> Self {
        self.with_drop_in = what;
        self
    }

    /// Adds environment variables.
    pub(crate) fn with_variables(mut self, all: &[(&'static str, &'static str)]) -> Self {
        self.variables.extend(all);
        self
    }

    /// Runs one case at a time, and no other such program at the same time: real-time threads that
    /// keep a CPU for long get in each other's way.
    pub(crate) fn with_real_time_threads(mut self) -> Self {
        self.has_real_time_threads = true;
        self.with_variables(&[("CONFORMANCE_JOBS", "1")])
    }

    /// Builds the program in a directory of its own.
    pub(crate) fn build(&self) -> Built<'_> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Built { program: self, path: self.build_in(directory.path()), _directory: directory }
    }

    fn build_in(&self, directory: &Path) -> PathBuf {
        let program = directory.join(self.name);
        let drop_in = |what| match self.with_drop_in == what {
            true => vec!["-Wl,--no-as-needed".to_owned(), drop_in()],
            false => Vec::new(),
        };
        if let Some(plugin) = self.plugin {
            let mut arguments = drop_in(LinkedWithDropIn::Plugin);
            arguments.extend(["-shared", "-fPIC", "-o"].map(str::to_owned));
            compile(plugin, &arguments, &directory.join("plugin.so"));
        }
        let mut arguments = drop_in(LinkedWithDropIn::Program);
        if let Some(library) = self.library {
            let made = directory.join("liblocks.so");
            let flags = [self.library_flags, &["-shared", "-fPIC", "-o"]].concat();
            compile(library, &flags, &made);
            arguments.push(format!("-L{}", directory.display()));
            arguments
                .extend(["-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed", "-llocks"].map(str::to_owned));
        }
        arguments.push("-o".to_owned());
        compile(self.source, &arguments, &program);
        program
    }

    /// A command that builds and runs the program by hand.
    pub(crate) fn by_hand(&self) -> String {
        let compiler = compiler(self.source);
        format!(
            "{} -O2 -pthread {SOURCES}/{} -o /tmp/{} && waitword run -- /tmp/{1} [CASE]",
            compiler.join(" "),
            self.source,
            self.name
        )
    }
}

impl Built<'_> {
    /// The names of its cases.
    pub(crate) fn cases(&self) -> Vec<String> {
        let list = output_of(Command::new(&self.path).arg("--list"), Duration::from_secs(10));
        list.0.lines().map(str::to_owned).collect()
    }

    /// Runs all its cases.
    pub(crate) fn run(&self, under: Under<'_>) -> Output {
        self.run_with(under, &[])
    }

    /// The same, with more environment variables.
    pub(crate) fn run_with(&self, under: Under<'_>, variables: &[(&str, &str)]) -> Output {
        let mut command = match under {
            Under::Glibc | Under::GlibcAnd(_) => Command::new(&self.path),
            Under::DropIn | Under::DropInAnd(_) | Under::DropInWith(..) => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
                command.args(["run", "--"]).arg(&self.path);
                command
            }
        };
        command.env_remove("LD_PRELOAD").env_remove("WAITWORD");
        if let Under::GlibcAnd(other) | Under::DropInAnd(other) = under {
            command.env("LD_PRELOAD", other);
        }
        if let Under::DropInWith(name, value) = under {
            command.env(name, value);
        }
        command.envs(self.program.variables.iter().copied());
        command.envs(variables.iter().copied());
        static ALONE: Mutex<()> = Mutex::new(());
        let turn = || ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let _turn = self.program.has_real_time_threads.then(turn);
        let (stdout, stderr) = output_of(&mut command, PATIENCE);
        Output { cases: self.cases(), stdout, stderr }
    }
}

/// The path of the drop-in.
pub(crate) fn drop_in() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    let (path, _) = output_of(command.arg("preload"), Duration::from_secs(60));
    path.trim_end().to_owned()
}

fn compiler(source: &str) -> &'static [&'static str] {
    match source.ends_with(".cpp") {
        true => &["g++", "-std=gnu++20"],
        false => &["gcc", "-std=gnu11"],
    }
}

fn compile(source: &str, arguments: &[impl AsRef<OsStr>], into: &Path) {
    let [compiler, standard] = compiler(source) else {
        unreachable!("a compiler and its standard")
    };
    let output = Command::new(compiler)
        .args([standard, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .arg(Path::new(SOURCES).join(source))
        .args(arguments)
        .arg(into)
        .output()
        .unwrap_or_else(|error| panic!("{compiler} cannot be started: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{source} does not compile:\n{errors}");
}

/// Runs a command and returns its output. If it does not end, kills it with all its children and
/// fails.
fn output_of(command: &mut Command, patience: Duration) -> (String, String) {
    let output = output_within(patience, command, |_| ());
    let [stdout, stderr] = [output.stdout, output.stderr].map(String::from_utf8);
    (stdout.unwrap(), stderr.unwrap())
}
