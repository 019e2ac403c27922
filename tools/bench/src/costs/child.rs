//! A forked child that is traced, and why it cannot be.

use super::scene::AWAKE;
use core::cell::Cell;
use core::fmt;
use libc::user_regs_struct as Registers;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// More steps than any operation takes unless it spins forever.
pub(super) const MOST_STEPS: u64 = 200_000;
/// Time limit for everything a child does, in seconds.
const MOST_SECONDS: u32 = 50;
/// The child's exit status if tracing is not allowed.
pub(super) const REFUSED: i32 = 77;

/// Why an operation was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing can be counted on this machine.
    Refused(String),
    /// A waiter for this lock does not sleep, or not in a futex call.
    Awake,
    /// The operation does not end.
    Endless,
    /// Something went wrong; contains the child's status.
    Died(i32),
}

impl Failure {
    /// The failure of a child that has ended, or that stopped where it should not.
    pub(super) fn of(status: i32) -> Self {
        let exited = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        match exited {
            Some(REFUSED) => Self::Refused("this kernel refuses ptrace".to_owned()),
            Some(AWAKE) => Self::Awake,
            _ => Self::Died(status),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "{why}"),
            Self::Awake => write!(f, "a waiter does not sleep in a futex call"),
            Self::Endless => write!(f, "it does not end within {MOST_STEPS} instructions"),
            Self::Died(status) => {
                write!(f, "the child hung (signal 14), failed or died: status {status:#x}")
            }
        }
    }
}

/// A forked process. It is killed when this value is dropped.
pub(super) struct Child {
    id: i32,
    pub(super) memory: File,
    status: File,
    is_gone: Cell<bool>,
}

impl Child {
    /// Forks a process that runs `body` and exits with its result.
    pub(super) fn fork(body: impl FnOnce() -> i32) -> Result<Self, Failure> {
        // SAFETY: the child calls `body`, which starts threads only through the C library, and
        // leaves by `_exit`.
        let id = unsafe { libc::fork() };
        if id == 0 {
            // The child must not outlive us, and must not get signals from the terminal.
            // SAFETY: system calls that take no memory.
            unsafe {
                libc::alarm(MOST_SECONDS);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::setsid();
            }
            let body = std::panic::AssertUnwindSafe(body);
            let status = std::panic::catch_unwind(body).unwrap_or(101);
            // SAFETY: `_exit` runs no cleanup of the copied process.
            unsafe { libc::_exit(status) }
        }
        if id < 0 {
            let error = std::io::Error::last_os_error();
            return Err(Failure::Refused(format!("fork: {error}")));
        }
        let open = |file: &str| File::open(format!("/proc/{id}/{file}"));
        match (open("mem"), open("status")) {
            (Ok(memory), Ok(status)) => Ok(Self { id, memory, status, is_gone: Cell::new(false) }),
            (Err(error), _) | (_, Err(error)) => {
                let status = end(id);
                let why = format!("cannot read a child's /proc: {error}");
                // The child may already have ended.
                Err(match libc::WIFEXITED(status) {
                    true => Failure::of(status),
                    false => Failure::Refused(why),
                })
            }
        }
    }

    /// Waits until the child has made a step.
    pub(super) fn expect_trap(&self) -> Result<(), Failure> {
        let mut status = 0;
        // SAFETY: the process is our child and has not been reaped.
        let heard = unsafe { libc::waitpid(self.id, &raw mut status, 0) };
        assert_eq!(heard, self.id, "{}", std::io::Error::last_os_error());
        if libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP {
            return Ok(());
        }
        self.is_gone.set(!libc::WIFSTOPPED(status));
        Err(Failure::of(status))
    }

    pub(super) fn registers(&self) -> Registers {
        // SAFETY: all fields are integers, for which zeros are valid.
        let mut registers: Registers = unsafe { core::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, (&raw mut registers).addr());
        registers
    }

    pub(super) fn step(&self) {
        self.request(libc::PTRACE_SINGLESTEP, 0);
    }

    /// Makes a ptrace(2) request with `data`, which is 0 or the address that the request fills in.
    fn request(&self, request: libc::c_uint, data: usize) {
        // SAFETY: the child is ours and stopped; `data` is as described above.
        let done = unsafe { libc::ptrace(request, self.id, 0_usize, data) };
        assert_eq!(done, 0, "ptrace: {}", std::io::Error::last_os_error());
    }

    /// How often the child's first thread has given up its CPU voluntarily.
    pub(super) fn voluntary_switches(&self) -> u64 {
        let mut text = [0; 8192];
        let length = self.status.read_at(&mut text, 0).expect("a child's status");
        let text = String::from_utf8_lossy(&text[..length]);
        let mut lines = text.lines();
        let number = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let number = number.and_then(|number| number.trim().parse().ok());
        number.expect("the kernel counts context switches")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_gone.get() {
            end(self.id);
        }
    }
}

/// Kills a child that has not been waited for, and returns its status.
fn end(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the process is our child and has not been reaped, so the ID is still its own.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &raw mut status, 0);
    }
    status
}
