//! Other processes: forked, with a body that allocates nothing, and gone when a test goes.

use super::sleep::SleepProbe;
use std::time::{Duration, Instant};

/// A forked process. If it still runs when this is dropped, it is killed.
pub(crate) struct Child {
    id: i32,
    probe: SleepProbe,
    reaped: bool,
}

/// Forks a process that runs `body` and exits with the status that `body` returns. `body` must not
/// allocate or take locks: other threads of this process may have held them when it was copied.
pub(crate) fn fork(body: impl FnOnce() -> i32) -> Child {
    // SAFETY: the child calls `body`, which is restricted as stated above, and ends with `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            // A child must not outlive a test that hangs or was killed.
            // SAFETY: plain system calls.
            unsafe {
                libc::alarm(120);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            }
            let status =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
            // SAFETY: no cleanup of the copied process runs.
            unsafe { libc::_exit(status) }
        }
        id => Child {
            id,
            probe: SleepProbe::of_process(id),
            reaped: false,
        },
    }
}

impl Child {
    /// The process ID.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// Waits until the child ends, or stops if it is traced. Returns its status as in waitpid(2).
    pub(crate) fn next_status(&mut self) -> i32 {
        let mut status = 0;
        // SAFETY: a child of ours, not yet reaped.
        let heard = unsafe { libc::waitpid(self.id, &raw mut status, 0) };
        assert_eq!(heard, self.id);
        self.reaped = !libc::WIFSTOPPED(status);
        status
    }

    /// Waits until the child sleeps in a futex call.
    pub(crate) fn until_asleep(&self) {
        self.until("asleep", || self.probe.in_futex_call());
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(self) {
        // SAFETY: a child of ours, not yet reaped.
        unsafe { libc::kill(self.id, libc::SIGKILL) };
        self.until_gone();
    }

    /// Waits until the child has ended, in any way.
    pub(crate) fn until_gone(mut self) {
        // SAFETY: a child of ours, not yet reaped.
        let reaped = unsafe { libc::waitpid(self.id, std::ptr::null_mut(), 0) };
        assert_eq!(reaped, self.id);
        self.reaped = true;
    }

    /// Waits until the child has ended. Returns its exit status.
    pub(crate) fn join(mut self) -> i32 {
        let mut status = 0;
        // SAFETY: a child of ours, not yet reaped.
        let reaped = unsafe { libc::waitpid(self.id, &raw mut status, 0) };
        assert_eq!(reaped, self.id);
        self.reaped = true;
        assert!(
            libc::WIFEXITED(status),
            "the child died by {}",
            libc::WTERMSIG(status)
        );
        libc::WEXITSTATUS(status)
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "child {} was never {what}",
                self.id
            );
            std::thread::yield_now();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            // SAFETY: a child of ours, not yet reaped: the number is still its own.
            unsafe {
                libc::kill(self.id, libc::SIGKILL);
                libc::waitpid(self.id, std::ptr::null_mut(), 0);
            }
        }
    }
}
