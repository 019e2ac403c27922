//! Calls functions by name with raw numbers, and uses them to set up objects.

use super::arena::fill;
use super::values::{Kind, State};
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// The greatest number of arguments of any function.
pub(crate) const MOST: usize = 4;

/// The address of a function: the drop-in's, if it is loaded before the C library.
fn address(name: &str) -> *mut c_void {
    let name = CString::new(name).expect("a name");
    // SAFETY: both strings end with a zero byte. (The C library keeps old names only for programs
    // that were linked long ago, with this version.)
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if found.is_null() {
            libc::dlvsym(libc::RTLD_DEFAULT, name.as_ptr(), c"GLIBC_2.2.5".as_ptr())
        } else {
            found
        }
    }
}

/// The file that a function comes from.
pub(crate) fn file_of(name: &str) -> String {
    // SAFETY: a `Dl_info` of zeros is valid, and the address is in loaded code.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        assert_ne!(libc::dladdr(address(name), &raw mut info), 0);
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    }
}

/// Calls a function with integers and pointers. The function ignores arguments that it does not
/// take.
///
/// # Safety
/// The function's own contract holds, or the process may come to harm.
pub(crate) unsafe fn call(name: &str, arguments: &[u64]) -> c_int {
    let mut all = [0; MOST];
    all[..arguments.len()].copy_from_slice(arguments);
    let [a, b, c, d] = all;
    let address = address(name);
    assert!(!address.is_null(), "there is no {name}");
    // SAFETY: integers and pointers are passed in the same registers to every function. The rest is
    // the caller's promise.
    unsafe {
        let function: unsafe extern "C-unwind" fn(u64, u64, u64, u64) -> c_int =
            std::mem::transmute(address);
        function(a, b, c, d)
    }
}

/// As `call`, for calls that must succeed.
fn right(name: &str, arguments: &[u64]) {
    // SAFETY: the arguments are valid.
    let answer = unsafe { call(name, arguments) };
    assert_eq!(answer, 0, "{name}");
}

pub(crate) extern "C" fn nothing() {}

/// Brings an object into a state, with the functions of this process.
pub(crate) fn make(kind: Kind, state: State, memory: *mut u8) {
    let object = memory as u64;
    match state {
        State::Bytes(bytes) => fill(memory, kind.size(), bytes),
        State::Free(sort) => init(kind, sort, object, false),
        State::Busy(sort) => {
            init(kind, sort, object, true);
            keep_busy(kind, object);
        }
        State::Mine(sort) => {
            init(kind, sort, object, false);
            right("pthread_mutex_lock", &[object]);
        }
        State::MadePlain(sort) => {
            const KIND: usize = 4;
            init(kind, sort, object, false);
            // SAFETY: the word is inside the mutex.
            unsafe { memory.cast::<u32>().add(KIND).write(0) };
        }
        State::Destroyed(sort) => {
            init(kind, sort, object, false);
            match kind {
                Kind::Sem => right("sem_destroy", &[object]),
                Kind::Once => right("pthread_once", &[object, nothing as *const () as u64]),
                _ => right(&format!("pthread_{}_destroy", name(kind)), &[object]),
            }
        }
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Mutex => "mutex",
        Kind::Cond => "cond",
        Kind::Rwlock => "rwlock",
        Kind::Sem => "sem",
        Kind::Barrier => "barrier",
        Kind::Spin => "spin",
        Kind::Once => "once",
    }
}

