//! `ww_robust_mutex_t`: a mutex whose holder may die.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put};
use crate::lock_flags::{WW_MUTEX_PRIO_INHERIT, WW_PROCESS_SHARED};
use crate::mutex::kind;
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Kind, RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};

/// A robust mutex: 40 bytes, all zero when it is unlocked and normal. Initialise it with
/// `WW_ROBUST_MUTEX_INITIALIZER` or `ww_robust_mutex_init`.
///
/// The holder may die: its process is killed, or its thread ends without unlocking. The next lock
/// then returns `EOWNERDEAD`, and its caller holds the mutex. It must repair the protected data and
/// then call `ww_robust_mutex_consistent`. If it unlocks without that call, the mutex can never be
/// locked again (`ENOTRECOVERABLE`).
///
/// It may lie in private or in shared memory; there is no difference. While a thread holds it, it
/// must stay mapped at its address, because the kernel finds the mutexes of a dead thread through a
/// list that leads through each of them. It works with a process-shared `ww_cond_t`
/// (`ww_cond_wait_robust`). None of its functions may be called from a signal handler. A forked
/// child holds none of its parent's robust mutexes.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_robust_mutex {
    /// Private to the library.
    pub words_: [u64; 5],
}

/// A robust mutex.
#[allow(non_camel_case_types)] // C's name.
pub type ww_robust_mutex_t = ww_robust_mutex;

const OWNER_DIED: Number = Number(libc::EOWNERDEAD);

fn locked(result: Result<RobustLocked, RobustError>) -> Result<(), Number> {
    match result? {
        RobustLocked::Clean => Ok(()),
        RobustLocked::OwnerDied => Err(OWNER_DIED),
    }
}

/// Initialises an unlocked robust mutex. `flags`: `WW_MUTEX_RECURSIVE` or `WW_MUTEX_ERRORCHECK`,
/// and `WW_MUTEX_PRIO_INHERIT`. `WW_PROCESS_SHARED` is accepted and makes no difference.
///
/// Errors:
/// - `EINVAL`: `mutex` is NULL or misaligned; unknown flags, or another flavour.
///
/// Does not block. Nothing is allocated. Modelled on `pthread_mutex_init` with
/// `PTHREAD_MUTEX_ROBUST`.
///
/// # Safety
/// `mutex` must be NULL or point to memory for a robust mutex that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_init(
    mutex: *mut ww_robust_mutex_t,
    flags: c_uint,
) -> c_int {
    answer(|| {
        let kind = match kind(flags)? {
            Kind::Normal => RobustKind::Normal,
            Kind::Recursive => RobustKind::Recursive,
            Kind::ErrorChecking => RobustKind::ErrorChecking,
        };
        let protocol = match flags & !(0xf | WW_PROCESS_SHARED) {
            0 => RobustProtocol::None,
            WW_MUTEX_PRIO_INHERIT => RobustProtocol::Inherit,
            _ => return Err(INVALID),
        };
        // SAFETY: by this function's contract, NULL or memory for a robust mutex that is not in
        // use, as `put` requires.
        unsafe { put(mutex, RawRobustMutex::new(kind, protocol)) }
    })
}

/// Checks that the mutex may be freed. It needs no other clean-up.
///
/// Errors:
/// - `EBUSY`: a thread holds it.
/// - `EINVAL`: `mutex` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_mutex_destroy`.
///
/// # Safety
/// `mutex` must be NULL or point to a robust mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_destroy(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a robust mutex, as `object` requires.
    answer(|| match unsafe { object::<_, RawRobustMutex>(mutex) }?.is_locked() {
        true => Err(Number(libc::EBUSY)),
        false => Ok(()),
    })
}

