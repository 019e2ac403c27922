//! `ww_barrier_t`: the functions of `pthread_barrier_t`, in sixteen bytes.

use crate::call::{Number, answer, clock, deadline, object, put, scope_alone};
use crate::lock_flags::WW_BARRIER_SERIAL_THREAD;
use core::ffi::{c_int, c_uint};
use libc::timespec;
use waitword_core::{Barrier, BarrierWaitResult};

/// A barrier: 16 bytes. Initialise it with `WW_BARRIER_INITIALIZER(count)` or `ww_barrier_init`.
///
/// What any of the threads did before the barrier is visible to all of them after it. A private
/// barrier may be freed as soon as one thread has returned from the last round; a shared one only
/// after `ww_barrier_destroy`. None of its functions may be called from a signal handler. In a
/// forked child, the copy of a private barrier starts its round again.
#[allow(non_camel_case_types)] // C's name.
#[derive(Debug)]
#[repr(C)]
pub struct ww_barrier {
    /// Private to the library.
    pub state_: u64,
    /// Private to the library.
    pub words_: [u32; 2],
}

/// A barrier.
#[allow(non_camel_case_types)] // C's name.
pub type ww_barrier_t = ww_barrier;

/// The barrier behind a pointer, if it has been initialised. An uninitialised one has a count of 0,
/// so that no thread could ever be the last.
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

/// Initialises a barrier for `count` threads. `flags`: 0 or `WW_PROCESS_SHARED`. A static one needs
/// no call: use `WW_BARRIER_INITIALIZER(count)`.
///
/// Errors:
/// - `EINVAL`: `barrier` is NULL or misaligned; unknown flags; the count is 0 or above
///   `WW_BARRIER_COUNT_MAX`.
///
/// Does not block. Nothing is allocated. Modelled on `pthread_barrier_init`.
///
/// # Safety
/// `barrier` must be NULL or point to memory for a barrier that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_init(
    barrier: *mut ww_barrier_t,
    flags: c_uint,
    count: c_uint,
) -> c_int {
    answer(|| {
        let made = Barrier::try_with_scope(count, scope_alone(flags)?)?;
        // SAFETY: by this function's contract, NULL or memory for a barrier that is not in use, as
        // `put` requires.
        unsafe { put(barrier, made) }
    })
}

/// Checks that the barrier may be freed. For a shared barrier, also waits until no thread touches
/// it any more. A private barrier does not need this call.
///
/// Errors:
/// - `EBUSY`: threads have arrived in a round that is not complete.
/// - `EINVAL`: `barrier` is NULL, misaligned, or all zeros.
///
/// Blocks, if it is shared, until the other threads have returned from their last round. Not a
/// cancellation point. Modelled on `pthread_barrier_destroy`.
///
/// # Safety
/// `barrier` must be NULL or point to a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_destroy(barrier: *mut ww_barrier_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a barrier, as `barrier` requires.
    answer(|| match unsafe { self::barrier(barrier) }?.destroy() {
        true => Ok(()),
        false => Err(Number(libc::EBUSY)),
    })
}

/// Waits until the barrier's number of threads have arrived. Then all of them continue, and the
/// barrier is ready for the next round.
///
/// Returns `WW_BARRIER_SERIAL_THREAD`, which is negative, to the last thread of each round, and 0
/// to the others. Signal handlers do not end the wait.
///
/// Errors:
/// - `EINVAL`: `barrier` is NULL, misaligned, or all zeros.
///
/// Blocks. Not a cancellation point. Modelled on `pthread_barrier_wait`.
///
/// # Safety
/// `barrier` must be NULL or point to a barrier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_wait(barrier: *mut ww_barrier_t) -> c_int {
    // SAFETY: by this function's contract, NULL or a barrier, as `barrier` requires.
    answer(|| passed(unsafe { self::barrier(barrier) }?.wait()))
}

/// `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `CLOCK_REALTIME`.
///
/// Otherwise the same as `ww_barrier_clockwait` with that clock.
///
/// # Safety
/// `barrier` must be NULL or point to a barrier, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_timedwait(
    barrier: *mut ww_barrier_t,
    abs_timeout: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { ww_barrier_clockwait(barrier, libc::CLOCK_REALTIME, abs_timeout) }
}

/// `ww_barrier_wait` until `abs_timeout` at the latest, an absolute time on `clock`
/// (`CLOCK_MONOTONIC` or `CLOCK_REALTIME`). POSIX has no such function.
///
/// Errors:
/// - `ETIMEDOUT`: the timeout expired before the last thread arrived. The caller no longer counts
///   as having arrived.
/// - `EINVAL`: `barrier` is NULL, misaligned, or all zeros; `clock` is another clock; `abs_timeout`
///   is NULL or its nanoseconds are not in [0, 10^9).
///
/// Blocks. Not a cancellation point.
///
/// # Safety
/// `barrier` must be NULL or point to a barrier, `abs_timeout` NULL or point to a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ww_barrier_clockwait(
    barrier: *mut ww_barrier_t,
    clock: c_int,
    abs_timeout: *const timespec,
) -> c_int {
    answer(|| {
        // SAFETY: by this function's contract, NULL or a barrier, and NULL or a time, as `barrier`
        // and `deadline` require.
        let (barrier, deadline) =
            unsafe { (self::barrier(barrier)?, deadline(self::clock(clock)?, abs_timeout)?) };
        match barrier.wait_until(deadline) {
            Some(result) => passed(result),
            None => Err(Number(libc::ETIMEDOUT)),
        }
    })
}
