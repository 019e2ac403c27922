//! Threads without std, and signals to one thread.

use crate::child::Status;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// A thread started by libc alone. In a forked child, std's threads could wait forever: std has a
/// lock of its own, taken at the start and end of each thread, which another thread of the parent
/// may have held.
pub struct BareThread {
    thread: libc::pthread_t,
    status: Arc<AtomicI32>,
}

type Work = (Box<dyn FnOnce() -> i32 + Send>, Arc<AtomicI32>);

impl BareThread {
    /// Starts a thread that does `work`.
    pub fn start<S: Status>(work: impl FnOnce() -> S + Send + 'static) -> Self {
        extern "C" fn run(work: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: boxed by `start` for this thread alone.
            let (work, status) = *unsafe { Box::from_raw(work.cast::<Work>()) };
            status.store(work(), SeqCst);
            std::ptr::null_mut()
        }
        let status = Arc::new(AtomicI32::new(0));
        let work: Work = (Box::new(|| work().status()), status.clone());
        let work = Box::into_raw(Box::new(work));
        // SAFETY: zeros are overwritten by pthread_create; `run` takes over the box.
        let (result, thread) = unsafe {
            let mut thread = std::mem::zeroed();
            let result = libc::pthread_create(&raw mut thread, std::ptr::null(), run, work.cast());
            (result, thread)
        };
        assert_eq!(result, 0, "no thread");
        Self { thread, status }
    }

    /// Waits for the thread to end. Returns what its work returned.
    pub fn join(self) -> i32 {
        // SAFETY: started by `start`, joined once.
        unsafe { libc::pthread_join(self.thread, std::ptr::null_mut()) };
        self.status.load(SeqCst)
    }
}

/// The kernel's ID of the calling thread.
pub fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Signals one thread of this process.
pub fn signal(thread: i32, signal: i32) {
    // SAFETY: passes numbers.
    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, signal) };
}

/// Installs a handler; `flags` are those of sigaction(2).
pub fn install(signal: i32, handler: extern "C" fn(i32), flags: i32) {
    // SAFETY: a whole `sigaction`.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut())
    };
    assert_eq!(result, 0, "no handler for signal {signal}");
}

/// Gives the calling thread this scheduling policy and priority. Returns whether that is permitted.
/// (musl's own function refuses always.)
pub fn set_policy(policy: i32, priority: i32) -> bool {
    // The kernel's `struct sched_param`.
    let parameter = [priority];
    // SAFETY: the call reads one number, which is there; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameter) == 0 }
}