/// Initialises a free object. If `counts_for_two`, a semaphore or barrier makes its next caller
/// wait.
fn init(kind: Kind, sort: u8, object: u64, counts_for_two: bool) {
    let mut memory = [0_u64; 8];
    let attributes = (&raw mut memory) as u64;
    let shared = libc::PTHREAD_PROCESS_SHARED as u64;
    let attribute = |what: &str, value: u64| {
        let name = format!("pthread_{}attr_{what}", name(kind));
        right(&name, &[attributes, value]);
    };
    match kind {
        Kind::Sem => {
            let value = u64::from(!counts_for_two);
            return right("sem_init", &[object, sort.into(), value]);
        }
        Kind::Spin => return right("pthread_spin_init", &[object, 0]),
        Kind::Once => return fill(object as *mut u8, 4, super::arena::Bytes::Zeros),
        _ => right(&format!("pthread_{}attr_init", name(kind)), &[attributes]),
    }
    let checking = libc::PTHREAD_MUTEX_ERRORCHECK as u64;
    let inherit = libc::PTHREAD_PRIO_INHERIT as u64;
    match (kind, sort) {
        (_, 0) => {}
        (Kind::Mutex, 1) => attribute("settype", libc::PTHREAD_MUTEX_RECURSIVE as u64),
        (Kind::Mutex, 2) => attribute("settype", checking),
        (Kind::Mutex, 3) => attribute("settype", libc::PTHREAD_MUTEX_ADAPTIVE_NP as u64),
        (Kind::Mutex, 4) => attribute("setprotocol", inherit),
        (Kind::Mutex, 5) => {
            attribute("setprotocol", inherit);
            attribute("settype", checking);
        }
        (Kind::Mutex, 6) => attribute("setrobust", libc::PTHREAD_MUTEX_ROBUST as u64),
        (Kind::Mutex, 7) => {
            attribute("setpshared", shared);
            attribute("settype", checking);
        }
        (Kind::Cond, 1) => attribute("setclock", libc::CLOCK_MONOTONIC as u64),
        // PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
        (Kind::Rwlock, 1) => attribute("setkind_np", 2),
        _ => attribute("setpshared", shared),
    }
    let init = format!("pthread_{}_init", name(kind));
    match kind {
        Kind::Barrier => right(&init, &[object, attributes, 1 + u64::from(counts_for_two)]),
        _ => right(&init, &[object, attributes]),
    }
}

/// Starts a thread that takes the object or waits at it, and never lets go.
fn keep_busy(kind: Kind, object: u64) {
    static IS_BUSY: AtomicBool = AtomicBool::new(false);
    /// All zeros: a free mutex.
    static MUTEX: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
    extern "C-unwind" fn stay() {
        IS_BUSY.store(true, SeqCst);
        loop {
            // SAFETY: it only waits.
            unsafe { libc::pause() };
        }
    }
    let mutex = (&raw const MUTEX) as u64;
    let another = move || {
        match kind {
            Kind::Mutex => right("pthread_mutex_lock", &[object]),
            Kind::Rwlock => right("pthread_rwlock_wrlock", &[object]),
            Kind::Once => right("pthread_once", &[object, stay as *const () as u64]),
            Kind::Cond => {
                right("pthread_mutex_lock", &[mutex]);
                IS_BUSY.store(true, SeqCst);
                right("pthread_cond_wait", &[object, mutex]);
            }
            Kind::Spin => right("pthread_spin_lock", &[object]),
            // Callers of these wait even without another thread.
            Kind::Sem | Kind::Barrier => {}
        }
        stay();
    };
    IS_BUSY.store(false, SeqCst);
    std::thread::spawn(another);
    while !IS_BUSY.load(SeqCst) {
        std::thread::yield_now();
    }
    if kind == Kind::Cond {
        // Once the mutex can be locked, the waiter has released it.
        right("pthread_mutex_lock", &[mutex]);
        right("pthread_mutex_unlock", &[mutex]);
    }
}

/// Starts a thread that never ends.
pub(crate) fn another_thread() -> u64 {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // SAFETY: it cannot fail.
        let _ = sender.send(unsafe { libc::pthread_self() });
        loop {
            // SAFETY: it only waits. As a raw system call it is not a cancellation point that could
            // unwind Rust: the process ends first.
            unsafe { libc::syscall(libc::SYS_pause) };
        }
    });
    receiver.recv().expect("it is there")
}
