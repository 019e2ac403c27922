//! `pthread_spin_*`.
//!
//! Nothing in these four bytes could say whether another process shares them. So they are the C library's layout, to the bit,
//! and each process may use its own functions on them:
//!
//! | | free | to lock |
//! |---|------|---------|
//! | x86 | 1 | subtract 1; it was 1: locked. Else look until it is above 0 |
//! | others | 0 | exchange 1; it was 0: locked. Else look until it is 0 |
//!
//! What is ours is how to wait. glibc looks for as long as it takes; if the holder has lost its CPU to those who look, that is their whole
//! time slices, and for ever if they run at real-time priority. Here a waiter looks for a while, then gives its CPU away again and again, and at
//! last sleeps a little between the looks: that lets a holder of a lower priority run, too.

use crate::call::{self, Call, Ended};
use crate::mode;
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicI32,
    Ordering::{Acquire, Relaxed, Release},
};
use core::time::Duration;
use libc::pthread_spinlock_t;

mod glibc {
    use super::{c_int, pthread_spinlock_t};

    crate::real::real! {
        fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int;
    }
}

/// The word: what it says, and how it is taken.
mod word {
    use super::{Acquire, AtomicI32, Relaxed};

    pub(super) const FREE: i32 = if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        1
    } else {
        0
    };
    pub(super) const LOCKED: i32 = 1 - FREE;

    /// Whether the caller has it now. If not it may have left a trace, as the C library's waiters do.
    #[inline(always)]
    pub(super) fn take(word: &AtomicI32) -> bool {
        if FREE == 1 {
            word.fetch_sub(1, Acquire) == 1
        } else {
            word.swap(1, Acquire) == 0
        }
    }

    /// Whether it looks free. On x86 waiters have left it at 0 or below.
    #[inline(always)]
    pub(super) fn is_free(word: &AtomicI32) -> bool {
        let seen = word.load(Relaxed);
        if FREE == 1 { seen > 0 } else { seen == 0 }
    }
}

/// How often a waiter looks before it gives its CPU away: some microseconds, longer than what spin locks are for.
const LOOKS: u32 = 200;
/// How often it gives its CPU away before it sleeps.
const YIELDS: u32 = 50;
/// How long it sleeps between the looks then.
const SLEEP: Duration = Duration::from_micros(100);

/// The word behind C's pointer.
///
/// # Safety
/// A spin lock, as long as `'a`.
#[inline(always)]
unsafe fn spinlock<'a>(pointer: *mut pthread_spinlock_t) -> &'a AtomicI32 {
    // SAFETY: a spin lock is there as long as `'a`, by this function's contract: an `int`, which
    // all change by atomic operations, here and in glibc.
    unsafe { AtomicI32::from_ptr(pointer) }
}

/// Makes a spin lock. Whether processes share it is all the same. Source: POSIX `pthread_spin_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_init(
    pointer: *mut pthread_spinlock_t,
    _process_shared: c_int,
) -> c_int {
    // SAFETY: memory for a spin lock that is not in use, by POSIX's contract.
    unsafe { spinlock(pointer) }.store(word::FREE, Relaxed);
    0
}

/// Says that a spin lock will not be used any more: nothing needs to be done. Source: POSIX `pthread_spin_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_destroy(_pointer: *mut pthread_spinlock_t) -> c_int {
    0
}

/// Locks it. Source: POSIX `pthread_spin_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_lock(pointer: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a spin lock that stays for this call, by POSIX's contract.
    let lock = unsafe { spinlock(pointer) };
    match word::take(lock) {
        true => 0,
        false => wait(lock, pointer),
    }
}

/// Locks it if that needs no waiting. Source: POSIX `pthread_spin_trylock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_trylock(pointer: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a spin lock that stays for this call, by POSIX's contract.
    let lock = unsafe { spinlock(pointer) };
    match lock.compare_exchange(word::FREE, word::LOCKED, Acquire, Relaxed) {
        Ok(_) => 0,
        Err(_) => libc::EBUSY,
    }
}

/// Gives it back. Source: POSIX `pthread_spin_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_unlock(pointer: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a spin lock that stays for this call, by POSIX's contract.
    unsafe { spinlock(pointer) }.store(word::FREE, Release);
    0
}

#[cold]
#[inline(never)]
extern "C-unwind" fn wait(lock: &AtomicI32, pointer: *mut pthread_spinlock_t) -> c_int {
    if !mode::is_on() {
        // SAFETY: only `pthread_spin_lock` leads here, with its own argument: POSIX's contract for
        // that call holds. The trace that the attempt has left is one that glibc's waiters leave.
        return unsafe { glibc::pthread_spin_lock(pointer) };
    }
    let undo = |ended: Ended| {
        if ended.is_done() {
            lock.store(word::FREE, Release);
        }
    };
    call::run(|call| call.ended(take(lock, call)), undo)
}

/// Waits until it has the lock, or the call is to end (`ETIMEDOUT`).
fn take(lock: &AtomicI32, call: &Call) -> c_int {
    let until = call.until(None);
    let mut yields = 0;
    loop {
        for _ in 0..LOOKS {
            if word::is_free(lock) && word::take(lock) {
                return 0;
            }
            core::hint::spin_loop();
        }
        if until.has_passed() {
            return libc::ETIMEDOUT;
        }
        if yields < YIELDS {
            yields += 1;
            // SAFETY: `sched_yield` asks for nothing.
            unsafe { libc::sched_yield() };
        } else {
            sleep();
        }
    }
}

/// Sleeps a little. (The C library's own sleeps are cancellation points; to lock is none.)
fn sleep() {
    static NEVER: waitword::Event = waitword::Event::new();
    let _ = NEVER.wait_for(SLEEP);
}
