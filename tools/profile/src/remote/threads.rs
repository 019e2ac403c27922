//! The threads of another process, and what each is doing.

use anyhow::Result;
use std::fs;
use std::io;

/// A thread, as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its ID.
    pub tid: u32,
    /// Its ID in its own PID namespace, which is what its process writes into its locks.
    pub own_tid: u32,
    /// Its name.
    pub name: String,
    /// The letter of its state, as in `/proc/PID/stat`: `R`, `S`, `D`, `T`, `t`, `Z`, `X`.
    pub state: char,
    /// How often it has left a CPU. While the number stays, it does not run.
    pub switches: u64,
    /// What it is doing.
    pub call: Call,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// It runs, or is about to; or the kernel does not say.
    Running,
    /// It sleeps outside of any system call: a page fault, for example.
    Outside {
        /// The stack pointer.
        sp: u64,
        /// The next instruction.
        pc: u64,
    },
    /// It sleeps in a system call.
    In {
        /// The call's number.
        number: u32,
        /// Its arguments.
        args: [u64; 6],
        /// The stack pointer.
        sp: u64,
        /// The next instruction.
        pc: u64,
    },
}

impl Thread {
    /// Whether it has ended. (A first thread that has ended stays until the others have, too.)
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// The name of the system call in which it sleeps.
    pub fn call_name(&self) -> Option<&'static str> {
        match self.call {
            Call::In { number, .. } => Some(call_name(number)?),
            _ => None,
        }
    }
}

/// The name of a system call.
fn call_name(number: u32) -> Option<&'static str> {
    syscalls::Sysno::new(number as usize).map(|call| call.name())
}

/// The threads of a process. Those that end meanwhile are left out.
pub(super) fn all(pid: u32) -> Result<Vec<Thread>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(thread) = one(pid, tid) {
            threads.push(thread);
        }
    }
    if threads.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ESRCH).into());
    }
    Ok(threads)
}

/// What a thread is doing now.
pub(super) fn one(pid: u32, tid: u32) -> Option<Thread> {
    let place = format!("/proc/{pid}/task/{tid}");
    let status = fs::read(format!("{place}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let value = |key| {
        status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    };
    let number = |key| value(key).and_then(|it| it.parse::<u64>().ok()).unwrap_or_default();
    let own_tid = value("NSpid").and_then(|it| it.split_whitespace().last()?.parse().ok());
    let switches = number("voluntary_ctxt_switches") + number("nonvoluntary_ctxt_switches");
    // After the count: if that is the same in the next look, the thread was in this call all the
    // time.
    let call = call_of(pid, tid);
    Some(Thread {
        tid,
        own_tid: own_tid.unwrap_or(tid),
        name: value("Name").unwrap_or_default().to_owned(),
        state: value("State").and_then(|it| it.chars().next()).unwrap_or('?'),
        switches,
        call: call.unwrap_or(Call::Running),
    })
}

/// What a thread is doing now. `None`: it runs, has ended, or the kernel does not say.
pub fn call_of(pid: u32, tid: u32) -> Option<Call> {
    parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?)
}

/// A line of `/proc/TID/syscall`: `running`, or `-1 SP PC`, or `NUMBER ARGUMENTS SP PC`.
fn parse(line: &str) -> Option<Call> {
    let mut words = line.split_whitespace();
    let number = words.next()?;
    let all: Vec<u64> = words
        .map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect::<Option<_>>()?;
    match (number, all.as_slice()) {
        ("-1", &[sp, pc]) => Some(Call::Outside { sp, pc }),
        (number, &[a, b, c, d, e, f, sp, pc]) => {
            Some(Call::In { number: number.parse().ok()?, args: [a, b, c, d, e, f], sp, pc })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_lines_are_understood() {
        let call = Call::In { number: 202, args: [1, 2, 3, 4, 5, 0xff], sp: 0x7ff0, pc: 0x40 };
        assert_eq!(parse("202 0x1 0x2 0x3 0x4 0x5 0xff 0x7ff0 0x40\n"), Some(call));
        assert_eq!(parse("-1 0x10 0x20\n"), Some(Call::Outside { sp: 0x10, pc: 0x20 }));
        for other in ["running\n", "", "202 0x1", "x 1 2 3 4 5 6 7 8", "202 1 2 3 4 5 6 7 8"] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert_eq!(call_name(libc::SYS_futex as u32), Some("futex"));
        assert_eq!(call_name(99_999), None);
    }
}
