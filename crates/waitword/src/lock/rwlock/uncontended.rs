//! The uncontended paths: acquire and release without waiting, one read-modify-write each. They are
//! inlined for the simplest words and out of line for the rest.
//!
//! Three decisions shape these paths:
//!
//! * **Constants.** The value that a compare-and-swap expects is a constant behind a predicted
//!   branch, not the value just loaded. So the processor need not wait for the load (0.6 ns of 2.4
//!   on an EPYC). The branches use different orderings only to keep the compiler from merging them
//!   again.
//! * **A release is a subtraction**, which cannot fail, and not a compare-and-swap (0.5 ns less).
//!   It is used only after a load has shown a simple word. If a thread queues between that load and
//!   the subtraction, the lock is free by then and may have been freed. So the release first looks
//!   at nothing but the waiter table (`hand_off.rs`, "Late releases").
//! * **Contended words.** Where readers on two CPUs meet, the word is seldom that simple. Where
//!   more threads than CPUs use a lock, some of them wait at any time. Under reader preference this
//!   changes nothing for a newcomer, nor for a reader that leaves other readers behind, nor, if a
//!   waiter is awake already (`WOKEN`), for a thread that releases. So a third branch serves such
//!   words. For readers, `State` decides which words these are (`admits_reader_at_once`,
//!   `lets_reader_leave`).

use super::RawRwLock;
use super::word::{
    PREFER_WRITER, READER, READERS_WAIT, Release, State, WOKEN, WRITER, WRITERS_WAIT,
};
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release as Releasing};

/// The bits of waiters, queued or woken. Under reader preference these keep no thread out.
const WAITERS: u64 = READERS_WAIT | WRITERS_WAIT | WOKEN;

/// Marks the branch that calls it as rarely taken. (`core::hint::cold_path` needs Rust 1.95.)
#[cold]
#[inline(always)]
fn cold_path() {}

impl RawRwLock {
    /// Enters from one of the two simplest words (unlocked, with either preference), or past
    /// waiters and other readers. Returns whether it has entered.
    #[inline]
    pub(super) fn take_unlocked(&self, add: u64) -> bool {
        let state = self.word.load(Relaxed);
        if state == 0 {
            self.word.compare_exchange(0, add, Acquire, Relaxed).is_ok()
        } else if state == PREFER_WRITER {
            let held = PREFER_WRITER + add;
            // AcqRel instead of Acquire: see the module documentation.
            self.word.compare_exchange(PREFER_WRITER, held, AcqRel, Relaxed).is_ok()
        } else if may_pass(State(state), add) {
            cold_path();
            self.word.compare_exchange(state, state + add, Acquire, Relaxed).is_ok()
        } else {
            false
        }
    }

    /// Gives back what `take_unlocked` has added, if no look at the queue is needed. Returns false
    /// if it has done nothing.
    #[inline]
    pub(super) fn give_back_alone(&self, add: u64) -> bool {
        let state = self.word.load(Relaxed);
        if state == add {
            self.subtract(add, add, Releasing)
        } else if state == PREFER_WRITER + add {
            // AcqRel instead of Release: see the module documentation.
            self.subtract(PREFER_WRITER + add, add, AcqRel)
        } else if add == READER {
            let leaves = State(state).lets_reader_leave();
            leaves && self.leave_other_readers(State(state))
        } else if state & !WRITERS_WAIT == add + WOKEN {
            // A waiter that is awake already will take care of the rest (`must_serve`).
            cold_path();
            self.word.compare_exchange(state, state - add, Releasing, Relaxed).is_ok()
        } else {
            false
        }
    }

    /// Gives back `add` from a word that was `seen`. Returns false if it has done nothing.
    #[inline(always)]
    fn subtract(&self, seen: u64, add: u64, order: crate::atomic::Ordering) -> bool {
        // The shortest code is a subtraction that reports only whether nothing is left, as here
        // where `seen` equals `add`.
        #[cfg(not(feature = "send_guard"))]
        {
            if self.word.fetch_sub(add, order) != seen {
                self.hand_off_late();
            }
            true
        }
        // Since the load, readers may have entered through slots, and a thread that was sent the
        // guard of one of them may have given back this hold instead. Then this thread's hold is in
        // a slot.
        #[cfg(feature = "send_guard")]
        {
            let left = self.word.compare_exchange(seen, seen - add, order, Relaxed);
            left.is_ok()
        }
    }

    /// Gives back a reader's hold from a word that was `seen` and that lets it leave. Returns false
    /// if it has done nothing.
    #[inline(always)]
    fn leave_other_readers(&self, seen: State) -> bool {
        debug_assert!(seen.lets_reader_leave());
        #[cfg(not(feature = "send_guard"))]
        {
            // Release: the reads come before the next write.
            let left = State(self.word.fetch_sub(READER, Releasing));
            if left.after(Release::Reader).must_serve(Release::Reader) {
                self.hand_off_late();
            }
            true
        }
        // As in `subtract`.
        #[cfg(feature = "send_guard")]
        {
            self.replace(seen, seen.after(Release::Reader), Releasing)
        }
    }
}

/// Whether a thread that adds `add` to the word may enter past waiters and other readers.
#[inline(always)]
fn may_pass(state: State, add: u64) -> bool {
    match add {
        READER => state.admits_reader_at_once(),
        _ => !state.has(!WAITERS),
    }
}

/// What a writer adds to the word.
#[inline]
pub(super) fn held_by(owner: u32) -> u64 {
    WRITER | u64::from(owner) << 32
}
