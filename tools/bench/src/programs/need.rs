//! Commands that programs need, and where they are.

use std::path::PathBuf;

/// A command, and the Debian package that contains it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(super) command: &'static str,
    pub(super) package: &'static str,
}

pub(super) const fn need(command: &'static str, package: &'static str) -> Need {
    Need { command, package }
}

/// The path of a command. Debian's own directories come first: a shim earlier in `PATH` may be a
/// script or another version. PostgreSQL has one directory per version.
pub(super) fn find(command: &str) -> Option<PathBuf> {
    let usual = ["/usr/bin", "/usr/sbin"].map(PathBuf::from);
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let of_version =
        |version: std::io::Result<std::fs::DirEntry>| Some(version.ok()?.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions
        .into_iter()
        .flatten()
        .filter_map(of_version)
        .chain(usual)
        .chain(std::env::split_paths(&path))
        .map(|directory| directory.join(command))
        .find(|path| path.is_file())
}
