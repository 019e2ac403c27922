//! `sem_*`, unnamed. Named semaphores lie in files that any process may open, and are the C
//! library's.
//!
//! # Thirty-two bytes
//!
//! | offset | ours | the C library's |
//! |--------|------|-----------------|
//! | 0 | [`Semaphore`], 8 bytes: value and waiters | the same |
//! | 8 | 0 | `private`: 0, or 128 for process-shared |
//!
//! A semaphore in memory that was only zeroed is a private one of value 0, in both libraries.

use crate::call::{self, Call, Ended};
use crate::cancel;
use crate::{mode, record};
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use libc::{clockid_t, sem_t, timespec};
use waitword::abi_support::{PostedTo, SemaphoreHooks as _};
use waitword::{Deadline, Error, Scope, Semaphore};
use waitword_abi::{Number, deadline_on};
use waitword_record::format::Object;

mod glibc {
    use super::{c_int, c_uint, sem_t};

    crate::real::real! {
        fn sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int;
        fn sem_wait(semaphore: *mut sem_t) -> c_int;
        fn sem_trywait(semaphore: *mut sem_t) -> c_int;
        fn sem_post(semaphore: *mut sem_t) -> c_int;
        fn sem_getvalue(semaphore: *mut sem_t, value: *mut c_int) -> c_int;
    }

    crate::real::real_until! {
        fn sem_clockwait or sem_timedwait (semaphore: *mut sem_t);
    }
}

/// A `sem_t` in our layout.
#[repr(C)]
struct Sem {
    raw: Semaphore,
    private: AtomicU32,
    _rest: [u32; 5],
}

const _: () = assert!(size_of::<Sem>() == size_of::<sem_t>());
// (Elsewhere the crate is refused in a sentence of its own.)
#[cfg(target_env = "gnu")]
const _: () = assert!(align_of::<Sem>() <= align_of::<sem_t>());

impl Sem {
    /// The semaphore behind the C pointer, if it is ours.
    ///
    /// # Safety
    /// It points to a semaphore that exists for `'a`.
    #[inline(always)]
    unsafe fn ours<'a>(pointer: *const sem_t) -> Option<&'a Semaphore> {
        // SAFETY: a semaphore exists for `'a`, by this function's contract. `Sem` has the same size
        // and no larger alignment (asserted above), any bytes are a valid `Sem`, and everything in
        // it that changes is atomic.
        let this = unsafe { &*pointer.cast::<Sem>() };
        // Relaxed: written before the semaphore was published.
        (this.private.load(Relaxed) == 0 && mode::is_on()).then_some(&this.raw)
    }

    /// The same; also `None` in a process that records waits.
    ///
    /// # Safety
    /// As [`ours`](Self::ours).
    #[inline(always)]
    unsafe fn ours_at_once<'a>(pointer: *const sem_t) -> Option<&'a Semaphore> {
        // SAFETY: as in `ours`.
        let this = unsafe { &*pointer.cast::<Self>() };
        // Relaxed: as in `ours`.
        (this.private.load(Relaxed) == 0 && mode::is_fast()).then_some(&this.raw)
    }
}

/// Returns -1, with this number in `errno`.
#[cold]
fn fail(Number(number): Number) -> c_int {
    // SAFETY: the calling thread's own `errno`, which exists as long as the thread.
    unsafe { *libc::__errno_location() = number };
    -1
}

/// Initialises a semaphore. Source: POSIX `sem_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_init(
    pointer: *mut sem_t,
    shared: c_int,
    value: c_uint,
) -> c_int {
    if shared != 0 || !mode::is_on() {
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        return unsafe { glibc::sem_init(pointer, shared, value) };
    }
    match Semaphore::try_with_scope(value, Scope::Private) {
        Ok(raw) => {
            let made = Sem { raw, private: AtomicU32::new(0), _rest: [0; 5] };
            // SAFETY: memory for a semaphore that is not in use, by POSIX's contract; `Sem` has the
            // same size and no larger alignment (asserted above).
            unsafe { pointer.cast::<Sem>().write(made) };
            0
        }
        Err(_) => fail(Number(libc::EINVAL)),
    }
}

/// Destroys a semaphore: nothing needs to be done, as in the C library, so it is not accessed.
/// Source: POSIX `sem_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_destroy(_pointer: *mut sem_t) -> c_int {
    0
}

/// Increments the value. Async-signal-safe. Source: POSIX `sem_post`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_post(pointer: *mut sem_t) -> c_int {
    // SAFETY: a semaphore that exists during this call, by POSIX's contract.
    match unsafe { Sem::ours(pointer) } {
        Some(semaphore) => match semaphore.post_at_once() {
            Ok(None) => 0,
            Ok(Some(posted)) => wake(posted),
            Err(_) => post_otherwise(pointer, true),
        },
        None => post_otherwise(pointer, false),
    }
}

