//! `ww_rwlock_t`: `pthread_rwlock_t`'s functions, in eight bytes.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put, scope};
use crate::lock_flags::{WW_PROCESS_SHARED, WW_RWLOCK_PREFER_READER, WW_RWLOCK_PREFER_WRITER};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Preference, RawRwLock, RwLockError, Scope, thread_number};

/// A reader/writer lock: 8 bytes, all zero when it is free, private, and prefers readers. `WW_RWLOCK_INITIALIZER`,
/// `WW_WRITER_RWLOCK_INITIALIZER`, or `ww_rwlock_init`.
///
/// Neither readers nor writers starve under either preference: whoever has waited for about a millisecond asks for a turn. Many
/// readers on many CPUs do not hinder each other: a lock that is mostly read becomes one whose readers do not touch it.
///
/// It may be destroyed, freed or unmapped by whoever locked and unlocked it last. None of its functions is for signal
/// handlers. After `fork` the child's copy is held as the parent's was. If a process is killed while it holds a shared one, it stays
/// held.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_rwlock {
    /// Not for you.
    pub word_: u64,
}

/// A reader/writer lock.
#[allow(non_camel_case_types)] // C's name.
pub type ww_rwlock_t = ww_rwlock;

/// Makes a free lock. `flags`: `WW_RWLOCK_PREFER_WRITER` if it is to prefer writers, `WW_PROCESS_SHARED`. A static one needs no
/// call: `WW_RWLOCK_INITIALIZER`, `WW_WRITER_RWLOCK_INITIALIZER`.
///
/// Errors:
/// - `EINVAL`: `rwlock` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated. After `pthread_rwlock_init`.
///
/// # Safety
/// `rwlock` is NULL or memory for a lock that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_init(rwlock: *mut ww_rwlock_t, flags: c_uint) -> c_int {
    answer(|| {
        let preference = match flags & !WW_PROCESS_SHARED {
            WW_RWLOCK_PREFER_READER => Preference::Reader,
            WW_RWLOCK_PREFER_WRITER => Preference::Writer,
            _ => return Err(INVALID),
        };
        // SAFETY: NULL, or memory for a lock that is not in use, by this function's contract: what
        // `put` asks.
        unsafe { put(rwlock, RawRwLock::with(preference, scope(flags))) }
    })
}

/// Says whether the lock may be freed. Nothing else needs to be done for it.
///
/// Errors:
/// - `EBUSY`: somebody holds it or waits for it.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_rwlock_destroy`.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_destroy(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
    answer(
        || match is_left(unsafe { object::<_, RawRwLock>(rwlock) }?) {
            true => Ok(()),
            false => Err(Number(libc::EBUSY)),
        },
    )
}

/// Whether nobody holds it or waits for it. The word of a process-shared one may speak of readers and writers who have given up, until it
/// is unlocked again, once for each of the two.
fn is_left(lock: &RawRwLock) -> bool {
    let forget_a_class = || {
        // SAFETY: held for writing by this thread: `try_write` has just taken it.
        lock.try_write(0).is_ok() && unsafe { lock.unlock() }.is_ok()
    };
    let shared = lock.scope() == Scope::Shared;
    lock.is_idle() || shared && (0..2).any(|_| forget_a_class() && lock.is_idle())
}

/// Locks it for reading, and waits for that as long as it takes: while somebody writes; with `WW_RWLOCK_PREFER_WRITER` also
/// while a writer waits. Signal handlers do not end the wait.
///
/// A thread may read several times at once, and unlocks as often. With `WW_RWLOCK_PREFER_WRITER` it must not: it would wait
/// for ever if a writer had begun to wait in between.
///
/// Errors:
/// - `EDEADLK`: the caller holds it for writing.
/// - `EAGAIN`: as many readers hold it as can be counted, 2^31 - 1.
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point. After `pthread_rwlock_rdlock`.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_rdlock(rwlock: *mut ww_rwlock_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        match lock.try_read() {
            // Only now does it matter who calls.
            Err(RwLockError::Busy) => Ok(lock.read(thread_number(), None)?),
            done => Ok(done?),
        }
    })
}

/// Locks it for reading if that needs no waiting.
///
/// Errors:
/// - `EBUSY`: it would have to wait.
/// - `EAGAIN`: as many readers hold it as can be counted.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_rwlock_tryrdlock`.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_tryrdlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.try_read()?))
}

/// Locks it for reading, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_rwlock_clockrdlock` with that clock, in all else.
///
/// # Safety
/// `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_timedrdlock(
    rwlock: *mut ww_rwlock_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_rwlock_clockrdlock(rwlock, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks it for reading, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
/// `CLOCK_REALTIME`). The time is looked at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
/// - as `ww_rwlock_rdlock`.
///
/// Blocks. Not a cancellation point. After `pthread_rwlock_clockrdlock` (POSIX 2024).
///
/// # Safety
/// `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_clockrdlock(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        match lock.try_read() {
            Err(RwLockError::Busy) => {
                // SAFETY: NULL or a time, by this function's contract.
                let deadline = unsafe { deadline(clock, abs_timeout) }?;
                Ok(lock.read(thread_number(), Some(&deadline))?)
            }
            done => Ok(done?),
        }
    })
}

/// Locks it for writing, and waits for that as long as it takes. Signal handlers do not end the wait.
///
/// Errors:
/// - `EDEADLK`: the caller holds it for writing. (If it reads, it waits for itself for ever.)
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point. After `pthread_rwlock_wrlock`.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_wrlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.write(thread_number(), None)?))
}

/// Locks it for writing if that needs no waiting.
///
/// Errors:
/// - `EBUSY`: somebody holds it.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block, but may wait for a moment for readers on other CPUs to notice. After `pthread_rwlock_trywrlock`.
///
/// # Safety
/// `rwlock` is NULL or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_trywrlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.try_write(thread_number())?))
}

/// Locks it for writing, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_rwlock_clockwrlock` with that clock, in all else.
///
/// # Safety
/// `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_timedwrlock(
    rwlock: *mut ww_rwlock_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_rwlock_clockwrlock(rwlock, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks it for writing, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
/// `CLOCK_REALTIME`). The time is looked at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
/// - as `ww_rwlock_wrlock`.
///
/// Blocks. Not a cancellation point. After `pthread_rwlock_clockwrlock` (POSIX 2024).
///
/// # Safety
/// `rwlock` is NULL or a lock, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_clockwrlock(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a lock, by this function's contract: what `object` asks.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        match lock.try_write(thread_number()) {
            Err(RwLockError::Busy) => {
                // SAFETY: NULL or a time, by this function's contract.
                let deadline = unsafe { deadline(clock, abs_timeout) }?;
                Ok(lock.write(thread_number(), Some(&deadline))?)
            }
            done => Ok(done?),
        }
    })
}

/// Gives back what the caller holds, for reading or for writing.
///
/// Errors:
/// - `EPERM`: nobody holds it. (That it is the caller who does is not checked.)
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_rwlock_unlock`.
///
/// # Safety
/// `rwlock` is NULL or a lock that the caller holds, or nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_unlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: NULL or a lock, which the caller holds if it is held, by this function's contract.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.unlock() }?))
}
