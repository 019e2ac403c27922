//! Stores the drop-in as a file, so that the dynamic loader can load it.
//!
//! A package installs the library beside the command. Otherwise the command writes its own copy,
//! which it contains. It writes the library once, into a directory of the user,
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
    if let Some(path) = installed() {
        return Ok(path);
    }
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

/// The library that a package has installed: in `../lib/waitword`, as seen from the command. Its
/// name identifies its contents. (It may be a few bytes shorter: packages strip their files.)
fn installed() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    let directory = command.parent()?.parent()?.join("lib/waitword");
    let path = directory.join(NAME);
    let is_safe = [&directory, &path].into_iter().all(|path| only_root_may_write(path));
    (is_safe && path.is_file() && can_be_preloaded(&path)).then_some(path)
}

fn only_root_may_write(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0 && !it.is_symlink())
}

/// Whether `LD_PRELOAD` can name this path.
fn can_be_preloaded(path: &Path) -> bool {
    !path.as_os_str().to_string_lossy().contains([':', ' '])
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
    if !can_be_preloaded(directory) {
        bail!("LD_PRELOAD cannot name a path with a colon or a space");
    }
    let mode = if directory == Path::new(FOR_ALL) { 0o755 } else { 0o700 };
    fs::DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    only_the_caller_may_write(directory)?;
    may_hold_programs(directory)?;
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

/// Refuses file systems whose files the kernel does not execute, as containers mount /tmp. The
/// loader would leave the library out, and start the program without it.
fn may_hold_programs(directory: &Path) -> Result<()> {
    if rustix::fs::statvfs(directory)?.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        bail!("mounted with noexec, so no library can be loaded from there");
    }
    Ok(())
}

fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == LIBRARY.len() as u64 && file.is_file())
}
