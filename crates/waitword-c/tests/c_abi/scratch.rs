//! The tests' scratch files: below cargo's target directory, separate for each process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The folder of this test process. Removes the folders of processes that have ended.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_abi");
        std::fs::create_dir_all(&all).expect("a writable target directory");
        for old in std::fs::read_dir(&all).expect("a readable folder").flatten() {
            if !Path::new("/proc").join(old.file_name()).exists() {
                let _ = std::fs::remove_dir_all(old.path());
            }
        }
        let own = all.join(std::process::id().to_string());
        // It exists already if an earlier process had the same ID.
        let _ = std::fs::remove_dir_all(&own);
        std::fs::create_dir(&own).expect("a writable folder");
        own
    })
}

/// A file in that folder that no other test uses.
pub(crate) fn new_file(extension: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    folder().join(format!("{number}.{extension}"))
}
