//! Finds the peers that are written in C and C++, and builds the shims for the C++ ones.
//!
//! A peer is present if a program that uses it compiles *and links*. A missing peer is not an
//! error: the build continues without it (`cfg(has_nsync)`, `cfg(has_cpp)`, `cfg(has_absl)` and
//! `cfg(has_tbb)` record which ones were found), and the benchmark's report names it and the
//! package to install.
//!
//! | peer | its shim | its library |
//! |---|---|---|
//! | nsync | none: C | linked, as a static library if there is one |
//! | the C++ library, absl | linked | linked, as static libraries |
//! | oneTBB | a shared object embedded in the program | loaded with the shim, for a benchmark run |
//!
//! The same command also starts programs on the drop-in, and linking twenty shared libraries plus
//! the C++ library would add 3 ms to each start.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Headers that show that a peer is installed, relative to a directory that compilers search.
const HEADERS: [&str; 4] = ["nsync.h", "c++", "absl/synchronization/mutex.h", "oneapi/tbb/mutex.h"];
const CPP_SHIM: &str = "src/locks/cpp.cc";
const ABSL_SHIM: &str = "src/locks/absl.cc";
const ABSL_LIBRARY: &str = "libabsl_synchronization.a";
const TBB_SHIM: &str = "src/locks/tbb.cc";

/// What absl's `Mutex` needs, in link order, as printed by `pkg-config --static --libs
/// absl_synchronization` on Debian 12.
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
    // Only a package that cargo has packed has this file. What is around it is another's.
    if Path::new("Cargo.toml.orig").exists() {
        println!("cargo::rustc-env=WAITWORD_PACKED={}", packed_commit().unwrap_or_default());
    } else {
        println!("cargo::rerun-if-changed=../../Cargo.lock");
    }
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
        // A library comes before those that it depends on.
        link_cpp(&[libraries, &["stdc++"]].concat());
    }
    if tbb() {
        println!("cargo::rustc-cfg=has_tbb");
    }
}

/// The directories, besides their own, in which compilers look for headers.
fn include_directories() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("CPATH").unwrap_or_default();
    let named: Vec<PathBuf> = env::split_paths(&path).collect();
    named
        .into_iter()
        .chain(["/usr/local/include", "/usr/include"].map(PathBuf::from))
        .filter(|directory| directory.is_dir())
}

/// Reruns this script when the header appears, changes or disappears.
///
/// Cargo treats a missing file as changed on every build. So for a missing header, watch its
/// innermost parent directory that exists: a new entry updates that directory's modification time.
/// (The header's own time proves nothing: a package manager sets it to the time at which the
/// package was built.)
///
/// The price: cargo checks everything below such a directory, and rerunning the script makes cargo
/// recompile the crate and its dependents, whatever the script prints. So each package that
/// installs any header there costs one such build.
fn watch(directory: &Path, header: &str) {
    let path = directory.join(header);
    // The include directory itself exists, so the search ends there at the latest.
    if let Some(path) = path.ancestors().find(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// For the table of costs: a different compiler generates different instruction counts.
fn compiler_version() -> String {
    let rustc = env::var("RUSTC").expect("cargo sets it for build scripts");
    let output = Command::new(rustc).arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    version.map_or_else(|| "an unknown rustc".to_owned(), |version| version.trim().to_owned())
}

/// The peers' versions for the report, as `name=version;name=version`. A version that cannot be
/// determined is omitted.
fn versions() -> String {
    let mut all: Vec<(&str, String)> = vec![("std", compiler_version())];
    for name in ["parking_lot", "parking_lot_core"] {
        all.extend(locked_version(name).map(|version| (name, version)));
    }
    let absl = if has_assertions(ABSL_LIBRARY) { "absl, Debian's" } else { "absl" };
    for (name, package) in [
        ("glibc", "libc6"),
        ("C++ std", "libstdc++-12-dev"),
        ("tbb", "libtbb-dev"),
        ("nsync", "libnsync-dev"),
        (absl, "libabsl-dev"),
    ] {
        all.extend(debian_version(package).map(|version| (name, version)));
    }
    let texts: Vec<String> =
        all.iter().map(|(name, version)| format!("{name}={version}")).collect();
    texts.join(";")
}

/// The commit that cargo noted when it packed this package, with a `+` if it packed changes too.
fn packed_commit() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    let commit = rest.get(..40)?.to_owned();
    Some(if rest.contains("\"dirty\": true") { commit + "+" } else { commit })
}

/// The version recorded in the lock file.
fn locked_version(package: &str) -> Option<String> {
    let text = std::fs::read_to_string("../../Cargo.lock").ok()?;
    let start = text.find(&format!("name = \"{package}\"\n"))?;
    let version = text[start..].lines().nth(1)?.strip_prefix("version = ")?;
    Some(version.trim_matches('"').to_owned())
}

/// The version recorded by the package manager.
fn debian_version(package: &str) -> Option<String> {
    let output =
        Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !version.is_empty()).then_some(version)
}

