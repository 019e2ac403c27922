//! Process-shared condvars: waiters sleep in the kernel.
//!
//! A signaller does not know where in *its* memory the waiters' mutex lies, if at all, so it cannot move them there.
//! But each waiter does. So a broadcast wakes one waiter and moves the others to a second word, of the condvar itself
//! (`relay`); and each waiter that wakes up moves those it finds there on to the mutex, once it holds that:
//!
//! ```text
//!   broadcaster                    first waiter                     the others
//!   ───────────                    ────────────                     ──────────
//!   sequence += 1                  asleep on sequence               asleep on sequence
//!   requeue sequence → relay,      lock the mutex                   on relay
//!     wake one                     requeue relay → mutex            on the mutex
//!                                  unlock: wakes one                lock the mutex, one by one
//! ```
//!
//! So a broadcast costs one switch for each waiter here too. The requeue of relay is made by every waiter that wakes up,
//! whatever the reason; the second one finds nobody. (A flag "somebody stands there" would be raised too
//! early or too late: between it and the requeue of the broadcaster another waiter can come and go.)
//!
//! With a robust mutex a broadcast must not hang on one waiter that may be killed: see `robust.rs`. Otherwise, a killed waiter leaves those on
//! `relay` to the next one that wakes up: which a signal that finds nobody on `sequence` looks for there.
//!
//! # A deadline
//!
//! The kernel does not say whether a waiter that timed out had been moved. If the sequence has changed since it began to wait,
//! somebody has signalled, and it returns as if it was woken (for no reason, perhaps). Else it timed out.
//!
//! # A recursive mutex that stays held
//!
//! A waiter that gives back only one of several levels must not be moved to the mutex, nor wait for somebody who needs
//! it to move it on. From the first such wait on (KEPT), a broadcast wakes all.
//!
//! # Leaving
//!
//! Waiters touch the condvar after they were signalled. They are counted, and `destroy` waits for them.

use super::{RawCondvar, SHARED};
use crate::atomic::{AtomicU32, Ordering, full_fence};
use crate::lock::mutex::after_wait::Stands;
use crate::lock::{LockError, RawMutex};
use crate::sys::clock::Deadline;
use crate::sys::futex::{KernelWord, shared_wake, word_requeue, word_wait};
use rustix::io::Errno;

const EVERYBODY: u32 = i32::MAX as u32;

/// The two words in the place of `mutex`.
struct Words<'a> {
    relay: &'a AtomicU32,
    /// How many wait or are on their way back; plus [`DESTROYING`] and [`KEPT`].
    waiters: &'a AtomicU32,
}

/// Somebody waits until all are gone.
const DESTROYING: u32 = 1 << 31;
/// Somebody has waited here with a mutex that stayed held.
const KEPT: u32 = 1 << 30;
const COUNT: u32 = KEPT - 1;

#[cfg(not(loom))]
fn words(condvar: &RawCondvar) -> Words<'_> {
    let both = condvar.mutex.as_ptr().cast::<AtomicU32>();
    // SAFETY: two aligned halves of a word that is used by halves only, in a condvar of this kind.
    unsafe {
        Words {
            relay: &*both,
            waiters: &*both.add(1),
        }
    }
}

#[cfg(loom)]
fn words(condvar: &RawCondvar) -> Words<'_> {
    let [relay, waiters] = &condvar.halves;
    Words { relay, waiters }
}

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawMutex,
    deadline: Option<&Deadline>,
) -> Result<(), LockError> {
    mutex.check_owner()?;
    let sleep = Sleep::begin(condvar, mutex.is_held_more_than_once());
    mutex.unlock_to_sleep();
    let timed_out = sleep.sleep(deadline);
    let result = lock_again(condvar, mutex);
    sleep.leave();
    result?;
    match timed_out {
        true => Err(LockError::TimedOut),
        false => Ok(()),
    }
}

/// One wait, in steps: it begins with the mutex held, sleeps without it, and leaves with it.
pub(super) struct Sleep<'a> {
    condvar: &'a RawCondvar,
    seen: u32,
}

