//! Cancellation: `pthread_cancel`, and the support that our cancellation points need.
//!
//! The C library acts on a cancellation request inside its own system calls. It does not know ours,
//! so the waits here end by themselves when the thread is cancelled, lock the mutex again, and then
//! ask the C library whether to act (`pthread_testcancel`), which unwinds the thread from there. So
//! no thread is ever unwound from the middle of our code, whatever its cancellation type:
//!
//! ```text
//!   waiter                                    canceller
//!   ──────                                    ─────────
//!   record.interrupter cleared                the C library's pthread_cancel: request pending
//!   pthread_testcancel: a request? unwound    record of that thread? interrupt
//!   wait, interruptible
//!   interrupted: mutex, pthread_testcancel
//! ```
//!
//! A request that is pending before the first check is found there; a later one interrupts. If the
//! thread was signalled at the same time, the wait returns as signalled and the request stays
//! pending until the next cancellation point. So no signal is lost with a cancelled thread.
//!
//! A wait with a priority-inheriting mutex sleeps in the kernel, on the condition variable itself.
//! There the interrupter also sends the thread the C library's cancellation signal, which ends its
//! system call (`waitword`'s `lock/interrupter.rs`).
//!
//! In the middle of a call of ours no request is acted on, not even by a cancellation point of the
//! C library's in a signal handler: the thread's cancellation state is "disabled" ([`disable`]).

use crate::{interrupters, thread};
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::pthread_t;

mod glibc {
    use super::{c_int, pthread_t};

    crate::real::real! {
        fn pthread_cancel(thread: pthread_t) -> c_int;
        fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int;
    }
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
    fn pthread_setcancelstate(new: c_int, old: *mut c_int) -> c_int;
}

const ENABLED: c_int = 0;
const DISABLED: c_int = 1;
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;

/// Whether any thread of this process has ever had the asynchronous type. Usually none has, and
/// then there is nothing to defer.
static EVER_ASYNCHRONOUS: AtomicBool = AtomicBool::new(false);
/// Whether cancellation of any thread of this process has ever been requested. Usually it has not,
/// and then there is nothing to test.
static EVER_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether the calling thread may have the asynchronous type.
#[inline]
pub(crate) fn may_be_asynchronous() -> bool {
    // Relaxed: this thread has written its own setting itself.
    EVER_ASYNCHRONOUS.load(Ordering::Relaxed)
}

/// Makes the calling thread's cancellation deferred; returns whether it was asynchronous.
#[inline]
pub(crate) fn defer() -> bool {
    may_be_asynchronous() && change_type(DEFERRED) == ASYNCHRONOUS
}

/// Makes it asynchronous again. A pending request is acted on at once.
#[inline]
pub(crate) fn restore_type(was_asynchronous: bool) {
    if was_asynchronous {
        change_type(ASYNCHRONOUS);
    }
}

#[cold]
#[inline(never)]
fn change_type(to: c_int) -> c_int {
    let mut old = DEFERRED;
    // SAFETY: `to` is a type, and `old` a place for one. If the thread is unwound, no frame of ours
    // between here and the C caller has anything to be dropped.
    unsafe { glibc::pthread_setcanceltype(to, &raw mut old) };
    old
}

/// From here on the calling thread acts on no request; returns whether it did so before.
#[inline]
pub(crate) fn disable() -> bool {
    let mut old = ENABLED;
    // SAFETY: `old` is a place for the state. A thread is never unwound from here.
    unsafe { pthread_setcancelstate(DISABLED, &raw mut old) };
    old == ENABLED
}

/// The thread acts on requests again, if it did before. With the asynchronous type it does so at
/// once.
#[inline]
pub(crate) fn restore_state(was_enabled: bool) {
    if was_enabled {
        // SAFETY: the C library accepts a null pointer for the old state. If the thread is unwound,
        // no frame of ours between here and the C caller has anything to be dropped.
        unsafe { pthread_setcancelstate(ENABLED, null_mut()) };
    }
}

/// Whether cancellation of any thread was ever requested.
#[inline]
pub(crate) fn was_ever_requested() -> bool {
    // Relaxed: a request that must be seen was made before something else that this thread has
    // seen.
    EVER_REQUESTED.load(Ordering::Relaxed)
}

/// Acts on a pending request.
#[inline]
pub(crate) fn test() {
    if was_ever_requested() {
        // SAFETY: if it unwinds the thread, no frame of ours between here and the C caller has
        // anything to be dropped.
        unsafe { pthread_testcancel() };
    }
}

/// Requests cancellation of a thread. Source: POSIX `pthread_cancel`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: pthread_t) -> c_int {
    EVER_REQUESTED.store(true, Ordering::Relaxed);
    // SAFETY: forwards this function's own contract. The target may be the calling thread, which is
    // unwound from here if its type is asynchronous: this frame has nothing to be dropped.
    let answer = unsafe { glibc::pthread_cancel(thread) };
    if answer == 0 {
        interrupters::interrupt(thread);
    }
    answer
}

/// Sets when the calling thread acts on a request. Source: POSIX `pthread_setcanceltype`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int {
    if new == ASYNCHRONOUS {
        // Its waits can be ended from here on.
        thread::make_interruptible();
        EVER_ASYNCHRONOUS.store(true, Ordering::Relaxed);
    }
    // SAFETY: forwards this function's own contract. If the thread is unwound, this frame has
    // nothing to be dropped.
    unsafe { glibc::pthread_setcanceltype(new, old) }
}
