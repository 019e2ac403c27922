//! The C library's own functions, behind ours: for objects that are not ours.
//!
//! Each is looked up by a constructor, and kept. The look-up (`dlsym`) takes the lock that `dlopen` holds while it runs
//! constructors: in a thread that one of them starts and waits for, it would hang. This library's constructors are the first to
//! run (`-z initfirst`, `build.rs`), so there is no such thread yet.
//!
//! A call may still come before: two libraries may ask to be the first, and only one of them is. Then the call looks it up
//! itself. The look-up allocates nothing when it succeeds.
//!
//! A function that is missing ends the process with a message when it is called: the C library is older than this one asks for.

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
        let found = self.look_up();
        if found.is_null() {
            die(self.name);
        }
        found
    }

    /// Null if the C library has no such function.
    pub(crate) fn look_up(&self) -> *mut c_void {
        // SAFETY: the name is a string that ends with a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
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
        // SAFETY: `part` is borrowed, and as long as it says.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: `abort` asks for nothing, and does not return.
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
                // SAFETY: a Rust identifier has no zero in it, so the one at the end is the only
                // one.
                unsafe {
                    core::ffi::CStr::from_bytes_with_nul_unchecked(
                        concat!(stringify!($name), "\0").as_bytes(),
                    )
                },
            );
            #[used]
            #[unsafe(link_section = ".init_array")]
            static AT_START: extern "C" fn() = {
                extern "C" fn at_start() {
                    REAL.look_up();
                }
                at_start
            };
            type Function = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: `address` is not null, and what glibc has under this name is a function of
            // this type.
            let function: Function = unsafe { core::mem::transmute(REAL.address()) };
            // SAFETY: forwards this function's own contract, which is that of the C library's
            // function.
            unsafe { function($($argument),*) }
        }
    )*};
}

pub(crate) use real;
