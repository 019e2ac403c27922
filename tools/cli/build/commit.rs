//! Which commit the command is built from, for `waitword --version`.
//!
//! `git archive` writes it into `tools/cli/commit.txt`, so a tarball names its commit wherever it
//! is unpacked. A checkout asks git. Any other copy of the source has no commit. A repository
//! around such a copy is somebody else's, and its commits say nothing about this source: only a
//! repository whose top directory is ours counts.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that `git archive` fills in, and its path in a checkout.
pub(crate) const FILE: &str = "tools/cli/commit.txt";

/// So many digits identify a commit here, whatever git's configuration says.
const DIGITS: usize = 12;

/// The commit and its date, such as `54dbff43da1b 2026-11-30`; `None` if it is not known.
pub(crate) fn commit(root: &Path) -> Option<String> {
    let archived = std::fs::read_to_string(root.join(FILE)).ok();
    archived.as_deref().and_then(short).or_else(|| short(&checked_out(root)?))
}

/// The commit from which cargo packed the package in this directory, without its date: cargo does
/// not note that. `None` if the package contains changes that were not committed.
pub(crate) fn packed(package: &Path) -> Option<String> {
    let text = std::fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    let is_changed = text.contains("\"dirty\": true");
    if is_changed { None } else { rest.get(..DIGITS).map(str::to_owned) }
}

/// The files that change when the commit does. All of them exist: cargo takes a missing file for a
/// change.
pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let mut files = vec![root.join(FILE)];
    if is_ours(root) {
        // The log grows with every commit, merge and checkout. A repository may be without it.
        let path = |name| Some(root.join(git(root, &["rev-parse", "--git-path", name])?));
        match path("logs/HEAD").filter(|log| log.exists()) {
            Some(log) => files.push(log),
            None => files.extend(["HEAD", "refs/heads"].into_iter().filter_map(path)),
        }
    }
    files.retain(|file| file.exists());
    files
}

fn checked_out(root: &Path) -> Option<String> {
    if is_ours(root) { git(root, &["log", "-1", "--format=%H %cs"]) } else { None }
}

/// Whether this directory is the top of a git checkout.
fn is_ours(root: &Path) -> bool {
    let top = git(root, &["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    top.is_some_and(|top| top.canonicalize().ok() == root.canonicalize().ok())
}

/// `HASH DATE` with an abbreviated hash. `None` for a text that is not of this form, such as the
/// format itself.
fn short(text: &str) -> Option<String> {
    let (hash, date) = text.trim().split_once(' ')?;
    let is_hash = hash.len() >= DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| format!("{} {date}", &hash[..DIGITS]))
}

/// What git prints about this directory, if the command succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // A hook's settings are about the hook's repository.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    let output = git.arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
