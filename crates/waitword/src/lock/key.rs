//! The keys of a lock's waiters: the address of its word.

use crate::private::{Key, Place};

/// The key of the waiters of a private lock. `word` is the lock's word, or a lock that begins with
/// it.
#[inline(always)]
pub(crate) fn key_of<T>(word: &T) -> Key {
    key_at(core::ptr::from_ref(word).addr())
}

/// The key of the waiters of the mutex at this address. The mutex may no longer exist.
#[inline(always)]
pub(crate) fn key_of_mutex_at(address: usize) -> Key {
    Key { place: Place::AtMutex, ..key_at(address) }
}

#[cfg(not(loom))]
#[inline(always)]
pub(super) fn key_at(address: usize) -> Key {
    Key { address, place: Place::Anywhere }
}

/// In a model, addresses differ from one execution to the next, but all executions must use the
/// same buckets. So words are numbered in the order in which they are first used.
#[cfg(loom)]
pub(super) fn key_at(address: usize) -> Key {
    use std::sync::Mutex;
    crate::checker::lazy_static! {
        static ref SEEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    }
    let mut seen = SEEN.lock().unwrap();
    let number = seen.iter().position(|&known| known == address);
    let number = number.unwrap_or_else(|| {
        seen.push(address);
        seen.len() - 1
    });
    Key { address: 0x1000 + 4 * number, place: Place::Anywhere }
}
