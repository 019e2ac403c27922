//! `ww_sem_t`: the functions of `sem_t`, in eight bytes, with pthreads' way of returning errors.

use crate::call::{INVALID, Number, answer, clock, deadline, object, put, scope_alone};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Error, Semaphore};

/// A semaphore: 8 bytes, all zero when it is private and its value is 0. Initialise it with
/// `WW_SEM_INITIALIZER(value)` or `ww_sem_init`.
///
/// Once a wait has returned, the semaphore may be freed, even while the post that ended the wait is
/// still returning. Signal handlers may call the post and trywait functions. A forked child has a
/// copy with the same value and no waiters.
///
/// All its functions return 0 or an error number, where those of `sem_t` return -1 and set `errno`.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_sem {
    /// Private to the library.
    pub word_: u64,
}

/// A semaphore.
#[allow(non_camel_case_types)] // C's name.
pub type ww_sem_t = ww_sem;

/// Initialises a semaphore with this value. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs
/// no call: use `WW_SEM_INITIALIZER(value)`.
///
/// Errors:
/// - `EINVAL`: `sem` is NULL or misaligned; unknown flags; the value is above `WW_SEM_VALUE_MAX`.
///
/// Does not block. Nothing is allocated. Modelled on `sem_init`.
///
/// # Safety
/// `sem` must be NULL or point to memory for a semaphore that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_init(sem: *mut ww_sem_t, flags: c_uint, value: c_uint) -> c_int {
    answer(|| {
        let semaphore = Semaphore::try_with_scope(value, scope_alone(flags)?)?;
        // SAFETY: by this function's contract, NULL or memory for a semaphore that is not in use,
        // as `put` requires.
        unsafe { put(sem, semaphore) }
    })
}

/// Does nothing, because a semaphore needs no clean-up. Provided for symmetry.
///
/// Errors:
/// - `EINVAL`: `sem` is NULL or misaligned.
///
/// Does not block. Modelled on `sem_destroy`.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_destroy(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
    answer(|| unsafe { object::<_, Semaphore>(sem) }.map(drop))
}

/// Decrements the value by one, waiting until that is possible.
///
/// Errors:
/// - `EINTR`: a signal handler ran that was installed without `SA_RESTART`. The value is unchanged.
///   Call again, unless the signal is what you waited for.
/// - `EINVAL`: `sem` is NULL or misaligned.
///
/// Blocks. Not a cancellation point. Modelled on `sem_wait`, but returns the error number: where
/// `while (sem_wait(s) == -1 && errno == EINTR);` was, write `while (ww_sem_wait(s) == EINTR);`. If
/// the semaphore is process-shared and a process is killed that was just woken for it, the other
/// waiters check the value again within a second; before Linux 5.16 they sleep until the next post.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_wait(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
    answer(|| Ok(unsafe { object::<_, Semaphore>(sem) }?.wait_interruptible(None)?))
}

/// Decrements the value by one if it can do so without waiting.
///
/// Errors:
/// - `EAGAIN`: the value is 0.
/// - `EINVAL`: `sem` is NULL or misaligned.
///
/// Does not block. Async-signal-safe. Modelled on `sem_trywait`, but returns the error number.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_trywait(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
    answer(|| match unsafe { object::<_, Semaphore>(sem) }?.try_wait() {
        true => Ok(()),
        false => Err(Number(libc::EAGAIN)),
    })
}

/// `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_sem_clockwait` with that clock.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_timedwait(
    sem: *mut ww_sem_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_sem_clockwait(sem, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_sem_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC`
/// or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired. The value is unchanged.
/// - `EINTR`: a signal handler ran; in most cases also one that was installed with `SA_RESTART`.
/// - `EINVAL`: `sem` is NULL or misaligned; `clock` is another clock; the call would wait, and
///   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
///
/// Blocks. Not a cancellation point. Modelled on `sem_clockwait` (POSIX 2024).
///
/// # Safety
/// `sem` must be NULL or point to a semaphore, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_clockwait(
    sem: *mut ww_sem_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
        let semaphore: &Semaphore = unsafe { object(sem) }?;
        if semaphore.try_wait() {
            return Ok(());
        }
        // SAFETY: by this function's contract, NULL or a time, as `deadline` requires.
        let deadline = unsafe { deadline(clock, abs_timeout) }?;
        semaphore.wait_interruptible(Some(deadline)).map_err(Error::into)
    })
}

/// Increments the value by one, and wakes a waiter if there is one.
///
/// Errors:
/// - `EOVERFLOW`: the value is `WW_SEM_VALUE_MAX`.
/// - `EINVAL`: `sem` is NULL or misaligned.
///
/// Does not block. Async-signal-safe. Modelled on `sem_post`.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_post(sem: *mut ww_sem_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
    answer(|| Ok(unsafe { object::<_, Semaphore>(sem) }?.post()?))
}

/// Increments the value by `count` in one step, and wakes up to that many waiters.
///
/// Errors:
/// - `EOVERFLOW`: the value would rise above `WW_SEM_VALUE_MAX`. It is unchanged.
/// - `EINVAL`: `sem` is NULL or misaligned.
///
/// Does not block. Async-signal-safe. Modelled on C++20's `std::counting_semaphore::release`.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_post_many(sem: *mut ww_sem_t, count: c_uint) -> c_int {
    // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
    answer(|| Ok(unsafe { object::<_, Semaphore>(sem) }?.post_many(count)?))
}

/// Stores in `*value` the semaphore's value at some moment during the call; 0 if threads wait. It
/// may have changed before the caller sees it.
///
/// Errors:
/// - `EINVAL`: `sem` or `value` is NULL or misaligned.
///
/// Does not block. Async-signal-safe. Modelled on `sem_getvalue`.
///
/// # Safety
/// `sem` must be NULL or point to a semaphore, `value` NULL or point to a writable `int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_sem_getvalue(sem: *mut ww_sem_t, value: *mut c_int) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a semaphore, as `object` requires.
        let now = unsafe { object::<_, Semaphore>(sem) }?.value();
        if value.is_null() || !value.is_aligned() {
            return Err(INVALID);
        }
        // SAFETY: not NULL, so by this function's contract a writable `int`, and it is aligned. The
        // value fits: `WW_SEM_VALUE_MAX` is an `int`.
        unsafe { value.write(now as c_int) };
        Ok(())
    })
}