/// Debian ships nsync only as a shared library; a static one is used if present.
fn nsync() -> bool {
    let program =
        "#include <nsync.h>\nint main(void) { nsync_mu mu = NSYNC_MU_INIT; nsync_mu_lock(&mu); }\n";
    let source = out("nsync.c");
    if std::fs::write(&source, program).is_err() || !links(&c(), &[&source], &["-lnsync"]) {
        return false;
    }
    // No warning if it is shared: Debian has nothing else, and it depends only on the C library.
    match directory_of("libnsync.a") {
        Some(directory) => link_statically("nsync", &directory),
        None => println!("cargo::rustc-link-lib=dylib=nsync"),
    }
    true
}

/// The C++ library itself, compiled as C++20 for the atomics' wait functions.
fn cpp() -> bool {
    let program = "extern \"C\" void waitword_cpp_atomic_new(void *);\n\
                   int main() { int mutex; waitword_cpp_atomic_new(&mutex); }\n";
    shim("cpp", &cpp_as("c++20"), CPP_SHIM, program, &[])
}

/// Debian ships absl both ways.
fn absl() -> bool {
    let program = "extern \"C\" void waitword_absl_mu_lock(void *);\n\
                   int main() { long mu = 0; waitword_absl_mu_lock(&mu); }\n";
    shim("absl", &cpp_as("c++17"), ABSL_SHIM, program, ABSL)
}

/// Compiles a peer's shim into a static library and links it, provided that `program` links with
/// the shim and the peer's libraries.
fn shim(peer: &str, compiler: &cc::Build, shim: &str, program: &str, libraries: &[&str]) -> bool {
    let main = out(&format!("{peer}.cc"));
    let libraries: Vec<String> = libraries.iter().map(|name| format!("-l{name}")).collect();
    let libraries: Vec<&str> = libraries.iter().map(String::as_str).collect();
    std::fs::write(&main, program).is_ok()
        && links(compiler, &[Path::new(shim), &main], &libraries)
        && compiler.clone().file(shim).try_compile(&format!("waitword_{peer}_shim")).is_ok()
}

/// Debian ships oneTBB only as a shared library. It is not linked into the program: the shim
/// becomes a shared object that depends on it, which `locks/tbb/library.rs` loads.
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

/// Links static libraries if all are present, and shared ones otherwise.
fn link_cpp(libraries: &[&str]) {
    let directories: Vec<Option<PathBuf>> =
        libraries.iter().map(|name| directory_of(&format!("lib{name}.a"))).collect();
    let missing: Vec<&str> = libraries
        .iter()
        .zip(&directories)
        .filter_map(|(name, directory)| directory.is_none().then_some(*name))
        .collect();
    if missing.is_empty() {
        for (name, directory) in libraries.iter().zip(directories.iter().flatten()) {
            link_statically(name, directory);
        }
        // libstdc++ depends on libm.
        println!("cargo::rustc-link-lib=dylib=m");
    } else {
        println!(
            "cargo::warning=no static library for {}: C++ is linked dynamically, \
             and `waitword run` starts more slowly",
            missing.join(", ")
        );
        for name in libraries {
            println!("cargo::rustc-link-lib=dylib={name}");
        }
    }
}

/// The directory in which the compiler finds this file, or `None`.
fn directory_of(library: &str) -> Option<PathBuf> {
    let tool = cpp_as("c++17").try_get_compiler().ok()?;
    let argument = format!("-print-file-name={library}");
    let output = tool.to_command().arg(argument).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // The compiler prints the bare name if it finds no such file.
    let path = (path.is_absolute() && path.exists()).then_some(path)?;
    Some(path.canonicalize().ok()?.parent()?.to_owned())
}

/// Whether a static library was built with assertions: if so, it references the function that
/// reports a failed one. A library that cannot be read counts as built with them.
fn has_assertions(library: &str) -> bool {
    const REPORTS: &[u8] = b"__assert_fail";
    let bytes = directory_of(library)
        .and_then(|directory| std::fs::read(directory.join(library)).ok())
        .unwrap_or_else(|| REPORTS.to_vec());
    bytes.windows(REPORTS.len()).any(|part| part == REPORTS)
}

/// Not bundled into the crate: the final program takes what it needs from the library.
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

/// Optimized whatever the profile: much of these peers' code is in headers, and their libraries are
/// optimized too.
fn cpp_as(standard: &str) -> cc::Build {
    let mut build = c();
    build.cpp(true).cpp_link_stdlib(None).std(standard);
    build.define("NDEBUG", None).opt_level(2);
    build
}

/// Whether these files and libraries make a program. Prints nothing: reporting a missing peer is
/// the report's job.
fn links(compiler: &cc::Build, sources: &[&Path], libraries: &[&str]) -> bool {
    let Ok(tool) = compiler.try_get_compiler() else {
        return false;
    };
    let mut command = tool.to_command();
    command.args(sources).args(libraries).arg("-pthread");
    command.arg("-o").arg(out("probe"));
    command.output().is_ok_and(|output| output.status.success())
}
