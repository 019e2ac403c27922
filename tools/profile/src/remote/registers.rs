//! The frame pointer of a thread that sleeps.
//!
//! `/proc` shows a sleeping thread's stack pointer and next instruction. The frame pointer takes
//! ptrace, which wakes the thread in the kernel. Most calls then begin again, unseen by the thread,
//! but some return EINTR. So a thread is stopped only if it sleeps in a call of the first kind. It
//! can leave that call just before it is stopped, and be in one of the second kind; then it is told
//! to begin again (with its whole timeout, if there is one). On AArch64 it cannot be told that: the
//! kernel has put the result in the place of the first argument. There such a call returns EINTR.
//!
//! # The kernel's side
//!
//! * PTRACE_SEIZE sends no signal; PTRACE_INTERRUPT stops the thread, and nobody else hears of it.
//! * Only the thread that has seized another may read its registers, and when it ends, the kernel
//!   lets go of the other one and delivers what signal it may have stopped at. So each look has a
//!   thread of its own, and nothing that happens in between can leave a thread stopped.
//! * A stopped thread is waited for with a deadline (a thread can be in an uninterruptible sleep),
//!   and by `waitid` without WEXITED: the end of a child is for its parent to see.
//! * In the process that has started the program, another thread that waits for the program's end
//!   would see the stop of its first thread, too: it uses [`wait_for_end`](super::wait_for_end).

use super::threads::{Call, Thread};
use core::time::Duration;
use libc::user_regs_struct;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::time::Instant;

/// How long a thread may take to stop.
const LIMIT: Duration = Duration::from_millis(50);
/// Where a stopped thread is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registers {
    pub(super) sp: u64,
    pub(super) pc: u64,
    pub(super) bp: u64,
    /// Where the function returns to, if it has not saved that.
    #[cfg(target_arch = "aarch64")]
    pub(super) link: u64,
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    fn of(all: &user_regs_struct) -> Self {
        Self { sp: all.rsp, pc: all.rip, bp: all.rbp }
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    fn of(all: &user_regs_struct) -> Self {
        Self { sp: all.sp, pc: all.pc, bp: all.regs[29], link: all.regs[30] }
    }
}

/// Whether the thread sleeps in a call that begins again by itself.
pub(super) fn may_stop(thread: &Thread) -> bool {
    let Call::In { number, args, .. } = thread.call else {
        return false;
    };
    /// futex_waitv and futex_wait, which have no names in libc everywhere.
    const NEW_FUTEXES: [i64; 2] = [449, 455];
    match i64::from(number) {
        libc::SYS_futex => {
            const LOCK_PI2: i32 = 13;
            let operation = args[1] as i32 & libc::FUTEX_CMD_MASK;
            [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET, libc::FUTEX_LOCK_PI, LOCK_PI2]
                .contains(&operation)
        }
        libc::SYS_clock_nanosleep | libc::SYS_nanosleep => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => true,
        libc::SYS_wait4 | libc::SYS_waitid => true,
        // One with a timeout that has begun again.
        libc::SYS_restart_syscall => true,
        number => NEW_FUTEXES.contains(&number),
    }
}

/// The registers of a thread that [may be stopped](may_stop). `None` if it has ended, is traced by
/// another process, may not be traced, or does not stop in time.
pub(super) fn read(pid: u32, thread: &Thread) -> Option<Registers> {
    let tid = thread.tid;
    std::thread::scope(|scope| scope.spawn(|| stop(pid, tid)).join().ok()?)
}

fn stop(pid: u32, tid: u32) -> Option<Registers> {
    let thread = Pid::from_raw(tid as i32);
    ptrace::seize(thread, Options::empty()).ok()?;
    ptrace::interrupt(thread).ok()?;
    let began = Instant::now();
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
    let is_ours = loop {
        match waitid(Id::Pid(thread), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) if began.elapsed() < LIMIT => {
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR | Errno::ECHILD) => return None,
            Ok(WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_STOP)) => break true,
            // Stopped to be given a signal, also one without a name (EINVAL).
            _ => break false,
        }
    };
    let registers = ptrace::getregs(thread).ok()?;
    // Before a signal, the call must return: it may be what the signal is for.
    if is_ours {
        begin_again(pid, tid, registers);
    }
    // The end of this thread lets go of the other one.
    Some(Registers::of(&registers))
}

/// If the stopped thread's call returns EINTR because of the stop, it begins again instead.
#[cfg(target_arch = "x86_64")]
fn begin_again(pid: u32, tid: u32, mut registers: user_regs_struct) {
    /// The kernel's number for a call that is to begin again whatever signal there is.
    const BEGIN_AGAIN: i64 = -513;
    if was_interrupted_by_us(pid, tid, registers.orig_rax, registers.rax) {
        registers.rax = BEGIN_AGAIN as u64;
        let _ = ptrace::setregs(Pid::from_raw(tid as i32), registers);
    }
}

/// The first argument of the call is gone: it returns EINTR.
#[cfg(target_arch = "aarch64")]
fn begin_again(_: u32, _: u32, _: user_regs_struct) {}

/// Returns when this child has ended, or is none of this process's. Its status stays for `wait`.
pub(super) fn wait_for_end(pid: u32) {
    let child = Pid::from_raw(pid as i32);
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    loop {
        match waitid(Id::Pid(child), flags) {
            Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::ECHILD) => return,
            // A signal without a name has ended it.
            Err(Errno::EINVAL) if !is_stopped(pid) => return,
            // Stopped by another thread of this process, but not for long.
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some(state) if state != 'Z' && state != 'X')
}

/// Whether a call that does not begin again by itself returns EINTR because of the stop: it can
/// begin again without harm, and there is no signal that it could return for.
#[cfg(target_arch = "x86_64")]
fn was_interrupted_by_us(pid: u32, tid: u32, call: u64, result: u64) -> bool {
    let can_begin_again = [
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_rt_sigtimedwait,
        libc::SYS_io_getevents,
        libc::SYS_read,
        libc::SYS_recvfrom,
        libc::SYS_recvmsg,
        libc::SYS_accept,
        libc::SYS_accept4,
    ];
    result as i64 == -i64::from(libc::EINTR)
        && can_begin_again.contains(&(call as i64))
        && !has_signal(pid, tid)
}

/// Whether a signal waits to be handled.
#[cfg(target_arch = "x86_64")]
fn has_signal(pid: u32, tid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status"));
    let status = status.unwrap_or_default();
    let set = |key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(u64::MAX)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}
