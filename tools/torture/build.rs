//! Tells the program which source it was built from. The record of a run thus names the source that
//! was tortured, not the source as it is now.

use std::path::Path;
use std::process::Command;

/// The sources that a run tortures, or that it is built from.
const SOURCES: [&str; 4] = [
    "src",
    "../../crates/waitword/src",
    "../../crates/waitword-abi/src",
    "../../crates/waitword-pthread/src",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Only a package that cargo has packed has this file. A git repository around it is another's.
    let commit = if Path::new("Cargo.toml.orig").exists() { packed_commit() } else { here() };
    println!("cargo::rustc-env=WAITWORD_COMMIT={}", commit.unwrap_or_else(|| "unknown".to_owned()));
}

/// The commit that cargo noted when it packed this package.
fn packed_commit() -> Option<String> {
    let text = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    let commit = rest.get(..7)?.to_owned();
    Some(if rest.contains("\"dirty\": true") { commit + "+" } else { commit })
}

/// The commit of the repository, whose changes are watched from now on.
fn here() -> Option<String> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // The log grows with every commit, merge and checkout.
    if let Some(log) =
        git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists())
    {
        println!("cargo::rerun-if-changed={log}");
    }
    commit()
}

/// The commit, with a `+` if the source was changed since. `None`: the source is not in a
/// repository.
fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let same = git(&[&["diff", "--quiet", "HEAD", "--"], &SOURCES[..]].concat()).is_some();
    Some(if same { commit } else { commit + "+" })
}

/// The output of git, if the command succeeded.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
