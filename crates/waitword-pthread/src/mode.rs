//! Whether the drop-in serves this process, and how: the environment, read once.
//!
//! | variable | meaning |
//! |----------|---------|
//! | `WAITWORD` | `off`: every call goes to the C library |
//!
//! There is no constructor to wait for: the first call decides, since other libraries' constructors lock before ours would run.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

const UNDECIDED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);

/// Whether new and statically initialised objects are ours.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // Relaxed: whoever decides does so from the same environment.
    MODE.load(Relaxed) == ON || decide()
}

#[cold]
#[inline(never)]
fn decide() -> bool {
    if MODE.load(Relaxed) == UNDECIDED {
        let mode = match variable(c"WAITWORD") {
            Some(b"off" | b"0" | b"no") => OFF,
            _ => ON,
        };
        MODE.store(mode, Relaxed);
    }
    MODE.load(Relaxed) == ON
}

/// What the environment says, as it was when the process began.
fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: `name` ends with a zero. Nobody changes the environment while the first lock of a process is taken; the C
    // library's own start-up reads it in the same way.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a string of the environment.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}
