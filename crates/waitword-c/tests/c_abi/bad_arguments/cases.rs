//! The cases for a function, derived from the kinds of its parameters.

use super::header::{Function, Parameter};
use super::values::{KINDS, Kind, State, Value};
use libc::{EINVAL, ENOENT, ENOTDIR, EOVERFLOW, ETIMEDOUT};
use std::ffi::CStr;
use std::fmt;

/// A call, and its required result.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) function: &'a Function,
    pub(crate) arguments: Vec<Value>,
    pub(crate) expect: Expect,
    /// Whether this call may correctly never return.
    pub(crate) may_wait: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Error(i32),
    /// Any value that such a function returns.
    Anything,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.function.name, self.arguments)
    }
}

const PAST: Value = Value::Time(1, 0);
/// Flags that no object has, alone and combined with valid ones.
const UNKNOWN_FLAGS: [u64; 5] = [1 << 9, 1 << 16, 1 << 31, 0xffff_ffff, 1 << 9 | 256];
const UNKNOWN_CLOCKS: [i32; 6] = [-1, 2, 3, 7, 11, i32::MAX];
const ODD_NUMBERS: [u64; 8] =
    [0, 1, -1i64 as u64, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 32, u64::MAX >> 1];
/// Invalid times.
const NO_TIMES: [Value; 6] = [
    Value::Null,
    Value::Time(1, 1_000_000_000),
    Value::Time(1, -1),
    Value::Time(0, i64::MAX),
    Value::Time(0, i64::MIN),
    Value::Time(i64::MAX, 1_000_000_000),
];
/// A directory that does not exist.
const NO_DIRECTORY: &CStr = c"/waitword/of/nowhere";
/// What is no directory's absolute name, or too long for one.
const NO_ABSOLUTE_NAMES: [&CStr; 4] = [c"", c".", c"tmp", LONG_NAME];
const LONG_NAME: &CStr = {
    const BYTES: [u8; 5001] = {
        let mut bytes = [b'/'; 5001];
        bytes[5000] = 0;
        bytes
    };
    match CStr::from_bytes_with_nul(&BYTES) {
        Ok(name) => name,
        Err(_) => unreachable!(),
    }
};
/// Times that have passed on every clock.
const PAST_TIMES: [Value; 4] =
    [PAST, Value::Time(0, 0), Value::Time(-1, 999_999_999), Value::Time(i64::MIN, 0)];
/// How many objects of random bytes each function gets.
const CHANCES: u64 = 48;

/// The purpose of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Object(Kind),
    Time,
    Clock,
    Flags,
    Number,
    /// `int*`.
    Result,
    /// A futex's word.
    Word,
    List,
    Routine,
    /// A directory's name.
    Directory,
    /// Passed through without being used.
    Opaque,
}

fn role(function: &Function, parameter: &Parameter) -> Role {
    if let Some(&(_, kind, _, _)) = KINDS.iter().find(|(name, ..)| *name == parameter.kind) {
        return Role::Object(kind);
    }
    match (&*parameter.kind, &*parameter.name) {
        ("const struct timespec*", _) => Role::Time,
        ("const struct ww_futex_waitv*", _) => Role::List,
        ("int", "clock") => Role::Clock,
        ("unsigned int", "flags") => Role::Flags,
        ("int" | "unsigned int" | "uint32_t" | "uint64_t" | "size_t", _) => Role::Number,
        ("int*", _) => Role::Result,
        ("void*", "uaddr" | "uaddr2") => Role::Word,
        ("void*", "argument") => Role::Opaque,
        ("function", _) => Role::Routine,
        ("const char*", "directory") => Role::Directory,
        (kind, name) => panic!(
            "{}: nothing is known of a parameter `{kind} {name}`: what is to be tried?",
            function.name
        ),
    }
}

/// Valid arguments, with objects that are free or with objects that must be waited for.
fn right(roles: &[Role], function: &Function, state: State) -> Vec<Value> {
    let value = |&role: &Role| match role {
        // The mutex of a condition variable's wait is held by the caller.
        Role::Object(kind) => Value::Object(kind, state),
        Role::Time => PAST,
        Role::Clock | Role::Opaque => Value::Number(libc::CLOCK_MONOTONIC as u64),
        // Private words of 32 bits.
        Role::Flags if is_futex(function) && !takes_list(roles) => Value::Number(130),
        Role::Flags => Value::Number(0),
        Role::Number if function.name == "ww_futex" => Value::Number(128),
        Role::Number => Value::Number(1),
        Role::Result | Role::Word => Value::Word,
        Role::List => Value::List(0),
        Role::Routine => Value::Routine,
        Role::Directory => Value::Text(NO_DIRECTORY),
    };
    roles.iter().map(value).collect()
}

fn is_futex(function: &Function) -> bool {
    function.name.starts_with("ww_futex")
}

fn takes_list(roles: &[Role]) -> bool {
    roles.contains(&Role::List)
}