/// Locks the mutex, waiting as long as necessary. Signal handlers do not end the wait.
///
/// Errors:
/// - `EOWNERDEAD`: **the caller holds it**, and is the first to do so since a holder died.
/// - `ENOTRECOVERABLE`: a caller that got `EOWNERDEAD` has unlocked it without
///   `ww_robust_mutex_consistent`.
/// - `EDEADLK`: error-checking, and the caller holds it; or priority-inheriting, and the caller
///   holds it or a cycle of holders waiting for each other would form.
/// - `EAGAIN`: recursive, and locked the maximum number of times, 2^32 - 1.
/// - `ENOTSUP`: not possible with this C library or kernel.
/// - `EINVAL`: `mutex` is NULL or misaligned.
/// - Priority-inheriting only: `ENOMEM`, and the kernel's errors.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_mutex_lock` of a robust mutex.
///
/// # Safety
/// `mutex` must be NULL or point to a robust mutex that stays at its address until it is unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_lock(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a robust mutex that stays at its address until
    // it is unlocked.
    answer(|| locked(unsafe { object::<_, RawRobustMutex>(mutex)?.lock() }))
}

/// Locks the mutex if it can do so without waiting.
///
/// Errors:
/// - `EBUSY`: a thread holds it; if it is not recursive, also if that thread is the caller.
/// - `EOWNERDEAD` (the caller holds it) and the others except `EDEADLK`: as `ww_robust_mutex_lock`.
///
/// Does not block. Modelled on `pthread_mutex_trylock` of a robust mutex.
///
/// # Safety
/// As for `ww_robust_mutex_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_trylock(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a robust mutex that stays at its address until
    // it is unlocked.
    answer(|| locked(unsafe { object::<_, RawRobustMutex>(mutex)?.try_lock() }))
}

/// Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on
/// `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_robust_mutex_clocklock` with that clock.
///
/// # Safety
/// As for `ww_robust_mutex_lock`. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_timedlock(
    mutex: *mut ww_robust_mutex_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_robust_mutex_clocklock(mutex, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks the mutex, waiting until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `clock` is another clock; the call would wait, and `abs_timeout` is NULL or its
///   nanoseconds are not in [0, 10^9).
/// - `EOWNERDEAD` (the caller holds it) and the others: as `ww_robust_mutex_lock`.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_mutex_clocklock` of a robust mutex.
///
/// # Safety
/// As for `ww_robust_mutex_lock`. `abs_timeout` must be NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_clocklock(
    mutex: *mut ww_robust_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a robust mutex that stays at its address
        // until it is unlocked, and NULL or a time.
        unsafe {
            let mutex: &RawRobustMutex = object(mutex)?;
            locked(match mutex.try_lock() {
                Err(RobustError::Busy) => match deadline(clock, abs_timeout) {
                    Ok(deadline) => mutex.lock_until(deadline),
                    // The call would not have waited.
                    Err(_) if mutex.would_deadlock() => Err(RobustError::Deadlock),
                    Err(invalid) => return Err(invalid),
                },
                done => done,
            })
        }
    })
}

/// Unlocks the mutex. If the caller's lock returned `EOWNERDEAD` and it has not called
/// `ww_robust_mutex_consistent` since, the mutex can never be locked again.
///
/// Errors:
/// - `EPERM`: the caller does not hold it.
/// - `EINVAL`: `mutex` is NULL or misaligned.
///
/// Does not block. Modelled on `pthread_mutex_unlock` of a robust mutex.
///
/// # Safety
/// `mutex` must be NULL or point to a robust mutex. If the mutex records the caller's thread number
/// as its owner, the caller must have locked it. (A thread that has ended may have had that number
/// and left the mutex locked: it held more than 2048 robust mutexes, or it held this one in a
/// process of which this one is a fork.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_unlock(mutex: *mut ww_robust_mutex_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a robust mutex, as `object` requires.
        let mutex: &RawRobustMutex = unsafe { object(mutex) }?;
        // SAFETY: by this function's contract, a mutex that records the caller's number is held by
        // the caller.
        Ok(unsafe { mutex.unlock() }?)
    })
}

/// Declares that the protected data has been repaired after a holder's death. The caller still
/// holds the mutex.
///
/// Errors:
/// - `EINVAL`: `mutex` is NULL or misaligned; the caller does not hold it, or no holder has died.
///
/// Does not block. Modelled on `pthread_mutex_consistent`.
///
/// # Safety
/// `mutex` must be NULL or point to a robust mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_consistent(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a robust mutex, as `object` requires.
    answer(|| Ok(unsafe { object::<_, RawRobustMutex>(mutex) }?.mark_consistent()?))
}
