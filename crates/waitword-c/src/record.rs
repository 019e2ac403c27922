//! Recording why threads wait.

use core::ffi::{CStr, c_char, c_int};
use core::time::Duration;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use waitword_core::record;

/// Begins to record why the threads of this process wait for the objects of this library: which
/// thread kept them, where, and what it did meanwhile. The command `waitword` shows that.
///
/// `directory` is the absolute name of an existing directory, which gets three files. Waits shorter
/// than `threshold_ns` nanoseconds are not recorded; 10000 is the time that it takes to wake a
/// thread. A recording that has begun before ends. The environment variable `WAITWORD_RECORD`
/// begins one when the library is loaded.
///
/// Returns 0, or an error number, and then nothing is recorded:
/// - `EINVAL`: `directory` is not absolute, or too long.
/// - `EBUSY`: another thread begins a recording.
/// - `EOPNOTSUPP`: this kernel's pages are not of 4096 bytes.
/// - others: the files cannot be made.
///
/// May block for some milliseconds. Not async-signal-safe.
///
/// # Safety
/// `directory` must be NULL, which is refused (`EINVAL`), or point to a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_record_start(directory: *const c_char, threshold_ns: u64) -> c_int {
    if directory.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: not null, so a string, by this function's contract.
    let directory = unsafe { CStr::from_ptr(directory) };
    let directory = Path::new(OsStr::from_bytes(directory.to_bytes()));
    match record::start(directory, Duration::from_nanos(threshold_ns)) {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EINVAL),
    }
}

/// Ends the recording, if there is one. What was recorded is in its files.
///
/// May block for some milliseconds. Not async-signal-safe.
#[unsafe(no_mangle)]
pub extern "C" fn ww_record_stop() {
    record::stop();
}
