//! `ww_event_t` and `ww_auto_event_t`: events that stay set, and events that let one thread pass.

use crate::call::{Number, answer, clock, deadline, object, put, scope};
use crate::lock_flags::{WW_EVENT_SET, WW_PROCESS_SHARED};
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{AutoEvent, Event};

/// An event that stays set until it is reset: 8 bytes, all zero when it is private and not set.
/// Initialise it with `WW_EVENT_INITIALIZER` or `ww_event_init`.
///
/// What a thread did before a set is visible to every thread that passes. Once all waits have
/// returned, the event may be freed, even while a set is still returning. Modelled on Windows'
/// manual-reset event.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_event {
    /// Private to the library.
    pub word_: u64,
}

/// An event that stays set until it is reset.
#[allow(non_camel_case_types)] // C's name.
pub type ww_event_t = ww_event;

/// An event that resets itself: each set lets one thread pass. 8 bytes, all zero when it is private
/// and not set. Initialise it with `WW_AUTO_EVENT_INITIALIZER` or `ww_auto_event_init`.
///
/// What a thread did before a set is visible to the thread that passes next. Once all waits have
/// returned, the event may be freed, even while a set is still returning. Modelled on Windows'
/// auto-reset event.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_auto_event {
    /// Private to the library.
    pub word_: u64,
}

/// An event that resets itself.
#[allow(non_camel_case_types)] // C's name.
pub type ww_auto_event_t = ww_auto_event;

/// Whether `flags` ask for an event that is initially set.
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

/// Initialises an event. `flags`: `WW_EVENT_SET` if it is initially set, `WW_PROCESS_SHARED`. A
/// static one needs no call: use `WW_EVENT_INITIALIZER`.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated.
///
/// # Safety
/// `event` must be NULL or point to memory for an event that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_init(event: *mut ww_event_t, flags: c_uint) -> c_int {
    // SAFETY: by this function's contract, NULL or memory for an event that is not in use, as `put`
    // requires.
    answer(|| unsafe { put(event, Event::with_scope(is_set(flags)?, scope(flags))) })
}

/// Does nothing, because an event needs no clean-up. Provided for symmetry.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_destroy(event: *mut ww_event_t) -> c_int {
    // SAFETY: by this function's contract, NULL or an event, as `object` requires.
    answer(|| unsafe { object::<_, Event>(event) }.map(drop))
}

/// Sets the event. All threads that wait at this moment pass, even if the event is reset at once,
/// and so does every thread that arrives while it is set.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_set(event: *mut ww_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        unsafe { object::<_, Event>(event) }?.set();
        Ok(())
    })
}

/// Resets the event: threads that arrive from now on wait.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_reset(event: *mut ww_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        unsafe { object::<_, Event>(event) }?.reset();
        Ok(())
    })
}

/// Waits until the event is set, if only for a moment. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_wait(event: *mut ww_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        unsafe { object::<_, Event>(event) }?.wait();
        Ok(())
    })
}

/// Returns 0 if the event is set.
///
/// Errors:
/// - `EAGAIN`: it is not set.
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_trywait(event: *mut ww_event_t) -> c_int {
    // SAFETY: by this function's contract, NULL or an event, as `object` requires.
    answer(|| passed(unsafe { object::<_, Event>(event) }?.is_set(), libc::EAGAIN))
}

/// `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_event_clockwait` with that clock.
///
/// # Safety
/// `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_timedwait(
    event: *mut ww_event_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_event_clockwait(event, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_event_wait` until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `event` is NULL or misaligned; `clock` is another clock; the call would wait, and
///   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_event_clockwait(
    event: *mut ww_event_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        let event: &Event = unsafe { object(event) }?;
        // SAFETY: by this function's contract, NULL or a time, as `deadline` requires.
        let came = event.is_set() || event.wait_until(unsafe { deadline(clock, abs_timeout) }?);
        passed(came, libc::ETIMEDOUT)
    })
}

/// Initialises an event that resets itself. `flags`: `WW_EVENT_SET` if it is initially set,
/// `WW_PROCESS_SHARED`. A static one needs no call: use `WW_AUTO_EVENT_INITIALIZER`.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned; unknown flags.
///
/// Does not block. Nothing is allocated.
///
/// # Safety
/// `event` must be NULL or point to memory for an event that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_init(event: *mut ww_auto_event_t, flags: c_uint) -> c_int {
    // SAFETY: by this function's contract, NULL or memory for an event that is not in use, as `put`
    // requires.
    answer(|| unsafe { put(event, AutoEvent::with_scope(is_set(flags)?, scope(flags))) })
}

/// Does nothing, because an event needs no clean-up. Provided for symmetry.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_destroy(event: *mut ww_auto_event_t) -> c_int {
    // SAFETY: by this function's contract, NULL or an event, as `object` requires.
    answer(|| unsafe { object::<_, AutoEvent>(event) }.map(drop))
}

/// Lets one thread pass. While threads wait, each set lets another one of them pass. If no thread
/// waits, the next thread to arrive passes, and further sets have no effect.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_set(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        unsafe { object::<_, AutoEvent>(event) }?.set();
        Ok(())
    })
}

/// Cancels a set that has not let a thread pass yet.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_reset(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        unsafe { object::<_, AutoEvent>(event) }?.reset();
        Ok(())
    })
}

/// Waits until the event is set, and resets it. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_wait(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        unsafe { object::<_, AutoEvent>(event) }?.wait();
        Ok(())
    })
}

/// Resets the event and returns 0, if it is set.
///
/// Errors:
/// - `EAGAIN`: it is not set.
/// - `EINVAL`: `event` is NULL or misaligned.
///
/// Does not block. Async-signal-safe.
///
/// # Safety
/// `event` must be NULL or point to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_trywait(event: *mut ww_auto_event_t) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        let event: &AutoEvent = unsafe { object(event) }?;
        passed(event.try_wait(), libc::EAGAIN)
    })
}

/// `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_auto_event_clockwait` with that clock.
///
/// # Safety
/// `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_timedwait(
    event: *mut ww_auto_event_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_auto_event_clockwait(event, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_auto_event_wait` until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). The time is checked only if the call must wait.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired.
/// - `EINVAL`: `event` is NULL or misaligned; `clock` is another clock; the call would wait, and
///   `abs_timeout` is NULL or its nanoseconds are not in [0, 10^9).
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `event` must be NULL or point to an event, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_auto_event_clockwait(
    event: *mut ww_auto_event_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        let clock = self::clock(clock)?;
        // SAFETY: by this function's contract, NULL or an event, as `object` requires.
        let event: &AutoEvent = unsafe { object(event) }?;
        // SAFETY: by this function's contract, NULL or a time, as `deadline` requires.
        let came = event.try_wait() || event.wait_until(unsafe { deadline(clock, abs_timeout) }?);
        passed(came, libc::ETIMEDOUT)
    })
}
