//! `ww_latch_t`: counted down once, and open from then on.

use crate::call::{Number, answer, clock, deadline, object, put, scope_alone};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::Latch;

/// A latch: 4 bytes, all zero when it is private and open. Initialise it with
/// `WW_LATCH_INITIALIZER(count)` or `ww_latch_init`.
///
/// What a thread did before it counted down is visible to every thread whose wait has returned.
/// Once all waits have returned, the latch may be freed, even while a `ww_latch_count_down` is
/// still returning. Signal handlers may call `ww_latch_count_down` and `ww_latch_trywait`. Modelled
/// on C++20's `std::latch`.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_latch {
    /// Private to the library.
    pub word_: u32,
}

/// A latch.
#[allow(non_camel_case_types)] // C's name.
pub type ww_latch_t = ww_latch;

/// Initialises a latch that is open after `count` counts; with 0 it is open at once. `flags`: 0 or
/// `WW_PROCESS_SHARED`. A static one needs no call: use `WW_LATCH_INITIALIZER(count)`.
///
/// Errors:
/// - `EINVAL`: `latch` is NULL or misaligned; unknown flags; the count is above
///   `WW_LATCH_COUNT_MAX`.
///
/// Does not block. Nothing is allocated.
///
/// # Safety
/// `latch` must be NULL or point to memory for a latch that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_init(
    latch: *mut ww_latch_t,
    flags: c_uint,
    count: c_uint,
) -> c_int {
    answer(|| {
        let made = Latch::try_with_scope(count, scope_alone(flags)?)?;
        // SAFETY: by this function's contract, NULL or memory for a latch that is not in use, as
        // `put` requires.
        unsafe { put(latch, made) }
    })
}

/// Does nothing, because a latch needs no clean-up. Provided for symmetry.
///
/// Errors:
/// - `EINVAL`: `latch` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `latch` must be NULL or point to a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_destroy(latch: *mut ww_latch_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a latch, as `object` requires.
    answer(|| unsafe { object::<_, Latch>(latch) }.map(drop))
}

/// Decrements the latch by `count`, and releases all waiting threads if it reaches 0.
///
/// Errors:
/// - `EINVAL`: `latch` is NULL or misaligned; `count` is larger than what is left. The latch is
///   unchanged.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `latch` must be NULL or point to a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_count_down(latch: *mut ww_latch_t, count: c_uint) -> c_int {
    // SAFETY: by this function's contract, NULL or a latch, as `object` requires.
    answer(|| Ok(unsafe { object::<_, Latch>(latch) }?.count_down(count)?))
}

/// Decrements the latch by one, and waits until it is open.
///
/// Errors:
/// - `EINVAL`: `latch` is NULL or misaligned; the latch was already open. The call does not wait.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `latch` must be NULL or point to a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_arrive_and_wait(latch: *mut ww_latch_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a latch, as `object` requires.
    answer(|| Ok(unsafe { object::<_, Latch>(latch) }?.arrive_and_wait()?))
}

/// Waits until the latch is open. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: `latch` is NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `latch` must be NULL or point to a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_wait(latch: *mut ww_latch_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a latch, as `object` requires.
        unsafe { object::<_, Latch>(latch) }?.wait();
        Ok(())
    })
}

/// Returns 0 if the latch is open.
///
/// Errors:
/// - `EAGAIN`: it is not open.
/// - `EINVAL`: `latch` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `latch` must be NULL or point to a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_trywait(latch: *mut ww_latch_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a latch, as `object` requires.
    answer(|| match unsafe { object::<_, Latch>(latch) }?.try_wait() {
        true => Ok(()),
        false => Err(Number(libc::EAGAIN)),
    })
}

/// `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_latch_clockwait` with that clock.
///
/// # Safety
/// `latch` must be NULL or point to a latch, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_timedwait(
    latch: *mut ww_latch_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_latch_clockwait(latch, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `latch` is NULL or misaligned; `clock` is another clock; the call would wait, and
///   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `latch` must be NULL or point to a latch, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_clockwait(
    latch: *mut ww_latch_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or a latch, as `object` requires.
        let latch: &Latch = unsafe { object(latch) }?;
        // SAFETY: by this function's contract, NULL or a time, as `deadline` requires.
        if latch.try_wait() || latch.wait_until(unsafe { deadline(clock, abs_timeout) }?) {
            Ok(())
        } else {
            Err(Number(libc::ETIMEDOUT))
        }
    })
}
