//! `ww_latch_t`: counted down once, and open from then on.

use crate::call::{Number, answer, clock, deadline, object, put, scope_alone};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::Latch;

/// A latch: 4 bytes, all zero when it is private and open. `WW_LATCH_INITIALIZER(count)`, or `ww_latch_init`.
///
/// What a thread did before it counted down is visible to all whose wait has returned. Once all waits have returned the latch may be
/// freed, also while a `ww_latch_count_down` is still returning. Counting down and `ww_latch_trywait` may be done from signal
/// handlers. After C++20's `std::latch`.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_latch {
    /// Not for you.
    pub word_: u32,
}

/// A latch.
#[allow(non_camel_case_types)] // C's name.
pub type ww_latch_t = ww_latch;

/// Makes a latch that is to be counted down so often; 0 is open. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call:
/// `WW_LATCH_INITIALIZER(count)`.
///
/// Errors:
/// - `EINVAL`: `latch` is NULL or misaligned; unknown flags; the count is above `WW_LATCH_COUNT_MAX`.
///
/// Does not block. Nothing is allocated.
///
/// # Safety
/// `latch` is NULL or memory for a latch that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_init(
    latch: *mut ww_latch_t,
    flags: c_uint,
    count: c_uint,
) -> c_int {
    answer(|| {
        let made = Latch::try_with_scope(count, scope_alone(flags)?)?;
        // SAFETY: NULL, or memory for a latch that is not in use, by this function's contract: what
        // `put` asks.
        unsafe { put(latch, made) }
    })
}

/// Does nothing, since nothing needs to be done for a latch. Here for symmetry.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `latch` is NULL or a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_destroy(latch: *mut ww_latch_t) -> c_int {
    // SAFETY: NULL or a latch, by this function's contract: what `object` asks.
    answer(|| unsafe { object::<_, Latch>(latch) }.map(drop))
}

/// Counts `count` off, and lets all go on who wait if nothing is left.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned; less is left than `count`. The latch is as it was.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `latch` is NULL or a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_count_down(latch: *mut ww_latch_t, count: c_uint) -> c_int {
    // SAFETY: NULL or a latch, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, Latch>(latch) }?.count_down(count)?))
}

/// Counts one off and waits until the latch is open.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned; the latch was open already. It does not wait.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `latch` is NULL or a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_arrive_and_wait(latch: *mut ww_latch_t) -> c_int {
    // SAFETY: NULL or a latch, by this function's contract: what `object` asks.
    answer(|| Ok(unsafe { object::<_, Latch>(latch) }?.arrive_and_wait()?))
}

/// Waits until the latch is open. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `latch` is NULL or a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_wait(latch: *mut ww_latch_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or a latch, by this function's contract: what `object` asks.
        unsafe { object::<_, Latch>(latch) }?.wait();
        Ok(())
    })
}

/// 0 if the latch is open.
///
/// Errors:
/// - `EAGAIN`: it is not.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `latch` is NULL or a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_trywait(latch: *mut ww_latch_t) -> c_int {
    // SAFETY: NULL or a latch, by this function's contract: what `object` asks.
    answer(|| match unsafe { object::<_, Latch>(latch) }?.try_wait() {
        true => Ok(()),
        false => Err(Number(libc::EAGAIN)),
    })
}

/// `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_latch_clockwait` with that clock, in all else.
///
/// # Safety
/// `latch` is NULL or a latch, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_timedwait(
    latch: *mut ww_latch_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_latch_clockwait(latch, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_latch_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is
/// looked at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
///   10^9.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `latch` is NULL or a latch, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_latch_clockwait(
    latch: *mut ww_latch_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or a latch, by this function's contract: what `object` asks.
        let latch: &Latch = unsafe { object(latch) }?;
        // SAFETY: NULL or a time, by this function's contract.
        if latch.try_wait() || latch.wait_until(unsafe { deadline(clock, abs_timeout) }?) {
            Ok(())
        } else {
            Err(Number(libc::ETIMEDOUT))
        }
    })
}
