//! `ww_rwlock_t` held *upgradably*: beside readers, alone in the right to write next. What pthreads do not have; Boost's
//! `upgrade_mutex` and `parking_lot` do.

use crate::call::{answer, clock, deadline, object};
use crate::rwlock::ww_rwlock_t;
use core::ffi::c_int;
use libc::timespec;
use waitword_core::{RawRwLock, RwLockError, thread_number};

/// Locks it upgradably: readers may hold it at the same time, but no writer and nobody else upgradably. For a thread that reads
/// and may then want to write without anybody's writing in between (`ww_rwlock_upgrade`). Waits as long as it takes; signal
/// handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point. A thread that holds the lock upgradably or for writing waits for itself for ever.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_lock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.read_upgradably(None)?))
}

/// Locks it upgradably if that needs no waiting.
///
/// Errors:
/// - `EBUSY`: it would have to wait.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_trylock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.try_read_upgradably()?))
}

/// Locks it upgradably, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
/// `CLOCK_REALTIME`). The time is looked at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: another clock; NULL or misaligned; the call would wait and `abs_timeout` is NULL or its nanoseconds are not
///   below 10^9.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_clocklock(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        match lock.try_read_upgradably() {
            Err(RwLockError::Busy) => {
                // SAFETY: NULL or a time, by this function's contract.
                let deadline = unsafe { deadline(clock, abs_timeout) }?;
                Ok(lock.read_upgradably(Some(&deadline))?)
            }
            done => Ok(done?),
        }
    })
}

/// Gives back what the caller holds upgradably. (`ww_rwlock_unlock` is for what is held for reading or for writing.)
///
/// Errors:
/// - `EPERM`: nobody holds it upgradably. (That it is the caller who does is not checked.)
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` is NULL or a lock; if it is held upgradably, the caller does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_unlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, which the caller holds upgradably if it is held so, by this
    // function's contract.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.unlock_upgradable_checked() }?))
}

/// From holding it upgradably to holding it for writing, once the readers have left; waits for that as long as it takes. Nobody
/// writes in between.
///
/// Errors:
/// - `EPERM`: nobody holds it upgradably. (That it is the caller who does is not checked.)
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `rwlock` is NULL or a lock; if it is held upgradably, the caller does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a lock, which the caller holds upgradably if it is held so, by this
        // function's contract.
        Ok(unsafe { object::<_, RawRwLock>(rwlock)?.upgrade_checked(thread_number(), None) }?)
    })
}

/// The same if nobody reads now. After an error it is held as before.
///
/// Errors:
/// - `EBUSY`: somebody reads.
/// - `EPERM`, `EINVAL`: as `ww_rwlock_upgrade`.
///
/// Does not block, but may wait for a moment for readers on other CPUs to notice.
///
/// # Safety
/// As for `ww_rwlock_upgrade`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_tryupgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, which the caller holds upgradably if it is held so, by this
    // function's contract.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.try_upgrade_checked(thread_number()) }?))
}

/// The same, and waits no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The
/// time is looked at only if the call must wait. After an error it is held as before.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: another clock; NULL or misaligned; the call would wait and `abs_timeout` is NULL or its nanoseconds are not
///   below 10^9.
/// - `EPERM`: as `ww_rwlock_upgrade`.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// As for `ww_rwlock_upgrade`; `abs_timeout` is NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_clockupgrade(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        // SAFETY: if it is held upgradably, the caller does, by this function's contract.
        match unsafe { lock.try_upgrade_checked(thread_number()) } {
            Err(RwLockError::Busy) => {
                // SAFETY: NULL or a time, by this function's contract.
                let deadline = unsafe { deadline(clock, abs_timeout) }?;
                // SAFETY: if it is held upgradably, the caller does, by this function's contract.
                Ok(unsafe { lock.upgrade_checked(thread_number(), Some(&deadline)) }?)
            }
            done => Ok(done?),
        }
    })
}

/// From holding it for writing to holding it for reading. Readers come in, and nobody writes in between.
///
/// Errors:
/// - `EPERM`: nobody holds it for writing. (That it is the caller who does is not checked.)
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` is NULL or a lock; if it is held for writing, the caller does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_downgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, which the caller holds for writing if it is held so, by this
    // function's contract.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.downgrade_checked() }?))
}

/// From holding it for writing to holding it upgradably. Readers come in, and nobody writes in between.
///
/// Errors:
/// - as `ww_rwlock_downgrade`.
///
/// Does not block.
///
/// # Safety
/// As for `ww_rwlock_downgrade`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_downgrade_to_upgradable(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, which the caller holds for writing if it is held so, by this
    // function's contract.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.downgrade_to_upgradable_checked() }?))
}

/// From holding it upgradably to holding it for reading: others may have it upgradably.
///
/// Errors:
/// - `EPERM`: nobody holds it upgradably. (That it is the caller who does is not checked.)
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `rwlock` is NULL or a lock; if it is held upgradably, the caller does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_upgradable_downgrade(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, which the caller holds upgradably if it is held so, by this
    // function's contract.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.downgrade_upgradable_checked() }?))
}
