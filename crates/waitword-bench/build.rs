//! Finds the peers that are written in C and C++, and builds the shims of the C++ ones.
//!
//! A peer is there if a program that uses it compiles *and links*. One that is not there is no error: the build goes
//! on without it (`cfg(has_nsync)`, `cfg(has_cpp)`, `cfg(has_absl)`, `cfg(has_tbb)` say which there are), and the benchmark's
//! report names it and the package that has it.
//!
//! | peer | its shim | its library |
//! |---|---|---|
//! | nsync | none: C | linked, as a static library if there is one |
//! | the C++ library, absl | linked | linked, as static libraries |
//! | oneTBB | a shared object, which the program carries inside | the shim's: loaded with it, if the benchmark runs |
//!
//! The command is also what starts programs on the drop-in: twenty shared libraries and C++'s would cost each of
//! those starts 3 ms.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What shows that a peer is there: below a directory that compilers search for headers.
const HEADERS: [&str; 4] = [
    "nsync.h",
    "c++",
    "absl/synchronization/mutex.h",
    "oneapi/tbb/mutex.h",
];
const CPP_SHIM: &str = "src/locks/cpp.cc";
const ABSL_SHIM: &str = "src/locks/absl.cc";
const ABSL_LIBRARY: &str = "libabsl_synchronization.a";
const TBB_SHIM: &str = "src/locks/tbb.cc";

/// What absl's `Mutex` needs, in an order in which a linker finds all of it: as `pkg-config --static --libs
/// absl_synchronization` of Debian 12 has it.
const ABSL: &[&str] = &[
    "absl_synchronization",
    "absl_graphcycles_internal",
    "absl_stacktrace",
    "absl_symbolize",
    "absl_debugging_internal",
    "absl_demangle_internal",
    "absl_malloc_internal",
    "absl_time",
    "absl_civil_time",
    "absl_strings",
    "absl_strings_internal",
    "absl_base",
    "absl_spinlock_wait",
    "absl_int128",
    "absl_throw_delegate",
    "absl_raw_logging_internal",
    "absl_log_severity",
    "absl_time_zone",
];

fn main() {
    for peer in ["nsync", "cpp", "absl", "tbb"] {
        println!("cargo::rustc-check-cfg=cfg(has_{peer})");
    }
    println!("cargo::rustc-check-cfg=cfg(absl_is_optimized)");
    for file in ["build.rs", CPP_SHIM, ABSL_SHIM, TBB_SHIM] {
        println!("cargo::rerun-if-changed={file}");
    }
    for variable in ["CPATH", "LIBRARY_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    for directory in include_directories() {
        for header in HEADERS {
            watch(&directory, header);
        }
    }
    println!("cargo::rustc-env=WAITWORD_COMPILER={}", compiler_version());
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    println!("cargo::rustc-env=WAITWORD_PEERS={}", versions());
    if nsync() {
        println!("cargo::rustc-cfg=has_nsync");
    }
    let (absl, cpp) = (absl(), cpp());
    if absl {
        println!("cargo::rustc-cfg=has_absl");
        if !has_assertions(ABSL_LIBRARY) {
            println!("cargo::rustc-cfg=absl_is_optimized");
        }
    }
    if cpp {
        println!("cargo::rustc-cfg=has_cpp");
    }
    if absl || cpp {
        let libraries = if absl { ABSL } else { &[] };
        // Who uses others comes first.
        link_cpp(&[libraries, &["stdc++"]].concat());
    }
    if tbb() {
        println!("cargo::rustc-cfg=has_tbb");
    }
}

/// Where compilers look for headers that are not their own.
fn include_directories() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("CPATH").unwrap_or_default();
    let named: Vec<PathBuf> = env::split_paths(&path).collect();
    named
        .into_iter()
        .chain(["/usr/local/include", "/usr/include"].map(PathBuf::from))
        .filter(|directory| directory.is_dir())
}