/// Adds the cases for this function.
pub(crate) fn of<'a>(function: &'a Function, cases: &mut Vec<Case<'a>>) {
    let roles: Vec<Role> =
        function.parameters.iter().map(|parameter| role(function, parameter)).collect();
    let mut tried = Tried {
        function,
        ready: right(&roles, function, State::Ready),
        busy: right(&roles, function, State::Busy),
        is_timed: roles.contains(&Role::Time),
        cases,
    };
    for (index, &role) in roles.iter().enumerate() {
        match role {
            Role::Object(kind) => tried.object(index, kind),
            Role::Time => tried.time(index),
            Role::Clock => tried.clock(index),
            Role::Flags => tried.flags(index),
            Role::Number => tried.number(index),
            Role::Result => {
                tried.error(index, Value::Null);
                for bytes in 1..4 {
                    tried.error(index, Value::IntoWord(bytes));
                }
            }
            Role::Word | Role::List => tried.address(index),
            Role::Routine => tried.error(index, Value::Null),
            Role::Directory => tried.directory(index),
            Role::Opaque => tried.anything(index, Value::Untouchable),
        }
    }
}

struct Tried<'a, 'c> {
    function: &'a Function,
    ready: Vec<Value>,
    busy: Vec<Value>,
    is_timed: bool,
    cases: &'c mut Vec<Case<'a>>,
}

impl Tried<'_, '_> {
    fn add(&mut self, mut arguments: Vec<Value>, index: usize, value: Value, expect: Expect) {
        arguments[index] = value;
        let may_wait = expect == Expect::Anything && self.function.blocks && !self.is_timed;
        self.cases.push(Case { function: self.function, arguments, expect, may_wait });
    }

    /// A case with a bad value in this place, which must be refused.
    fn error(&mut self, index: usize, value: Value) {
        self.add(self.ready.clone(), index, value, Expect::Error(EINVAL));
    }

    fn anything(&mut self, index: usize, value: Value) {
        self.add(self.ready.clone(), index, value, Expect::Anything);
    }

    fn name_is(&self, start: &str, end: &str) -> bool {
        self.function.name.starts_with(start) && self.function.name.ends_with(end)
    }

    fn object(&mut self, index: usize, kind: Kind) {
        self.error(index, Value::Null);
        for bytes in 1..kind.align() {
            self.error(index, Value::Into(kind, bytes));
        }
        let states = [State::Zeros, State::Ones, State::Destroyed, State::Busy];
        for state in states {
            self.anything(index, Value::Object(kind, state));
        }
        // Fewer cases for calls that may correctly wait forever, because each runs into its time
        // limit.
        let chances = if self.function.blocks && !self.is_timed { CHANCES / 12 } else { CHANCES };
        for seed in 0..chances {
            self.anything(index, Value::Object(kind, State::Chance(seed)));
        }
    }

    fn time(&mut self, index: usize) {
        if is_futex(self.function) {
            // NULL is valid here: it means no timeout.
            for value in NO_TIMES.into_iter().chain(PAST_TIMES).skip(1) {
                self.anything(index, value);
            }
            return;
        }
        for value in NO_TIMES {
            self.add(self.busy.clone(), index, value, Expect::Error(EINVAL));
            self.anything(index, value);
        }
        for value in PAST_TIMES {
            self.add(self.busy.clone(), index, value, Expect::Error(ETIMEDOUT));
            self.anything(index, value);
        }
    }

    fn clock(&mut self, index: usize) {
        for clock in UNKNOWN_CLOCKS {
            let value = Value::Number(clock as u64);
            self.error(index, value);
            self.add(self.busy.clone(), index, value, Expect::Error(EINVAL));
        }
    }

    fn flags(&mut self, index: usize) {
        for flags in UNKNOWN_FLAGS {
            self.error(index, Value::Number(flags));
        }
    }

    fn number(&mut self, index: usize) {
        if self.name_is("ww_set_spin", "") || self.name_is("ww_table", "") {
            // 1 << 32 buckets would be allocated on a machine with enough memory.
            self.anything(index, Value::Number(u64::MAX));
            self.anything(index, Value::Number(0));
            return;
        }
        let most = match () {
            () if self.name_is("ww_sem", "_init") => i32::MAX as u64,
            () if self.name_is("ww_barrier", "_init") => i32::MAX as u64,
            () if self.name_is("ww_latch", "_init") => (1 << 30) - 1,
            () => u64::MAX,
        };
        let none = self.name_is("ww_barrier", "_init");
        for number in ODD_NUMBERS {
            // The bits that the function sees.
            let seen = number & 0xffff_ffff;
            let refused = most != u64::MAX && (seen > most || none && seen == 0);
            let expect = match () {
                () if refused => Expect::Error(EINVAL),
                // The latch and the semaphore here have a count of 1.
                () if self.name_is("ww_latch", "count_down") && seen > 1 => Expect::Error(EINVAL),
                () if self.name_is("ww_sem", "post_many") && seen >= i32::MAX as u64 => {
                    Expect::Error(EOVERFLOW)
                }
                () => Expect::Anything,
            };
            self.add(self.ready.clone(), index, Value::Number(number), expect);
        }
    }

    fn directory(&mut self, index: usize) {
        self.error(index, Value::Null);
        for name in NO_ABSOLUTE_NAMES {
            self.error(index, Value::Text(name));
        }
        for (name, error) in
            [(NO_DIRECTORY, ENOENT), (c"/dev/null", ENOTDIR), (c"/\xff\x01", ENOENT)]
        {
            self.add(self.ready.clone(), index, Value::Text(name), Expect::Error(error));
        }
    }

    /// A word, or a list of them.
    fn address(&mut self, index: usize) {
        self.anything(index, Value::Null);
        self.anything(index, Value::Kernels);
        for bytes in 1..4 {
            let value = match self.ready[index] {
                Value::List(_) => Value::List(bytes),
                _ => Value::IntoWord(bytes),
            };
            self.anything(index, value);
        }
    }
}
