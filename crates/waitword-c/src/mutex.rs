//! `ww_mutex_t`: the functions of `pthread_mutex_t`, in eight bytes.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put, scope};
use crate::lock_flags::{
    WW_MUTEX_ADAPTIVE, WW_MUTEX_ERRORCHECK, WW_MUTEX_NORMAL, WW_MUTEX_PRIO_INHERIT,
    WW_MUTEX_RECURSIVE, WW_MUTEX_THROUGHPUT, WW_MUTEX_WAIT_WAKE, WW_PROCESS_SHARED,
};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Kind, LockError, PosixFlavour, PosixMutexOptions, RawPosixMutex};

/// A mutex: 8 bytes, all zero when it is unlocked, private, normal and adaptive. Initialise it with
/// `WW_MUTEX_INITIALIZER` or `ww_mutex_init`.
///
/// The thread that locked and unlocked it last may destroy, free or unmap it, even while the
/// previous unlock is still returning. None of its functions may be called from a signal handler.
/// After `fork`, the child's copy is locked if the parent's was. The child may unlock what the
/// forking thread held, unless the mutex records its owner (recursive, error-checking,
/// priority-inheriting), because the child's thread is a different thread. If a process is killed
/// while it holds a shared mutex, the mutex stays locked; use a `ww_robust_mutex_t` to avoid that.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_mutex {
    /// Private to the library.
    pub words_: [u32; 2],
}

/// A mutex.
#[allow(non_camel_case_types)] // C's name.
pub type ww_mutex_t = ww_mutex;

/// The kind given by `flags`, for plain and robust mutexes alike.
pub(crate) fn kind(flags: c_uint) -> Result<Kind, Number> {
    match flags & 0xf {
        WW_MUTEX_NORMAL => Ok(Kind::Normal),
        WW_MUTEX_RECURSIVE => Ok(Kind::Recursive),
        WW_MUTEX_ERRORCHECK => Ok(Kind::ErrorChecking),
        _ => Err(INVALID),
    }
}

fn options(flags: c_uint) -> Result<PosixMutexOptions, Number> {
    let flavour = match flags & !(0xf | WW_PROCESS_SHARED) {
        WW_MUTEX_ADAPTIVE => PosixFlavour::Adaptive,
        WW_MUTEX_THROUGHPUT => PosixFlavour::Throughput,
        WW_MUTEX_WAIT_WAKE => PosixFlavour::WaitWake,
        WW_MUTEX_PRIO_INHERIT => PosixFlavour::PriorityInheriting,
        _ => return Err(INVALID),
    };
    Ok(PosixMutexOptions::new().flavour(flavour).kind(kind(flags)?).scope(scope(flags)))
}

/// Initialises an unlocked mutex. `flags` is a kind, a flavour and a scope, each 0 if left out:
/// `WW_MUTEX_RECURSIVE` or `WW_MUTEX_ERRORCHECK`, with `WW_MUTEX_THROUGHPUT`, `WW_MUTEX_WAIT_WAKE`
/// or `WW_MUTEX_PRIO_INHERIT`, with `WW_PROCESS_SHARED`.
///
/// A static mutex needs no call: use `WW_MUTEX_INITIALIZER` or `WW_MUTEX_INITIALIZER_WITH(flags)`.
///
/// Errors:
/// - `EINVAL`: `mutex` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated. Modelled on `pthread_mutex_init`, with flags in place of
/// attribute objects.
///
/// # Safety
/// `mutex` must be NULL or point to memory for a mutex that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_init(mutex: *mut ww_mutex_t, flags: c_uint) -> c_int {
    // SAFETY: by this function's contract, NULL or memory for a mutex that is not in use, as `put`
    // requires.
    answer(|| unsafe { put(mutex, options(flags)?.build_raw()) })
}

/// Marks the mutex as no longer in use: later calls return `EINVAL`, where the library can detect
/// this, until it is initialised again. A mutex needs no other clean-up, and its memory may also be
/// freed without this call.
///
/// Errors:
/// - `EBUSY`: a thread holds it or waits for it.
/// - `EINVAL`: `mutex` is NULL or misaligned; already destroyed.
///
/// Does not block. Modelled on `pthread_mutex_destroy`.
///
/// # Safety
/// `mutex` must be NULL or point to a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_destroy(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a mutex, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex) }?.destroy()?))
}