impl<'a> Sleep<'a> {
    /// `kept`: the mutex stays held, or its waiters must not be moved to it.
    pub(super) fn begin(condvar: &'a RawCondvar, kept: bool) -> Self {
        let waiters = words(condvar).waiters;
        if kept {
            waiters.fetch_or(KEPT, Ordering::Relaxed);
        }
        waiters.fetch_add(1, Ordering::Relaxed);
        let seen = condvar.sequence.load(Ordering::Relaxed);
        Self { condvar, seen }
    }

    /// Until it is signalled, or for no reason; whether the deadline passed.
    pub(super) fn sleep(&self, deadline: Option<&Deadline>) -> bool {
        let sequence = &self.condvar.sequence;
        let slept = word_wait(sequence, self.seen, u32::MAX, deadline);
        // Acquire: what was done before the signal.
        let signalled = sequence.load(Ordering::Acquire) != self.seen;
        slept == Err(Errno::TIMEDOUT) && !signalled
    }

    /// The last access to the condvar.
    pub(super) fn leave(self) {
        leave(words(self.condvar).waiters);
    }
}

/// Takes the mutex, and has those who were moved to `relay` wait for it too.
fn lock_again(condvar: &RawCondvar, mutex: &RawMutex) -> Result<(), LockError> {
    let relay = words(condvar).relay;
    if !matches!(mutex.waiters_stand(), Stands::InKernel) {
        // They cannot be moved there; they must fight for it.
        let _ = shared_wake(KernelWord::address(relay), EVERYBODY, u32::MAX);
        return mutex.lock_checked();
    }
    mutex.lock_after_sleep();
    mutex.announce_sleepers();
    // An error says that nobody was moved.
    let _ = word_requeue(relay, &mutex.word, 0, EVERYBODY, None);
    Ok(())
}

/// Counts a waiter off; the last one to leave wakes who waits for that.
fn leave(waiters: &AtomicU32) {
    // Release: its accesses to the condvar come before.
    if waiters.fetch_sub(1, Ordering::Release) & !KEPT == DESTROYING | 1 {
        let _ = shared_wake(KernelWord::address(waiters), EVERYBODY, u32::MAX);
    }
}

/// Signals up to `count`; how many were, as far as the kernel tells.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    let Words { relay, waiters } = words(condvar);
    full_fence();
    let who_waits = waiters.load(Ordering::Relaxed);
    if who_waits & COUNT == 0 {
        return 0;
    }
    // Release: see `wait`.
    let mut expected = condvar
        .sequence
        .fetch_add(1, Ordering::Release)
        .wrapping_add(1);
    let sequence = &condvar.sequence;
    if count == 1 || who_waits & KEPT != 0 {
        let count = u32::try_from(count).unwrap_or(EVERYBODY).min(EVERYBODY);
        let woken = shared_wake(KernelWord::address(sequence), count, u32::MAX).unwrap_or(0);
        return found(woken, relay);
    }
    loop {
        match word_requeue(sequence, relay, 1, EVERYBODY, Some(expected)) {
            Err(Errno::AGAIN) => expected = sequence.load(Ordering::Relaxed),
            moved => return found(moved.unwrap_or(0), relay),
        }
    }
}

/// That so many were signalled. If nobody was, somebody may stand on `relay` behind one who was killed: then it is woken,
/// for the second time, and moves the others on.
fn found(signalled: usize, relay: &AtomicU32) -> usize {
    if signalled == 0 {
        let _ = shared_wake(KernelWord::address(relay), 1, u32::MAX);
    }
    signalled
}

/// Blocks until nobody waits or is on the way back.
pub(super) fn wait_until_left(condvar: &RawCondvar) {
    debug_assert!(condvar.traits.load(Ordering::Relaxed) & SHARED != 0);
    let waiters = words(condvar).waiters;
    let mut left = waiters.fetch_or(DESTROYING, Ordering::Acquire) | DESTROYING;
    while left & COUNT != 0 {
        let _ = word_wait(waiters, left, u32::MAX, None);
        left = waiters.load(Ordering::Acquire);
    }
    waiters.store(0, Ordering::Relaxed);
}
