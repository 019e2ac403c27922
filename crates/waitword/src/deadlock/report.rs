//! The report of a deadlock.

use super::graph::Link;
use super::kind::{LockKind, Way};
use super::record::Use;
use core::fmt;
use core::panic::Location;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::thread::{Thread, ThreadId};

/// A thread that waits for a lock and never gets it, and the thread that holds that lock.
///
/// `Display` prints everything but the backtrace in one line. The alternate form, `{:#}`, adds the
/// backtrace if there is one. The line, wrapped here:
///
/// ```text
/// thread 'left' (4711) waits at src/main.rs:10:23 for the mutex 0x55d0c8a4b010,
///     which thread 'right' (4712) has locked at src/main.rs:15:24
/// ```
#[derive(Debug)]
pub struct DeadlockedThread {
    thread: Named,
    wait: Use,
    backtrace: Backtrace,
    holder: Named,
    held: Use,
    holder_has_ended: bool,
}

/// A thread's handle and its number.
#[derive(Debug)]
struct Named(Thread, u32);

impl DeadlockedThread {
    /// `None` if one of the threads no longer has a record.
    pub(super) fn of(link: &Link<'_>) -> Option<Self> {
        let (thread, number) = link.waiting.record.thread()?;
        let (holder, holder_number) = link.holder.thread()?;
        Some(Self {
            thread: Named(thread, number),
            wait: link.waiting.wait,
            backtrace: (link.waiting.record.take_backtrace()).unwrap_or_else(Backtrace::disabled),
            holder: Named(holder, holder_number),
            held: link.held,
            holder_has_ended: link.holder_has_ended,
        })
    }

    /// The waiting thread.
    pub fn thread_id(&self) -> ThreadId {
        self.thread.0.id()
    }

    /// Its name, if it has one.
    pub fn thread_name(&self) -> Option<&str> {
        self.thread.0.name()
    }

    /// Its number, as debuggers and [`thread_number`](crate::thread_number) show it.
    pub fn thread_number(&self) -> u32 {
        self.thread.1
    }

    /// Its backtrace. Captured if the environment asks for it by `RUST_BACKTRACE` or
    /// `RUST_LIB_BACKTRACE`, as described at [`Backtrace::capture`]. For a thread that is part of
    /// two deadlocks, only the first report has it.
    pub fn backtrace(&self) -> &Backtrace {
        &self.backtrace
    }

    /// The kind of the lock that it waits for.
    pub fn lock_kind(&self) -> LockKind {
        self.wait.kind
    }

    /// The address of that lock. This is the address of the raw lock inside it, which need not be
    /// its first field.
    pub fn lock_address(&self) -> usize {
        self.wait.lock
    }

    /// The call that waits. For a condition variable, this is the call that waits on it and needs
    /// the mutex to return. For a [`ReentrantMutex`](crate::ReentrantMutex), it lies in `lock_api`,
    /// which does not pass its caller's location on; the backtrace shows it.
    pub fn waits_at(&self) -> &'static Location<'static> {
        self.wait.at
    }

    /// The thread that holds the lock: the next one in the cycle, or one that has ended.
    pub fn holder_id(&self) -> ThreadId {
        self.holder.0.id()
    }

    /// Its name, if it has one.
    pub fn holder_name(&self) -> Option<&str> {
        self.holder.0.name()
    }

    /// Its number. If it has ended, a later thread may have the same number.
    pub fn holder_number(&self) -> u32 {
        self.holder.1
    }

    /// The call that locked it.
    pub fn locked_at(&self) -> &'static Location<'static> {
        self.held.at
    }

    /// Whether it has ended and left the lock locked.
    pub fn holder_has_ended(&self) -> bool {
        self.holder_has_ended
    }
}

impl fmt::Display for DeadlockedThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Use { lock, kind, at, .. } = self.wait;
        let to = match self.wait.way {
            Way::Exclusive if kind != LockKind::RwLock => "for",
            Way::Exclusive => "to write",
            Way::Shared => "to read",
            Way::Upgradable => "to read upgradably",
            Way::Upgrade => "to upgrade",
        };
        let locked = match self.held.way {
            Way::Exclusive if kind != LockKind::RwLock => "has locked",
            Way::Exclusive => "has locked for writing",
            Way::Shared => "has locked for reading",
            Way::Upgradable | Way::Upgrade => "has locked upgradably",
        };
        write!(f, "{} waits at {at} {to} the {kind} {lock:#x}, which ", self.thread)?;
        match self.thread_id() == self.holder_id() {
            true => f.write_str("it")?,
            false => write!(f, "{}", self.holder)?,
        }
        write!(f, " {locked} at {}", self.held.at)?;
        if self.holder_has_ended {
            f.write_str(" and not unlocked before it ended")?;
        }
        if f.alternate() && self.backtrace.status() == BacktraceStatus::Captured {
            write!(f, "\n{}", self.backtrace)?;
        }
        Ok(())
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(thread, number) = self;
        match thread.name() {
            Some(name) => write!(f, "thread '{name}' ({number})"),
            None => write!(f, "unnamed thread ({number})"),
        }
    }
}
