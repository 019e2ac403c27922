//! Loads oneTBB into this process when the benchmark asks for it, not when the program starts.
//!
//! Debian ships it only as a shared library. Linked to the program, it and the C++ library would
//! also be loaded at each start of `waitword run`. So the shim (`tbb.cc`) is a separate shared
//! object, linked to oneTBB as any program is. This program embeds it and passes it to the dynamic
//! loader as an unnamed file. If that fails, the library that was present at build time is gone,
//! and the peer is reported as missing.

use core::ffi::c_void;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libwaitword_tbb.so"));

/// A mutex, or a queuing mutex's node.
type Object = *mut usize;

macro_rules! shim {
    ($($field:ident: $name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of `tbb.cc`.
        #[derive(Debug)]
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        fn find_all(library: &Library) -> Result<Functions, libloading::Error> {
            Ok(Functions {
                $(
                    // SAFETY: this function has this type in `tbb.cc`.
                    $field: unsafe { *library.get(stringify!($name))? },
                )*
            })
        }
    };
}

shim! {
    mutex_lock: waitword_tbb_mutex_lock(Object) -> ();
    mutex_try_lock: waitword_tbb_mutex_try_lock(Object) -> bool;
    mutex_unlock: waitword_tbb_mutex_unlock(Object) -> ();
    rw_mutex_lock: waitword_tbb_rw_mutex_lock(Object) -> ();
    rw_mutex_unlock: waitword_tbb_rw_mutex_unlock(Object) -> ();
    rw_mutex_lock_shared: waitword_tbb_rw_mutex_lock_shared(Object) -> ();
    rw_mutex_unlock_shared: waitword_tbb_rw_mutex_unlock_shared(Object) -> ();
    queuing_lock: waitword_tbb_queuing_lock(Object, *mut c_void) -> ();
    queuing_try_lock: waitword_tbb_queuing_try_lock(Object, *mut c_void) -> bool;
    queuing_unlock: waitword_tbb_queuing_unlock(*mut c_void) -> ();
    queuing_rw_lock: waitword_tbb_queuing_rw_lock(Object, *mut c_void) -> ();
    queuing_rw_lock_shared: waitword_tbb_queuing_rw_lock_shared(Object, *mut c_void) -> ();
    queuing_rw_unlock: waitword_tbb_queuing_rw_unlock(*mut c_void) -> ();
}

static FUNCTIONS: AtomicPtr<Functions> = AtomicPtr::new(null_mut());

/// The loaded functions.
#[inline(always)]
pub(super) fn functions() -> &'static Functions {
    // Relaxed: loaded before the threads that use it were started.
    let functions = FUNCTIONS.load(Relaxed);
    debug_assert!(!functions.is_null(), "used only if loaded");
    // SAFETY: set once, to a table that is never freed; contenders use it only after that
    // (`is_there`).
    unsafe { &*functions }
}

/// Whether oneTBB could be loaded. The first call tries it.
pub fn is_there() -> bool {
    static LOADED: OnceLock<bool> = OnceLock::new();
    *LOADED.get_or_init(|| load().is_ok())
}

fn load() -> io::Result<()> {
    let mut file = File::from(memfd_create("waitword-tbb", MemfdFlags::CLOEXEC)?);
    file.write_all(SHIM)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the shim has no constructor, and oneTBB's constructors only set up its own state.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(io::Error::other)?;
    let functions = find_all(&library).map_err(io::Error::other)?;
    // Never unloaded.
    std::mem::forget(library);
    FUNCTIONS.store(Box::leak(Box::new(functions)), Relaxed);
    Ok(())
}
