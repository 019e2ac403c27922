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
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // The log grows with every commit, merge and checkout.
    if let Some(log) =
        git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists())
    {
        println!("cargo::rerun-if-changed={log}");
    }
    println!(
        "cargo::rustc-env=WAITWORD_COMMIT={}",
        commit().unwrap_or_else(|| "unknown".to_owned())
    );
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
