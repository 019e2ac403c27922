//! A directory for the files of a recording, where the process that records can write.
//!
//! It is made below the root directory of that process, which may be in a container, by this one,
//! which may have more rights. So no symbolic link of its is followed. The directory stays open: it
//! can be read when the process has ended, and its mounts with it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Where temporary files may be made.
const PARENTS: [&[&str]; 3] = [&["tmp"], &["var", "tmp"], &["dev", "shm"]];

/// The directory. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    /// The root directory of the process.
    root: File,
    parent: File,
    name: String,
    _directory: File,
    /// As this process may call it.
    path: PathBuf,
    /// As the other one may.
    inside: PathBuf,
}

impl Place {
    /// Makes a directory for a process.
    ///
    /// # Errors
    /// There is none where it could be, or it cannot be made: the last one's error.
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        let root = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY)
            .open(format!("/proc/{pid}/root"))?;
        let user = user(pid)?;
        let mut last = Err(io::ErrorKind::NotFound.into());
        for parent in PARENTS {
            last = Self::below(&root, parent, user);
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn below(root: &File, names: &[&str], (uid, gid): (u32, u32)) -> io::Result<Self> {
        let mut parent = root.try_clone()?;
        let mut inside = PathBuf::from("/");
        for name in names {
            parent = open_below(&parent, name)?;
            inside.push(name);
        }
        let name = format!("waitword-{}-{}", std::process::id(), crate::now());
        DirBuilder::new().mode(0o700).create(path_of(&parent).join(&name))?;
        let directory = open_below(&parent, &name);
        let owned = directory.and_then(|directory| {
            // SAFETY: it cannot fail.
            if unsafe { libc::geteuid() } != uid {
                std::os::unix::fs::fchown(&directory, Some(uid), Some(gid))?;
            }
            Ok(directory)
        });
        match owned {
            Ok(directory) => {
                let path = path_of(&directory);
                inside.push(&name);
                let root = root.try_clone()?;
                Ok(Self { root, parent, name, _directory: directory, path, inside })
            }
            Err(error) => {
                _ = std::fs::remove_dir(path_of(&parent).join(&name));
                Err(error)
            }
        }
    }

    /// As this process may call it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The root directory of the process that records, as this one may call it.
    pub(super) fn root(&self) -> PathBuf {
        path_of(&self.root)
    }

    /// As the process that records may call it.
    pub(super) fn inside(&self) -> &Path {
        &self.inside
    }

    /// The numbers of the processes that have recorded here.
    pub(super) fn processes(&self) -> impl Iterator<Item = u32> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.ends_with(".rings").then(|| name.split('.').next()?.parse().ok())?
        })
    }

    /// Copies the files into a directory.
    pub(super) fn copy_to(&self, directory: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            // The process may have put anything here.
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let mut from = OpenOptions::new().read(true).custom_flags(flags).open(entry.path())?;
            if from.metadata()?.is_file() {
                let to = directory.join(entry.file_name());
                let mut to =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
                io::copy(&mut from, &mut to)?;
            }
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        /// The process may make a file at the same moment.
        const ATTEMPTS: usize = 3;
        let path = path_of(&self.parent).join(&self.name);
        _ = (0..ATTEMPTS).any(|_| std::fs::remove_dir_all(&path).is_ok());
    }
}

fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn open_below(directory: &File, name: &str) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path_of(directory).join(name))
}

/// The user and the group whose files a process makes.
fn user(pid: u32) -> io::Result<(u32, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let id = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        // Real, effective, saved; of the file system.
        line.split_whitespace().nth(3)?.parse().ok()
    };
    id("Uid:").zip(id("Gid:")).ok_or_else(|| io::ErrorKind::InvalidData.into())
}
