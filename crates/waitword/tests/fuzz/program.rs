//! A program: calls on a few words, one after another, each with its own numbers.

use std::fmt::Write as _;

/// Words of a program.
pub(crate) const WORDS: usize = 3;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) initial: [u32; WORDS],
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One of the free threads makes the call, and may have to wait.
    Wait(u8, Call),
    /// The test itself makes the call.
    Do(Call),
    Store(usize, u32),
    /// The thread whose ID a private word holds, if that thread has no call in progress, unlocks it
    /// (FUTEX_UNLOCK_PI).
    Unlock(usize),
    /// A signal to one of the waiters.
    Interrupt(u8),
}

/// A system call with its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Futex { op: i32, word: Address, val: Value, time: Time, second: Address, val3: Value },
    Futex2Wait { word: Address, val: Value, mask: u64, flags: u32, time: Time, clock: i32 },
    Futex2Wake { word: Address, mask: u64, count: i32, flags: u32 },
    Futex2Requeue { list: List, flags: u32, wake: i32, moved: i32 },
    Futex2Waitv { list: List, flags: u32, time: Time, clock: i32 },
}

/// Where something lies, or an invalid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Word(usize),
    /// This many bytes into a word.
    Into(usize, usize),
    Null,
    FirstPage,
    /// Memory of the process that must not be accessed.
    Unmapped,
    /// In the kernel's half of the address space.
    Kernels,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// The value of the call's first word.
    Current,
    Is(u64),
}

/// The argument that is a time, or a number in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    None,
    /// Has already passed.
    Past,
    /// Passes before the next step.
    Soon,
    /// Does not pass.
    Far,
    /// Has already passed, and lies at an odd address.
    Askew,
    /// These seconds and nanoseconds, which are invalid or in the past.
    Wrong(i64, i64),
    At(Address),
    Number(i32),
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    pub(crate) said: Said,
}

/// How a call describes its list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Truth,
    /// True, but the list lies at an odd address.
    Odd,
    /// A wrong length.
    Length(u32),
    /// A wrong address.
    Start(Address),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) word: Address,
    pub(crate) val: Value,
    pub(crate) flags: u32,
    pub(crate) reserved: u32,
}

impl Program {
    /// A test that compares this program, to be pasted.
    pub(crate) fn source(&self) -> String {
        let mut text = String::from("#[test]\nfn NAME() {\n    same_as_the_kernel(\n");
        let _ = writeln!(text, "        {:?},", self.initial);
        text.push_str("        vec![\n");
        for step in &self.steps {
            let step = format!("{step:?}").replace("entries: [", "entries: vec![");
            let _ = writeln!(text, "            {step},");
        }
        text.push_str("        ],\n    );\n}\n");
        text
    }
}
