//! The C library's own functions, behind ours: for objects that are not ours.
//!
//! Each is looked up when it is first needed, and kept. The lookup (`dlsym`) allocates nothing when it succeeds, and a
//! symbol that is missing ends the process with a message: an older C library than this one asks for.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function of the C library.
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(null_mut()),
        }
    }

    /// Where it is.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        // Relaxed: the code has been there since before this library was.
        let known = self.address.load(Relaxed);
        if known.is_null() { self.find() } else { known }
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        // SAFETY: a name that ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            die(self.name);
        }
        self.address.store(found, Relaxed);
        found
    }
}

/// Ends the process: what is asked for is not there.
fn die(name: &CStr) -> ! {
    let parts = [
        b"waitword: the C library has no ".as_slice(),
        name.to_bytes(),
        b": it is older than 2.34, or not glibc\n",
    ];
    for part in parts {
        // SAFETY: the bytes are there.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: it ends the process.
    unsafe { libc::abort() }
}

/// Declares functions of the C library under their own names: `real! { fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int; }`
/// is `real::pthread_mutex_lock`.
macro_rules! real {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("The C library's `", stringify!($name), "`.")]
        #[inline]
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            static REAL: $crate::real::Real = $crate::real::Real::new(
                // SAFETY: one zero, at the end.
                unsafe {
                    core::ffi::CStr::from_bytes_with_nul_unchecked(
                        concat!(stringify!($name), "\0").as_bytes(),
                    )
                },
            );
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: that is the type of the C library's function of this name.
            let function: Function = unsafe { core::mem::transmute(REAL.address()) };
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        }
    )*};
}

pub(crate) use real;
