//! What can stand in the place of an argument.

use super::arena::Bytes;

/// What lies at a place for a word.
const WORD: usize = 16;

/// Bytes of a list of two entries.
pub(crate) const LIST: usize = 48;

/// The kinds of objects, with the names of their types in C.
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

/// What the memory of an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Made, and nobody has it; of a condition variable's mutex: held by the caller.
    Ready,
    /// Whoever comes must wait.
    Busy,
    Destroyed,
    Zeros,
    Ones,
    /// Chance bytes of this number; every second one with few bits set, as states have them.
    Chance(u64),
}

impl State {
    /// What the memory holds before any function has made an object of it.
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
    /// So many bytes into the memory of an object, whose bytes are zeros.
    Into(Kind, usize),
    /// A time: seconds and nanoseconds, in memory that can only be read.
    Time(i64, i64),
    /// 16 bytes that may be written, all zeros.
    Word,
    /// So many bytes into such.
    IntoWord(usize),
    /// An address that may not be touched.
    Untouchable,
    /// In the kernel's half.
    Kernels,
    /// A list of two words, private and of 32 bits, that hold what they are expected to; so many bytes into its memory.
    List(usize),
    /// A function that does nothing.
    Routine,
}

/// How many bytes a value takes.
pub(crate) fn size(value: Value) -> Option<usize> {
    match value {
        Value::Object(kind, _) => Some(kind.size()),
        // Room to be wrong in: a misaligned object is not to reach into the canary.
        Value::Into(kind, _) => Some(2 * kind.size()),
        Value::Time(..) | Value::Word => Some(WORD),
        Value::IntoWord(_) => Some(2 * WORD),
        Value::List(_) => Some(LIST + 8),
        _ => None,
    }
}
