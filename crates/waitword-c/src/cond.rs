//! `ww_cond_t`: the functions of `pthread_cond_t`, in sixteen bytes.

use crate::call::{Number, answer, clock, deadline, object, put, scope_alone};
use crate::mutex::ww_mutex_t;
use crate::robust::ww_robust_mutex_t;
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Deadline, RawCondvar, RawPosixMutex, RawRobustMutex, RobustLocked};

/// A condition variable: 16 bytes, all zero when it is private and has no waiters. Initialise it
/// with `WW_COND_INITIALIZER` or `ww_cond_init`.
///
/// It works with any `ww_mutex_t` of the same scope. All threads that wait at one time must use the
/// same mutex. Threads are signalled in order of arrival. A signal or broadcast that finds the
/// mutex held wakes no thread: it moves the waiters to the mutex, and the mutex's unlocks wake them
/// one by one. (For shared condition variables the kernel moves the waiters, as far as it can. With
/// a priority-inheriting mutex each signal wakes a thread, the one with the highest priority
/// first.)
///
/// A private one may be freed as soon as all waiters have been signalled; a shared one only after
/// `ww_cond_destroy`. None of its functions may be called from a signal handler. The copy in a
/// child of `fork` has no waiters.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_cond {
    /// Private to the library.
    pub words_: [u64; 2],
}

/// A condition variable.
#[allow(non_camel_case_types)] // C's name.
pub type ww_cond_t = ww_cond;

/// Initialises a condition variable. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call:
/// use `WW_COND_INITIALIZER`.
///
/// There is no clock attribute: `ww_cond_timedwait` uses `CLOCK_REALTIME`, `ww_cond_clockwait`
/// either clock.
///
/// Errors:
/// - `EINVAL`: `cond` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated. Modelled on `pthread_cond_init`.
///
/// # Safety
/// `cond` must be NULL or point to memory for a condition variable that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_init(cond: *mut ww_cond_t, flags: c_uint) -> c_int {
    // SAFETY: by this function's contract, NULL or memory for a condition variable that is not in
    // use, as `put` requires.
    answer(|| unsafe { put(cond, RawCondvar::with_scope(scope_alone(flags)?)) })
}

/// Waits until no thread uses the condition variable. A private one without waiters does not need
/// this call. For a shared one, the call waits until all signalled threads have left it.
///
/// Errors:
/// - `EBUSY`: it is private, and threads wait on it.
/// - `EINVAL`: `cond` is NULL or misaligned.
///
/// Blocks, if it is shared, until the signalled threads have left. Not a cancellation point.
/// Modelled on `pthread_cond_destroy`.
///
/// # Safety
/// `cond` must be NULL or point to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_destroy(cond: *mut ww_cond_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a condition variable, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawCondvar>(cond) }?.destroy()?))
}

/// Unlocks `mutex`, waits to be signalled, and locks `mutex` again. Wake-ups may be spurious: check
/// the condition that you wait for again. A signal or broadcast finds every thread that is waiting
/// when it is sent.
///
/// If a recursive mutex is locked more than once, the wait releases only one level, so the mutex
/// stays locked. A signal handler either does not end the wait or ends it spuriously; the call
/// never returns `EINTR`.
///
/// Errors:
/// - `EPERM`: the mutex is recursive, error-checking or priority-inheriting, and the caller does
///   not hold it.
/// - `EINVAL`: `cond` or `mutex` is NULL or misaligned; other threads wait here with another mutex.
///   The mutex is still locked.
/// - `EDEADLK`, `ESRCH`, `ENOMEM` and the other errors of `ww_mutex_lock`: the mutex is
///   priority-inheriting and could not be locked again. The caller does **not** hold it.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_cond_wait`.
///
/// # Safety
/// `cond` must be NULL or point to a condition variable, `mutex` NULL or point to a mutex that the
/// caller holds. Both must live until all threads have returned from this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_wait(cond: *mut ww_cond_t, mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a condition variable, and NULL or a mutex that
    // the caller holds. The contract does not require that all waiters use one mutex: a wait with a
    // second one is refused, or else the signals for one or the other wake too few threads.
    answer(|| unsafe {
        let mutex = object::<_, RawPosixMutex>(mutex)?;
        Ok(object::<_, RawCondvar>(cond)?.wait(mutex, None)?)
    })
}

