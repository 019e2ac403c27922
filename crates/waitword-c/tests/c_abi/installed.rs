//! The libraries as a C programmer uses them: built and installed by `install.sh`, found by
//! pkg-config.
//!
//! Cargo does not build a package's shared library for its integration tests. The `cargo build` in
//! the script does, in a separate target directory.

use crate::{pkg_config, scratch, watchdog};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// How a program is linked with the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Linking {
    /// With `libwaitword.so`.
    Dynamic,
    /// With `libwaitword.a`, and the C library as usual.
    Archive,
    /// With `libwaitword.a` and without any shared library (`-static`).
    Static,
}

/// The languages that the header supports, and the compiler of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
}

impl Language {
    /// The compiler: `$CC` or `$CXX`, or the default command.
    pub(crate) fn compiler(self) -> String {
        let (variable, usual) = match self {
            Self::C => ("CC", "cc"),
            Self::Cpp => ("CXX", "c++"),
        };
        std::env::var(variable).unwrap_or_else(|_| usual.to_owned())
    }

    /// Whether the compiler is installed. Prints a message if it is not, because the caller then
    /// skips its test. A C compiler is always installed: Rust itself links with it.
    pub(crate) fn is_here(self) -> bool {
        self == Self::C || is_installed(&self.compiler(), "C++ (install g++)")
    }
}

/// Whether the command is installed. If not, prints that the test of `what` is skipped.
pub(crate) fn is_installed(command: &str, what: &str) -> bool {
    static MISSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let found = Command::new(command).arg("--version").output().is_ok();
    if !found && MISSED.lock().unwrap().insert(command.to_owned()) {
        // Bypasses the test harness, which would capture the message.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED the test of {what}: there is no `{command}` here");
    }
    found
}

/// This package's folder.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The target directory in which all runs of `install.sh` build.
pub(crate) fn target_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_abi_build")
}

/// `install.sh`, without the directories of whoever runs the tests.
pub(crate) fn install_script() -> Command {
    let mut command = Command::new(package().join("../../install.sh"));
    command
        .env("CARGO_TARGET_DIR", target_directory())
        .env_remove("CARGO_BUILD_TARGET")
        .env_remove("PREFIX")
        .env_remove("DESTDIR")
        // Set by cargo, for the libraries that the test itself is linked with.
        .env_remove("LD_LIBRARY_PATH");
    command
}

/// The prefix that everything is installed under.
pub(crate) fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = scratch::folder().join("prefix");
        let mut script = install_script();
        script.arg("--prefix").arg(&prefix);
        watchdog::run(&mut script, watchdog::BUILD);
        prefix
    })
}

/// A compiled source, to be linked in several ways.
#[derive(Debug)]
pub(crate) struct Object {
    path: PathBuf,
    language: Language,
}

/// Compiles `source` in this standard of its language, with warnings as errors, with pkg-config's
/// flags, and with `flags`.
pub(crate) fn compile(source: &Path, standard: &str, flags: &[&str]) -> Object {
    let language = match source.extension().and_then(|extension| extension.to_str()) {
        Some("c") => Language::C,
        Some("cpp") => Language::Cpp,
        _ => panic!("{} is neither C nor C++", source.display()),
    };
    let name = source.file_stem().and_then(|name| name.to_str()).expect("a plain name");
    let path = scratch::folder().join(format!("{name}-{standard}.o"));
    let mut command = Command::new(language.compiler());
    command
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Werror", "-pthread", "-c"])
        // For templates this halves the time.
        .arg(if language == Language::C { "-O2" } else { "-O1" })
        .args(pkg_config::ask(&["--cflags"]))
        .args(flags)
        .arg("-o")
        .arg(&path)
        .arg(source);
    watchdog::run(&mut command, watchdog::BUILD);
    Object { path, language }
}

/// Links it to a program, with pkg-config's flags.
pub(crate) fn link(object: &Object, linking: Linking) -> PathBuf {
    let program = object.path.with_extension(format!("{linking:?}"));
    let mut command = Command::new(object.language.compiler());
    command.arg("-pthread").arg("-o").arg(&program).arg(&object.path);
    if linking == Linking::Static {
        command.arg("-static");
    }
    command.args(libraries(linking));
    watchdog::run(&mut command, watchdog::BUILD);
    program
}

/// The flags for this way of linking with the library, from pkg-config.
pub(crate) fn libraries(linking: Linking) -> Vec<String> {
    match linking {
        Linking::Dynamic => pkg_config::ask(&["--libs"]),
        Linking::Static => pkg_config::ask(&["--static", "--libs"]),
        Linking::Archive => pkg_config::ask(&["--static", "--libs"])
            .into_iter()
            .map(|flag| flag.replace("-lwaitword", "-l:libwaitword.a"))
            .collect(),
    }
}

/// Runs a program that [`link`] made, and returns its output.
pub(crate) fn run(program: &Path) -> String {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix().join("lib"));
    watchdog::run(&mut command, watchdog::PROGRAM)
}
