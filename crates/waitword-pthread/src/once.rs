//! `pthread_once`, and the part that it shares with C11's `call_once` (`c11.rs`).
//!
//! A `pthread_once_t` is four bytes: [`Once`] fits, and uses the C library's numbers for "new" (0,
//! the static initialiser) and "done" (2). The numbers in between are private to each library; in
//! one process all onces are ours, or with `WAITWORD=off` all are the C library's. (The C library's
//! own code does not call through this name.)
//!
//! # Left by unwinding
//!
//! If the routine throws, or its thread is cancelled in it or ends, it counts as not called, and
//! one of the waiting threads calls its own ([`waitword_abi::once`]).
//!
//! While a thread is unwound, libgcc itself calls this: on a once of its own, with a routine that
//! only initialises a mutex.

use crate::call::{self, Call, Ended};
use crate::{mode, record};
use core::cell::Cell;
use core::ffi::c_int;
use libc::pthread_once_t;
use waitword::abi_support::{OnceHooks as _, OnceRun};
use waitword::{Once, OnceState};
use waitword_abi::once::take_turn;
use waitword_record::format::Object;

/// The routine to be called once.
pub(crate) type Routine = unsafe extern "C-unwind" fn();

mod glibc {
    use super::{Routine, c_int, pthread_once_t};

    crate::real::real! {
        fn pthread_once(control: *mut pthread_once_t, routine: Option<Routine>) -> c_int;
    }
}

const _: () = assert!(size_of::<Once>() == size_of::<pthread_once_t>());
const _: () = assert!(align_of::<Once>() <= align_of::<pthread_once_t>());

/// Calls the routine if no thread has, or waits for the thread that runs it. `EINVAL` if there is
/// none to call. Source: POSIX `pthread_once`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_once(
    control: *mut pthread_once_t,
    routine: Option<Routine>,
) -> c_int {
    // SAFETY: four aligned bytes that exist during this call, by POSIX's contract. `Once` has the
    // same size and no larger alignment (asserted above), any bytes are a valid `Once`, and it is
    // atomic.
    let once = unsafe { &*control.cast::<Once>() };
    // "Done" is the same number in both libraries.
    if once.state().done() {
        return 0;
    }
    call_routine(once, control, routine)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn call_routine(
    once: &Once,
    control: *mut pthread_once_t,
    routine: Option<Routine>,
) -> c_int {
    match mode::is_fast() {
        true => call_here(once, routine),
        false if mode::is_on() => match once.state() {
            OnceState::InProgress => {
                record::waiting(Object::Once, control, || call_here(once, routine))
            }
            _ => call_here(once, routine),
        },
        // SAFETY: only `pthread_once` calls this, with its own arguments: POSIX's contract for that
        // call holds.
        false => unsafe { glibc::pthread_once(control, routine) },
    }
}

#[inline(always)]
fn call_here(once: &Once, routine: Option<Routine>) -> c_int {
    let Some(routine) = routine else {
        return libc::EINVAL;
    };
    let work = |call: &Call| match once.begin_executing(Some(&call.until(None))) {
        Ok(Some(run)) => {
            // SAFETY: a function that the C caller wants called.
            take_turn(run, || call.outside(|| unsafe { routine() }), give_up);
            Ended::with(0)
        }
        Ok(None) => Ended::with(0),
        Err(_) => call.ended(libc::ETIMEDOUT),
    };
    call::run(work, |_| {})
}

/// The routine has been left: one of the waiting threads calls its own.
fn give_up(run: OnceRun<'_>) {
    let run = Cell::new(Some(run));
    call::run_through(|| {
        drop(run.take());
        0
    });
}
