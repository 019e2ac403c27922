//! `pthread_barrier_*`.
//!
//! | offset | ours | the C library's |
//! |--------|------|-----------------|
//! | 12 | 0 | `shared`: 0 or 128 |
//! | 16 | [`Barrier`], 16 bytes | `out`, and nothing |
//!
//! | `shared` | barrier | served by |
//! |----------|---------|-----------|
//! | 0 | private | us; with `WAITWORD=off` the C library |
//! | 128 | process-shared | the C library |
//!
//! A barrier has no static initialiser, so each was initialised by `pthread_barrier_init`, here or
//! in the C library. Memory that is all zeros is a barrier for no threads: `EINVAL`.

use crate::attributes::{Attributes as _, BarrierAttributes};
use crate::call::{self, Call, Ended};
use crate::{mode, record};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use libc::{pthread_barrier_t, pthread_barrierattr_t};
use waitword::{Barrier, Scope};
use waitword_record::format::Object;

mod glibc {
    use super::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};

    crate::real::real! {
        fn pthread_barrier_init(
            barrier: *mut pthread_barrier_t,
            attributes: *const pthread_barrierattr_t,
            count: c_uint
        ) -> c_int;
        fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int;
        fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int;
    }
}

/// A `pthread_barrier_t` in our layout.
#[repr(C)]
struct OurBarrier {
    _in_round_count: [u32; 3],
    shared: AtomicU32,
    barrier: Barrier,
}

const _: () = assert!(size_of::<OurBarrier>() <= size_of::<pthread_barrier_t>());
const _: () = assert!(align_of::<OurBarrier>() <= align_of::<pthread_barrier_t>());
const _: () = assert!(core::mem::offset_of!(OurBarrier, shared) == 12);

/// `PTHREAD_BARRIER_SERIAL_THREAD`.
const SERIAL_THREAD: c_int = -1;

/// glibc refuses this count and larger ones.
const TOO_MANY: c_uint = c_uint::MAX / 2;
const _: () = assert!(TOO_MANY - 1 <= Barrier::MAX_COUNT);

/// The barrier behind the C pointer; `None`: it is the C library's.
///
/// # Safety
/// It points to a barrier that exists for `'a`.
#[inline]
unsafe fn ours<'a>(pointer: *const pthread_barrier_t) -> Option<&'a Barrier> {
    // SAFETY: a barrier exists for `'a`, by this function's contract. `OurBarrier` is no larger and
    // has no larger alignment (asserted above), any bytes are a valid `OurBarrier`, and everything
    // in it that changes is atomic.
    let this = unsafe { &*pointer.cast::<OurBarrier>() };
    // Relaxed: written before the barrier was published.
    (this.shared.load(Relaxed) == 0 && mode::is_on()).then_some(&this.barrier)
}

/// The same; also `None` in a process that records waits.
///
/// # Safety
/// As [`ours`].
#[inline]
unsafe fn ours_at_once<'a>(pointer: *const pthread_barrier_t) -> Option<&'a Barrier> {
    // SAFETY: as in `ours`.
    let this = unsafe { &*pointer.cast::<OurBarrier>() };
    // Relaxed: as in `ours`.
    (this.shared.load(Relaxed) == 0 && mode::is_fast()).then_some(&this.barrier)
}

/// Initialises a barrier for `count` threads: from 1 to 2^31 - 2, as with glibc. Source: POSIX
/// `pthread_barrier_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_barrier_init(
    pointer: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    count: c_uint,
) -> c_int {
    // SAFETY: NULL or initialised attributes, by POSIX's contract.
    let wanted = unsafe { BarrierAttributes::read(attributes) };
    if !mode::is_on() || wanted.is_process_shared() {
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        return unsafe { glibc::pthread_barrier_init(pointer, attributes, count) };
    }
    if count >= TOO_MANY {
        return libc::EINVAL;
    }
    let Ok(barrier) = Barrier::try_with_scope(count, Scope::Private) else {
        return libc::EINVAL;
    };
    let made = OurBarrier { _in_round_count: [0; 3], shared: AtomicU32::new(0), barrier };
    // SAFETY: memory for a barrier that is not in use, by POSIX's contract; `OurBarrier` is no
    // larger and has no larger alignment (asserted above).
    unsafe { pointer.cast::<OurBarrier>().write(made) };
    0
}

/// Destroys a barrier. `EBUSY` if threads wait at it. It needs to wait for no other thread: one
/// that is on its way out of a private barrier does not touch it. Source: POSIX
/// `pthread_barrier_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_barrier_destroy(pointer: *mut pthread_barrier_t) -> c_int {
    // SAFETY: a barrier that exists during this call, by POSIX's contract.
    match unsafe { ours(pointer) } {
        Some(barrier) if barrier.count() == 0 => libc::EINVAL,
        Some(barrier) if barrier.destroy() => 0,
        Some(_) => libc::EBUSY,
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_barrier_destroy(pointer) },
    }
}

/// A thread that leaves in the middle has not arrived, unless the other threads have already been
/// released.
fn wait(barrier: &Barrier) -> c_int {
    if barrier.count() == 0 {
        return libc::EINVAL;
    }
    let work = |call: &Call| match barrier.wait_until(call.until(None)) {
        Some(result) if result.is_leader() => Ended::with(SERIAL_THREAD),
        Some(_) => Ended::with(0),
        None => call.ended(libc::ETIMEDOUT),
    };
    call::run(work, |_| {})
}

/// Waits until as many threads have arrived as the barrier is for. Not a cancellation point.
/// Source: POSIX `pthread_barrier_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_barrier_wait(pointer: *mut pthread_barrier_t) -> c_int {
    // SAFETY: a barrier that exists during this call, by POSIX's contract.
    match unsafe { ours_at_once(pointer) } {
        Some(barrier) => wait(barrier),
        // SAFETY: the same; otherwise this forwards POSIX's contract to the function of the same
        // name.
        None => record::otherwise(Object::Barrier, pointer, &|| unsafe {
            match ours(pointer) {
                Some(barrier) => wait(barrier),
                None => glibc::pthread_barrier_wait(pointer),
            }
        }),
    }
}
