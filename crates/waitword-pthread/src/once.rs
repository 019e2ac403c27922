//! `pthread_once`, and what it shares with C11's `call_once` (`c11.rs`).
//!
//! A `pthread_once_t` is four bytes: [`Once`] fits, and has the C library's numbers for "new" (0, the static initialiser) and "done"
//! (2). What lies between is each one's own; in a process all are ours, or with `WAITWORD=off` all are the C library's. (Its own
//! code does not call through this name.)
//!
//! # Left by unwinding
//!
//! If the routine throws, or its thread is cancelled in it or ends, it counts as not called, and one of those who wait calls
//! its own. The end of [`Once`]'s turn is a destructor; exceptions and the forced unwinding of a thread that ends both run it.
//!
//! While a thread is unwound, libgcc itself calls this: on a once of its own, with a routine that only makes a mutex.

use crate::mode;
use core::ffi::c_int;
use libc::pthread_once_t;
use waitword::Once;

/// What is to be called once.
pub(crate) type Routine = unsafe extern "C-unwind" fn();

mod glibc {
    use super::{Routine, c_int, pthread_once_t};

    crate::real::real! {
        fn pthread_once(control: *mut pthread_once_t, routine: Option<Routine>) -> c_int;
    }
}

const _: () = assert!(size_of::<Once>() == size_of::<pthread_once_t>());
const _: () = assert!(align_of::<Once>() <= align_of::<pthread_once_t>());

/// Calls the routine if nobody has, or waits for whoever is at it. `EINVAL` if there is none to call.
/// Source: POSIX `pthread_once`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_once(
    control: *mut pthread_once_t,
    routine: Option<Routine>,
) -> c_int {
    // SAFETY: the caller's promise; any four bytes are such an object.
    let once = unsafe { &*control.cast::<Once>() };
    // "Done" is the same number in both worlds.
    if once.state().done() {
        return 0;
    }
    call(once, control, routine)
}

#[cold]
#[inline(never)]
fn call(once: &Once, control: *mut pthread_once_t, routine: Option<Routine>) -> c_int {
    if !mode::is_on() {
        // SAFETY: what C's caller has promised.
        return unsafe { glibc::pthread_once(control, routine) };
    }
    let Some(routine) = routine else {
        return libc::EINVAL;
    };
    // SAFETY: a function that C's caller wants called.
    once.execute(|| unsafe { routine() });
    0
}