/// Locks the mutex, waiting as long as necessary. Signal handlers do not end the wait.
///
/// Errors:
/// - `EDEADLK`: error-checking or priority-inheriting, and the caller holds it; or
///   priority-inheriting, and a cycle of holders waiting for each other would form.
/// - `EAGAIN`: recursive, and locked 65,536 times.
/// - `EINVAL`: `mutex` is NULL or misaligned; destroyed.
/// - Priority-inheriting only: `ESRCH`, its holder has ended without unlocking it; `ENOMEM`;
///   `ENOSYS`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_mutex_lock`.
///
/// # Safety
/// `mutex` must be NULL or point to a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_lock(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a mutex, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex) }?.lock_checked()?))
}

/// Locks the mutex if it can do so without waiting.
///
/// Errors:
/// - `EBUSY`: a thread holds it; if it is not recursive, also if that thread is the caller.
/// - `EAGAIN`, `EINVAL` and the kernel's errors: as `ww_mutex_lock`.
///
/// Does not block. Modelled on `pthread_mutex_trylock`.
///
/// # Safety
/// `mutex` must be NULL or point to a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_trylock(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a mutex, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex) }?.try_lock_checked()?))
}

/// Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on
/// `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_mutex_clocklock` with that clock.
///
/// # Safety
/// `mutex` must be NULL or point to a mutex, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_timedlock(
    mutex: *mut ww_mutex_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_mutex_clocklock(mutex, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait: an
/// available mutex is locked even if the time has passed.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
///   nanoseconds are not in [0, 10^9).
/// - Those of `ww_mutex_lock`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_mutex_clocklock` (POSIX 2024).
///
/// # Safety
/// `mutex` must be NULL or point to a mutex, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_clocklock(
    mutex: *mut ww_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a mutex, as `object` requires.
        let mutex: &RawPosixMutex = unsafe { object(mutex) }?;
        match mutex.try_lock_checked() {
            // SAFETY: by this function's contract, NULL or a time, as `deadline` requires.
            Err(LockError::Busy) => match unsafe { deadline(clock, abs_timeout) } {
                Ok(deadline) => Ok(mutex.lock_until(deadline)?),
                // The call would not have waited.
                Err(_) if mutex.would_deadlock() => Err(LockError::Deadlock.into()),
                Err(invalid) => Err(invalid),
            },
            done => Ok(done?),
        }
    })
}

/// Unlocks the mutex.
///
/// Errors:
/// - `EPERM`: recursive, error-checking or priority-inheriting, and the caller does not hold it.
///   (For other mutexes the caller must hold it, or have agreed with the thread that does. This is
///   not checked.)
/// - `EINVAL`: `mutex` is NULL or misaligned; destroyed.
///
/// Does not block. Modelled on `pthread_mutex_unlock`.
///
/// # Safety
/// `mutex` must be NULL or point to a mutex. A normal mutex must be locked, and its holder must no
/// longer rely on holding it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_unlock(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a mutex; a mutex that does not record its owner
    // is held, and one that does detects a wrong caller.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex)?.unlock_checked() }?))
}

/// Unlocks the mutex. If threads wait, hands it off to the one that has waited longest, instead of
/// letting a running thread barge. No thread can use the mutex while that waiter wakes up, so use
/// this rarely. A priority-inheriting mutex is always handed off (by priority). A process-shared
/// one never is: for it, the call is `ww_mutex_unlock`.
///
/// Errors: those of `ww_mutex_unlock`.
///
/// Does not block. Modelled on WebKit's `Lock::unlockFairly`.
///
/// # Safety
/// As for `ww_mutex_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_unlock_fair(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a mutex; a mutex that does not record its owner
    // is held, and one that does detects a wrong caller.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex)?.unlock_fair_checked() }?))
}

/// Hands the mutex off to the thread that has waited longest, then locks it again after that
/// thread. Does nothing if no thread waits. For a holder that has held the mutex for a long time
/// and will go on. The protected data may have changed when this returns. A recursive,
/// error-checking or priority-inheriting mutex stays with its holder, and the call does nothing.
///
/// Errors:
/// - `EINVAL`: `mutex` is NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `mutex` must be NULL or point to a mutex that the caller holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_bump(mutex: *mut ww_mutex_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a mutex that the caller holds.
        unsafe { object::<_, RawPosixMutex>(mutex)?.bump() };
        Ok(())
    })
}
