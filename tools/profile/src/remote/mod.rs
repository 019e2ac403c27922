//! Looks at a live process from outside: its threads, the calls that they sleep in, words of its
//! memory, and its stacks.
//!
//! Nothing of the process changes. The one step that it could notice is taken for threads in calls
//! that the kernel restarts by itself only (`registers.rs`).
//!
//! | file | contents |
//! |---|---|
//! | `access.rs` | whether the kernel lets us look, and why not |
//! | `threads.rs` | the threads, and what each is doing |
//! | `memory.rs` | words of its memory |
//! | `modules.rs` | its programs and libraries, and their tables of how to unwind |
//! | `registers.rs` | a sleeping thread's registers |
//! | `stacks.rs` | a thread's stack |

mod access;
mod memory;
mod modules;
mod registers;
mod stacks;
mod threads;

pub use stacks::Stack;
pub use threads::{Call, Thread, call_of};

use crate::read::{Mapping, any_mapping};
use crate::symbols::Symbols;
use anyhow::{Context as _, Result};
use memory::Memory;
use modules::Modules;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

/// A process that is looked at.
pub struct Remote {
    pid: u32,
    memory: Memory,
    /// All mappings; whether each is executable.
    mappings: Vec<(Mapping, bool)>,
    executable: Vec<Mapping>,
    /// Read when the first stack is wanted.
    modules: Mutex<Option<Modules>>,
    denied: Option<String>,
}

impl core::fmt::Debug for Remote {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Remote").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Remote {
    /// Looks for the process. If its memory and its stacks may not be read, [`Remote::denied`] says
    /// so.
    ///
    /// # Errors
    /// There is no such process, or not even its mappings may be read.
    pub fn open(pid: u32) -> Result<Self> {
        let maps = std::fs::read(format!("/proc/{pid}/maps"))
            .map_err(|error| access::explain(pid, &error))?;
        access::check_class(pid)?;
        let text = String::from_utf8_lossy(&maps);
        let mappings: Vec<(Mapping, bool)> = text.lines().filter_map(any_mapping).collect();
        let executable = mappings.iter().filter(|(_, is)| *is).map(|(it, _)| it.clone()).collect();
        let denied = access::check(pid).err().map(|error| format!("{error:#}"));
        let (memory, modules) = (Memory::of(pid), Mutex::new(None));
        Ok(Self { pid, memory, mappings, executable, modules, denied })
    }

    /// Its ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Why its memory and its stacks may not be read, if so.
    pub fn denied(&self) -> Option<&str> {
        self.denied.as_deref()
    }

    /// The files that it has mapped, each perhaps more than once.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.mappings.iter().map(|(mapping, _)| &mapping.file)
    }

    /// Whether it has a file mapped whose name contains this.
    pub fn has_mapped(&self, name: &str) -> bool {
        self.files().any(|file| file.to_string_lossy().contains(name))
    }

    /// A file as the process sees it.
    pub fn path(&self, file: &std::path::Path) -> PathBuf {
        self.root().join(file.strip_prefix("/").unwrap_or(file))
    }

    fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }

    /// The functions of its addresses.
    pub fn symbols(&self) -> Symbols<'_> {
        Symbols::of_maps(&self.executable, Some(self.root()))
    }

    /// The program and its arguments.
    pub fn command_line(&self) -> Vec<OsString> {
        strings(&std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default())
    }

    /// The value of a variable in the environment that it was started with.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let all = std::fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let start = format!("{name}=").into_bytes();
        let found = all.split(|&byte| byte == 0).find_map(|it| it.strip_prefix(&*start))?;
        Some(OsString::from_vec(found.to_vec()))
    }

    /// Its threads.
    ///
    /// # Errors
    /// It has ended.
    pub fn threads(&self) -> Result<Vec<Thread>> {
        threads::all(self.pid).with_context(|| format!("process {}", self.pid))
    }

    /// One of its threads, by its ID, if it has the same in the namespaces of both processes.
    pub fn thread(&self, tid: u32) -> Option<Thread> {
        threads::one(self.pid, tid).filter(|thread| thread.own_tid == tid)
    }

    /// How long a thread has run, and how long it was runnable without a CPU, in nanoseconds.
    pub fn times(&self, thread: &Thread) -> Option<(u64, u64)> {
        let path = format!("/proc/{}/task/{}/schedstat", self.pid, thread.tid);
        let text = std::fs::read_to_string(path).ok()?;
        let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    }

    /// Bytes of its memory.
    pub fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.memory.read(address, &mut bytes).then_some(bytes)
    }

    /// A word of its memory.
    pub fn word(&self, address: u64) -> Option<u32> {
        self.read(address).map(u32::from_ne_bytes)
    }

    /// The stack of a thread that sleeps. Where the frame pointer is needed and not known, the
    /// stack ends early.
    pub fn stack(&self, thread: &Thread) -> Stack {
        self.unwind(thread, None)
    }

    /// The same, with the frame pointer, if it can be had without the thread's noticing.
    pub fn whole_stack(&self, thread: &Thread) -> Stack {
        let stack = self.stack(thread);
        if stack.is_complete || self.denied.is_some() || !registers::may_stop(thread) {
            return stack;
        }
        let with_registers = registers::read(self.pid, thread)
            .map(|registers| self.unwind(thread, Some(registers)))
            .unwrap_or_default();
        if with_registers.frames.len() > stack.frames.len() { with_registers } else { stack }
    }

    fn unwind(&self, thread: &Thread, registers: Option<registers::Registers>) -> Stack {
        if self.denied.is_some() {
            return Stack::default();
        }
        // Poisoned: a panic in another thread; what is there is whole.
        let mut modules = self.modules.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let modules = modules.get_or_insert_with(|| Modules::read(&self.memory, &self.mappings));
        stacks::unwind(&self.memory, modules, thread, registers)
    }
}

/// Returns when a child of this process has ended, whose status is then there for `wait`. While
/// another thread of this process looks at the child, `wait` itself could take a thread that was
/// stopped for a look for one that has ended.
pub fn wait_for_end(child: u32) {
    registers::wait_for_end(child);
}

fn strings(bytes: &[u8]) -> Vec<OsString> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    bytes.split(|&byte| byte == 0).map(|it| OsString::from_vec(it.to_vec())).collect()
}

#[cfg(test)]
mod tests;