/// `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_cond_clockwait` with that clock.
///
/// # Safety
/// As for `ww_cond_wait`. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_timedwait(
    cond: *mut ww_cond_t,
    mutex: *mut ww_mutex_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_cond_clockwait(cond, mutex, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_cond_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC`
/// or `CLOCK_REALTIME`).
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired. The mutex is locked again. If the condition variable is
///   private, the caller has consumed no signal; if it is shared, the caller may have consumed one.
/// - `EINVAL`: `clock` is another clock; `abs_timeout` is NULL or its nanoseconds are not in [0,
///   10^9). Nothing has been done.
/// - Those of `ww_cond_wait`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_cond_clockwait` (POSIX 2024).
///
/// # Safety
/// As for `ww_cond_wait`. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_clockwait(
    cond: *mut ww_cond_t,
    mutex: *mut ww_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: by this function's contract, what `ww_cond_wait` requires, and NULL or a time. A wait
    // with a second mutex is refused, or else the signals for one or the other wake too few
    // threads.
    answer(|| unsafe {
        let deadline = deadline(self::clock(clock)?, abs_timeout)?;
        let mutex = object::<_, RawPosixMutex>(mutex)?;
        Ok(object::<_, RawCondvar>(cond)?.wait(mutex, Some(&deadline))?)
    })
}

/// `ww_cond_wait` with a robust mutex, on a condition variable with `WW_PROCESS_SHARED`. A
/// broadcast wakes all threads that wait this way.
///
/// Errors:
/// - `EOWNERDEAD`: **the mutex is locked again**, and the caller is the first to hold it since a
///   holder died.
/// - `ENOTRECOVERABLE`: the mutex can never be locked again, and is not locked.
/// - `EPERM`: the caller does not hold the mutex.
/// - `ENOTSUP`: the condition variable is private. The mutex is still locked.
/// - `EINVAL`: `cond` or `mutex` is NULL or misaligned.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_cond_wait`. If a process was killed while
/// it waited on the condition variable, do not destroy the condition variable; initialise a new
/// one.
///
/// # Safety
/// `cond` must be NULL or point to a condition variable, `mutex` NULL or point to a robust mutex.
/// Both must live until all threads have returned from this call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_wait_robust(
    cond: *mut ww_cond_t,
    mutex: *mut ww_robust_mutex_t,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    answer(|| unsafe { wait_robust(cond, mutex, None) })
}

/// `ww_cond_wait_robust` until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`).
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired. The mutex is locked again. (`EOWNERDEAD` takes precedence.)
/// - `EINVAL`: `clock` is another clock; `abs_timeout` is NULL or its nanoseconds are not in [0,
///   10^9). Nothing has been done.
/// - Those of `ww_cond_wait_robust`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_cond_clockwait` (POSIX 2024).
///
/// # Safety
/// As for `ww_cond_wait_robust`. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_clockwait_robust(
    cond: *mut ww_cond_t,
    mutex: *mut ww_robust_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: by this function's contract, NULL or a time; the rest of the contract is forwarded.
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
    // SAFETY: by this function's contract, NULL or a robust mutex, and NULL or a condition
    // variable, as `object` requires.
    let (mutex, cond): (&RawRobustMutex, &RawCondvar) = unsafe { (object(mutex)?, object(cond)?) };
    // SAFETY: the mutex stays at its address while it is held, by this function's contract and the
    // contract of its type. If the caller does not hold it, the call returns an error.
    let (locked, timeout) = unsafe { cond.wait_raw_robust(mutex, deadline) }?;
    match (locked, timeout.timed_out()) {
        (RobustLocked::OwnerDied, _) => Err(Number(libc::EOWNERDEAD)),
        (RobustLocked::Clean, true) => Err(Number(libc::ETIMEDOUT)),
        (RobustLocked::Clean, false) => Ok(()),
    }
}

/// Signals the thread that has waited longest, if any. The caller need not hold the mutex.
///
/// Errors:
/// - `EINVAL`: `cond` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_cond_signal`.
///
/// # Safety
/// `cond` must be NULL or point to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_signal(cond: *mut ww_cond_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a condition variable, as `object` requires.
        unsafe { object::<_, RawCondvar>(cond) }?.notify_one();
        Ok(())
    })
}

/// Signals all waiting threads. Each of them continues once it gets the mutex. The caller need not
/// hold the mutex.
///
/// Errors:
/// - `EINVAL`: `cond` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_cond_broadcast`.
///
/// # Safety
/// `cond` must be NULL or point to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_cond_broadcast(cond: *mut ww_cond_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a condition variable, as `object` requires.
        unsafe { object::<_, RawCondvar>(cond) }?.notify_all();
        Ok(())
    })
}
