//! `ww_mutex_t`: `pthread_mutex_t`'s functions, in eight bytes.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put, scope};
use crate::lock_flags::{
    WW_MUTEX_ADAPTIVE, WW_MUTEX_ERRORCHECK, WW_MUTEX_NORMAL, WW_MUTEX_PRIO_INHERIT,
    WW_MUTEX_RECURSIVE, WW_MUTEX_THROUGHPUT, WW_MUTEX_WAIT_WAKE, WW_PROCESS_SHARED,
};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Kind, LockError, PosixFlavour, PosixMutexOptions, RawPosixMutex};

/// A mutex: 8 bytes, all zero when it is free, private, normal and adaptive. `WW_MUTEX_INITIALIZER`, or `ww_mutex_init`.
///
/// It may be destroyed, freed or unmapped by whoever locked and unlocked it last, also while the unlock before that is
/// still returning. None of its functions is for signal handlers. After `fork` the child's copy is held if the
/// parent's was; the child may unlock what the forking thread held, unless it keeps its owner (recursive, error-checking,
/// priority-inheriting), since the child's thread is another one. If a process is killed while it holds a shared one, it stays held;
/// a `ww_robust_mutex_t` does not.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_mutex {
    /// Not for you.
    pub words_: [u32; 2],
}

/// A mutex.
#[allow(non_camel_case_types)] // C's name.
pub type ww_mutex_t = ww_mutex;

/// The kind that `flags` say, for plain and robust mutexes alike.
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
    Ok(PosixMutexOptions::new()
        .flavour(flavour)
        .kind(kind(flags)?)
        .scope(scope(flags)))
}

/// Makes a free mutex. `flags`: a kind, a flavour and a scope, each 0 if left out: `WW_MUTEX_RECURSIVE` or
/// `WW_MUTEX_ERRORCHECK`, with `WW_MUTEX_THROUGHPUT`, `WW_MUTEX_WAIT_WAKE` or `WW_MUTEX_PRIO_INHERIT`, with
/// `WW_PROCESS_SHARED`.
///
/// A static one needs no call: `WW_MUTEX_INITIALIZER`, or `WW_MUTEX_INITIALIZER_WITH(flags)`.
///
/// Errors:
/// - `EINVAL`: `mutex` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated. After `pthread_mutex_init`, with flags in place of attribute objects.
///
/// # Safety
/// `mutex` is NULL or memory for a mutex that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_init(mutex: *mut ww_mutex_t, flags: c_uint) -> c_int {
    // SAFETY: NULL, or memory for a mutex that is not in use, by this function's contract: what
    // `put` asks.
    answer(|| unsafe { put(mutex, options(flags)?.build_raw()) })
}

/// Says that the mutex will not be used any more: later calls give `EINVAL`, where that can be seen, until it is made
/// anew. Nothing else needs to be done for a mutex, and its memory may as well be freed without this.
///
/// Errors:
/// - `EBUSY`: somebody holds it or waits for it.
/// - `EINVAL`: NULL or misaligned; destroyed already.
///
/// Does not block. After `pthread_mutex_destroy`.
///
/// # Safety
/// `mutex` is NULL or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_destroy(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: NULL or a mutex, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex) }?.destroy()?))
}

/// Locks the mutex, and waits for that as long as it takes. Signal handlers do not end the wait.
///
/// Errors:
/// - `EDEADLK`: error-checking or priority-inheriting, and the caller holds it; priority-inheriting, and holders would wait for each
///   other in a ring.
/// - `EAGAIN`: recursive, and locked 65,536 times.
/// - `EINVAL`: NULL or misaligned; destroyed.
/// - Priority-inheriting only: `ESRCH`, its holder has ended without unlocking it; `ENOMEM`; `ENOSYS`.
///
/// Blocks. Not a cancellation point. After `pthread_mutex_lock`.
///
/// # Safety
/// `mutex` is NULL or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_lock(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: NULL or a mutex, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex) }?.lock_checked()?))
}

/// Locks the mutex if that needs no waiting.
///
/// Errors:
/// - `EBUSY`: somebody holds it, or one that is not recursive is the caller's own.
/// - `EAGAIN`, `EINVAL` and what the kernel says: as `ww_mutex_lock`.
///
/// Does not block. After `pthread_mutex_trylock`.
///
/// # Safety
/// `mutex` is NULL or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_trylock(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: NULL or a mutex, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex) }?.try_lock_checked()?))
}

/// Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_mutex_clocklock` with that clock, in all else.
///
/// # Safety
/// `mutex` is NULL or a mutex, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_timedlock(
    mutex: *mut ww_mutex_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_mutex_clocklock(mutex, libc::CLOCK_REALTIME, abs_timeout) }
}

/// Locks the mutex, and waits for that no longer than to `abs_timeout`, an absolute time on `clock` (`CLOCK_MONOTONIC` or
/// `CLOCK_REALTIME`). The time is looked at only if the call must wait: what can be had at once is had, late or not.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below 10^9.
/// - as `ww_mutex_lock`.
///
/// Blocks. Not a cancellation point. After `pthread_mutex_clocklock` (POSIX 2024).
///
/// # Safety
/// `mutex` is NULL or a mutex, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_clocklock(
    mutex: *mut ww_mutex_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a mutex, by this function's contract: what `object` asks.
        let mutex: &RawPosixMutex = unsafe { object(mutex) }?;
        match mutex.try_lock_checked() {
            // SAFETY: NULL or a time, by this function's contract.
            Err(LockError::Busy) => match unsafe { deadline(clock, abs_timeout) } {
                Ok(deadline) => Ok(mutex.lock_until(deadline)?),
                // It would not have waited.
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
/// - `EPERM`: recursive, error-checking or priority-inheriting, and the caller does not hold it. (Of others the caller must
///   hold it, or have agreed with the thread that does; that is not checked.)
/// - `EINVAL`: NULL or misaligned; destroyed.
///
/// Does not block. After `pthread_mutex_unlock`.
///
/// # Safety
/// `mutex` is NULL or a mutex; a normal one is held, and the holder has no more to do with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_unlock(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: NULL or a mutex, and one that keeps no owner is held, by this function's contract;
    // another can tell.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex)?.unlock_checked() }?))
}

/// Unlocks the mutex and gives it to the thread that has waited longest, if any waits, instead of letting a running one take it
/// first. Nobody has it while that thread wakes up, so this is for rare use. A priority-inheriting one is always
/// given so (by priority), a process-shared one never: there it is `ww_mutex_unlock`.
///
/// Errors: as `ww_mutex_unlock`.
///
/// Does not block. After WebKit's `Lock::unlockFairly`.
///
/// # Safety
/// As for `ww_mutex_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_unlock_fair(mutex: *mut ww_mutex_t) -> c_int {
    // SAFETY: NULL or a mutex, and one that keeps no owner is held, by this function's contract;
    // another can tell.
    answer(|| Ok(unsafe { object::<_, RawPosixMutex>(mutex)?.unlock_fair_checked() }?))
}

/// Gives the mutex to the thread that has waited longest, and takes it again behind that; does nothing if nobody waits. For a
/// holder that has held it for long and will go on. What it protects may have changed when this returns. A mutex that is
/// recursive, error-checking or priority-inheriting keeps its owner, and nothing is done.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `mutex` is NULL or a mutex that the caller holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_mutex_bump(mutex: *mut ww_mutex_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a mutex that the caller holds, by this function's contract.
        unsafe { object::<_, RawPosixMutex>(mutex)?.bump() };
        Ok(())
    })
}
