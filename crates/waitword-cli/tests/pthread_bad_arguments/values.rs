//! What can stand in the place of an argument.

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

    /// How many sorts there are (`calls.rs`).
    pub(crate) fn sorts(self) -> u8 {
        match self {
            Self::Mutex => 8,
            Self::Cond | Self::Rwlock => 3,
            Self::Sem | Self::Barrier => 2,
            Self::Spin | Self::Once => 1,
        }
    }

    /// Whether zeros are such an object: a static initialiser makes no other.
    pub(crate) fn may_be_zeros(self) -> bool {
        self != Self::Barrier
    }
}

/// What the memory of an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Made, of this sort, and nobody has it.
    Free(u8),
    /// Another thread has it, or waits at it.
    Busy(u8),
    /// The caller has it.
    Mine(u8),
    Destroyed(u8),
    /// Free, of this sort, and then somebody has written the plain kind over its own.
    MadePlain(u8),
    /// Nothing was made of it.
    Bytes(Bytes),
}

/// A `pthread_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    Myself,
    Another,
    /// A thread block of zeros, as one has that has ended.
    Zeros,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Number(i64),
    Object(Kind, State),
    /// So many bytes into zeros.
    Misaligned(usize),
    /// An attribute object, as it lies in memory.
    Attributes(usize, Bytes),
    /// One whose first word is this, and the rest zeros.
    AttributesWord(usize, u32),
    /// A time: seconds and nanoseconds.
    Time(i64, i64),
    /// One that has passed, at an odd address.
    OddTime,
    /// Room for a number.
    Room,
    /// An address that may not be touched.
    Untouchable,
    /// A function that does nothing.
    Routine,
    Thread(Thread),
}

impl Value {
    /// How many bytes it takes.
    pub(crate) fn size(self) -> Option<usize> {
        match self {
            Self::Object(kind, _) => Some(kind.size()),
            // Room to be wrong in: a misaligned object is not to reach into the canary.
            Self::Misaligned(_) => Some(128),
            Self::Attributes(size, _) | Self::AttributesWord(size, _) => Some(size),
            Self::Time(..) => Some(16),
            Self::OddTime => Some(17),
            Self::Room => Some(4),
            Self::Thread(Thread::Zeros) => Some(PAGE),
            _ => None,
        }
    }

    /// Whether no function may write there.
    pub(crate) fn is_only_read(self) -> bool {
        matches!(
            self,
            Self::Attributes(..) | Self::AttributesWord(..) | Self::Time(..) | Self::OddTime
        )
    }
}