#[cold]
#[inline(never)]
fn wake(posted: PostedTo) -> c_int {
    call::run_through(|| {
        posted.wake();
        0
    })
}

#[cold]
#[inline(never)]
extern "C-unwind" fn post_otherwise(pointer: *mut sem_t, is_ours: bool) -> c_int {
    if is_ours {
        return fail(Number(libc::EOVERFLOW));
    }
    // SAFETY: only `sem_post` calls this, with its own arguments: POSIX's contract for that call
    // holds. The object is the C library's.
    unsafe { glibc::sem_post(pointer) }
}

/// Decrements the value if that needs no waiting. Source: POSIX `sem_trywait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_trywait(pointer: *mut sem_t) -> c_int {
    // SAFETY: a semaphore that exists during this call, by POSIX's contract.
    match unsafe { Sem::ours(pointer) } {
        Some(semaphore) if semaphore.try_wait() => 0,
        Some(_) => fail(Number(libc::EAGAIN)),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::sem_trywait(pointer) },
    }
}

/// Decrements the value if that needs no waiting. It is nevertheless a cancellation point.
#[inline]
fn wait_at_once(semaphore: &Semaphore) -> bool {
    cancel::test();
    semaphore.try_wait()
}

#[cold]
#[inline(never)]
extern "C-unwind" fn sleep_without_limit(semaphore: &Semaphore) -> c_int {
    sleep(semaphore, None)
}

fn sleep(semaphore: &Semaphore, until: Option<Deadline>) -> c_int {
    let work = |call: &Call| {
        let by = call.interrupter();
        match semaphore.wait_interruptible_by(until, by) {
            Ok(()) => Ended::with(0),
            Err(error) => Ended {
                number: Number::from(error).0,
                requested: true,
                // Only a signal handler ends the wait. An interruption by a thread that could not
                // cancel this one does not.
                retry: error == Error::Interrupted && by.is_interrupted(),
            },
        }
    };
    let undo = |ended: Ended| {
        if ended.is_done() {
            // There is room for the token that was just taken.
            let _ = semaphore.post();
        }
    };
    match call::run_point(work, undo) {
        0 => 0,
        number => fail(Number(number)),
    }
}

/// Decrements the value, waiting until that is possible. A cancellation point. Source: POSIX
/// `sem_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_wait(pointer: *mut sem_t) -> c_int {
    // SAFETY: a semaphore that exists during this call, by POSIX's contract.
    match unsafe { Sem::ours_at_once(pointer) } {
        Some(semaphore) if wait_at_once(semaphore) => 0,
        Some(semaphore) => sleep_without_limit(semaphore),
        // SAFETY: the same; otherwise this forwards POSIX's contract to the function of the same
        // name.
        None => record::otherwise(Object::Semaphore, pointer, &|| unsafe {
            match Sem::ours(pointer) {
                Some(semaphore) if wait_at_once(semaphore) => 0,
                Some(semaphore) => sleep_without_limit(semaphore),
                None => glibc::sem_wait(pointer),
            }
        }),
    }
}

/// [`sem_wait`], waiting until a time of `CLOCK_REALTIME` at the latest. Source: POSIX
/// `sem_timedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_timedwait(
    pointer: *mut sem_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { sem_clockwait(pointer, libc::CLOCK_REALTIME, until) }
}

/// [`sem_wait`], waiting until a time of this clock at the latest. Source: POSIX 2024
/// `sem_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_clockwait(
    pointer: *mut sem_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
    let wait = |semaphore: &Semaphore| match unsafe { deadline_on(clock, until) } {
        Ok(_) if wait_at_once(semaphore) => 0,
        Ok(until) => sleep(semaphore, Some(until)),
        Err(number) => fail(number),
    };
    // SAFETY: a semaphore that exists during this call, by POSIX's contract.
    match unsafe { Sem::ours_at_once(pointer) } {
        Some(semaphore) => wait(semaphore),
        // SAFETY: the same; otherwise this forwards POSIX's contract to the function of the same
        // name.
        None => record::otherwise(Object::Semaphore, pointer, &|| unsafe {
            match Sem::ours(pointer) {
                Some(semaphore) => wait(semaphore),
                None => glibc::sem_clockwait(pointer, clock, until),
            }
        }),
    }
}

/// The value at some moment during the call. Source: POSIX `sem_getvalue`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sem_getvalue(pointer: *mut sem_t, value: *mut c_int) -> c_int {
    // SAFETY: a semaphore that exists during this call, by POSIX's contract.
    match unsafe { Sem::ours(pointer) } {
        Some(semaphore) => {
            // SAFETY: by POSIX's contract `value` is a place for the number, which the caller owns.
            unsafe { value.write(semaphore.value() as c_int) };
            0
        }
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::sem_getvalue(pointer, value) },
    }
}
