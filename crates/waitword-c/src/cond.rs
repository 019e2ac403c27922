//! `ww_cond_t`: `pthread_cond_t`'s functions, in sixteen bytes.

use crate::call::{Number, answer, clock, deadline, object, put, scope_alone};
use crate::mutex::ww_mutex_t;
use crate::robust::ww_robust_mutex_t;
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Deadline, RawCondvar, RawPosixMutex, RawRobustMutex, RobustLocked};

/// A condition variable: 16 bytes, all zero when it is private and nobody waits. `WW_COND_INITIALIZER`, or `ww_cond_init`.
///
/// It works with any `ww_mutex_t`, of the same scope; all who wait at one time do so with the same
/// mutex. Threads are signalled in the order in which they came. A signal or broadcast that finds
/// the mutex held wakes nobody: it moves the waiters to the mutex, whose unlocks wake them one by
/// one. (Of shared ones the kernel does the moving, as far as it can. With a priority-inheriting
/// mutex each signal wakes, the highest priority first.)
///
/// A private one may be freed as soon as everybody has been signalled; a shared one only after `ww_cond_destroy`. None of its
/// functions is for signal handlers. In a child of `fork` nobody waits.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_cond {
    /// Not for you.
    pub words_: [u64; 2],
}

/// A condition variable.
#[allow(non_camel_case_types)] // C's name.
pub type ww_cond_t = ww_cond;

/// Makes a condition variable. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call: `WW_COND_INITIALIZER`.
///
/// There is no attribute for a clock: `ww_cond_timedwait` is by `CLOCK_REALTIME`, `ww_cond_clockwait` by either.
///
/// Errors:
/// - `EINVAL`: `cond` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated. After `pthread_cond_init`.
///
/// # Safety
/// `cond` is NULL or memory for a condition variable that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_init(cond: *mut ww_cond_t, flags: c_uint) -> c_int {
    // SAFETY: NULL, or memory for a condition variable that is not in use, by this function's
    // contract: what `put` asks.
    answer(|| unsafe { put(cond, RawCondvar::with_scope(scope_alone(flags)?)) })
}

/// Makes sure that nobody uses the condition variable any more. A private one that nobody waits on needs no such call; of a shared
/// one this waits until all who have been signalled are gone.
///
/// Errors:
/// - `EBUSY`: somebody waits on a private one.
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks, if it is shared, until those who were signalled are gone. Not a cancellation point. After `pthread_cond_destroy`.
///
/// # Safety
/// `cond` is NULL or a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_destroy(cond: *mut ww_cond_t) -> c_int {
    // SAFETY: NULL or a condition variable, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawCondvar>(cond) }?.destroy()?))
}

/// Unlocks `mutex`, waits to be signalled, and locks `mutex` again. It may also return for no reason: look at what you wait for
/// again. All who wait when a signal or broadcast is sent are found by it.
///
/// Of a recursive mutex that is locked more than once, one level is given back: it stays locked. Signal handlers do not end the wait, or
/// end it for no reason (never with `EINTR`).
///
/// Errors:
/// - `EPERM`: the mutex is recursive, error-checking or priority-inheriting, and the caller does not hold it.
/// - `EINVAL`: NULL or misaligned; others wait here with another mutex. The mutex is still locked then.
/// - `EDEADLK`, `ESRCH`, `ENOMEM` and what else `ww_mutex_lock` returns: the mutex is
///   priority-inheriting, and could not be locked again. The caller does **not** hold it.
///
/// Blocks. Not a cancellation point. After `pthread_cond_wait`.
///
/// # Safety
/// `cond` is NULL or a condition variable, `mutex` NULL or a mutex that the caller holds. Both live until everybody has come
/// back from here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_wait(cond: *mut ww_cond_t, mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: NULL or a condition variable, and NULL or a mutex that the caller holds, by this
    // function's contract. It does not say that all who wait use one mutex: a wait with a second
    // one is refused, or signals of one or the other wake too few.
    answer(|| unsafe {
        let mutex = object::<_, RawPosixMutex>(mutex)?;
        Ok(object::<_, RawCondvar>(cond)?.wait(mutex, None)?)
    })
}

