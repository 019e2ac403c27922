//! `ww_rwlock_t` held *upgradably*: alongside readers, with the exclusive right to write next.
//! Pthreads do not have this; Boost's `upgrade_mutex` and `parking_lot` do.

use crate::call::{answer, clock, object, or_wait};
use crate::rwlock::ww_rwlock_t;
use core::ffi::c_int;
use libc::timespec;
use waitword_core::{RawRwLock, thread_number};

/// Locks upgradably: readers may hold the lock at the same time, but no writer and no second
/// upgradable holder. For a thread that reads and may then want to write, with no other writer in
/// between (`ww_rwlock_upgrade`). Waits as long as necessary; signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Blocks. Not a cancellation point. A caller that holds the lock upgradably or for writing
/// deadlocks.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_lock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.read_upgradably(None)?))
}

/// Locks upgradably if it can do so without waiting.
///
/// Errors:
/// - `EBUSY`: the call would have to wait.
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_trylock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.try_read_upgradably()?))
}

/// Locks upgradably, waiting until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `clock` is another clock; `rwlock` is NULL or misaligned; the call would wait, and
///   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_clocklock(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        let wait = |until| lock.read_upgradably(Some(&until));
        // SAFETY: by this function's contract, NULL or a time, as `or_wait` requires.
        unsafe { or_wait(lock.try_read_upgradably(), clock, abs_timeout, wait) }
    })
}

/// Unlocks what the caller holds upgradably. (`ww_rwlock_unlock` unlocks what is held for reading
/// or for writing.)
///
/// Errors:
/// - `EPERM`: no thread holds it upgradably. (Whether the caller does is not checked.)
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock. If the lock is held upgradably, the caller must hold
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_unlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock; if it is held upgradably, by the caller.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.unlock_upgradable_checked() }?))
}

/// Turns an upgradable lock into a write lock once the readers have left, waiting as long as
/// necessary. No other writer gets the lock in between.
///
/// Errors:
/// - `EPERM`: no thread holds it upgradably. (Whether the caller does is not checked.)
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock. If the lock is held upgradably, the caller must hold
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a lock; if it is held upgradably, by the
        // caller.
        Ok(unsafe { object::<_, RawRwLock>(rwlock)?.upgrade_checked(thread_number(), None) }?)
    })
}

/// `ww_rwlock_upgrade` if no thread holds the lock for reading. After an error, the lock is held as
/// before.
///
/// Errors:
/// - `EBUSY`: a thread holds it for reading.
/// - `EPERM`, `EINVAL`: as `ww_rwlock_upgrade`.
///
/// Does not block, but may wait for a moment until readers on other CPUs notice.
///
/// # Safety
/// As for `ww_rwlock_upgrade`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_tryupgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock; if it is held upgradably, by the caller.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.try_upgrade_checked(thread_number()) }?))
}

/// `ww_rwlock_upgrade` until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait. After
/// an error, the lock is held as before.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `clock` is another clock; `rwlock` is NULL or misaligned; the call would wait, and
///   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
/// - `EPERM`: as `ww_rwlock_upgrade`.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// As for `ww_rwlock_upgrade`. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_clockupgrade(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        // SAFETY: by this function's contract, if the lock is held upgradably, the caller holds it.
        let tried = unsafe { lock.try_upgrade_checked(thread_number()) };
        // SAFETY: by this function's contract, if the lock is held upgradably, the caller holds it.
        let wait = |until| unsafe { lock.upgrade_checked(thread_number(), Some(&until)) };
        // SAFETY: by this function's contract, NULL or a time, as `or_wait` requires.
        unsafe { or_wait(tried, clock, abs_timeout, wait) }
    })
}

/// Turns a write lock into a read lock. Readers may enter, and no writer gets the lock in between.
///
/// Errors:
/// - `EPERM`: no thread holds it for writing. (Whether the caller does is not checked.)
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock. If the lock is held for writing, the caller must hold
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_downgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock; if it is held for writing, by the
    // caller.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.downgrade_checked() }?))
}

/// Turns a write lock into an upgradable lock. Readers may enter, and no writer gets the lock in
/// between.
///
/// Errors:
/// - Those of `ww_rwlock_downgrade`.
///
/// Does not block.
///
/// # Safety
/// As for `ww_rwlock_downgrade`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_downgrade_to_upgradable(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock; if it is held for writing, by the
    // caller.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.downgrade_to_upgradable_checked() }?))
}

/// Turns an upgradable lock into a read lock. Another thread may then hold it upgradably.
///
/// Errors:
/// - `EPERM`: no thread holds it upgradably. (Whether the caller does is not checked.)
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock. If the lock is held upgradably, the caller must hold
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_downgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock; if it is held upgradably, by the caller.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.downgrade_upgradable_checked() }?))
}
