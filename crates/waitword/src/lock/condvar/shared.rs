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

use super::RawCondvar;
#[cfg(not(loom))]
use super::SHARED;
use crate::atomic::{AtomicU64, Ordering, full_fence};
use crate::lock::mutex::after_wait::Stands;
use crate::lock::mutex::waiter::FromCondvar;
use crate::lock::{LockError, RawPosixMutex};
use crate::sys::Errno;
use crate::sys::clock::Deadline;
#[cfg(not(loom))]
use crate::sys::futex::shared_wait;
use crate::sys::futex::{KernelWord, shared_wake, word_requeue, word_wait};

const EVERYBODY: u32 = i32::MAX as u32;

/// In `mutex`: one that waits or is on its way back. The low half, which the kernel knows as
/// `relay`, is always 0.
const WAITER: u64 = 1 << 32;
/// Somebody waits until all are gone.
const DESTROYING: u64 = 1 << 63;
/// Somebody has waited here with a mutex that stayed held.
const KEPT: u64 = 1 << 62;
const COUNT: u64 = KEPT - WAITER;

/// Those who wait for a condvar of this kind, all changed as one word: nothing here but the kernel
/// looks at one half alone.
fn waiters(condvar: &RawCondvar) -> &AtomicU64 {
    &condvar.mutex
}

/// The low half, as what broadcasts move waiters to.
fn relay(condvar: &RawCondvar) -> &AtomicU64 {
    &condvar.mutex
}

/// The address of the high half, on which `destroy` sleeps.
fn high_half(waiters: &AtomicU64) -> *mut u32 {
    const OFFSET: usize = if cfg!(target_endian = "little") { 4 } else { 0 };
    core::ptr::from_ref(waiters)
        .cast_mut()
        .cast::<u32>()
        .wrapping_byte_add(OFFSET)
}

pub(super) fn wait(
    condvar: &RawCondvar,
    mutex: &RawPosixMutex,
    deadline: Option<&Deadline>,
) -> Result<(), LockError> {
    mutex.check_owner()?;
    let sleep = Sleep::begin(condvar, mutex.is_held_more_than_once());
    mutex.unlock_to_sleep(FromCondvar::ELSEWHERE);
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
        let waiters = waiters(condvar);
        // All Relaxed: the mutex is held. What is done here comes before it is unlocked, and so
        // before a signal by a thread that has locked it after that. A thread that signals without
        // the mutex may miss a waiter that has not given it back yet.
        if kept {
            waiters.fetch_or(KEPT, Ordering::Relaxed);
        }
        waiters.fetch_add(WAITER, Ordering::Relaxed);
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
        leave(waiters(self.condvar));
    }
}

/// Takes the mutex, and has those who were moved to `relay` wait for it too.
fn lock_again(condvar: &RawCondvar, mutex: &RawPosixMutex) -> Result<(), LockError> {
    let relay = relay(condvar);
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
fn leave(waiters: &AtomicU64) {
    // Release: its accesses to the condvar come before.
    if waiters.fetch_sub(WAITER, Ordering::Release) & !KEPT == DESTROYING | WAITER {
        let _ = shared_wake(high_half(waiters), EVERYBODY, u32::MAX);
    }
}

/// Signals up to `count`; how many were, as far as the kernel tells.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    let relay = relay(condvar);
    full_fence();
    let who_waits = waiters(condvar).load(Ordering::Relaxed);
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
fn found(signalled: usize, relay: &AtomicU64) -> usize {
    if signalled == 0 {
        let _ = shared_wake(KernelWord::address(relay), 1, u32::MAX);
    }
    signalled
}

/// Blocks until nobody waits or is on the way back.
#[cfg(not(loom))]
pub(super) fn wait_until_left(condvar: &RawCondvar) {
    debug_assert!(condvar.traits.load(Ordering::Relaxed) & SHARED != 0);
    let waiters = waiters(condvar);
    // Acquire here and below: what those did who have left comes before the end of the condvar.
    let mut left = waiters.fetch_or(DESTROYING, Ordering::Acquire) | DESTROYING;
    while left & COUNT != 0 {
        let expected = (left >> 32) as u32;
        // SAFETY: the half lies in the condvar's word, which is borrowed for the whole call.
        let _ = unsafe { shared_wait(high_half(waiters), expected, u32::MAX, None) };
        left = waiters.load(Ordering::Acquire);
    }
    waiters.store(0, Ordering::Relaxed);
}
