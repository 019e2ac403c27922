//! Settings from the environment. They are read without the heap and without `std`'s environment
//! lock, since the first wait of a process may come from inside an allocator.
//!
//! A program with more rights than its caller (setuid, file capabilities) ignores the environment
//! that the caller chose: `secure_getenv`.

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
}

/// The environment variable `name` as an unsigned number; `None` if unset or not a number.
///
/// Async-signal-safe as far as `secure_getenv` is: it only reads. It must not run while another
/// thread changes the environment, as is true for every reader of it.
pub(crate) fn number(name: &CStr) -> Option<u64> {
    text(name)?.to_str().ok()?.trim().parse().ok()
}

/// The environment variable `name`; `None` if unset or empty. As [`number`].
pub(crate) fn text(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: `name` is a C string. Nothing changes the environment while this call reads it: every
    // caller of `setenv` and `std::env::set_var` has promised that.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: not null, so it is a C string in the environment. Nothing changes the environment
    // until the caller has read it, as argued above.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty()).then_some(value)
}