/// `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_cond_clockwait` with that clock, in all else.
///
/// # Safety
/// As for `ww_cond_wait`; `abs_timeout` is NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_timedwait(
    cond: *mut ww_cond_t,
    mutex: *mut ww_mutex_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_cond_clockwait(cond, mutex, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`).
///
/// Errors:
/// - `ETIMEDOUT`: the time came first. The mutex is locked again, and no signal was spent on the caller (of a private condition
///   variable; of a shared one, one may have been).
/// - `EINVAL`: another clock; `abs_timeout` is NULL or its nanoseconds are not below 10^9. Nothing has been done then.
/// - as `ww_cond_wait`.
///
/// Blocks. Not a cancellation point. After `pthread_cond_clockwait` (POSIX 2024).
///
/// # Safety
/// As for `ww_cond_wait`; `abs_timeout` is NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_clockwait(
    cond: *mut ww_cond_t,
    mutex: *mut ww_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: what `ww_cond_wait` says, and NULL or a time, by this function's contract. A wait
    // with a second mutex is refused, or signals of one or the other wake too few.
    answer(|| unsafe {
        let deadline = deadline(self::clock(clock)?, abs_timeout)?;
        let mutex = object::<_, RawPosixMutex>(mutex)?;
        Ok(object::<_, RawCondvar>(cond)?.wait(mutex, Some(&deadline))?)
    })
}

/// `ww_cond_wait` with a robust mutex, on a condition variable of `WW_PROCESS_SHARED`. A broadcast wakes all who wait so.
///
/// Errors:
/// - `EOWNERDEAD`: **the mutex is locked again**, and the caller is the first to hold it since a holder has died.
/// - `ENOTRECOVERABLE`: the mutex can never be locked again, and is not.
/// - `EPERM`: the caller does not hold the mutex.
/// - `ENOTSUP`: the condition variable is private. The mutex is still locked then.
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point. After `pthread_cond_wait`. Do not destroy the condition variable, but make a new one, once a
/// process has been killed that waited on it.
///
/// # Safety
/// `cond` is NULL or a condition variable, `mutex` NULL or a robust mutex. Both live until everybody has come back from here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_wait_robust(
    cond: *mut ww_cond_t,
    mutex: *mut ww_robust_mutex_t,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer(|| unsafe { wait_robust(cond, mutex, None) })
}

/// `ww_cond_wait_robust` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`).
///
/// Errors:
/// - `ETIMEDOUT`: the time came first. The mutex is locked again. (`EOWNERDEAD` goes first.)
/// - `EINVAL`: another clock; `abs_timeout` is NULL or its nanoseconds are not below 10^9. Nothing has been done then.
/// - as `ww_cond_wait_robust`.
///
/// Blocks. Not a cancellation point. After `pthread_cond_clockwait` (POSIX 2024).
///
/// # Safety
/// As for `ww_cond_wait_robust`; `abs_timeout` is NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_clockwait_robust(
    cond: *mut ww_cond_t,
    mutex: *mut ww_robust_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: NULL or a time, by this function's contract; the rest it forwards.
    answer(|| unsafe {
        let deadline = deadline(self::clock(clock)?, abs_timeout)?;
        wait_robust(cond, mutex, Some(&deadline))
    })
}

/// # Safety
/// As for `ww_cond_wait_robust`.
unsafe fn wait_robust(
    cond: *mut ww_cond_t,
    mutex: *mut ww_robust_mutex_t,
    deadline: Option<&Deadline>,
) -> Result<(), Number> {
    // SAFETY: NULL or a robust mutex, and NULL or a condition variable, by this function's
    // contract: what `object` asks.
    let (mutex, cond): (&RawRobustMutex, &RawCondvar) = unsafe { (object(mutex)?, object(cond)?) };
    // SAFETY: the mutex stays where it is while it is held, by this function's contract and its
    // type's. If the caller does not hold it, the call says so.
    let (locked, timeout) = unsafe { cond.wait_raw_robust(mutex, deadline) }?;
    match (locked, timeout.timed_out()) {
        (RobustLocked::OwnerDied, _) => Err(Number(libc::EOWNERDEAD)),
        (RobustLocked::Clean, true) => Err(Number(libc::ETIMEDOUT)),
        (RobustLocked::Clean, false) => Ok(()),
    }
}

/// Signals the thread that has waited longest, if any waits. The caller may hold the mutex or not.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_cond_signal`.
///
/// # Safety
/// `cond` is NULL or a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_signal(cond: *mut ww_cond_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a condition variable, by this function's contract: what `object` asks.
        unsafe { object::<_, RawCondvar>(cond) }?.notify_one();
        Ok(())
    })
}

/// Signals all threads that wait; each goes on as it gets the mutex. The caller may hold the mutex or not.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_cond_broadcast`.
///
/// # Safety
/// `cond` is NULL or a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_broadcast(cond: *mut ww_cond_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a condition variable, by this function's contract: what `object` asks.
        unsafe { object::<_, RawCondvar>(cond) }?.notify_all();
        Ok(())
    })
}
