//! The kernel's queue of a process-shared lock: the classes of its sleepers, and the system calls.
//! `shared.rs` has the protocol.

use super::RawRwLock;
use super::word::{READERS_TURN, State};
use crate::atomic::AtomicU64;
use crate::sys::Errno;
use crate::sys::clock::Deadline;
use crate::sys::futex::{KernelWord, shared_wake, word_wait};

/// The latest turn that a writer can be due. A writer that has waited longer counts as due this
/// one. The kernel distinguishes 32 classes. With two for other purposes, 15 are left for writers
/// and 15 for threads that want the upgradable lock.
pub(super) const LAST_TURN: u32 = 14;
const TURNS: u32 = (1 << (LAST_TURN + 1)) - 1;

/// The kernel's bits for the classes of sleepers.
pub(super) const READERS: u32 = 1;
pub(super) const UPGRADER: u32 = 2;
/// Writers have one bit for each turn that they may be due.
pub(super) const WRITERS: u32 = TURNS << 2;
/// So do threads that want the upgradable lock.
pub(super) const UPGRADABLE_READERS: u32 = TURNS << 17;

/// The members of `classes` that are due `turn`.
pub(super) const fn due(classes: u32, turn: u32) -> u32 {
    classes & (1 << 2 | 1 << 17) << turn
}

/// Whether a thread that is due `turn` may take the lock before others that have waited longer.
pub(super) fn is_due(turn: u32, state: State) -> bool {
    turn >= state.turn() || state.has(READERS_TURN)
}

pub(super) const ALL: u32 = i32::MAX as u32;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slept {
    /// Another thread woke it.
    Woken,
    /// The thread must look again: the word has changed, or a signal handler ran.
    Disturbed,
    TimedOut,
}

/// Wakes sleepers of these classes. Returns whether there were any. The lock may have been freed:
/// the kernel uses only its address.
pub(super) fn wake(word: *const AtomicU64, count: u32, classes: u32) -> bool {
    shared_wake(KernelWord::address(word), count, classes).is_ok_and(|woken| woken != 0)
}

/// Wakes one sleeper of these classes, which are those of writers and of threads that want the
/// upgradable lock. If `state` has a turn, wakes one that has waited longest: one that is due the
/// latest turn. (The kernel wakes in order of arrival, and a sleeper arrives again each time its
/// timer fires and each time it finds the lock taken.) That takes up to 15 system calls.
///
/// Returns the turn of the woken thread, or 0 if `state` has no turn; `None` if no thread sleeps.
pub(super) fn wake_one(word: *const AtomicU64, classes: u32, state: State) -> Option<u32> {
    match state.turn() {
        0 => wake(word, 1, classes).then_some(0),
        _ => (0..=LAST_TURN).rev().find(|&turn| wake(word, 1, due(classes, turn))),
    }
}

impl RawRwLock {
    /// Sleeps while the low half is as `announced`.
    pub(super) fn sleep(&self, announced: State, class: u32, until: Option<&Deadline>) -> Slept {
        match word_wait(&self.word, announced.low_half(), class, until) {
            Ok(()) => Slept::Woken,
            Err(Errno::TIMEDOUT) => Slept::TimedOut,
            Err(Errno::AGAIN | Errno::INTR) => Slept::Disturbed,
            Err(_) => {
                // The memory cannot be shared, or the kernel refuses: poll.
                crate::sys::sched::sleep_nanoseconds(1_000_000);
                let passed = until.is_some_and(Deadline::has_passed);
                if passed { Slept::TimedOut } else { Slept::Disturbed }
            }
        }
    }
}