/// Has this script run again when this header appears, changes or goes away.
///
/// For cargo, a file that is missing has changed, at every build. So for a missing header, watch
/// the innermost directory on the way to it that exists: a new entry changes the directory's own
/// time. (The header's time proves nothing: a package manager sets it to the time at which the
/// package was built.)
///
/// The price: cargo looks at everything below such a directory, and a script that runs again makes
/// cargo compile the crate and its dependents again, whatever the script prints. So each package
/// that puts any header there costs one such build.
fn watch(directory: &Path, header: &str) {
    let path = directory.join(header);
    // The directory itself exists, so the search ends there.
    if let Some(path) = path.ancestors().find(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// For the table of costs: another compiler's code has other numbers of instructions.
fn compiler_version() -> String {
    let rustc = env::var("RUSTC").expect("cargo sets it for build scripts");
    let output = Command::new(rustc).arg("--version").output();
    let version = output
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok());
    version.map_or_else(
        || "an unknown rustc".to_owned(),
        |version| version.trim().to_owned(),
    )
}

/// The peers' versions, for the report: `name=version;name=version`. One that nobody can tell is
/// left out.
fn versions() -> String {
    let mut all: Vec<(&str, String)> = vec![("std", compiler_version())];
    for name in ["parking_lot", "parking_lot_core"] {
        all.extend(locked_version(name).map(|version| (name, version)));
    }
    let absl = if has_assertions(ABSL_LIBRARY) {
        "absl, Debian's"
    } else {
        "absl"
    };
    for (name, package) in [
        ("glibc", "libc6"),
        ("C++ std", "libstdc++-12-dev"),
        ("tbb", "libtbb-dev"),
        ("nsync", "libnsync-dev"),
        (absl, "libabsl-dev"),
    ] {
        all.extend(debian_version(package).map(|version| (name, version)));
    }
    let texts: Vec<String> = all
        .iter()
        .map(|(name, version)| format!("{name}={version}"))
        .collect();
    texts.join(";")
}

/// As the lock file has it.
fn locked_version(package: &str) -> Option<String> {
    let text = std::fs::read_to_string("../../Cargo.lock").ok()?;
    let start = text.find(&format!("name = \"{package}\"\n"))?;
    let version = text[start..].lines().nth(1)?.strip_prefix("version = ")?;
    Some(version.trim_matches('"').to_owned())
}

/// As the package manager has it.
fn debian_version(package: &str) -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${Version}", package])
        .output()
        .ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !version.is_empty()).then_some(version)
}

/// Debian has it as a shared library only; a static one, where there is one, is taken.
fn nsync() -> bool {
    let program =
        "#include <nsync.h>\nint main(void) { nsync_mu mu = NSYNC_MU_INIT; nsync_mu_lock(&mu); }\n";
    let source = out("nsync.c");
    if std::fs::write(&source, program).is_err() || !links(&c(), &[&source], &["-lnsync"]) {
        return false;
    }
    // No warning if it is the shared one: that is what there is, and it stands on nothing but the C library.
    match directory_of("libnsync.a") {
        Some(directory) => link_statically("nsync", &directory),
        None => println!("cargo::rustc-link-lib=dylib=nsync"),
    }
    true
}

/// The C++ library itself; C++20, for the atomics' waiting.
fn cpp() -> bool {
    let program = "extern \"C\" void waitword_cpp_atomic_new(void *);\nint main() { int mutex; waitword_cpp_atomic_new(&mutex); }\n";
    shim("cpp", &cpp_as("c++20"), CPP_SHIM, program, &[])
}

/// Debian has it both ways.
fn absl() -> bool {
    let program = "extern \"C\" void waitword_absl_mu_lock(void *);\nint main() { long mu = 0; waitword_absl_mu_lock(&mu); }\n";
    shim("absl", &cpp_as("c++17"), ABSL_SHIM, program, ABSL)
}

/// Compiles the shim of a peer into a static library, which is linked, if `program` links with it and the peer's libraries.
fn shim(peer: &str, compiler: &cc::Build, shim: &str, program: &str, libraries: &[&str]) -> bool {
    let main = out(&format!("{peer}.cc"));
    let libraries: Vec<String> = libraries.iter().map(|name| format!("-l{name}")).collect();
    let libraries: Vec<&str> = libraries.iter().map(String::as_str).collect();
    std::fs::write(&main, program).is_ok()
        && links(compiler, &[Path::new(shim), &main], &libraries)
        && compiler
            .clone()
            .file(shim)
            .try_compile(&format!("waitword_{peer}_shim"))
            .is_ok()
}

