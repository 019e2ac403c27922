//! `ww_event_t`, `ww_auto_event_t`: events that stay set, and events that let one thread pass.

use crate::call::{Number, answer, clock, deadline, object, put, scope};
use crate::lock_flags::{WW_EVENT_SET, WW_PROCESS_SHARED};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{AutoEvent, Event};

/// An event that stays set until it is reset: 8 bytes, all zero when it is private and not set. `WW_EVENT_INITIALIZER`, or
/// `ww_event_init`.
///
/// What a thread did before a set is visible to whoever passes. Once all waits have returned the event may be freed, also while a set is
/// still returning. After Windows' manual-reset event.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_event {
    /// Not for you.
    pub word_: u64,
}

/// An event that stays set until it is reset.
#[allow(non_camel_case_types)] // C's name.
pub type ww_event_t = ww_event;

/// An event that resets itself, with each set letting one thread pass: 8 bytes, all zero when it is private and not set.
/// `WW_AUTO_EVENT_INITIALIZER`, or `ww_auto_event_init`.
///
/// What a thread did before a set is visible to whoever passes next. Once all waits have returned the event may be freed, also while a set
/// is still returning. After Windows' auto-reset event.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_auto_event {
    /// Not for you.
    pub word_: u64,
}

/// An event that resets itself.
#[allow(non_camel_case_types)] // C's name.
pub type ww_auto_event_t = ww_auto_event;

/// Whether `flags` say that it is set to begin with.
fn is_set(flags: c_uint) -> Result<bool, Number> {
    match flags & !(WW_EVENT_SET | WW_PROCESS_SHARED) {
        0 => Ok(flags & WW_EVENT_SET != 0),
        _ => Err(Number(libc::EINVAL)),
    }
}

fn passed(passed: bool, otherwise: c_int) -> Result<(), Number> {
    match passed {
        true => Ok(()),
        false => Err(Number(otherwise)),
    }
}

/// Makes an event. `flags`: `WW_EVENT_SET` if it is to be set, `WW_PROCESS_SHARED`. A static one needs no call:
/// `WW_EVENT_INITIALIZER`.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated.
///
/// # Safety
/// `event` is NULL or memory for an event that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_init(event: *mut ww_event_t, flags: c_uint) -> c_int {
    // SAFETY: NULL, or memory for an event that is not in use, by this function's contract: what
    // `put` asks.
    answer(|| unsafe { put(event, Event::with_scope(is_set(flags)?, scope(flags))) })
}

/// Does nothing, since nothing needs to be done for an event. Here for symmetry.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_destroy(event: *mut ww_event_t) -> c_int {
    // SAFETY: NULL or an event, by this function's contract: what `object` asks.
    answer(|| unsafe { object::<_, Event>(event) }.map(drop))
}

/// Sets the event: all who wait at this moment go on, even if it is reset at once, and so does whoever comes while it is set.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_set(event: *mut ww_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        unsafe { object::<_, Event>(event) }?.set();
        Ok(())
    })
}

/// Makes those who come from now on wait.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_reset(event: *mut ww_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        unsafe { object::<_, Event>(event) }?.reset();
        Ok(())
    })
}

/// Waits until the event is set, or was for a moment. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_wait(event: *mut ww_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        unsafe { object::<_, Event>(event) }?.wait();
        Ok(())
    })
}

/// 0 if the event is set.
///
/// Errors:
/// - `EAGAIN`: it is not.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_trywait(event: *mut ww_event_t) -> c_int {
    // SAFETY: NULL or an event, by this function's contract: what `object` asks.
    answer(|| passed(unsafe { object::<_, Event>(event) }?.is_set(), libc::EAGAIN))
}

/// `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_event_clockwait` with that clock, in all else.
///
/// # Safety
/// `event` is NULL or an event, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_timedwait(
    event: *mut ww_event_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_event_clockwait(event, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is
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
/// `event` is NULL or an event, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_clockwait(
    event: *mut ww_event_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        let event: &Event = unsafe { object(event) }?;
        // SAFETY: NULL or a time, by this function's contract.
        let came = event.is_set() || event.wait_until(unsafe { deadline(clock, abs_timeout) }?);
        passed(came, libc::ETIMEDOUT)
    })
}

/// Makes an event that resets itself. `flags`: `WW_EVENT_SET` if it is to be set, `WW_PROCESS_SHARED`. A static one needs no
/// call: `WW_AUTO_EVENT_INITIALIZER`.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated.
///
/// # Safety
/// `event` is NULL or memory for an event that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_init(event: *mut ww_auto_event_t, flags: c_uint) -> c_int {
    // SAFETY: NULL, or memory for an event that is not in use, by this function's contract: what
    // `put` asks.
    answer(|| unsafe { put(event, AutoEvent::with_scope(is_set(flags)?, scope(flags))) })
}

/// Does nothing, since nothing needs to be done for an event. Here for symmetry.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_destroy(event: *mut ww_auto_event_t) -> c_int {
    // SAFETY: NULL or an event, by this function's contract: what `object` asks.
    answer(|| unsafe { object::<_, AutoEvent>(event) }.map(drop))
}

/// Lets one thread pass: one that waits, and each further set another; if nobody waits, the next to come. While nobody waits, further
/// sets change nothing.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_set(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        unsafe { object::<_, AutoEvent>(event) }?.set();
        Ok(())
    })
}

/// Takes a set back that nobody has passed by.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_reset(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        unsafe { object::<_, AutoEvent>(event) }?.reset();
        Ok(())
    })
}

/// Waits until the event is set, passes, and has thereby reset it. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_wait(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        unsafe { object::<_, AutoEvent>(event) }?.wait();
        Ok(())
    })
}

/// Passes and resets the event, if it is set.
///
/// Errors:
/// - `EAGAIN`: it is not.
/// - `EINVAL`: NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` is NULL or an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_trywait(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        let event: &AutoEvent = unsafe { object(event) }?;
        passed(event.try_wait(), libc::EAGAIN)
    })
}

/// `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_auto_event_clockwait` with that clock, in all else.
///
/// # Safety
/// `event` is NULL or an event, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_timedwait(
    event: *mut ww_auto_event_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_auto_event_clockwait(event, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The
/// time is looked at only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the time came first.
/// - `EINVAL`: NULL or misaligned; another clock; the call would wait and `abs_timeout` is NULL or its nanoseconds are not below
///   10^9.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` is NULL or an event, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_clockwait(
    event: *mut ww_auto_event_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: NULL or an event, by this function's contract: what `object` asks.
        let event: &AutoEvent = unsafe { object(event) }?;
        // SAFETY: NULL or a time, by this function's contract.
        let came = event.try_wait() || event.wait_until(unsafe { deadline(clock, abs_timeout) }?);
        passed(came, libc::ETIMEDOUT)
    })
}
