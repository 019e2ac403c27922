//! Calls that may crash or hang, made in children one after another, and what each leaves behind.

use std::ffi::c_int;
use std::io::Write as _;
use std::ptr;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered {
        answer: i64,
        errno: i32,
        /// Whether a byte of an argument has changed.
        changed: bool,
    },
    /// By this signal.
    Crashed(c_int),
    Hung,
    TouchedOthers,
}

/// What a call leaves behind, in memory that its process shares with us.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Left {
    state: u32,
    errno: i32,
    answer: i64,
    changed: bool,
}

const NOT_BEGUN: u32 = 0;
const BEGUN: u32 = 1;
const DONE: u32 = 2;
const DONE_AND_TOUCHED_OTHERS: u32 = 3;

impl Left {
    /// The call is about to be made, and is killed after `patience` milliseconds.
    pub(crate) fn begin(&mut self, patience: i64) {
        set_alarm(patience);
        self.state = BEGUN;
        // SAFETY: the calling thread's own.
        unsafe { *libc::__errno_location() = 0 };
    }

    /// The call has returned.
    pub(crate) fn answered(&mut self, answer: i64) {
        // SAFETY: the calling thread's own.
        self.errno = unsafe { *libc::__errno_location() };
        self.answer = answer;
        set_alarm(0);
    }

    /// The result has been checked.
    pub(crate) fn end(&mut self, changed: bool, touched_others: bool) {
        self.changed = changed;
        self.state = if touched_others {
            DONE_AND_TOUCHED_OTHERS
        } else {
            DONE
        };
    }
}

/// Whether the child can make another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    SameChild,
    NewChild,
}

/// Makes calls 0 to `count`. A child begins by making what its calls need.
pub(crate) fn outcomes<T>(
    count: usize,
    begin: impl Fn() -> T,
    call: impl Fn(&T, usize, &mut Left) -> Next,
) -> Vec<Outcome> {
    let left = shared::<Left>(count);
    let mut outcomes = Vec::with_capacity(count);
    while outcomes.len() < count {
        let first = outcomes.len();
        // SAFETY: the child makes calls, and ends with `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork");
        if child == 0 {
            end_at_panics();
            let with = begin();
            for index in first..count {
                // SAFETY: in the mapping, and no other thread writes.
                let left = unsafe { &mut *left.add(index) };
                if call(&with, index, left) == Next::NewChild {
                    break;
                }
            }
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        while outcomes.len() < count {
            // SAFETY: in the mapping; the child, which has ended, wrote it.
            let left = unsafe { left.add(outcomes.len()).read() };
            let outcome = match left.state {
                NOT_BEGUN => break,
                BEGUN if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGALRM => {
                    Outcome::Hung
                }
                BEGUN => Outcome::Crashed(libc::WTERMSIG(status)),
                DONE_AND_TOUCHED_OTHERS => Outcome::TouchedOthers,
                _ => Outcome::Answered {
                    answer: left.answer,
                    errno: left.errno,
                    changed: left.changed,
                },
            };
            outcomes.push(outcome);
        }
        assert!(
            outcomes.len() > first,
            "a child has ended before call {first}, status {status:#x}"
        );
    }
    outcomes
}

/// A child that panics must not continue as a copy of its parent. (This is a mistake of the test,
/// outside any call.)
fn end_at_panics() {
    std::panic::set_hook(Box::new(|what| {
        // Bypasses the test harness, which would withhold the message.
        let _ = writeln!(std::io::stderr(), "{what}");
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(1) };
    }));
}

/// Zeroed memory that children share.
fn shared<T>(count: usize) -> *mut T {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let length = count * size_of::<T>();
    // SAFETY: a new mapping.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.cast()
}

/// SIGALRM ends the process.
fn set_alarm(milliseconds: i64) {
    let timer = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: milliseconds / 1000,
            tv_usec: milliseconds % 1000 * 1000,
        },
    };
    // SAFETY: a complete structure.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}
