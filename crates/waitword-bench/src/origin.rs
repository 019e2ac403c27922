//! Where a report comes from: the command, the source, the compiler, the peers' versions. A
//! published figure without them cannot be made again.

use crate::locks;
use serde::{Deserialize, Serialize};
use std::process::Command;

/// By which command a report was made, of which source, with which peers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// As it was typed, without the path of the program.
    pub command: String,
    /// The repository's, if the program was built in one that is still there.
    pub commit: Option<String>,
    /// Whether the sources differed from that commit.
    pub changed: bool,
    /// That built the program, and with it the peers that are written in Rust.
    pub compiler: String,
    /// With which others it was compared.
    pub peers: Vec<Peer>,
}

/// Somebody else's library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// As the report calls it.
    pub name: String,
    /// As its distributor calls it.
    pub version: String,
    /// What is not as its users have it.
    pub remark: Option<String>,
}

impl Origin {
    /// Of this process.
    pub fn this() -> Self {
        let commit = git(&["rev-parse", "HEAD"]);
        let changes = git(&[
            "status",
            "--porcelain",
            "--",
            "crates",
            "Cargo.toml",
            "Cargo.lock",
        ]);
        Self {
            command: command(std::env::args().skip(1)),
            changed: commit.is_some() && changes.is_none_or(|changes| !changes.is_empty()),
            commit,
            compiler: env!("WAITWORD_COMPILER").to_owned(),
            peers: peers(env!("WAITWORD_PEERS")),
        }
    }

    /// Line by line: what, and its value.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let changes = if self.changed {
            ", with changes that are not committed"
        } else {
            ""
        };
        let commit = self.commit.as_deref().unwrap_or("unknown");
        let versions: Vec<String> = self
            .peers
            .iter()
            .map(|peer| format!("{} {}", peer.name, peer.version))
            .collect();
        vec![
            ("commit", format!("{commit}{changes}")),
            ("command", without_files(&self.command)),
            ("compiler", self.compiler.clone()),
            ("peers", versions.join(", ")),
        ]
    }
}

/// What git says of the directory that this was built in.
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
    let words: Vec<String> = std::iter::once("waitword".to_owned())
        .chain(arguments.map(quoted))
        .collect();
    words.join(" ")
}

/// A command without the files that it wrote: their paths are of the machine that it ran on, and another
/// one may not have them.
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
            // It has spaces.
            words.find(|word| word.ends_with('\''));
        }
    }
    kept.join(" ")
}

/// `name=version;name=version`, as the build script says it.
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
        assert!(
            lines.iter().all(|(_, value)| !value.is_empty()),
            "{lines:?}"
        );
    }
}
