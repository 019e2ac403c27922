//! Builds the pthread drop-in and embeds it in the command, so that `cargo run -- run PROGRAM`
//! needs nothing else. (A cargo package cannot depend on the shared library of another package.)
//! Also tells the command which commit it is built from.

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

fn main() {
    for file in ["build.rs", "build"] {
        println!("cargo::rerun-if-changed={file}");
    }
    version();
    drop_in();
}

/// What `waitword --version` prints after the name.
fn version() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for file in commit::files(&root) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let commit = commit::commit(&root).map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=WAITWORD_VERSION={}{commit}", variable("CARGO_PKG_VERSION"));
}

/// Builds the drop-in.
fn drop_in() {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let target_directory = PathBuf::from(variable("OUT_DIR")).join("drop-in");
    let target = variable("TARGET");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--locked", "--package", "waitword-pthread"])
        .args(["--profile", "drop-in", "--target", &target])
        .arg("--target-dir")
        .arg(&target_directory)
        .current_dir(variable("CARGO_MANIFEST_DIR"));
    // Settings of the outer build do not apply to this one: lints and models have their own flags
    // and compilers.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        let is_about_rustc = name.contains("RUSTFLAGS") || name.contains("RUSTC_W");
        if is_about_rustc || name.starts_with("CARGO_PROFILE") || name == "CARGO_TARGET_DIR" {
            cargo.env_remove(&*name);
        }
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "the drop-in was not built: {status}");
    let library = Path::new(&target_directory).join(target).join("drop-in/libwaitword_pthread.so");
    println!("cargo::rustc-env=WAITWORD_DROP_IN={}", library.display());
    // The file's name identifies its contents, so that versions do not collide.
    let mut hasher = DefaultHasher::new();
    fs::read(&library).expect("it was just built").hash(&mut hasher);
    println!(
        "cargo::rustc-env=WAITWORD_DROP_IN_NAME=libwaitword_pthread-{:016x}.so",
        hasher.finish()
    );
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
