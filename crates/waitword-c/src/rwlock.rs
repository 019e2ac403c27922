//! `ww_rwlock_t`: the functions of `pthread_rwlock_t`, in eight bytes.

use crate::call::{INVALID, Number, answer, clock, object, or_wait, put, scope};
use crate::lock_flags::{WW_PROCESS_SHARED, WW_RWLOCK_PREFER_READER, WW_RWLOCK_PREFER_WRITER};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Preference, RawRwLock, RwLockError, Scope, thread_number};

/// A reader/writer lock: 8 bytes, all zero when it is unlocked, private, and prefers readers.
/// Initialise it with `WW_RWLOCK_INITIALIZER`, `WW_WRITER_RWLOCK_INITIALIZER` or `ww_rwlock_init`.
///
/// Neither readers nor writers starve under either preference: a thread that has waited for 0.1 to
/// 10 ms requests its turn. Many readers on many CPUs do not slow each other down: a lock that is
/// mostly read becomes biased, and its readers then no longer write to it.
///
/// The thread that locked and unlocked it last may destroy, free or unmap it. None of its functions
/// may be called from a signal handler. After `fork`, the child's copy is held as the parent's was.
/// If a process is killed while it holds a shared lock, the lock stays held.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_rwlock {
    /// Private to the library.
    pub word_: u64,
}

/// A reader/writer lock.
#[allow(non_camel_case_types)] // C's name.
pub type ww_rwlock_t = ww_rwlock;

/// Initialises an unlocked lock. `flags`: `WW_RWLOCK_PREFER_WRITER` to prefer writers,
/// `WW_PROCESS_SHARED`. A static one needs no call: use `WW_RWLOCK_INITIALIZER` or
/// `WW_WRITER_RWLOCK_INITIALIZER`.
///
/// Errors:
/// - `EINVAL`: `rwlock` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated. Modelled on `pthread_rwlock_init`.
///
/// # Safety
/// `rwlock` must be NULL or point to memory for a lock that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_init(rwlock: *mut ww_rwlock_t, flags: c_uint) -> c_int {
    answer(|| {
        let preference = match flags & !WW_PROCESS_SHARED {
            WW_RWLOCK_PREFER_READER => Preference::Reader,
            WW_RWLOCK_PREFER_WRITER => Preference::Writer,
            _ => return Err(INVALID),
        };
        // SAFETY: by this function's contract, NULL or memory for a lock that is not in use, as
        // `put` requires.
        unsafe { put(rwlock, RawRwLock::with(preference, scope(flags))) }
    })
}

/// Checks that the lock may be freed. It needs no other clean-up.
///
/// Errors:
/// - `EBUSY`: a thread holds it or waits for it.
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_rwlock_destroy`.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_destroy(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
    answer(|| match is_left(unsafe { object::<_, RawRwLock>(rwlock) }?) {
        true => Ok(()),
        false => Err(Number(libc::EBUSY)),
    })
}

/// Whether no thread holds the lock or waits for it. The word of a process-shared lock may still
/// record readers and writers that have given up. One unlock removes each of the two classes.
fn is_left(lock: &RawRwLock) -> bool {
    let forget_a_class = || {
        // SAFETY: this thread holds it for writing: `try_write` has just succeeded.
        lock.try_write(0).is_ok() && unsafe { lock.unlock() }.is_ok()
    };
    let shared = lock.scope() == Scope::Shared;
    lock.is_idle() || shared && (0..2).any(|_| forget_a_class() && lock.is_idle())
}

/// Locks for reading, waiting as long as necessary: while a writer holds the lock; with
/// `WW_RWLOCK_PREFER_WRITER` also while a writer waits. Signal handlers do not end the wait.
///
/// A thread may hold several read locks at once, and must unlock as often. With
/// `WW_RWLOCK_PREFER_WRITER` it must not: it would deadlock if a writer had started to wait in
/// between.
///
/// Errors:
/// - `EDEADLK`: the caller holds it for writing.
/// - `EAGAIN`: it has the maximum number of readers, 2^31 - 1.
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_rwlock_rdlock`.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_rdlock(rwlock: *mut ww_rwlock_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        match lock.try_read() {
            // Only the slow path needs the caller's thread number.
            Err(RwLockError::Busy) => Ok(lock.read(thread_number(), None)?),
            done => Ok(done?),
        }
    })
}

/// Locks for reading if it can do so without waiting.
///
/// Errors:
/// - `EBUSY`: the call would have to wait.
/// - `EAGAIN`: it has the maximum number of readers.
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_rwlock_tryrdlock`.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_tryrdlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.try_read()?))
}

/// Locks for reading, waiting until `abs_timeout` at the latest, an absolute time on
/// `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_rwlock_clockrdlock` with that clock.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_timedrdlock(
    rwlock: *mut ww_rwlock_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_rwlock_clockrdlock(rwlock, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks for reading, waiting until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
///   nanoseconds are not in [0, 10^9).
/// - Those of `ww_rwlock_rdlock`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_rwlock_clockrdlock` (POSIX 2024).
///
/// # Safety
/// `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_clockrdlock(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        let wait = |until| lock.read(thread_number(), Some(&until));
        // SAFETY: by this function's contract, NULL or a time, as `or_wait` requires.
        unsafe { or_wait(lock.try_read(), clock, abs_timeout, wait) }
    })
}

/// Locks for writing, waiting as long as necessary. Signal handlers do not end the wait.
///
/// Errors:
/// - `EDEADLK`: the caller holds it for writing. (A caller that holds it for reading deadlocks.)
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_rwlock_wrlock`.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_wrlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.write(thread_number(), None)?))
}

/// Locks for writing if it can do so without waiting.
///
/// Errors:
/// - `EBUSY`: a thread holds it.
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block, but may wait for a moment until readers on other CPUs notice. Modelled on
/// `pthread_rwlock_trywrlock`.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_trywrlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock) }?.try_write(thread_number())?))
}

/// Locks for writing, waiting until `abs_timeout` at the latest, an absolute time on
/// `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_rwlock_clockwrlock` with that clock.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_timedwrlock(
    rwlock: *mut ww_rwlock_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_rwlock_clockwrlock(rwlock, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks for writing, waiting until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
///   nanoseconds are not in [0, 10^9).
/// - Those of `ww_rwlock_wrlock`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_rwlock_clockwrlock` (POSIX 2024).
///
/// # Safety
/// `rwlock` must be NULL or point to a lock, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_clockwrlock(
    rwlock: *mut ww_rwlock_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a lock, as `object` requires.
        let lock: &RawRwLock = unsafe { object(rwlock) }?;
        let wait = |until| lock.write(thread_number(), Some(&until));
        // SAFETY: by this function's contract, NULL or a time, as `or_wait` requires.
        unsafe { or_wait(lock.try_write(thread_number()), clock, abs_timeout, wait) }
    })
}

/// Unlocks what the caller holds for reading or for writing.
///
/// Errors:
/// - `EPERM`: no thread holds it. (Whether the caller does is not checked.)
/// - `EINVAL`: `rwlock` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_rwlock_unlock`.
///
/// # Safety
/// `rwlock` must be NULL or point to a lock. If the lock is held, the caller must hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_rwlock_unlock(rwlock: *mut ww_rwlock_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a lock; if it is held, the caller holds it.
    answer(|| Ok(unsafe { object::<_, RawRwLock>(rwlock)?.unlock() }?))
}
