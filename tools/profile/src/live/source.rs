//! Where recordings grow: in a directory, or wherever running processes make them.

use anyhow::{Context as _, Result};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A look at all processes takes at most this part of a CPU's time.
const PART: u32 = 200;
/// The shortest time between two looks at running processes.
const PAUSE: Duration = Duration::from_secs(1);

/// What a [`Follower`](super::follower::Follower) follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// All recordings in this directory, which may be empty still.
    Directory(PathBuf),
    /// This process, whatever it executes, and not its children.
    Process(u32),
    /// All processes of the user who asks.
    User,
}

/// Finds the rings files of a source.
#[derive(Debug)]
pub(super) struct Finder {
    source: Source,
    next: Option<Instant>,
}

impl Finder {
    /// # Errors
    /// The directory cannot be read.
    pub(super) fn new(source: Source) -> Result<Self> {
        if let Source::Directory(directory) = &source {
            fs::read_dir(directory).with_context(|| directory.display().to_string())?;
        }
        Ok(Self { source, next: None })
    }

    /// The rings files that are there now, without the `known` ones. Running processes are looked
    /// at only now and then: in between there are none.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(super) fn new_files(&mut self, known: &HashSet<PathBuf>) -> Result<Vec<PathBuf>> {
        let mut files = match &self.source {
            Source::Directory(directory) => {
                in_directory(directory).with_context(|| directory.display().to_string())?
            }
            _ if self.next.is_some_and(|next| Instant::now() < next) => Vec::new(),
            source => {
                let began = Instant::now();
                let files = match source {
                    Source::Process(pid) => of_process(*pid).unwrap_or_default(),
                    _ => of_user(),
                };
                let ended = Instant::now();
                self.next = Some(ended + PAUSE.max(PART * (ended - began)));
                files
            }
        };
        files.retain(|file| !known.contains(file));
        files.sort();
        files.dedup();
        Ok(files)
    }
}

fn in_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    let paths = entries.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|it| it == "rings")).collect())
}

fn of_user() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|of| of.uid() == user));
    let pids = own.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // A process may end meanwhile.
    pids.flat_map(|pid| of_process(pid).unwrap_or_default()).collect()
}

/// The recordings that this process has mapped and makes itself, as paths that can be opened here.
///
/// # Errors
/// There is no such process, or it belongs to another user.
pub fn of_process(pid: u32) -> io::Result<Vec<PathBuf>> {
    let maps = fs::read(format!("/proc/{pid}/maps"))?;
    let mut found = Vec::new();
    for line in maps.split(|&byte| byte == b'\n').filter(|line| line.ends_with(b".rings")) {
        if let Some((path, inode)) = mapped(line) {
            found.push((path, inode));
        }
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    // A forked child has the recording of its parent mapped as well.
    let own = own_pid(pid);
    found.retain(|(path, _)| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        name.strip_prefix(own.as_bytes()).is_some_and(|rest| rest.starts_with(b"."))
    });
    found.dedup();
    Ok(found.into_iter().map(|(path, inode)| seen_from_here(pid, path, inode)).collect())
}

/// The path and the inode in a line of a maps file.
fn mapped(line: &[u8]) -> Option<(PathBuf, u64)> {
    let path = line.iter().position(|&byte| byte == b'/')?;
    let (fields, path) = line.split_at(path);
    let inode = str::from_utf8(fields).ok()?.split_whitespace().nth(4)?.parse().ok()?;
    Some((PathBuf::from(OsStr::from_bytes(path)), inode))
}

/// The process's ID in its own namespace.
fn own_pid(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let all = status.lines().find_map(|line| line.strip_prefix("NStgid:"));
    let own = all.and_then(|all| all.split_whitespace().last().map(str::to_owned));
    own.unwrap_or_else(|| pid.to_string())
}

/// The file may have another path here: in a container. A path through the process is gone when
/// the process is.
fn seen_from_here(pid: u32, path: PathBuf, inode: u64) -> PathBuf {
    if path.symlink_metadata().is_ok_and(|of| of.ino() == inode) {
        return path;
    }
    let mut below = OsString::from(format!("/proc/{pid}/root"));
    below.push(&path);
    PathBuf::from(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_and_the_inode_of_a_mapping() {
        let line = b"7f00-7f01 rw-s 00000000 fe:01 4711     /tmp/a b/17.99.rings";
        assert_eq!(mapped(line), Some((PathBuf::from("/tmp/a b/17.99.rings"), 4711)));
        assert_eq!(mapped(b"7f00-7f01 rw-s 00000000 00:00 0 x.rings"), None);
        assert_eq!(mapped(b"/x.rings"), None);
    }

    #[test]
    fn this_process_does_not_record_and_no_process_is_an_error() {
        assert_eq!(of_process(std::process::id()).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(own_pid(std::process::id()), std::process::id().to_string());
        assert!(of_process(u32::MAX).is_err());
    }
}
