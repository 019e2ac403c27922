//! Where a report comes from: the command, the source, the compiler, the peers' versions. Without
//! them a published figure cannot be reproduced.

use crate::locks;
use serde::{Deserialize, Serialize};
use std::process::Command;

/// The command, source and peers that produced a report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The command line as typed, without the path of the program.
    pub command: String,
    /// The commit of the repository, if the program was built in one that still exists.
    pub commit: Option<String>,
    /// Whether the sources differed from that commit.
    pub changed: bool,
    /// The compiler that built the program and the peers written in Rust.
    pub compiler: String,
    /// The peers in the comparison.
    pub peers: Vec<Peer>,
}

/// A library of another project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The name in reports.
    pub name: String,
    /// The distributor's version.
    pub version: String,
    /// Differences from what its users get.
    pub remark: Option<String>,
}

impl Origin {
    /// The origin of this process.
    pub fn this() -> Self {
        let (commit, changed) = match option_env!("WAITWORD_PACKED") {
            Some(packed) => packed_commit(packed),
            None => repository(),
        };
        Self {
            command: command(std::env::args().skip(1)),
            changed,
            commit,
            compiler: env!("WAITWORD_COMPILER").to_owned(),
            peers: peers(env!("WAITWORD_PEERS")),
        }
    }

    /// Name and value of each line.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let changes = if self.changed { ", with uncommitted changes" } else { "" };
        let commit = self.commit.as_deref().unwrap_or("unknown");
        let versions: Vec<String> =
            self.peers.iter().map(|peer| format!("{} {}", peer.name, peer.version)).collect();
        vec![
            ("commit", format!("{commit}{changes}")),
            ("command", without_files(&self.command)),
            ("compiler", self.compiler.clone()),
            ("peers", versions.join(", ")),
        ]
    }
}

/// The commit that this was packed from, and whether changes were packed too (`build.rs`).
fn packed_commit(packed: &str) -> (Option<String>, bool) {
    let commit = packed.trim_end_matches('+');
    ((!commit.is_empty()).then(|| commit.to_owned()), packed.ends_with('+'))
}

/// The commit of the repository, and whether its sources have changed since.
fn repository() -> (Option<String>, bool) {
    let commit = git(&["rev-parse", "HEAD"]);
    let changes =
        git(&["status", "--porcelain", "--", "crates", "tools", "Cargo.toml", "Cargo.lock"]);
    let changed = commit.is_some() && changes.is_none_or(|changes| !changes.is_empty());
    (commit, changed)
}

/// Runs git in the directory that this was built in.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-C", concat!(env!("CARGO_MANIFEST_DIR"), "/../..")])
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn command(arguments: impl Iterator<Item = String>) -> String {
    let quoted = |argument: String| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,=:+".contains(letter);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    let words: Vec<String> =
        std::iter::once("waitword".to_owned()).chain(arguments.map(quoted)).collect();
    words.join(" ")
}

/// The command without its output files: their paths belong to the machine it ran on, and need not
/// exist on another one.
fn without_files(command: &str) -> String {
    let mut words = command.split(' ');
    let mut kept = vec![];
    while let Some(word) = words.next() {
        if !["--json", "--html", "--markdown"].contains(&word) {
            kept.push(word);
            continue;
        }
        let path = words.next().unwrap_or_default();
        if path.starts_with('\'') && !path.ends_with('\'') {
            // The path contains spaces.
            words.find(|word| word.ends_with('\''));
        }
    }
    kept.join(" ")
}

/// Parses the build script's `name=version;name=version`.
fn peers(text: &str) -> Vec<Peer> {
    let one = |part: &str| {
        let (name, version) = part.split_once('=')?;
        Some(Peer {
            name: name.to_owned(),
            version: version.to_owned(),
            remark: locks::remark(name).map(str::to_owned),
        })
    };
    text.split(';').filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_commit_says_whether_changes_were_packed() {
        assert_eq!(packed_commit("1a2b"), (Some("1a2b".to_owned()), false));
        assert_eq!(packed_commit("1a2b+"), (Some("1a2b".to_owned()), true));
        assert_eq!(packed_commit(""), (None, false));
    }

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["bench", "--peers", "std,C++ std", "it's", ""].map(str::to_owned);
        let wanted = r"waitword bench --peers 'std,C++ std' 'it'\''s' ''";
        assert_eq!(command(words.into_iter()), wanted);
    }

    #[test]
    fn a_command_is_shown_without_the_files_that_it_wrote() {
        let shown = [
            "waitword bench pp --json /elsewhere/a.json --rounds 21",
            "waitword bench pp --html 'my own page.html' --rounds 21",
            "waitword bench pp --rounds 21 --markdown 'page.md'",
        ];
        for command in shown {
            assert_eq!(without_files(command), "waitword bench pp --rounds 21");
        }
        assert_eq!(without_files("waitword bench --json"), "waitword bench");
    }

    #[test]
    fn all_of_it_is_known_here() {
        let origin = Origin::this();
        assert!(origin.compiler.starts_with("rustc "), "{origin:?}");
        let version = |name: &str| {
            let peer = origin.peers.iter().find(|peer| peer.name == name);
            peer.map(|peer| peer.version.as_str())
        };
        assert!(version("parking_lot").is_some_and(|version| version.starts_with("0.")));
        assert!(version("glibc").is_some());
        let lines = origin.lines();
        assert!(lines.iter().all(|(_, value)| !value.is_empty()), "{lines:?}");
    }
}
