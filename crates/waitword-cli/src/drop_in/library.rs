//! Where the drop-in lies as a file, so that the dynamic loader can load it.
//!
//! The command carries it inside. It is written once, under a name that tells its contents apart from any other's, into a
//! directory of the user's: programs that run with an older one keep it. The superuser's is one that all may read: a service that root starts
//! becomes another user before it executes its program.

use anyhow::{Context as _, Result, bail};
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const NAME: &str = env!("WAITWORD_DROP_IN_NAME");
const FOR_ALL: &str = "/var/cache/waitword";
static LIBRARY: &[u8] = include_bytes!(env!("WAITWORD_DROP_IN"));

/// The path of the library, which is there when this returns.
///
/// # Errors
/// There is no directory that the caller may write to, or somebody else could change what lies there.
pub(crate) fn put_in_place() -> Result<PathBuf> {
    let mut reasons = Vec::new();
    for directory in directories() {
        match put_into(&directory, NAME) {
            Ok(path) => return Ok(path),
            Err(error) => reasons.push(format!("{}: {error:#}", directory.display())),
        }
    }
    bail!("no place for the drop-in library: {}", reasons.join("; "))
}

/// Makes it a contender of the benchmark in this process, beside the C library whose names it defines.
///
/// # Errors
/// As [`put_in_place`], or it cannot be loaded.
pub(crate) fn load_beside_the_c_library() -> Result<()> {
    Ok(waitword_bench::locks::pthread::load(&put_in_place()?)?)
}

/// Where it may lie, the best place first.
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
    let mode = if directory == Path::new(FOR_ALL) {
        0o755
    } else {
        0o700
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(directory)?;
    only_the_caller_may_write(directory)?;
    let path = directory.join(name);
    if is_there(&path) {
        return Ok(path);
    }
    // Under another name first: nobody loads half of it.
    let unfinished = directory.join(format!(".{name}.{}", std::process::id()));
    let written = write(&unfinished).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        // Whether this works or not, the reason is the first error.
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

/// What is loaded into the user's programs is nobody else's to change.
fn only_the_caller_may_write(directory: &Path) -> Result<()> {
    let of = fs::symlink_metadata(directory)?;
    // SAFETY: it cannot fail.
    let user = unsafe { libc::geteuid() };
    if !of.is_dir() && !fs::metadata(directory)?.is_dir() {
        bail!("not a directory");
    }
    if of.uid() != user || of.mode() & 0o022 != 0 && !of.is_symlink() {
        bail!("others may write there");
    }
    Ok(())
}

fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == LIBRARY.len() as u64 && file.is_file())
}
