//! The libraries as a C programmer meets them: built and installed by `install.sh`, found by pkg-config.
//!
//! Cargo does not build a package's shared library for its integration tests, so the script's own
//! `cargo build` does, in a target directory of its own.

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
    /// With `libwaitword.a`, and no shared library at all (`-static`).
    Static,
}

/// The languages that the header is for, and the compiler of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    C,
    Cpp,
}

impl Language {
    /// The compiler: `$CC` or `$CXX`, or the usual command.
    pub(crate) fn compiler(self) -> String {
        let (variable, usual) = match self {
            Self::C => ("CC", "cc"),
            Self::Cpp => ("CXX", "c++"),
        };
        std::env::var(variable).unwrap_or_else(|_| usual.to_owned())
    }

    /// Whether there is such a compiler; says so if not, since the caller will then skip its test. A C
    /// compiler there must be: Rust itself links with it.
    pub(crate) fn is_here(self) -> bool {
        self == Self::C || is_installed(&self.compiler(), "C++ (install g++)")
    }
}

/// Whether there is such a command. If not, says that the tests of `what` are left out.
pub(crate) fn is_installed(command: &str, what: &str) -> bool {
    static MISSED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let found = Command::new(command).arg("--version").output().is_ok();
    if !found && MISSED.lock().unwrap().insert(command.to_owned()) {
        // Past the test harness, which would keep it to itself.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED the test of {what}: there is no `{command}` here"
        );
    }
    found
}

/// This package's folder.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// `install.sh` with these arguments, building in a target directory that all runs share.
pub(crate) fn install_script() -> Command {
    let mut command = Command::new(package().join("../../install.sh"));
    command
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_abi_build"),
        )
        .env_remove("CARGO_BUILD_TARGET")
        // Cargo's, for finding what the test itself is linked with.
        .env_remove("LD_LIBRARY_PATH");
    command
}

/// The prefix that everything has been installed to.
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

/// A source that has been compiled, to be linked in several ways.
#[derive(Debug)]
pub(crate) struct Object {
    path: PathBuf,
    language: Language,
}

/// Compiles `source` in this standard of its language, with warnings as errors, with the flags that
/// pkg-config gives, and with these.
pub(crate) fn compile(source: &Path, standard: &str, flags: &[&str]) -> Object {
    let language = match source.extension().and_then(|extension| extension.to_str()) {
        Some("c") => Language::C,
        Some("cpp") => Language::Cpp,
        _ => panic!("{} is neither C nor C++", source.display()),
    };
    let name = source
        .file_stem()
        .and_then(|name| name.to_str())
        .expect("a plain name");
    let path = scratch::folder().join(format!("{name}-{standard}.o"));
    let mut command = Command::new(language.compiler());
    command
        .arg(format!("-std={standard}"))
        .args(["-Wall", "-Wextra", "-Werror", "-pthread", "-c"])
        // Half the time is saved by this, of templates.
        .arg(if language == Language::C {
            "-O2"
        } else {
            "-O1"
        })
        .args(pkg_config::ask(&["--cflags"]))
        .args(flags)
        .arg("-o")
        .arg(&path)
        .arg(source);
    watchdog::run(&mut command, watchdog::BUILD);
    Object { path, language }
}

/// Makes a program of it, with the flags that pkg-config gives.
pub(crate) fn link(object: &Object, linking: Linking) -> PathBuf {
    let program = object.path.with_extension(format!("{linking:?}"));
    let mut command = Command::new(object.language.compiler());
    command
        .arg("-pthread")
        .arg("-o")
        .arg(&program)
        .arg(&object.path);
    if linking == Linking::Static {
        command.arg("-static");
    }
    command.args(libraries(linking));
    watchdog::run(&mut command, watchdog::BUILD);
    program
}

/// The flags that link with the library so, from pkg-config.
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

/// Runs a program that [`link`] made, and returns what it wrote.
pub(crate) fn run(program: &Path) -> String {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", prefix().join("lib"));
    watchdog::run(&mut command, watchdog::PROGRAM)
}
