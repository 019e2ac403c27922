//! The cases for a function, derived from its parameters.

use super::arena::Bytes;
use super::functions::{Function, Parameter};
use super::values::{Kind, State, Thread, Value};
use std::fmt;

/// A call.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) function: &'static Function,
    pub(crate) arguments: Vec<Value>,
    /// Whether the answer must be glibc's. If not, the bytes mean nothing, or mean something else
    /// to each library.
    pub(crate) is_compared: bool,
    /// Whether this call may rightly never return.
    pub(crate) may_wait: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.function.name, self.arguments)
    }
}

const PAST: Value = Value::Time(1, 0);
const UNKNOWN_CLOCKS: [i64; 8] = [-1, 2, 3, 4, 7, 11, 12, i32::MAX as i64];
/// Valid types are 0 to 3.
const TYPES: [i64; 7] = [1, 2, 3, 4, 7, -1, i32::MIN as i64];
const SHARED: [i64; 4] = [1, 2, -1, i32::MIN as i64];
const COUNTS: [i64; 7] =
    [0, 2, -1, i32::MAX as i64 - 1, i32::MAX as i64, i32::MAX as i64 + 1, 1 << 32];
/// Invalid times.
const NO_TIMES: [Value; 8] = [
    Value::Null,
    Value::Untouchable,
    Value::Time(1, 1_000_000_000),
    Value::Time(1, -1),
    Value::Time(0, i64::MAX),
    Value::Time(0, i64::MIN),
    Value::Time(-1, 1_000_000_000),
    Value::Time(i64::MAX, 1_000_000_000),
];
const PAST_TIMES: [Value; 5] = [
    PAST,
    Value::OddTime,
    Value::Time(0, 0),
    Value::Time(-1, 999_999_999),
    Value::Time(i64::MIN, 0),
];
const FAR: Value = Value::Time(i64::MAX, 999_999_999);
/// First words of attributes. Each bit that means something to glibc is in one of them; others mean
/// nothing.
const WORDS: [u32; 12] =
    [1, 2, 3, 4, 7, 0x0006_3000, 1 << 28, 2 << 28, 3 << 28, 1 << 30, 1 << 31, 1 << 30 | 2 << 28];
/// How many objects of random bytes each function gets. Functions that may rightly wait forever get
/// fewer.
const CHANCES: u64 = 10;
const CHANCES_TO_WAIT: u64 = 3;

/// Adds the cases of this function.
pub(crate) fn of(function: &'static Function, cases: &mut Vec<Case>) {
    let mut tried = Tried {
        function,
        right: arguments(function, false),
        waiting: arguments(function, true),
        cases,
    };
    for (index, &parameter) in function.parameters.iter().enumerate() {
        tried.parameter(index, parameter);
    }
}

/// Valid arguments, with free objects or with objects that the caller must wait for.
fn arguments(function: &Function, waiting: bool) -> Vec<Value> {
    let is_cond = function.parameters.first() == Some(&Parameter::Object(Kind::Cond));
    let value = |&parameter: &Parameter| match parameter {
        Parameter::New(kind) => Value::Object(kind, State::Bytes(Bytes::Zeros)),
        Parameter::Object(kind) => Value::Object(
            kind,
            match (is_cond, kind) {
                (true, Kind::Mutex) => State::Mine(0),
                (false, _) if waiting => State::Busy(0),
                _ => State::Free(0),
            },
        ),
        Parameter::Attributes(_) => Value::Null,
        Parameter::Time => PAST,
        Parameter::Clock => Value::Number(libc::CLOCK_MONOTONIC.into()),
        Parameter::Shared | Parameter::Type => Value::Number(0),
        Parameter::Count => Value::Number(1),
        Parameter::Result => Value::Room,
        Parameter::Routine => Value::Routine,
        Parameter::Thread => Value::Thread(Thread::Myself),
    };
    function.parameters.iter().map(value).collect()
}

