//! Forked processes, none of which outlives its test.

use crate::sleep::sleeps;
use crate::until::until;
use crate::watchdog::limit;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

/// How a child is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// libc's fork: its handlers run, and its locks are usable in the child. For threads, use
    /// [`BareThread`](crate::BareThread).
    Fork,
    /// The bare system call: the child must not allocate, print, or start threads.
    RawClone,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Ended {
    /// From a status of waitpid(2).
    pub fn from_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Killed(libc::WTERMSIG(status))
        } else {
            Self::Exited(libc::WEXITSTATUS(status))
        }
    }
}

/// What a child's work returns: its exit status, whether all was well, or nothing.
pub trait Status {
    /// 0 is success.
    fn status(self) -> i32;
}

impl Status for i32 {
    fn status(self) -> i32 {
        self
    }
}

impl Status for () {
    fn status(self) -> i32 {
        0
    }
}

impl Status for bool {
    fn status(self) -> i32 {
        i32::from(!self)
    }
}

/// Forks a process that runs `body`, and exits with what it returns. `body` must not allocate or
/// take locks: other threads of this process may have held them when it was copied.
pub fn fork<S: Status>(body: impl FnOnce() -> S) -> Child {
    Way::Fork.fork(body)
}

/// Runs `check` in a child, and waits for it.
///
/// # Panics
/// The child ends with a status other than 0, or hangs.
#[track_caller]
pub fn in_child<S: Status>(way: Way, check: impl FnOnce() -> S) {
    way.fork(check).succeeds();
}

/// Kills this process when the thread that started it ends. Async-signal-safe.
pub fn die_with_parent() {
    // SAFETY: sets a property of the process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Kills this process. Async-signal-safe.
pub fn die() {
    // SAFETY: kills this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

impl Way {
    /// Makes a child that runs `body`, which observes the limits of this way.
    pub fn fork<S: Status>(self, body: impl FnOnce() -> S) -> Child {
        let longest = 2 * longest().as_secs() as u32;
        // SAFETY: the child runs `body`, restricted as stated above, and ends by the system call.
        let id = unsafe {
            match self {
                Self::Fork => libc::fork(),
                Self::RawClone => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32,
            }
        };
        assert!(id >= 0, "no child: {}", std::io::Error::last_os_error());
        if id == 0 {
            // A child must not outlive a test that hangs or was killed.
            die_with_parent();
            // SAFETY: passes a number.
            unsafe { libc::alarm(longest) };
            // A panic must not continue into the test harness's copy.
            let status = std::panic::catch_unwind(AssertUnwindSafe(body)).map_or(101, S::status);
            // Not `_exit`: a sanitizer's version takes locks of its own, which some thread of the
            // parent may have held.
            // SAFETY: ends the child at once.
            unsafe { libc::syscall(libc::SYS_exit_group, status) };
        }
        Child::new(id)
    }
}

/// How long a child may take.
fn longest() -> Duration {
    limit(60)
}

/// A forked process. If it still runs when this is dropped, it is killed.
pub struct Child {
    id: i32,
    reaped: bool,
}

impl Child {
    /// A child of this process that something else has forked.
    pub fn new(id: i32) -> Self {
        assert!(id > 0, "no child");
        Self { id, reaped: false }
    }

    /// The process ID.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a child of ours, not yet reaped: the number is still its own.
        unsafe { libc::kill(self.id, signal) };
    }

    /// Waits until the child sleeps in a futex call.
    pub fn until_asleep(&self) {
        until(|| sleeps(self.id as u32));
    }

    /// Waits until the child ends, or stops if it is traced. Returns its status as in waitpid(2).
    pub fn next_status(&mut self) -> i32 {
        let status = self.wait(0).expect("a status");
        self.reaped = !libc::WIFSTOPPED(status);
        status
    }

    /// Waits until the child has ended, in any way. A child that hangs fails the test.
    #[track_caller]
    pub fn ended(mut self) -> Ended {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.wait(libc::WNOHANG) {
                self.reaped = true;
                return Ended::from_status(status);
            }
            if begin.elapsed() > longest() {
                let call = std::fs::read_to_string(format!("/proc/{}/syscall", self.id));
                panic!("child {} hangs, in system call {call:?}", self.id);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Waits until the child has exited. Returns its status.
    #[track_caller]
    pub fn join(self) -> i32 {
        match self.ended() {
            Ended::Exited(status) => status,
            Ended::Killed(signal) => panic!("the child was killed by signal {signal}"),
        }
    }

    /// Waits until the child has exited with status 0.
    #[track_caller]
    pub fn succeeds(self) {
        assert_eq!(self.join(), 0, "what the child complains of");
    }

    /// Kills it, and waits until it is gone.
    #[track_caller]
    pub fn kill(self) {
        self.signal(libc::SIGKILL);
        self.ended();
    }

    fn wait(&self, options: i32) -> Option<i32> {
        let mut status = 0;
        // SAFETY: writes the status of our own child, not yet reaped.
        let heard = unsafe { libc::waitpid(self.id, &raw mut status, options) };
        assert!(heard >= 0, "waitpid: {}", std::io::Error::last_os_error());
        (heard == self.id).then_some(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(libc::SIGKILL);
            // SAFETY: a child of ours, not yet reaped.
            unsafe { libc::waitpid(self.id, std::ptr::null_mut(), 0) };
        }
    }
}
