//! Stores the drop-in as a file, so that the dynamic loader can load it.
//!
//! The command contains the library. It writes the library once, into a directory of the user,
//! under a name that identifies the contents, so programs that run with an older version keep their
//! file. For root the directory is readable by all users: a service that root starts becomes
//! another user before it executes its program.

use anyhow::{Context as _, Result, bail};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const NAME: &str = env!("WAITWORD_DROP_IN_NAME");
const FOR_ALL: &str = "/var/cache/waitword";
static LIBRARY: &[u8] = include_bytes!(env!("WAITWORD_DROP_IN"));

/// Writes the library, if it is not there yet, and returns its path.
///
/// # Errors
/// There is no directory that the caller may write to and that no other user can change.
pub(crate) fn put_in_place() -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for directory in directories() {
        match put_into(&directory, NAME) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error:#}", directory.display())),
        }
    }
    bail!("cannot store the drop-in library: {}", reasons.join("; "))
}

/// Loads the library into this process beside the C library whose names it defines, as a contender
/// of the benchmark.
///
/// # Errors
/// As for [`put_in_place`], or the library cannot be loaded.
pub(crate) fn load_beside_the_c_library() -> Result<()> {
    Ok(waitword_bench::locks::pthread::load(&put_in_place()?)?)
}

/// The directories that may hold the library, the preferred one first.
fn directories() -> impl Iterator<Item = PathBuf> {
    let from = |name: &str, below: &str| {
        let value = std::env::var_os(name).filter(|value| Path::new(value).is_absolute())?;
        Some(PathBuf::from(value).join(below))
    };
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    [
        from("XDG_CACHE_HOME", "waitword"),
        (user == 0).then(|| PathBuf::from(FOR_ALL)),
        from("HOME", ".cache/waitword"),
        Some(std::env::temp_dir().join(format!("waitword-{user}"))),
    ]
    .into_iter()
    .flatten()
}

fn put_into(directory: &Path, name: &str) -> Result<PathBuf> {
    if directory.as_os_str().to_string_lossy().contains([':', ' ']) {
        bail!("LD_PRELOAD cannot name a path with a colon or a space");
    }
    let mode = if directory == Path::new(FOR_ALL) { 0o755 } else { 0o700 };
    fs::DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    only_the_caller_may_write(directory)?;
    let path = directory.join(name);
    if is_there(&path) {
        return Ok(path);
    }
    // Written under another name first, so that no process loads an incomplete file.
    let unfinished = directory.join(format!(".{name}.{}", std::process::id()));
    let written = write(&unfinished).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        // The first error is reported, whether or not this succeeds.
        let _ = fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("cannot write {name}"))?;
    Ok(path)
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.set_permissions(Permissions::from_mode(0o755))?;
    file.write_all(LIBRARY)?;
    file.sync_all()
}

/// Checks that no other user can change what is loaded into the user's programs.
fn only_the_caller_may_write(directory: &Path) -> Result<()> {
    let of = fs::symlink_metadata(directory)?;
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    if !of.is_dir() && !fs::metadata(directory)?.is_dir() {
        bail!("not a directory");
    }
    if of.uid() != user || of.mode() & 0o022 != 0 && !of.is_symlink() {
        bail!("other users may write there");
    }
    Ok(())
}

fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == LIBRARY.len() as u64 && file.is_file())
}
