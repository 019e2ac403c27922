//! Builds the pthread drop-in and embeds it in the command, so that `cargo run -- run PROGRAM`
//! needs nothing else. (A cargo package cannot depend on the shared library of another package.)
//! Also tells the command which commit it is built from.
//!
//! In the repository, the drop-in is a package of the same workspace. In a package from a registry,
//! it is another one from there, of the same version: `Cargo.toml` names it, so that it is locked
//! and vendored with the command.

#[path = "build/commit.rs"]
mod commit;

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The sources of the drop-in.
const SOURCES: [&str; 6] = [
    "../../crates/waitword",
    "../../crates/waitword-abi",
    "../../crates/waitword-pthread",
    "../../crates/waitword-record",
    "../../Cargo.toml",
    "../../Cargo.lock",
];

/// The packages that it is made of.
const PACKAGES: [&str; 4] = ["waitword", "waitword-abi", "waitword-pthread", "waitword-record"];

fn main() {
    for file in ["build.rs", "build"] {
        println!("cargo::rerun-if-changed={file}");
    }
    // Only a package that cargo has packed has this file.
    let is_packed = Path::new("Cargo.toml.orig").exists();
    version(is_packed);
    drop_in(is_packed);
}

/// What `waitword --version` prints after the name.
fn version(is_packed: bool) {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let commit = if is_packed {
        commit::packed(&here)
    } else {
        let root = here.join("../..");
        for file in commit::files(&root) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        commit::commit(&root)
    };
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=WAITWORD_VERSION={}{commit}", variable("CARGO_PKG_VERSION"));
}

/// Builds the drop-in.
fn drop_in(is_packed: bool) {
    let library = if is_packed { from_packages() } else { from_workspace() };
    println!("cargo::rustc-env=WAITWORD_DROP_IN={}", library.display());
    // The file's name identifies its contents, so that versions do not collide.
    let mut hasher = DefaultHasher::new();
    fs::read(&library).expect("it was just built").hash(&mut hasher);
    println!(
        "cargo::rustc-env=WAITWORD_DROP_IN_NAME=libwaitword_pthread-{:016x}.so",
        hasher.finish()
    );
}

/// Builds the drop-in of this workspace.
fn from_workspace() -> PathBuf {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let status = cargo(&["--locked"], Path::new(".")).status().expect("cargo can be started");
    assert!(status.success(), "the drop-in was not built: {status}");
    library()
}

/// Builds the drop-in from packages, as a dependency of an empty one.
fn from_packages() -> PathBuf {
    let version = variable("CARGO_PKG_VERSION");
    let directory = PathBuf::from(variable("OUT_DIR")).join("package");
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    };
    fs::create_dir_all(&directory).expect("cargo has made OUT_DIR");
    write("lib.rs", "");
    // The profile is the workspace's.
    let mut manifest = format!(
        r#"[package]
name = "drop-in"
version = "0.0.0"
edition = "2024"

[lib]
path = "lib.rs"

[dependencies]
waitword-pthread = "={version}"

[profile.drop-in]
inherits = "release"
lto = "thin"
codegen-units = 1
strip = "debuginfo"

[workspace]
"#
    );
    // `cargo package` checks this package before the others are in the registry. It has unpacked
    // them beside this one.
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let beside: Vec<(&str, PathBuf)> = PACKAGES
        .iter()
        .map(|name| (*name, here.with_file_name(format!("{name}-{version}"))))
        .collect();
    if beside.iter().all(|(_, path)| path.is_dir()) {
        manifest.push_str("\n[patch.crates-io]\n");
        for (name, path) in &beside {
            manifest.push_str(&format!("{name} = {{ path = {path:?} }}\n"));
        }
    }
    write("Cargo.toml", &manifest);
    // The versions that were tested. Cargo drops what is not used here.
    let lock = fs::read_to_string("Cargo.lock").expect("cargo packs it with a program");
    write("Cargo.lock", &lock);
    // What it needs has mostly been downloaded for this package.
    let output = cargo(&["--offline"], &directory).output().expect("cargo can be started");
    if !output.status.success() {
        let status = cargo(&[], &directory).status().expect("cargo was started once");
        assert!(status.success(), "the drop-in was not built: {status}");
    }
    library()
}

/// A build of the drop-in, by the package or workspace in this directory.
fn cargo(options: &[&str], directory: &Path) -> Command {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--package", "waitword-pthread", "--profile", "drop-in"])
        .args(["--target", &variable("TARGET")])
        .arg("--target-dir")
        .arg(target_directory())
        .args(options)
        .current_dir(directory);
    // Settings of the outer build do not apply to this one: lints and models have their own flags
    // and compilers.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let is_about_rustc = name.contains("RUSTFLAGS") || name.contains("RUSTC_W");
        if is_about_rustc || name.starts_with("CARGO_PROFILE") || name == "CARGO_TARGET_DIR" {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

fn target_directory() -> PathBuf {
    PathBuf::from(variable("OUT_DIR")).join("drop-in")
}

/// The file that the build makes.
fn library() -> PathBuf {
    target_directory().join(variable("TARGET")).join("drop-in/libwaitword_pthread.so")
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