struct Tried<'c> {
    function: &'static Function,
    right: Vec<Value>,
    waiting: Vec<Value>,
    cases: &'c mut Vec<Case>,
}

impl Tried<'_> {
    fn add(&mut self, mut arguments: Vec<Value>, index: usize, value: Value, is_compared: bool) {
        arguments[index] = value;
        let may_wait = self.function.waits || arguments.contains(&FAR);
        self.cases.push(Case { function: self.function, arguments, is_compared, may_wait });
    }

    fn compared(&mut self, index: usize, value: Value) {
        self.add(self.right.clone(), index, value, true);
    }

    fn survived(&mut self, index: usize, value: Value) {
        self.add(self.right.clone(), index, value, false);
    }

    fn both(&mut self, index: usize, value: Value) {
        self.compared(index, value);
        if self.waiting != self.right {
            self.add(self.waiting.clone(), index, value, true);
        }
    }

    fn numbers(&mut self, index: usize, numbers: &[i64]) {
        for &number in numbers {
            self.both(index, Value::Number(number));
        }
    }

    fn parameter(&mut self, index: usize, parameter: Parameter) {
        match parameter {
            Parameter::New(kind) => self.pointer(index, kind.align()),
            Parameter::Object(kind) => self.object(index, kind),
            Parameter::Attributes(size) => self.attributes(index, size),
            Parameter::Time => {
                for value in NO_TIMES.into_iter().chain(PAST_TIMES).chain([FAR]) {
                    self.both(index, value);
                }
            }
            Parameter::Clock => self.numbers(index, &UNKNOWN_CLOCKS),
            Parameter::Shared => self.numbers(index, &SHARED),
            Parameter::Count => self.numbers(index, &COUNTS),
            Parameter::Type => self.numbers(index, &TYPES),
            Parameter::Result => self.pointer(index, 4),
            Parameter::Routine => self.both(index, Value::Null),
            Parameter::Thread => {
                self.compared(index, Value::Null);
                self.compared(index, Value::Untouchable);
                for thread in [Thread::Myself, Thread::Another, Thread::Zeros] {
                    self.compared(index, Value::Thread(thread));
                }
            }
        }
    }

    fn pointer(&mut self, index: usize, align: usize) {
        self.compared(index, Value::Null);
        self.compared(index, Value::Untouchable);
        for bytes in 1..align {
            self.compared(index, Value::Misaligned(bytes));
        }
    }

    fn object(&mut self, index: usize, kind: Kind) {
        self.pointer(index, kind.align());
        for sort in 0..kind.sorts() {
            self.compared(index, Value::Object(kind, State::Free(sort)));
            self.compared(index, Value::Object(kind, State::Busy(sort)));
            self.compared(index, Value::Object(kind, State::Destroyed(sort)));
            if kind == Kind::Mutex {
                self.compared(index, Value::Object(kind, State::Mine(sort)));
                self.survived(index, Value::Object(kind, State::MadePlain(sort)));
            }
        }
        let bytes = |bytes| Value::Object(kind, State::Bytes(bytes));
        if kind.may_be_zeros() {
            self.compared(index, bytes(Bytes::Zeros));
        } else {
            self.survived(index, bytes(Bytes::Zeros));
        }
        self.survived(index, bytes(Bytes::Ones));
        let chances = if self.function.waits { CHANCES_TO_WAIT } else { CHANCES };
        for seed in 0..chances {
            self.survived(index, bytes(Bytes::Chance(seed)));
        }
    }

    fn attributes(&mut self, index: usize, size: usize) {
        self.compared(index, Value::Untouchable);
        self.compared(index, Value::Misaligned(1));
        self.compared(index, Value::Attributes(size, Bytes::Zeros));
        self.compared(index, Value::Attributes(size, Bytes::Ones));
        for word in WORDS {
            self.compared(index, Value::AttributesWord(size, word));
        }
        for seed in 0..CHANCES {
            self.compared(index, Value::Attributes(size, Bytes::Chance(seed)));
        }
    }
}
