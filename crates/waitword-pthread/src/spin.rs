//! `pthread_spin_*`.
//!
//! Nothing in these four bytes could record whether another process shares them. So they have
//! exactly the C library's layout, and each process may use its own functions on them:
//!
//! | | free | to lock |
//! |---|------|---------|
//! | x86 | 1 | subtract 1; it was 1: locked. Else poll until it is above 0 |
//! | others | 0 | exchange 1; it was 0: locked. Else poll until it is 0 |
//!
//! Only the waiting is ours. glibc spins for as long as it takes. If the holder has lost its CPU to
//! the spinning threads, that is their whole time slices, and forever if they run at real-time
//! priority. Here a waiter spins for a while, then yields its CPU repeatedly, and at last sleeps
//! briefly between checks, which lets even a holder of a lower priority run.

use crate::call::{self, Call, Ended};
use crate::{mode, record};
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicI32,
    Ordering::{Acquire, Relaxed, Release},
};
use core::time::Duration;
use libc::pthread_spinlock_t;
use waitword_record::format::Object;

mod glibc {
    use super::{c_int, pthread_spinlock_t};

    crate::real::real! {
        fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int;
    }
}

/// The word: its values, and how it is taken.
mod word {
    use super::{Acquire, AtomicI32, Relaxed};

    pub(super) const FREE: i32 =
        if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { 1 } else { 0 };
    pub(super) const LOCKED: i32 = 1 - FREE;

    /// Takes the lock if it is free; returns whether it did. If not, it may have left a trace, as
    /// the C library's waiters do.
    #[inline(always)]
    pub(super) fn take(word: &AtomicI32) -> bool {
        if FREE == 1 { word.fetch_sub(1, Acquire) == 1 } else { word.swap(1, Acquire) == 0 }
    }

    /// Whether the lock looks free. On x86 waiters leave it at 0 or below.
    #[inline(always)]
    pub(super) fn is_free(word: &AtomicI32) -> bool {
        let seen = word.load(Relaxed);
        if FREE == 1 { seen > 0 } else { seen == 0 }
    }
}

/// How often a waiter checks the word before it yields its CPU: some microseconds, longer than the
/// sections that spin locks are meant for.
const LOOKS: u32 = 200;
/// How often it yields its CPU before it sleeps.
const YIELDS: u32 = 50;
/// How long it then sleeps between checks.
const SLEEP: Duration = Duration::from_micros(100);

/// The word behind the C pointer.
///
/// # Safety
/// It points to a spin lock that exists for `'a`.
#[inline(always)]
unsafe fn spinlock<'a>(pointer: *mut pthread_spinlock_t) -> &'a AtomicI32 {
    // SAFETY: a spin lock exists for `'a`, by this function's contract: an `int`, which all code
    // changes by atomic operations, here and in glibc.
    unsafe { AtomicI32::from_ptr(pointer) }
}

/// Initialises a spin lock. Whether processes share it makes no difference. Source: POSIX
/// `pthread_spin_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_init(
    pointer: *mut pthread_spinlock_t,
    _process_shared: c_int,
) -> c_int {
    // SAFETY: memory for a spin lock that is not in use, by POSIX's contract.
    unsafe { spinlock(pointer) }.store(word::FREE, Relaxed);
    0
}

/// Destroys a spin lock: nothing needs to be done. Source: POSIX `pthread_spin_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_destroy(_pointer: *mut pthread_spinlock_t) -> c_int {
    0
}

/// Locks a spin lock. Source: POSIX `pthread_spin_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_lock(pointer: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a spin lock that exists during this call, by POSIX's contract.
    let lock = unsafe { spinlock(pointer) };
    match word::take(lock) {
        true => 0,
        false => wait(lock, pointer),
    }
}

/// Locks a spin lock if that needs no waiting. Source: POSIX `pthread_spin_trylock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_trylock(pointer: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a spin lock that exists during this call, by POSIX's contract.
    let lock = unsafe { spinlock(pointer) };
    match lock.compare_exchange(word::FREE, word::LOCKED, Acquire, Relaxed) {
        Ok(_) => 0,
        Err(_) => libc::EBUSY,
    }
}

/// Unlocks a spin lock. Source: POSIX `pthread_spin_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_spin_unlock(pointer: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: a spin lock that exists during this call, by POSIX's contract.
    unsafe { spinlock(pointer) }.store(word::FREE, Release);
    0
}

#[cold]
#[inline(never)]
extern "C-unwind" fn wait(lock: &AtomicI32, pointer: *mut pthread_spinlock_t) -> c_int {
    match mode::is_fast() {
        true => wait_here(lock),
        false if mode::is_on() => record::waiting(Object::Spin, pointer, || wait_here(lock)),
        // SAFETY: only `pthread_spin_lock` calls this, with its own argument: POSIX's contract for
        // that call holds. The attempt has left the same trace as glibc's waiters leave.
        false => unsafe { glibc::pthread_spin_lock(pointer) },
    }
}

#[inline(always)]
fn wait_here(lock: &AtomicI32) -> c_int {
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
            // SAFETY: `sched_yield` has no preconditions.
            unsafe { libc::sched_yield() };
        } else {
            sleep();
        }
    }
}

/// Sleeps briefly. (The C library's own sleeps are cancellation points; locking is not.)
fn sleep() {
    static NEVER: waitword::Event = waitword::Event::new();
    let _ = NEVER.wait_for(SLEEP);
}
