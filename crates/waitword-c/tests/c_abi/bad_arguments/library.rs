//! The shared library, called by name with plain numbers.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A library that the test has loaded.
pub(crate) struct Library {
    handle: *mut c_void,
}

// SAFETY: the handle is only passed to dlsym, which any thread may call.
unsafe impl Sync for Library {}

/// The maximum number of parameters of any function.
pub(crate) const MOST: usize = 9;

impl Library {
    pub(crate) fn open(path: &Path) -> Self {
        let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
        // SAFETY: the library's constructors may run at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{} cannot be loaded", path.display());
        Self { handle }
    }

    pub(crate) fn address(&self, name: &str) -> *mut c_void {
        let c_name = CString::new(name).expect("a name");
        // SAFETY: the handle is that of a loaded library.
        let found = unsafe { libc::dlsym(self.handle, c_name.as_ptr()) };
        assert!(!found.is_null(), "{name} is in the header, and not in the library");
        found
    }

    /// Calls a function with integers and pointers. The function does not see surplus arguments.
    ///
    /// # Safety
    /// As the function requires; or in a process that may crash.
    pub(crate) unsafe fn call(&self, name: &str, arguments: &[u64]) -> i64 {
        let mut all = [0; MOST];
        all[..arguments.len()].copy_from_slice(arguments);
        let [a, b, c, d, e, f, g, h, i] = all;
        // SAFETY: on the machines that this library supports, integers and pointers are passed in
        // registers and then on the stack, in the same places for every function. The caller
        // guarantees the rest.
        unsafe {
            let function: unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i64 =
                std::mem::transmute(self.address(name));
            function(a, b, c, d, e, f, g, h, i)
        }
    }
}