/// Debian has it as a shared library only. Not linked to the program: a shared object that needs it is made, which
/// `locks/tbb/library.rs` loads.
fn tbb() -> bool {
    let Ok(tool) = cpp_as("c++17").try_get_compiler() else {
        return false;
    };
    let mut command = tool.to_command();
    command.arg(TBB_SHIM).args(["-shared", "-pthread", "-o"]);
    command.arg(out("libwaitword_tbb.so"));
    command.args(["-Wl,--no-undefined", "-ltbb"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// Static libraries, if all are there.
fn link_cpp(libraries: &[&str]) {
    let directories: Vec<Option<PathBuf>> = libraries
        .iter()
        .map(|name| directory_of(&format!("lib{name}.a")))
        .collect();
    let missing: Vec<&str> = libraries
        .iter()
        .zip(&directories)
        .filter_map(|(name, directory)| directory.is_none().then_some(*name))
        .collect();
    if missing.is_empty() {
        for (name, directory) in libraries.iter().zip(directories.iter().flatten()) {
            link_statically(name, directory);
        }
        // What libstdc++ stands on.
        println!("cargo::rustc-link-lib=dylib=m");
    } else {
        println!(
            "cargo::warning=no static library of {}: C++ is linked dynamically, which makes `waitword run` slower to start",
            missing.join(", ")
        );
        for name in libraries {
            println!("cargo::rustc-link-lib=dylib={name}");
        }
    }
}

/// Where the compiler finds this file; `None` if it does not.
fn directory_of(library: &str) -> Option<PathBuf> {
    let tool = cpp_as("c++17").try_get_compiler().ok()?;
    let argument = format!("-print-file-name={library}");
    let output = tool.to_command().arg(argument).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // The bare name is its way to say that there is none.
    let path = (path.is_absolute() && path.exists()).then_some(path)?;
    Some(path.canonicalize().ok()?.parent()?.to_owned())
}

/// Whether a static library was built with its assertions: it then calls what reports one that
/// fails. One that cannot be read may have been.
fn has_assertions(library: &str) -> bool {
    const REPORTS: &[u8] = b"__assert_fail";
    let bytes = directory_of(library)
        .and_then(|directory| std::fs::read(directory.join(library)).ok())
        .unwrap_or_else(|| REPORTS.to_vec());
    bytes.windows(REPORTS.len()).any(|part| part == REPORTS)
}

/// Not bundled into the crate: the program that is linked in the end takes of it what it needs.
fn link_statically(name: &str, directory: &Path) {
    println!("cargo::rustc-link-search=native={}", directory.display());
    println!("cargo::rustc-link-lib=static:-bundle={name}");
}

fn out(file: &str) -> PathBuf {
    Path::new(&env::var("OUT_DIR").expect("cargo sets it for build scripts")).join(file)
}

fn c() -> cc::Build {
    let mut build = cc::Build::new();
    build.warnings(false).cargo_warnings(false);
    build
}

/// Optimized whatever the profile is: much of these peers is in their headers, and their libraries are built so.
fn cpp_as(standard: &str) -> cc::Build {
    let mut build = c();
    build.cpp(true).cpp_link_stdlib(None).std(standard);
    build.define("NDEBUG", None).opt_level(2);
    build
}

/// Whether these files make a program with these libraries. Says nothing: that a peer is missing is for the report.
fn links(compiler: &cc::Build, sources: &[&Path], libraries: &[&str]) -> bool {
    let Ok(tool) = compiler.try_get_compiler() else {
        return false;
    };
    let mut command = tool.to_command();
    command.args(sources).args(libraries).arg("-pthread");
    command.arg("-o").arg(out("probe"));
    command.output().is_ok_and(|output| output.status.success())
}
