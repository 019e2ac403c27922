//! A program: calls on a few words, one after the other, each with its own numbers.

use std::fmt::Write as _;

/// Words of a program.
pub(crate) const WORDS: usize = 3;

/// See the module above.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) initial: [u32; WORDS],
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One of the threads that are free makes the call, and may have to wait.
    Wait(u8, Call),
    /// The test itself makes it.
    Do(Call),
    Store(usize, u32),
    /// The thread whose number a private word holds, if it has no call to make, unlocks it
    /// (FUTEX_UNLOCK_PI).
    Unlock(usize),
    /// A signal to one of those who wait.
    Interrupt(u8),
}

/// A system call with its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Futex {
        op: i32,
        word: Address,
        val: Value,
        time: Time,
        second: Address,
        val3: Value,
    },
    Futex2Wait {
        word: Address,
        val: Value,
        mask: u64,
        flags: u32,
        time: Time,
        clock: i32,
    },
    Futex2Wake {
        word: Address,
        mask: u64,
        count: i32,
        flags: u32,
    },
    Futex2Requeue {
        list: List,
        flags: u32,
        wake: i32,
        moved: i32,
    },
    Futex2Waitv {
        list: List,
        flags: u32,
        time: Time,
        clock: i32,
    },
}

/// Where something lies, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Word(usize),
    /// So many bytes into a word.
    Into(usize, usize),
    Null,
    FirstPage,
    /// Memory of the process that nobody may touch.
    Unmapped,
    /// In the kernel's half.
    Kernels,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// What the first word of the call holds.
    Current,
    Is(u64),
}

/// The argument that is a time, or a number in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Time {
    None,
    /// Has passed already.
    Past,
    /// Will pass before the next step.
    Soon,
    /// Will not pass.
    Far,
    /// Has passed already, and lies at an odd address.
    Askew,
    /// These seconds and nanoseconds, which are no time or have passed.
    Wrong(i64, i64),
    At(Address),
    Number(i32),
}

#[derive(Clone, Debug)]
pub(crate) struct List {
    pub(crate) entries: Vec<Entry>,
    pub(crate) said: Said,
}

/// What a call says of its list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Truth,
    /// And it lies at an odd address.
    Odd,
    /// Another length.
    Length(u32),
    /// Another address.
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
