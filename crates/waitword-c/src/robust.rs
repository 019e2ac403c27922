//! `ww_robust_mutex_t`: a mutex whose holder may die.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put};
use crate::lock_flags::{WW_MUTEX_PRIO_INHERIT, WW_PROCESS_SHARED};
use crate::mutex::kind;
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Kind, RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol};

/// A robust mutex: 40 bytes, all zero when it is free and normal. `WW_ROBUST_MUTEX_INITIALIZER`, or `ww_robust_mutex_init`.
///
/// Whoever holds one may die: its process is killed, or its thread ends without unlocking. Then the next to lock it is told
/// `EOWNERDEAD`, holds it, repairs what it protects, and says so by `ww_robust_mutex_consistent`. If it unlocks without that,
/// nobody can lock it any more (`ENOTRECOVERABLE`).
///
/// It may lie in memory that several processes map, or not; there is no difference. It stays where it is, mapped, while
/// anybody holds it: the thread that does is known to the kernel by a list that leads through it. It works with a process-shared
/// `ww_cond_t` (`ww_cond_wait_robust`). None of its functions is for signal handlers. A forked child holds none of its parent's.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_robust_mutex {
    /// Not for you.
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

/// Makes a free robust mutex. `flags`: `WW_MUTEX_RECURSIVE` or `WW_MUTEX_ERRORCHECK`, and `WW_MUTEX_PRIO_INHERIT`; `WW_PROCESS_SHARED` is
/// taken, and makes no difference.
///
/// Errors:
/// - `EINVAL`: `mutex` is NULL or misaligned; unknown flags, or another flavour.
///
/// Does not block. Nothing is allocated. After `pthread_mutex_init` with `PTHREAD_MUTEX_ROBUST`.
///
/// # Safety
/// `mutex` is NULL or memory for a robust mutex that nobody uses.
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
        // SAFETY: NULL, or memory for a robust mutex that is not in use, by this function's
        // contract: what `put` asks.
        unsafe { put(mutex, RawRobustMutex::new(kind, protocol)) }
    })
}

/// Says whether the mutex may be freed. Nothing else needs to be done for it.
///
/// Errors:
/// - `EBUSY`: somebody holds it.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_mutex_destroy`.
///
/// # Safety
/// `mutex` is NULL or a robust mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_destroy(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: NULL or a robust mutex, by this function's contract: what `object` asks.
    answer(
        || match unsafe { object::<_, RawRobustMutex>(mutex) }?.is_locked() {
            true => Err(Number(libc::EBUSY)),
            false => Ok(()),
        },
    )
}

/// Locks the mutex, and waits for that as long as it takes. Signal handlers do not end the wait.
///
/// Errors:
/// - `EOWNERDEAD`: **the caller holds it**, and is the first to do so since a holder has died.
/// - `ENOTRECOVERABLE`: somebody who was told that has unlocked it without `ww_robust_mutex_consistent`.
/// - `EDEADLK`: error-checking, and the caller holds it; priority-inheriting, and it does, or holders would wait for each
///   other in a ring.
/// - `EAGAIN`: recursive, and locked as many times as can be counted, 2^32 - 1.
/// - `ENOTSUP`: this C library or kernel has no place for it.
/// - `EINVAL`: NULL or misaligned.
/// - Priority-inheriting only: `ENOMEM`, and what the kernel says.
///
/// Blocks. Not a cancellation point. After `pthread_mutex_lock` of a robust mutex.
///
/// # Safety
/// `mutex` is NULL or a robust mutex, which stays where it is until it is unlocked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_lock(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: NULL or a robust mutex, which stays where it is until it is unlocked, by this
    // function's contract.
    answer(|| locked(unsafe { object::<_, RawRobustMutex>(mutex)?.lock() }))
}

/// Locks the mutex if that needs no waiting.
///
/// Errors:
/// - `EBUSY`: somebody holds it, or one that is not recursive is the caller's own.
/// - `EOWNERDEAD` (the caller holds it) and the others but `EDEADLK`: as `ww_robust_mutex_lock`.
///
/// Does not block. After `pthread_mutex_trylock` of a robust mutex.
///
/// # Safety
/// As for `ww_robust_mutex_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_trylock(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: NULL or a robust mutex, which stays where it is until it is unlocked, by this
    // function's contract.
    answer(|| locked(unsafe { object::<_, RawRobustMutex>(mutex)?.try_lock() }))
}

/// Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_robust_mutex_clocklock` with that clock, in all else.
///
/// # Safety
/// As for `ww_robust_mutex_lock`; `abs_timeout` is NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_timedlock(
    mutex: *mut ww_robust_mutex_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_robust_mutex_clocklock(mutex, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
/// `CLOCK_REALTIME`). The time is looked at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
/// - `EOWNERDEAD` (the caller holds it) and the others: as `ww_robust_mutex_lock`.
///
/// Blocks. Not a cancellation point. After `pthread_mutex_clocklock` of a robust mutex.
///
/// # Safety
/// As for `ww_robust_mutex_lock`; `abs_timeout` is NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_clocklock(
    mutex: *mut ww_robust_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a robust mutex, which stays where it is until it is unlocked, and NULL or
        // a time, by this function's contract.
        unsafe {
            let mutex: &RawRobustMutex = object(mutex)?;
            locked(match mutex.try_lock() {
                Err(RobustError::Busy) => match deadline(clock, abs_timeout) {
                    Ok(deadline) => mutex.lock_until(deadline),
                    // It would not have waited.
                    Err(_) if mutex.would_deadlock() => Err(RobustError::Deadlock),
                    Err(invalid) => return Err(invalid),
                },
                done => done,
            })
        }
    })
}

/// Unlocks the mutex. If the caller was told that a holder had died, and has not said since that what was left behind is repaired, nobody
/// can lock it any more.
///
/// Errors:
/// - `EPERM`: the caller does not hold it.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `pthread_mutex_unlock` of a robust mutex.
///
/// # Safety
/// `mutex` is NULL or a robust mutex. If the caller's thread number stands in it, the caller has
/// locked it. (A thread that has ended may have had that number, and left the mutex locked: it held
/// more than 2048 robust mutexes, or held this one in a process of which this one is a fork.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_unlock(mutex: *mut ww_robust_mutex_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a robust mutex, by this function's contract: what `object` asks.
        let mutex: &RawRobustMutex = unsafe { object(mutex) }?;
        // SAFETY: that a mutex with the caller's number is the caller's own is part of this
        // function's contract.
        Ok(unsafe { mutex.unlock() }?)
    })
}

/// Says that what the mutex protects has been repaired after a holder's death. The caller goes on to hold it.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned; the caller does not hold it, or there was no death.
///
/// Does not block. After `pthread_mutex_consistent`.
///
/// # Safety
/// `mutex` is NULL or a robust mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_robust_mutex_consistent(mutex: *mut ww_robust_mutex_t) -> c_int {
    // SAFETY: NULL or a robust mutex, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawRobustMutex>(mutex) }?.mark_consistent()?))
}
