//! Process-shared condvars: waiters sleep in the kernel.
//!
//! A signaller does not know where the waiters' mutex lies in *its* memory, or whether it is mapped
//! there at all. So it cannot move waiters to the mutex, but each waiter can. A broadcast wakes one
//! waiter and moves the rest to a second word, which belongs to the condvar itself (`relay`). Each
//! waiter that wakes up locks the mutex, and then moves the waiters that it finds on `relay` to the
//! mutex:
//!
//! ```text
//!   broadcaster                    first waiter                     the other waiters
//!   ───────────                    ────────────                     ─────────────────
//!   sequence += 1                  asleep on sequence               asleep on sequence
//!   requeue sequence → relay,      lock the mutex                   on relay
//!     wake one                     requeue relay → mutex            on the mutex
//!                                  unlock: wakes one                lock the mutex, one by one
//! ```
//!
//! So here, too, a broadcast costs one switch per waiter. Every waiter that wakes up requeues
//! `relay`, whatever woke it; the second requeue finds no waiters. (A flag for "`relay` has
//! waiters" would be set too early or too late: another waiter can come and go between setting it
//! and the broadcaster's requeue.)
//!
//! With a robust mutex, a broadcast must not depend on one waiter that may be killed: see
//! `robust.rs`. With other mutexes, a killed waiter leaves the waiters on `relay` to the next one
//! that wakes up. A signal that finds no waiter on `sequence` therefore looks for one on `relay`.
//!
//! # Deadlines
//!
//! The kernel does not report whether a waiter that timed out had been moved. If the sequence has
//! changed since the waiter began to wait, a thread has signalled, and the waiter returns as if
//! woken (perhaps spuriously). Otherwise it has timed out.
//!
//! # A recursive mutex that stays held
//!
//! A waiter that unlocks only one of several levels must not be moved to the mutex, and it must not
//! depend on being moved on by a thread that needs the mutex. From the first such wait on (KEPT), a
//! broadcast wakes all waiters.
//!
//! # Leaving
//!
//! Waiters touch the condvar after they have been signalled. They are counted, and `destroy` waits
//! for them.

use super::word::RawCondvar;
use crate::atomic::{AtomicU64, Ordering, full_fence};
use crate::lock::mutex::after_wait::Stands;
use crate::lock::mutex::waiter::FromCondvar;
use crate::lock::{LockError, RawPosixMutex};
use crate::record::{self, Object};
use crate::sys::Errno;
use crate::sys::clock::Deadline;
use crate::sys::futex::{KernelWord, shared_wake, word_requeue, word_wait};
#[cfg(not(loom))]
use crate::sys::futex_raw::shared_wait;

const ALL: u32 = i32::MAX as u32;

/// In `mutex`: one thread that waits or is on its way back. The low half, which the kernel knows as
/// `relay`, is always 0.
const WAITER: u64 = 1 << 32;
/// `destroy` waits until all threads have left.
const DESTROYING: u64 = 1 << 63;
/// A thread has waited here with a mutex that stayed held.
const KEPT: u64 = 1 << 62;
const COUNT: u64 = KEPT - WAITER;

/// The high half counts the waiters of a condvar of this kind. All updates are to the whole word:
/// nothing here but the kernel looks at one half alone.
fn waiters(condvar: &RawCondvar) -> &AtomicU64 {
    &condvar.mutex
}

/// The low half, to which broadcasts move waiters.
fn relay(condvar: &RawCondvar) -> &AtomicU64 {
    &condvar.mutex
}

/// The address of the high half. `destroy` sleeps on it.
fn high_half(waiters: &AtomicU64) -> *mut u32 {
    const OFFSET: usize = if cfg!(target_endian = "little") { 4 } else { 0 };
    core::ptr::from_ref(waiters).cast_mut().cast::<u32>().wrapping_byte_add(OFFSET)
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

/// One wait, in steps: it begins with the mutex held, sleeps without it, and leaves with it held.
pub(super) struct Sleep<'a> {
    condvar: &'a RawCondvar,
    seen: u32,
}

impl<'a> Sleep<'a> {
    /// `kept`: the mutex stays held, or its waiters must not be moved to it.
    pub(super) fn begin(condvar: &'a RawCondvar, kept: bool) -> Self {
        let waiters = waiters(condvar);
        // Relaxed, all of them: the mutex is held. These steps come before it is unlocked, and so
        // before a signal by a thread that has locked it after that. A thread that signals without
        // the mutex may miss a waiter that has not unlocked it yet.
        if kept {
            waiters.fetch_or(KEPT, Ordering::Relaxed);
        }
        waiters.fetch_add(WAITER, Ordering::Relaxed);
        let seen = condvar.sequence.load(Ordering::Relaxed);
        Self { condvar, seen }
    }

