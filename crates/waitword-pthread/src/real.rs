//! The C library's own functions, behind ours: for objects that are not ours.
//!
//! A constructor looks up each of them and keeps its address. The look-up (`dlsym`) takes the lock
//! that `dlopen` holds while it runs constructors, so it would hang in a thread that one of them
//! starts and waits for. This library's constructors are the first to run (`-z initfirst`,
//! `build.rs`), so there is no such thread yet.
//!
//! A call may still come before: two libraries may ask to be the first, and only one of them is.
//! Then the call itself does the look-up. A successful look-up allocates nothing.
//!
//! If a function is missing, calling it ends the process with a message: the C library is older
//! than this library requires.

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
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    /// The function's address.
    #[inline]
    pub(crate) fn address(&self) -> *mut c_void {
        // Relaxed: the code was there before this library was loaded.
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

/// Ends the process: a required function is missing.
fn die(name: &CStr) -> ! {
    let parts = [
        b"waitword: the C library has no ".as_slice(),
        name.to_bytes(),
        b": it is older than 2.34, or not glibc\n",
    ];
    for part in parts {
        // SAFETY: `part` is borrowed, and its length is passed.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: `abort` has no preconditions, and does not return.
    unsafe { libc::abort() }
}

/// Declares functions of the C library under their own names: `real! { fn pthread_mutex_lock(mutex:
/// *mut pthread_mutex_t) -> c_int; }` is `real::pthread_mutex_lock`.
macro_rules! real {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("The C library's `", stringify!($name), "`.")]
        #[inline]
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            static REAL: $crate::real::Real = $crate::real::Real::new(
                // SAFETY: a Rust identifier contains no zero, so the one at the end is the only
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
            // SAFETY: `address` is not null, and glibc's function of this name has this type.
            let function: Function = unsafe { core::mem::transmute(REAL.address()) };
            // SAFETY: forwards this function's own contract, which is that of the C library's
            // function.
            unsafe { function($($argument),*) }
        }
    )*};
}

pub(crate) use real;
