//! `waitword --version`: the version, and the commit that the command was built from.

#[path = "../build/commit.rs"]
mod commit;

use commit::{FILE, commit, files, packed};
use std::fs;
use std::path::Path;
use std::process::Command;
use waitword_testkit::command::{output, texts};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567 2026-11-30";
const SHORT: &str = "0123456789ab 2026-11-30";

/// Runs git in this directory, whatever the user's own settings are.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "somebody"),
        ("GIT_AUTHOR_EMAIL", "somebody@example.org"),
        ("GIT_AUTHOR_DATE", "2026-11-30T12:00:00Z"),
        ("GIT_COMMITTER_NAME", "somebody"),
        ("GIT_COMMITTER_EMAIL", "somebody@example.org"),
        ("GIT_COMMITTER_DATE", "2026-11-30T12:00:00Z"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ] {
        git.env(name, value);
    }
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git.env_remove(variable);
    }
    texts(output(git.arg("-C").arg(directory).args(arguments))).0
}

/// Makes a repository with one commit, of the file and attributes that the real one has. Returns
/// its directory.
fn repository() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir_all(root.join(FILE).parent().unwrap()).unwrap();
    fs::copy(ours.join(".gitattributes"), root.join(".gitattributes")).unwrap();
    fs::write(root.join(FILE), "$Format:%H %cs$\n").unwrap();
    git(root, &["init", "--quiet"]);
    git(root, &["add", "."]);
    git(root, &["commit", "--quiet", "--message", "one"]);
    place
}

fn head(root: &Path) -> String {
    let head = git(root, &["rev-parse", "HEAD"]);
    format!("{} 2026-11-30", &head[..12])
}

#[test]
fn the_command_names_its_version_and_the_commit_of_this_source() {
    let (said, _) = texts(output(Command::new(env!("CARGO_BIN_EXE_waitword")).arg("--version")));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = commit(&root).map_or_else(String::new, |commit| format!(" ({commit})"));
    assert_eq!(said, format!("waitword {}{commit}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_checkout_asks_git_and_is_asked_again_when_head_moves() {
    let place = repository();
    let root = place.path();
    assert_eq!(commit(root), Some(head(root)));
    let [_, log] = &files(root)[..] else { panic!("{:?}", files(root)) };
    for command in [
        &["commit", "--quiet", "--allow-empty", "--message", "two"][..],
        &["checkout", "--quiet", "--detach"],
        &["commit", "--quiet", "--allow-empty", "--message", "three"],
    ] {
        let before = fs::read(log).unwrap();
        git(root, command);
        assert_ne!(before, fs::read(log).unwrap(), "{command:?}");
        assert_eq!(commit(root), Some(head(root)));
    }
    // What moves no HEAD builds nothing again.
    let before = fs::read(log).unwrap();
    git(root, &["gc", "--quiet"]);
    git(root, &["tag", "v1"]);
    assert_eq!(before, fs::read(log).unwrap());

    fs::remove_dir_all(root.join(".git/logs")).unwrap();
    let without = files(root);
    assert!(without[1].ends_with("HEAD") && without[2].ends_with("refs/heads"), "{without:?}");
}

#[test]
fn a_tarball_names_its_commit_wherever_it_is_unpacked() {
    let place = repository();
    let tarball = place.path().join("it.tar");
    git(place.path(), &["archive", "--output", tarball.to_str().unwrap(), "HEAD"]);
    let [elsewhere, within] = [tempfile::tempdir().unwrap(), repository()];
    for root in [elsewhere.path(), within.path()] {
        texts(output(Command::new("tar").arg("xf").arg(&tarball).arg("-C").arg(root)));
        assert_eq!(commit(root), Some(head(place.path())));
    }
}

#[test]
fn a_repository_around_the_source_is_not_taken_for_ours() {
    let around = repository();
    let root = around.path().join("third-party/waitword");
    fs::create_dir_all(root.join(FILE).parent().unwrap()).unwrap();
    fs::write(root.join(FILE), "$Format:%H %cs$\n").unwrap();
    assert_eq!(commit(&root), None);
    assert_eq!(files(&root), [root.join(FILE)]);
    fs::write(root.join(FILE), COMMIT).unwrap();
    assert_eq!(commit(&root).as_deref(), Some(SHORT));
    // Neither a repository nor the file.
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(commit(empty.path()), None);
    assert!(files(empty.path()).is_empty());
}

#[test]
fn packed_by_cargo() {
    let place = tempfile::tempdir().unwrap();
    let note = place.path().join(".cargo_vcs_info.json");
    assert_eq!(packed(place.path()), None);
    // As cargo writes it.
    let text = |more: &str| {
        let hash = &COMMIT[..40];
        format!(
            "{{\n  \"git\": {{\n    \"sha1\": \"{hash}\"{more}\n  }},\n  \"path_in_vcs\": \"\"\n}}"
        )
    };
    fs::write(&note, text("")).unwrap();
    assert_eq!(packed(place.path()).as_deref(), Some("0123456789ab"));
    fs::write(&note, text(",\n    \"dirty\": true")).unwrap();
    assert_eq!(packed(place.path()), None);
    fs::write(&note, "{}").unwrap();
    assert_eq!(packed(place.path()), None);
}
