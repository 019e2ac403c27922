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
//! Where the C library has two versions of a function, the older one is for programs linked long
//! ago, and works on other objects. Before glibc 2.36, `dlsym(RTLD_NEXT, ...)` finds either of them
//! (glibc's bug 14932), so the newer one is asked for by its version.
//!
//! If a function is missing, calling it ends the process with a message: the C library is older
//! than this library requires.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function of the C library.
pub(crate) struct Real {
    name: &'static CStr,
    /// The version of the newer function, if there are two.
    version: Option<&'static CStr>,
    address: AtomicPtr<c_void>,
}

impl Real {
    pub(crate) const fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        Self { name, version, address: AtomicPtr::new(null_mut()) }
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
        let name = self.name.as_ptr();
        let found = match self.version {
            // SAFETY: both are strings that end with a zero.
            Some(version) => unsafe { libc::dlvsym(libc::RTLD_NEXT, name, version.as_ptr()) },
            // SAFETY: the name is a string that ends with a zero.
            None => unsafe { libc::dlsym(libc::RTLD_NEXT, name) },
        };
        self.address.store(found, Relaxed);
        found
    }
}

/// Ends the process: a required function is missing.
fn die(name: &CStr) -> ! {
    let parts = [
        b"waitword: the C library has no ".as_slice(),
        name.to_bytes(),
        b": it is older than 2.30, or not glibc\n",
    ];
    for part in parts {
        // SAFETY: `part` is borrowed, and its length is passed.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: `abort` has no preconditions, and does not return.
    unsafe { libc::abort() }
}

/// Declares functions of the C library under their own names: `real! { fn pthread_mutex_lock(mutex:
/// *mut pthread_mutex_t) -> c_int; }` is `real::pthread_mutex_lock`. Those of `real! { in VERSION;
/// ...}`, an `Option` of a C string, are of that version.
macro_rules! real {
    (fn $($rest:tt)*) => {
        $crate::real::real! { in None; fn $($rest)* }
    };
    (
        in $version:expr;
        $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
    ) => {$(
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
                $version,
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

/// Declares functions that wait until a time of some clock: `real_until! { fn sem_clockwait or
/// sem_timedwait (semaphore: *mut sem_t); }`. glibc has the first one since 2.30 only. The second
/// one, which it has always had, is the same for `CLOCK_REALTIME`.
macro_rules! real_until {
    ($(fn $name:ident or $realtime:ident ($object:ident: $type:ty);)*) => {$(
        #[doc = concat!("The C library's `", stringify!($name), "`.")]
        #[inline]
        pub(crate) unsafe fn $name(
            $object: $type,
            clock: libc::clockid_t,
            until: *const libc::timespec,
        ) -> core::ffi::c_int {
            mod real {
                use super::*;
                use core::ffi::c_int;
                use libc::{clockid_t, timespec};

                $crate::real::real! {
                    fn $name($object: $type, clock: clockid_t, until: *const timespec) -> c_int;
                    fn $realtime($object: $type, until: *const timespec) -> c_int;
                }
            }
            match clock {
                // SAFETY: forwards this function's own contract: the other one is the same for
                // this clock.
                libc::CLOCK_REALTIME => unsafe { real::$realtime($object, until) },
                // SAFETY: forwards this function's own contract, that of the same name.
                _ => unsafe { real::$name($object, clock, until) },
            }
        }
    )*};
}

pub(crate) use {real, real_until};
