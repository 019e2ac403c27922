//! `ww_barrier_t`: `pthread_barrier_t`'s functions, in sixteen bytes.

use crate::call::{Number, answer, clock, deadline, object, put, scope_alone};
use crate::lock_flags::WW_BARRIER_SERIAL_THREAD;
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Barrier, BarrierWaitResult};

/// A barrier: 16 bytes. `WW_BARRIER_INITIALIZER(count)`, or `ww_barrier_init`.
///
/// What any of the threads did before the barrier is visible to all of them after it. A private one may be freed as soon as any thread has
/// come back from the last round; a shared one only after `ww_barrier_destroy`. None of its functions is for signal handlers. A forked
/// child's copy of a private one begins its round anew.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_barrier {
    /// Not for you.
    pub state_: u64,
    /// Not for you.
    pub words_: [u32; 2],
}

/// A barrier.
#[allow(non_camel_case_types)] // C's name.
pub type ww_barrier_t = ww_barrier;

/// Of one that its caller has not made, the count is 0, and nobody could ever be the last.
///
/// # Safety
/// As [`object`].
unsafe fn barrier<'a>(barrier: *mut ww_barrier_t) -> Result<&'a Barrier, Number> {
    // SAFETY: forwards this function's own contract.
    let barrier: &Barrier = unsafe { object(barrier) }?;
    match barrier.count() {
        0 => Err(Number(libc::EINVAL)),
        _ => Ok(barrier),
    }
}

fn passed(result: BarrierWaitResult) -> Result<(), Number> {
    match result.is_leader() {
        true => Err(Number(WW_BARRIER_SERIAL_THREAD)),
        false => Ok(()),
    }
}

/// Makes a barrier for so many threads. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs no call:
/// `WW_BARRIER_INITIALIZER(count)`.
///
/// Errors:
/// - `EINVAL`: `barrier` is NULL or misaligned; unknown flags; the count is 0 or above `WW_BARRIER_COUNT_MAX`.
///
/// Does not block. Nothing is allocated. After `pthread_barrier_init`.
///
/// # Safety
/// `barrier` is NULL or memory for a barrier that nobody uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_init(
    barrier: *mut ww_barrier_t,
    flags: c_uint,
    count: c_uint,
) -> c_int {
    answer(|| {
        let made = Barrier::try_with_scope(count, scope_alone(flags)?)?;
        // SAFETY: NULL, or memory for a barrier that is not in use, by this function's contract:
        // what `put` asks.
        unsafe { put(barrier, made) }
    })
}

/// Waits until no thread touches the barrier any more. A private one needs no such call, and has nothing to wait for.
///
/// Errors:
/// - `EBUSY`: threads have arrived in a round that is not complete.
/// - `EINVAL`: NULL or misaligned; all zeros.
///
/// Blocks, if it is shared, until the others have come back from their last round. Not a cancellation point. After
/// `pthread_barrier_destroy`.
///
/// # Safety
/// `barrier` is NULL or a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_destroy(barrier: *mut ww_barrier_t) -> c_int {
    // SAFETY: NULL or a barrier, by this function's contract: what `barrier` asks.
    answer(|| match unsafe { self::barrier(barrier) }?.destroy() {
        true => Ok(()),
        false => Err(Number(libc::EBUSY)),
    })
}

/// Waits until as many threads have arrived as the barrier is for. Then all go on, and the barrier is ready for the next round.
///
/// Returns `WW_BARRIER_SERIAL_THREAD`, which is negative, to the last thread of each round, and 0 to the others. Signal handlers do not end the
/// wait.
///
/// Errors:
/// - `EINVAL`: NULL or misaligned; all zeros.
///
/// Blocks. Not a cancellation point. After `pthread_barrier_wait`.
///
/// # Safety
/// `barrier` is NULL or a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_wait(barrier: *mut ww_barrier_t) -> c_int {
    // SAFETY: NULL or a barrier, by this function's contract: what `barrier` asks.
    answer(|| passed(unsafe { self::barrier(barrier) }?.wait()))
}

/// `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// `ww_barrier_clockwait` with that clock, in all else.
///
/// # Safety
/// `barrier` is NULL or a barrier, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_timedwait(
    barrier: *mut ww_barrier_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_barrier_clockwait(barrier, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `clock` (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). POSIX has no such
/// call.
///
/// Errors:
/// - `ETIMEDOUT`: the time came before the last thread. The caller does not count as having arrived any more.
/// - `EINVAL`: NULL or misaligned; all zeros; another clock; `abs_timeout` is NULL or its nanoseconds are not below 10^9.
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `barrier` is NULL or a barrier, `abs_timeout` NULL or a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_clockwait(
    barrier: *mut ww_barrier_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        // SAFETY: NULL or a barrier, and NULL or a time, by this function's contract: what
        // `barrier` and `deadline` ask.
        let (barrier, deadline) = unsafe {
            (
                self::barrier(barrier)?,
                deadline(self::clock(clock)?, abs_timeout)?,
            )
        };
        match barrier.wait_until(deadline) {
            Some(result) => passed(result),
            None => Err(Number(libc::ETIMEDOUT)),
        }
    })
}
