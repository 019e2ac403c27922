//! Where the command takes the drop-in from: what a package has installed, or its own copy.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use waitword_testkit::command::{output, texts};

/// The path that `preload` prints for this command, whose own copy goes below `cache`.
fn preload(command: &Path, cache: &Path) -> PathBuf {
    let (path, _) =
        texts(output(Command::new(command).arg("preload").env("XDG_CACHE_HOME", cache)));
    PathBuf::from(path.trim())
}

#[test]
fn an_installed_drop_in_is_used_if_only_root_can_change_it() {
    // SAFETY: it cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let place = tempfile::tempdir().unwrap();
    let [cache, bin, lib] =
        ["cache", "usr/bin", "usr/lib/waitword"].map(|name| place.path().join(name));
    let own = preload(Path::new(env!("CARGO_BIN_EXE_waitword")), &cache);
    assert!(own.starts_with(&cache), "{own:?}");
    for directory in [&bin, &lib] {
        fs::create_dir_all(directory).unwrap();
    }
    let command = bin.join("waitword");
    fs::copy(env!("CARGO_BIN_EXE_waitword"), &command).unwrap();
    // Nothing is installed beside it.
    assert_eq!(preload(&command, &cache), own);
    let installed = lib.join(own.file_name().unwrap());
    fs::copy(&own, &installed).unwrap();
    let expected = if is_root { &installed } else { &own };
    assert_eq!(&preload(&command, &cache), expected);
    // Nothing is written then: it works where nothing can be.
    let nowhere = Path::new("/proc/nowhere");
    if is_root {
        assert_eq!(preload(&command, nowhere), installed);
    }
    for unsafe_one in [&installed, &lib] {
        fs::set_permissions(unsafe_one, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(preload(&command, &cache), own, "{unsafe_one:?}");
        fs::set_permissions(unsafe_one, Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(&preload(&command, &cache), expected);
    // One of another version has another name.
    fs::rename(&installed, lib.join("libwaitword_pthread-0123456789abcdef.so")).unwrap();
    assert_eq!(preload(&command, &cache), own);
}
