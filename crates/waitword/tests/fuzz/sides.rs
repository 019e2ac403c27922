//! The sides that answer a call: the kernel; the library's raw futex interface; the C library; the
//! drop-in's `syscall`.

use std::ffi::{CStr, CString, c_int, c_long, c_uint, c_void};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::sync::Arc;
use syscalls::Sysno;
use waitword::raw::{Timespec, Waitv};
use waitword_testkit::{Answer, raw::To};

/// A system call, and its answer.
pub(crate) trait Side: Send + Sync {
    fn name(&self) -> &'static str;

    fn call(&self, call: Sysno, arguments: [usize; 6]) -> Answer;

    /// Whether its private waiters are visible in this program's own table.
    fn in_our_table(&self) -> bool {
        false
    }
}

impl Side for To {
    fn name(&self) -> &'static str {
        match self {
            To::Kernel => "the kernel",
            To::Ours => "waitword::raw",
        }
    }

    fn in_our_table(&self) -> bool {
        *self == To::Ours
    }

    fn call(&self, call: Sysno, arguments: [usize; 6]) -> Answer {
        To::call(*self, call, arguments)
    }
}

/// `waitword::raw`, and the libraries that are named.
pub(crate) fn ours() -> Vec<Arc<dyn Side>> {
    let raw: Arc<dyn Side> = Arc::new(To::Ours);
    [Some(raw), c_library(), drop_in()].into_iter().flatten().collect()
}

/// `libwaitword.so`, if `WAITWORD_FUZZ_C` names it.
pub(crate) fn c_library() -> Option<Arc<dyn Side>> {
    let library = open("WAITWORD_FUZZ_C")?;
    // SAFETY: the functions of `waitword.h`, with the types that they have there.
    unsafe {
        let set_spin: unsafe extern "C" fn(u64) =
            std::mem::transmute(function(library, c"ww_set_spin_budget_ns"));
        set_spin(0);
        Some(Arc::new(C {
            futex: std::mem::transmute::<*mut c_void, CFutex>(function(library, c"ww_futex")),
            wait: std::mem::transmute::<*mut c_void, CWait>(function(library, c"ww_futex_wait")),
            wake: std::mem::transmute::<*mut c_void, CWake>(function(library, c"ww_futex_wake")),
            requeue: std::mem::transmute::<*mut c_void, CRequeue>(function(
                library,
                c"ww_futex_requeue",
            )),
            waitv: std::mem::transmute::<*mut c_void, CWaitv>(function(library, c"ww_futex_waitv")),
        }))
    }
}

type CFutex =
    unsafe extern "C" fn(*mut c_void, c_int, u32, *const Timespec, *mut c_void, u32) -> c_long;
type CWait = unsafe extern "C" fn(*mut c_void, u64, u64, c_uint, *const Timespec, c_int) -> c_long;
type CWake = unsafe extern "C" fn(*mut c_void, u64, c_int, c_uint) -> c_long;
type CRequeue = unsafe extern "C" fn(*const Waitv, c_uint, c_int, c_int) -> c_long;
type CWaitv = unsafe extern "C" fn(*const Waitv, c_uint, c_uint, *const Timespec, c_int) -> c_long;

struct C {
    futex: CFutex,
    wait: CWait,
    wake: CWake,
    requeue: CRequeue,
    waitv: CWaitv,
}

impl Side for C {
    fn name(&self) -> &'static str {
        "libwaitword.so"
    }

    fn call(&self, call: Sysno, [a, b, c, d, e, f]: [usize; 6]) -> Answer {
        let word = with_exposed_provenance_mut::<c_void>;
        let time = with_exposed_provenance;
        // SAFETY: as for the raw futex interface.
        in_errno(unsafe {
            match call {
                Sysno::futex => {
                    (self.futex)(word(a), b as i32, c as u32, time(d), word(e), f as u32)
                }
                Sysno::futex_wait => {
                    (self.wait)(word(a), b as u64, c as u64, d as u32, time(e), f as i32)
                }
                Sysno::futex_wake => (self.wake)(word(a), b as u64, c as i32, d as u32),
                Sysno::futex_requeue => {
                    (self.requeue)(with_exposed_provenance(a), b as u32, c as i32, d as i32)
                }
                _ => {
                    let list = with_exposed_provenance(a);
                    (self.waitv)(list, b as u32, c as u32, time(d), e as i32)
                }
            }
        })
    }
}

/// `syscall` of `libwaitword_pthread.so`, if `WAITWORD_FUZZ_DROP_IN` names it.
pub(crate) fn drop_in() -> Option<Arc<dyn Side>> {
    let library = open("WAITWORD_FUZZ_DROP_IN")?;
    // SAFETY: `syscall` as the C library declares it.
    let syscall =
        unsafe { std::mem::transmute::<*mut c_void, Syscall>(function(library, c"syscall")) };
    Some(Arc::new(DropIn { syscall }))
}

type Syscall = unsafe extern "C" fn(c_long, ...) -> c_long;

struct DropIn {
    syscall: Syscall,
}

impl Side for DropIn {
    fn name(&self) -> &'static str {
        "the drop-in's syscall"
    }

    fn call(&self, call: Sysno, [a, b, c, d, e, f]: [usize; 6]) -> Answer {
        // SAFETY: as for the raw futex interface; the drop-in itself detects unmapped memory.
        in_errno(unsafe { (self.syscall)(c_long::from(call.id()), a, b, c, d, e, f) })
    }
}

fn in_errno(answer: c_long) -> Answer {
    usize::try_from(answer).map_err(|_| {
        let error = std::io::Error::last_os_error();
        error.raw_os_error().expect("an error of the system's")
    })
}

/// The library that a variable names. A wrong name is an error of the caller, which set it.
fn open(variable: &str) -> Option<*mut c_void> {
    let path = std::env::var(variable).ok()?;
    let name = CString::new(path.clone()).expect("a path");
    // SAFETY: a library whose constructors may run at any time.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "{variable}: {path} cannot be loaded");
    Some(library)
}

fn function(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: a loaded library.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null(), "no {name:?} in it");
    found
}
