//! `ww_sem_t`: `sem_t`'s functions, in eight bytes, answered in pthread's way.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put, scope_alone};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Error, Semaphore};

/// A semaphore: 8 bytes, all zero when it is private and its value 0. `WW_SEM_INITIALIZER(value)`, or `ww_sem_init`.
///
/// Once a wait has returned the semaphore may be freed, also while the post that it took is still returning. Posts and trywaits
/// may be made from signal handlers. A forked child has a copy with the same value, and nobody waits there.
///
/// All its functions return 0 or an error number, where `sem_t`'s return -1 and set `errno`.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_sem {
    /// Not for you.
    pub word_: u64,
}

/// A semaphore.
#[allow(non_camel_case_types)] // C's name.
pub type ww_sem_t = ww_sem;

/// Makes a semaphore of this value. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call: `WW_SEM_INITIALIZER(value)`.
///
/// Errors:
/// - `EINVAL`: `sem` is NULL or misaligned; unknown flags; the value is above `WW_SEM_VALUE_MAX`.
///
/// Does not block. Nothing is allocated. After `sem_init`.
///
/// # Safety
/// `sem` is NULL or memory for a semaphore that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_init(sem: *mut ww_sem_t, flags: c_uint, value: c_uint) -> c_int {
    answer(|| {
        let semaphore = Semaphore::try_with_scope(value, scope_alone(flags)?)?;
        // SAFETY: NULL, or memory for a semaphore that is not in use, by this function's contract:
        // what `put` asks.
        unsafe { put(sem, semaphore) }
    })
}

/// Does nothing, since nothing needs to be done for a semaphore. Here for symmetry.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. After `sem_destroy`.
///
/// # Safety
/// `sem` is NULL or a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_destroy(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
    answer(|| unsafe { object::<_, Semaphore>(sem) }.map(drop))
}

/// Counts down by one, and waits until that can be done.
///
/// Errors:
/// - `EINTR`: a signal handler ran that was installed without `SA_RESTART`. Nothing has been counted; call again, unless that is what you
///   waited for.
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point. After `sem_wait`. If a process is killed that was just woken for a semaphore with `pshared`, others
/// look again within a second; before Linux 5.16 they sleep until the next post.
///
/// # Safety
/// `sem` is NULL or a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_wait(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, Semaphore>(sem) }?.wait_interruptible(None)?))
}

/// Counts down by one, if that needs no waiting.
///
/// Errors:
/// - `EAGAIN`: the value is 0.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe. After `sem_trywait`.
///
/// # Safety
/// `sem` is NULL or a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_trywait(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
    answer(
        || match unsafe { object::<_, Semaphore>(sem) }?.try_wait() {
            true => Ok(()),
            false => Err(Number(libc::EAGAIN)),
        },
    )
}

/// `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_sem_clockwait` with that clock, in all else.
///
/// # Safety
/// `sem` is NULL or a semaphore, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_timedwait(
    sem: *mut ww_sem_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_sem_clockwait(sem, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is looked
/// at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first. Nothing has been counted.
/// - `EINTR`: a signal handler ran; in most cases also one that was installed with `SA_RESTART`.
/// - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
///   10^9.
///
/// Blocks. Not a cancellation point. After `sem_clockwait` (POSIX 2024).
///
/// # Safety
/// `sem` is NULL or a semaphore, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_clockwait(
    sem: *mut ww_sem_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
        let semaphore: &Semaphore = unsafe { object(sem) }?;
        if semaphore.try_wait() {
            return Ok(());
        }
        // SAFETY: NULL or a time, by this function's contract.
        let deadline = unsafe { deadline(clock, abs_timeout) }?;
        semaphore
            .wait_interruptible(Some(deadline))
            .map_err(Error::into)
    })
}

/// Counts up by one, and wakes a waiter if there is any.
///
/// Errors:
/// - `EOVERFLOW`: the value is `WW_SEM_VALUE_MAX`.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe. After `sem_post`.
///
/// # Safety
/// `sem` is NULL or a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_post(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, Semaphore>(sem) }?.post()?))
}

/// Counts up by `count` in one step, and wakes as many waiters, if there are so many.
///
/// Errors:
/// - `EOVERFLOW`: the value would rise above `WW_SEM_VALUE_MAX`. It is as it was.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe. After C++20's `std::counting_semaphore::release`.
///
/// # Safety
/// `sem` is NULL or a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_post_many(sem: *mut ww_sem_t, count: c_uint) -> c_int {
    // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, Semaphore>(sem) }?.post_many(count)?))
}

/// Writes the value at some moment during the call to `value`: 0 if anybody waits. It may have changed before the caller sees it.
///
/// Errors:
/// - `EINVAL`: `sem` is NULL or misaligned, or `value` is.
///
/// Does not block. Async-signal-safe. After `sem_getvalue`.
///
/// # Safety
/// `sem` is NULL or a semaphore, `value` NULL or an `int` that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_getvalue(sem: *mut ww_sem_t, value: *mut c_int) -> c_int {
    answer(|| {
        // SAFETY: NULL or a semaphore, by this function's contract: what `object` asks.
        let now = unsafe { object::<_, Semaphore>(sem) }?.value();
        if value.is_null() || !value.is_aligned() {
            return Err(INVALID);
        }
        // SAFETY: not NULL, so an `int` that can be written, by this function's contract; it is
        // aligned. A value fits: `WW_SEM_VALUE_MAX` is an `int`.
        unsafe { value.write(now as c_int) };
        Ok(())
    })
}