    /// Sleeps until signalled, or until a spurious wake-up. Returns whether the deadline passed.
    pub(super) fn sleep(&self, deadline: Option<&Deadline>) -> bool {
        let sequence = &self.condvar.sequence;
        let address = self.condvar.address();
        let waited = record::waiting(Object::Condvar, address, deadline.is_some(), || {
            let slept = word_wait(sequence, self.seen, u32::MAX, deadline);
            // Acquire: sees what was done before the signal.
            let signalled = sequence.load(Ordering::Acquire) != self.seen;
            if slept == Err(Errno::TIMEDOUT) && !signalled { Err(()) } else { Ok(()) }
        });
        waited.is_err()
    }

    /// The last access to the condvar.
    pub(super) fn leave(self) {
        leave(waiters(self.condvar));
    }
}

/// Locks the mutex and moves the waiters on `relay` to it.
fn lock_again(condvar: &RawCondvar, mutex: &RawPosixMutex) -> Result<(), LockError> {
    let relay = relay(condvar);
    if !matches!(mutex.waiters_stand(), Stands::InKernel) {
        // The waiters cannot be moved to this mutex; they must compete for it.
        let _ = shared_wake(KernelWord::address(relay), ALL, u32::MAX);
        return mutex.lock_checked();
    }
    mutex.lock_after_sleep();
    mutex.announce_sleepers();
    // An error means that no waiter was moved.
    let _ = word_requeue(relay, &mutex.word, 0, ALL, None);
    Ok(())
}

/// Counts a waiter out. The last one to leave wakes the thread in `destroy`.
fn leave(waiters: &AtomicU64) {
    // Release: this waiter's accesses to the condvar come before.
    if waiters.fetch_sub(WAITER, Ordering::Release) & !KEPT == DESTROYING | WAITER {
        let _ = shared_wake(high_half(waiters), ALL, u32::MAX);
    }
}

/// Signals up to `count` waiters. Returns how many, as far as the kernel reports it.
pub(super) fn notify(condvar: &RawCondvar, count: usize) -> usize {
    let relay = relay(condvar);
    full_fence();
    let waiting = waiters(condvar).load(Ordering::Relaxed);
    if waiting & COUNT == 0 {
        return 0;
    }
    record::signalling(condvar.address());
    // Release: see `Sleep::sleep`.
    let mut expected = condvar.sequence.fetch_add(1, Ordering::Release).wrapping_add(1);
    let sequence = &condvar.sequence;
    if count == 1 || waiting & KEPT != 0 {
        let count = u32::try_from(count).unwrap_or(ALL).min(ALL);
        let woken = shared_wake(KernelWord::address(sequence), count, u32::MAX).unwrap_or(0);
        return found(woken, relay);
    }
    loop {
        match word_requeue(sequence, relay, 1, ALL, Some(expected)) {
            Err(Errno::AGAIN) => expected = sequence.load(Ordering::Relaxed),
            moved => return found(moved.unwrap_or(0), relay),
        }
    }
}

/// Returns `signalled`. If it is zero, waiters may sit on `relay` behind one that was killed: wakes
/// one of them, a second time, and it moves the rest on.
fn found(signalled: usize, relay: &AtomicU64) -> usize {
    if signalled == 0 {
        let _ = shared_wake(KernelWord::address(relay), 1, u32::MAX);
    }
    signalled
}

/// Blocks until no thread waits or is on its way back.
#[cfg(not(loom))]
pub(super) fn wait_until_left(condvar: &RawCondvar) {
    debug_assert!(condvar.is_shared());
    let waiters = waiters(condvar);
    // Acquire here and below: the accesses of the threads that have left come before the end of the
    // condvar.
    let mut left = waiters.fetch_or(DESTROYING, Ordering::Acquire) | DESTROYING;
    while left & COUNT != 0 {
        let expected = (left >> 32) as u32;
        // SAFETY: the half is part of the condvar's word, which is borrowed for the whole call.
        let _ = unsafe { shared_wait(high_half(waiters), expected, u32::MAX, None) };
        left = waiters.load(Ordering::Acquire);
    }
    waiters.store(0, Ordering::Relaxed);
}
