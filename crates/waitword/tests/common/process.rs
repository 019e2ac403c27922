//! Processes of a test's own: forked ones, and fresh ones.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How a child is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// libc's fork: its handlers run, and its locks are usable in the child. For threads, use
    /// [`BareThread`].
    Fork,
    /// The bare system call: the child must not allocate, print, or start threads.
    RawClone,
}

/// Makes a child in which `check` runs, and waits for it. `check` returns the child's exit status;
/// 0 is success.
///
/// # Panics
/// The child ends with a status other than 0, or hangs.
#[track_caller]
pub(crate) fn in_child(way: Way, check: impl FnOnce() -> i32) {
    // SAFETY: the child runs `check`, which observes the limits of `way`, and ends by the system
    // call.
    let child = unsafe {
        match way {
            Way::Fork => libc::fork(),
            Way::RawClone => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32,
        }
    };
    assert!(child >= 0, "no child");
    if child == 0 {
        // A panic must not continue into the test harness's copy.
        let check = std::panic::AssertUnwindSafe(check);
        let status = std::panic::catch_unwind(check).unwrap_or(101);
        // Not `_exit`: a sanitizer's version takes locks of its own, which some thread of the
        // parent may have held.
        // SAFETY: ends the child at once.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
    expect_success(child);
}

/// Waits for a child to end with 0; kills it if it hangs.
#[track_caller]
pub(crate) fn expect_success(child: i32) {
    let (started, limit) = (Instant::now(), super::limit(60));
    let mut status = 0;
    // SAFETY: writes the status of our own child.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if started.elapsed() > limit {
            // SAFETY: our own child, not waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        panic!("the child was killed by signal {signal} (9: it hung)");
    }
    assert_eq!(libc::WEXITSTATUS(status), 0, "what the child complains of");
}

/// Runs `check` in a process that has run nothing else before: this test program, started again for
/// this one test. `test` is the test's own name.
#[track_caller]
pub(crate) fn in_fresh_process(test: &str, check: impl FnOnce()) {
    const VARIABLE: &str = "WAITWORD_TEST_FRESH";
    if std::env::var_os(VARIABLE).is_some() {
        return check();
    }
    let output = Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(VARIABLE, "1")
        .output()
        .expect("our own program");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    assert!(
        stdout.contains("1 passed"),
        "there is no test `{test}`: {stdout}"
    );
    // Shows what the test prints (for example, that it skips something).
    eprint!("{stderr}");
}

/// A thread started by libc alone. In a forked child, std's threads could wait forever: std has a
/// lock of its own, taken at the start and end of each thread, which another thread of the parent
/// may have held.
pub(crate) struct BareThread {
    thread: libc::pthread_t,
    status: Arc<AtomicI32>,
}

type Work = (Box<dyn FnOnce() -> i32 + Send>, Arc<AtomicI32>);

impl BareThread {
    /// Starts a thread that does `work`.
    pub(crate) fn start(work: impl FnOnce() -> i32 + Send + 'static) -> Self {
        extern "C" fn run(work: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: boxed by `start` for this thread alone.
            let (work, status) = *unsafe { Box::from_raw(work.cast::<Work>()) };
            status.store(work(), SeqCst);
            std::ptr::null_mut()
        }
        let status = Arc::new(AtomicI32::new(0));
        let work: Work = (Box::new(work), status.clone());
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
    pub(crate) fn join(self) -> i32 {
        // SAFETY: started by `start`, joined once.
        unsafe { libc::pthread_join(self.thread, std::ptr::null_mut()) };
        self.status.load(SeqCst)
    }
}
