//! Temporary files and directories, also in a container whose root file system is read-only: there,
//! nothing can be written in /tmp, but in the file system of POSIX's shared memory.

use anyhow::{Context as _, Result};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tempfile::TempDir;

/// It is there in every container.
const SHARED_MEMORY: &str = "/dev/shm";

/// A directory of the user alone.
///
/// # Errors
/// There is no place for it.
pub(crate) fn directory() -> Result<TempDir> {
    somewhere(|place| {
        tempfile::Builder::new()
            .prefix("waitword-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place)
    })
}

/// A file without a name.
///
/// # Errors
/// There is no place for it.
pub(crate) fn file() -> Result<File> {
    somewhere(|place| tempfile::tempfile_in(place))
}

fn somewhere<T>(make: impl Fn(&Path) -> io::Result<T>) -> Result<T> {
    let usual = std::env::temp_dir();
    make(&usual).or_else(|error| {
        make(Path::new(SHARED_MEMORY))
            // The usual place is the one to mend.
            .map_err(|_| error)
            .with_context(|| {
                format!("no temporary file (TMPDIR sets where) in {}", usual.display())
            })
    })
}
