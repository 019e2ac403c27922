//! Tells the program which source it was built from: the record of a run says what was tortured, and not what the source has become
//! since.

use std::path::Path;
use std::process::Command;

/// What a run tortures, or is tortured with.
const SOURCES: [&str; 4] = [
    "src",
    "../waitword/src",
    "../waitword-abi/src",
    "../waitword-pthread/src",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    // It grows with every commit, merge and checkout.
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

/// With a `+` if the source was changed since. `None`: it is in no repository.
fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let same = git(&[&["diff", "--quiet", "HEAD", "--"], &SOURCES[..]].concat()).is_some();
    Some(if same { commit } else { commit + "+" })
}

/// What git says, if it has nothing to complain about.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
