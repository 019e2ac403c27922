//! The values of arguments.

use super::arena::{Bytes, PAGE};
use libc::{pthread_barrier_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, sem_t};

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mutex,
    Cond,
    Rwlock,
    Sem,
    Barrier,
    Spin,
    Once,
}

impl Kind {
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Mutex => size_of::<pthread_mutex_t>(),
            Self::Cond => size_of::<pthread_cond_t>(),
            Self::Rwlock => size_of::<pthread_rwlock_t>(),
            Self::Sem => size_of::<sem_t>(),
            Self::Barrier => size_of::<pthread_barrier_t>(),
            Self::Spin | Self::Once => size_of::<i32>(),
        }
    }

    pub(crate) fn align(self) -> usize {
        match self {
            Self::Spin | Self::Once => align_of::<i32>(),
            _ => align_of::<u64>(),
        }
    }

    /// The number of sorts (see `calls.rs`).
    pub(crate) fn sorts(self) -> u8 {
        match self {
            Self::Mutex => 8,
            Self::Cond | Self::Rwlock => 3,
            Self::Sem | Self::Barrier => 2,
            Self::Spin | Self::Once => 1,
        }
    }

    /// Whether an object of zeros is valid, as after a static initialiser.
    pub(crate) fn may_be_zeros(self) -> bool {
        self != Self::Barrier
    }
}

/// The contents of an object's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Initialised with this sort, and free.
    Free(u8),
    /// Another thread holds it or waits at it.
    Busy(u8),
    /// The caller holds it.
    Mine(u8),
    Destroyed(u8),
    /// Free, with this sort, and then its kind was overwritten with the plain kind.
    MadePlain(u8),
    /// Not initialised.
    Bytes(Bytes),
}

/// A `pthread_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    Myself,
    Another,
    /// A thread block of zeros, as of a thread that has ended.
    Zeros,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Number(i64),
    Object(Kind, State),
    /// An address so many bytes into a block of zeros.
    Misaligned(usize),
    /// An attribute object with these bytes.
    Attributes(usize, Bytes),
    /// An attribute object with this first word, and zeros.
    AttributesWord(usize, u32),
    /// Seconds and nanoseconds.
    Time(i64, i64),
    /// A time that has passed, at an odd address.
    OddTime,
    /// Memory for a number.
    Room,
    /// An inaccessible address.
    Untouchable,
    /// A function that does nothing.
    Routine,
    Thread(Thread),
}

impl Value {
    /// How many bytes of memory the value takes.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Self::Object(kind, _) => Some(kind.size()),
            // Large enough that a misaligned object does not reach into the canary.
            Self::Misaligned(_) => Some(128),
            Self::Attributes(size, _) | Self::AttributesWord(size, _) => Some(size),
            Self::Time(..) => Some(16),
            Self::OddTime => Some(17),
            Self::Room => Some(4),
            Self::Thread(Thread::Zeros) => Some(PAGE),
            _ => None,
        }
    }

    /// Whether no function may write to it.
    pub(crate) fn is_only_read(self) -> bool {
        matches!(
            self,
            Self::Attributes(..) | Self::AttributesWord(..) | Self::Time(..) | Self::OddTime
        )
    }
}
