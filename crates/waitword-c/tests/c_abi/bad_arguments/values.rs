//! The values that an argument can take.

use super::arena::Bytes;
use std::ffi::CStr;

/// The memory for a word, in bytes.
const WORD: usize = 16;

/// The size of a list of two entries, in bytes.
pub(crate) const LIST: usize = 48;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutex,
    Cond,
    RobustMutex,
    Rwlock,
    Sem,
    Barrier,
    Latch,
    Event,
    AutoEvent,
    Once,
}

/// The C type, the kind, the size and the alignment of each object.
pub(crate) const KINDS: [(&str, Kind, usize, usize); 10] = [
    ("ww_mutex_t*", Kind::Mutex, 8, 4),
    ("ww_cond_t*", Kind::Cond, 16, 8),
    ("ww_robust_mutex_t*", Kind::RobustMutex, 40, 8),
    ("ww_rwlock_t*", Kind::Rwlock, 8, 8),
    ("ww_sem_t*", Kind::Sem, 8, 8),
    ("ww_barrier_t*", Kind::Barrier, 16, 8),
    ("ww_latch_t*", Kind::Latch, 4, 4),
    ("ww_event_t*", Kind::Event, 8, 8),
    ("ww_auto_event_t*", Kind::AutoEvent, 8, 8),
    ("ww_once_t*", Kind::Once, 4, 4),
];

impl Kind {
    pub(crate) fn size(self) -> usize {
        let found = KINDS.iter().find(|(_, kind, _, _)| *kind == self);
        found.expect("all are listed").2
    }

    pub(crate) fn align(self) -> usize {
        let found = KINDS.iter().find(|(_, kind, _, _)| *kind == self);
        found.expect("all are listed").3
    }
}

/// The contents of an object's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Initialised, and not held. The mutex of a condition variable is held by the caller.
    Ready,
    /// Every caller must wait.
    Busy,
    Destroyed,
    Zeros,
    Ones,
    /// Random bytes from this seed. Every second seed sets few bits, as real states do.
    Chance(u64),
}

impl State {
    /// The contents of the memory before any function initialises it.
    pub(crate) fn bytes(self) -> Bytes {
        match self {
            Self::Ones => Bytes::Ones,
            Self::Chance(seed) => Bytes::Chance(seed),
            _ => Bytes::Zeros,
        }
    }
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Number(u64),
    Object(Kind, State),
    /// An address this many bytes into the memory of an object whose bytes are zeros.
    Into(Kind, usize),
    /// A time: seconds and nanoseconds.
    Time(i64, i64),
    /// 16 writable bytes, all zeros.
    Word,
    /// An address this many bytes into such memory.
    IntoWord(usize),
    /// An inaccessible address.
    Untouchable,
    /// An address in the kernel's half.
    Kernels,
    /// A list of two private 32-bit words that hold their expected values, placed this many bytes
    /// into its memory.
    List(usize),
    /// A function that does nothing.
    Routine,
    Text(&'static CStr),
}

/// How many bytes of memory a value takes.
pub(crate) fn size(value: Value) -> Option<usize> {
    match value {
        Value::Object(kind, _) => Some(kind.size()),
        // Extra room, so that a misaligned object does not reach into the canary.
        Value::Into(kind, _) => Some(2 * kind.size()),
        Value::Time(..) | Value::Word => Some(WORD),
        Value::IntoWord(_) => Some(2 * WORD),
        Value::List(_) => Some(LIST + 8),
        _ => None,
    }
}
