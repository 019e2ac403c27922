//! Which pthread functions a scenario's process has: those of the drop-in, loaded before the C
//! library, or those of the C library itself.
//!
//! The drop-in reads its settings once per process. So each of the processes that a scenario runs
//! in, one after another, gets settings chosen by the seed.

use crate::seed::{mix, mix_with};
use crate::slice::{DropIn, Slice};
use std::ffi::{CStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The variable that names libraries to load before all others.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

/// The environment of a scenario's process: the drop-in, and settings chosen by the seed.
pub(crate) fn environment(slice: &Slice) -> Vec<(&'static str, OsString)> {
    let Some(library) = &slice.preload else {
        return Vec::new();
    };
    let name = mix_with(slice.seed, &slice.scenario);
    let mut dice = fastrand::Rng::with_seed(mix(name ^ slice.number));
    let flavour = ["adaptive", "adaptive", "throughput", "wait-wake"][dice.usize(0..4)];
    let spin = ["60000", "0", "1000", "600000"][dice.usize(0..4)];
    let mut variables = vec![
        (PRELOAD, library.into()),
        ("WAITWORD", "on".into()),
        ("WAITWORD_MUTEX", flavour.into()),
        ("WAITWORD_SPIN_NS", spin.into()),
        ("WAITWORD_FUTEX", "on".into()),
    ];
    // Counting takes every call off its fast path.
    if dice.u32(0..4) == 0 {
        variables.push(("WAITWORD_SUMMARY", "/dev/null".into()));
    }
    // A table that starts small grows while it is in use.
    if dice.u32(0..4) == 0 {
        variables.push(("WAITWORD_BUCKETS", "1".into()));
    }
    variables
}

/// Checks that this process has the functions that it should have.
pub(crate) fn verify(slice: &Slice) -> Result<(), String> {
    let Some(drop_in) = slice.drop_in else {
        return Ok(());
    };
    // One function from each file of the drop-in: a library loaded before it could define some of
    // them.
    for name in [
        c"pthread_mutex_lock",
        c"pthread_cond_wait",
        c"pthread_rwlock_wrlock",
        c"pthread_cancel",
        c"sem_wait",
        c"syscall",
    ] {
        let home = home_of(name).ok_or_else(|| format!("no {}", name.to_string_lossy()))?;
        let is_right = match (drop_in, &slice.preload) {
            (DropIn::On, Some(library)) => same_file(&home, library),
            // No library except the C library itself has all of these.
            _ => home_of(c"gnu_get_libc_version").as_ref() == Some(&home),
        };
        if !is_right {
            return Err(format!(
                "{} comes from {}, and should come from {}",
                name.to_string_lossy(),
                home.display(),
                match (drop_in, &slice.preload) {
                    (DropIn::On, Some(library)) => library.display().to_string(),
                    _ => "the C library".to_owned(),
                }
            ));
        }
    }
    Ok(())
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok() == other.canonicalize().ok()
}

/// The file of the library in which a name is found first.
fn home_of(name: &CStr) -> Option<std::path::PathBuf> {
    // SAFETY: a NUL-terminated name, and room for the result. The file name in the result lives as
    // long as the library stays loaded.
    unsafe {
        let address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        let mut found: libc::Dl_info = std::mem::zeroed();
        if address.is_null() || libc::dladdr(address, &raw mut found) == 0 {
            return None;
        }
        let file = CStr::from_ptr(found.dli_fname).to_bytes();
        Some(Path::new(std::ffi::OsStr::from_bytes(file)).to_owned())
    }
}
