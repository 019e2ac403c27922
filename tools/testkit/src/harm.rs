//! Calls that may crash or hang, made in children one after another, and what each leaves behind.

use crate::child::{Ended, fork};
use crate::mapping::Mapping;
use std::ffi::c_int;
use std::io::Write as _;
use std::ptr;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Answered {
        /// What it returned.
        answer: i64,
        /// The error number after it.
        errno: i32,
        /// Whether a byte of an argument has changed.
        changed: bool,
    },
    /// By this signal.
    Crashed(c_int),
    /// It did not return in time.
    Hung,
    /// It wrote beside its arguments.
    TouchedOthers,
}

/// What a call leaves behind, in memory that its process shares with us.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Left {
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
    pub fn begin(&mut self, patience: i64) {
        set_alarm(patience);
        self.state = BEGUN;
        // SAFETY: the calling thread's own.
        unsafe { *libc::__errno_location() = 0 };
    }

    /// The call has returned.
    pub fn answered(&mut self, answer: i64) {
        // SAFETY: the calling thread's own.
        self.errno = unsafe { *libc::__errno_location() };
        self.answer = answer;
        set_alarm(0);
    }

    /// The result has been checked.
    pub fn end(&mut self, changed: bool, touched_others: bool) {
        self.changed = changed;
        self.state = if touched_others { DONE_AND_TOUCHED_OTHERS } else { DONE };
    }
}

/// Whether the child can make another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It can.
    SameChild,
    /// It has changed what the next call needs.
    NewChild,
}

/// Makes calls 0 to `count`. A child begins by making what its calls need.
pub fn outcomes<T>(
    count: usize,
    begin: impl Fn() -> T,
    call: impl Fn(&T, usize, &mut Left) -> Next,
) -> Vec<Outcome> {
    let memory = Mapping::anonymous(count * size_of::<Left>());
    let left = memory.at::<Left>(0);
    let mut outcomes = Vec::with_capacity(count);
    while outcomes.len() < count {
        let first = outcomes.len();
        let mut child = fork(|| {
            end_at_panics();
            let with = begin();
            for index in first..count {
                // SAFETY: in the mapping, and no other thread writes.
                let left = unsafe { &mut *left.add(index) };
                if call(&with, index, left) == Next::NewChild {
                    break;
                }
            }
            0
        });
        let ended = Ended::from_status(child.next_status());
        while outcomes.len() < count {
            // SAFETY: in the mapping; the child, which has ended, wrote it.
            let left = unsafe { left.add(outcomes.len()).read() };
            let outcome = match (left.state, ended) {
                (NOT_BEGUN, _) => break,
                (BEGUN, Ended::Killed(libc::SIGALRM)) => Outcome::Hung,
                (BEGUN, Ended::Killed(signal)) => Outcome::Crashed(signal),
                (BEGUN, Ended::Exited(_)) => Outcome::Crashed(0),
                (DONE_AND_TOUCHED_OTHERS, _) => Outcome::TouchedOthers,
                _ => Outcome::Answered {
                    answer: left.answer,
                    errno: left.errno,
                    changed: left.changed,
                },
            };
            outcomes.push(outcome);
        }
        assert!(outcomes.len() > first, "a child has ended before call {first}: {ended:?}");
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

/// SIGALRM ends the process.
fn set_alarm(milliseconds: i64) {
    let timer = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval {
            tv_sec: milliseconds / 1000,
            tv_usec: milliseconds % 1000 * 1000,
        },
    };
    // SAFETY: a complete structure.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}
