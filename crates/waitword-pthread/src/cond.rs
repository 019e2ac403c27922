//! `pthread_cond_*`.
//!
//! # Combinations with mutexes
//!
//! | condition variable | mutex | waits |
//! |--------------------|-------|-------|
//! | ours | ours | in our table; signals move waiters to the mutex's queue |
//! | ours | ours, priority-inheriting | in the kernel, by priority; each signal wakes |
//! | ours | the C library's | in our table; each signal wakes |
//! | the C library's | the C library's | in the C library |
//! | the C library's | ours | it becomes ours (1) |
//!
//! 1. By `adopt` (`cond/object.rs`): a thread that waits with a private mutex waits in this
//!    process.

mod glibc;
mod object;

use crate::attributes::{Attributes as _, CondAttributes};
use crate::call::{self, Call, Ended};
use crate::mutex::object::{Mutex, Served};
use crate::mutex::{pthread_mutex_lock, pthread_mutex_unlock};
use crate::{mode, record};
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use object::Cond;
use waitword::abi_support::{CondvarHooks as _, Wakeup};
use waitword::{Deadline, LockError, RawPosixMutex};
use waitword_abi::{Number, answer, deadline, deadline_on};
use waitword_record::Take;

/// Initialises a condition variable. Source: POSIX `pthread_cond_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_init(
    pointer: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    // SAFETY: NULL or initialised attributes, by POSIX's contract.
    let wanted = unsafe { CondAttributes::read(attributes) };
    if !mode::is_on() || wanted.is_process_shared() {
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        return unsafe { glibc::pthread_cond_init(pointer, attributes) };
    }
    let made = Cond::new(wanted.is_monotonic());
    // SAFETY: memory for a condition variable that is not in use, by POSIX's contract; `Cond` has
    // the same size and no larger alignment (asserted in `object.rs`).
    unsafe { pointer.cast::<Cond>().write(made) };
    0
}

/// Destroys a condition variable. Threads that have been signalled may still be returning; they do
/// not touch it. `EBUSY` if a thread waits that has not been signalled. Source: POSIX
/// `pthread_cond_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_destroy(pointer: *mut pthread_cond_t) -> c_int {
    // SAFETY: a condition variable that exists during this call, by POSIX's contract.
    match unsafe { Cond::ours(pointer) } {
        Some(cond) if !cond.raw.may_have_waiters() => 0,
        Some(cond) => call::run_through(|| answer(|| Ok(cond.raw.destroy()?))),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_cond_destroy(pointer) },
    }
}

/// Signals one waiter, or all.
#[inline(never)]
extern "C-unwind" fn notify(cond: &Cond, all: bool) -> c_int {
    call::run_through(|| {
        match all {
            true => cond.raw.notify_all(),
            false => usize::from(cond.raw.notify_one()),
        };
        0
    })
}

/// Signals one of the C library's, or one of ours in a process that records.
///
/// # Safety
/// A condition variable that exists during this call.
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn notify_otherwise(pointer: *mut pthread_cond_t, all: bool) -> c_int {
    // SAFETY: forwards this function's own contract, which is also that of the C library's
    // functions.
    unsafe {
        match (Cond::ours(pointer), all) {
            (Some(cond), _) if !cond.raw.may_have_waiters() => 0,
            (Some(cond), _) => {
                record::signalling(pointer);
                notify(cond, all)
            }
            (None, true) => glibc::pthread_cond_broadcast(pointer),
            (None, false) => glibc::pthread_cond_signal(pointer),
        }
    }
}

/// Signals the thread that has waited longest. Source: POSIX `pthread_cond_signal`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_signal(pointer: *mut pthread_cond_t) -> c_int {
    // SAFETY: a condition variable that exists during this call, by POSIX's contract.
    match unsafe { Cond::ours_at_once(pointer) } {
        Some(cond) if !cond.raw.may_have_waiters() => 0,
        Some(cond) => notify(cond, false),
        // SAFETY: forwards this function's own contract.
        None => unsafe { notify_otherwise(pointer, false) },
    }
}

/// Signals all waiters. Source: POSIX `pthread_cond_broadcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_broadcast(pointer: *mut pthread_cond_t) -> c_int {
    // SAFETY: a condition variable that exists during this call, by POSIX's contract.
    match unsafe { Cond::ours_at_once(pointer) } {
        Some(cond) if !cond.raw.may_have_waiters() => 0,
        Some(cond) => notify(cond, true),
        // SAFETY: forwards this function's own contract.
        None => unsafe { notify_otherwise(pointer, true) },
    }
}

/// Waits until signalled. A cancellation point. Source: POSIX `pthread_cond_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    pointer: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: a condition variable that exists during this call, and a mutex that the caller holds,
    // by POSIX's contract. Otherwise this forwards that contract to the function of the same name.
    unsafe {
        match Cond::ours_at_once(pointer) {
            Some(cond) => wait(cond, mutex, None),
            None => waiting(pointer, mutex, &|| match Cond::ours_or_adopted(pointer, mutex) {
                Some(cond) => wait(cond, mutex, None),
                None => glibc::pthread_cond_wait(pointer, mutex),
            }),
        }
    }
}

/// Waits until signalled, or until a time of the condition variable's clock. A cancellation point.
/// Source: POSIX `pthread_cond_timedwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_timedwait(
    pointer: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as in `pthread_cond_wait`; and a time, by POSIX's contract, or NULL, which is
    // reported as an error.
    unsafe {
        let wait = |cond: &Cond| match deadline(cond.clock(), until) {
            Ok(until) => wait(cond, mutex, Some(&until)),
            Err(Number(number)) => number,
        };
        match Cond::ours_at_once(pointer) {
            Some(cond) => wait(cond),
            None => waiting(pointer, mutex, &|| match Cond::ours_or_adopted(pointer, mutex) {
                Some(cond) => wait(cond),
                None => glibc::pthread_cond_timedwait(pointer, mutex, until),
            }),
        }
    }
}

/// Waits until signalled, or until a time of this clock. A cancellation point. Source: POSIX 2024
/// `pthread_cond_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    pointer: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: as in `pthread_cond_timedwait`.
    unsafe {
        let wait = |cond: &Cond| match deadline_on(clock, until) {
            Ok(until) => wait(cond, mutex, Some(&until)),
            Err(Number(number)) => number,
        };
        match Cond::ours_at_once(pointer) {
            Some(cond) => wait(cond),
            None => waiting(pointer, mutex, &|| match Cond::ours_or_adopted(pointer, mutex) {
                Some(cond) => wait(cond),
                None => glibc::pthread_cond_clockwait(pointer, mutex, clock, until),
            }),
        }
    }
}

/// Calls `wait`, which waits here with this mutex, and records that in a process that records. The
/// caller gives up the mutex meanwhile.
///
/// # Safety
/// The caller holds the mutex.
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn waiting<F: Fn() -> c_int>(
    pointer: *const pthread_cond_t,
    mutex: *const pthread_mutex_t,
    wait: &F,
) -> c_int {
    if !mode::is_watched() {
        return wait();
    }
    // SAFETY: the caller holds this mutex, by this function's contract, so it is one.
    let was_held = record::releasing(mutex, unsafe { Mutex::at(mutex) }.release());
    let number = record::waiting_with(pointer, mutex, wait);
    // Whatever the result is, the caller holds the mutex as before.
    if was_held {
        record::taken(0, mutex, Take { to_read: false, is_contended: record::is_wanted(mutex) });
    }
    number
}

/// Waits on one that is ours, with any mutex.
///
/// # Safety
/// The caller holds the mutex.
unsafe extern "C-unwind" fn wait(
    cond: &Cond,
    pointer: *mut pthread_mutex_t,
    until: Option<&Deadline>,
) -> c_int {
    // SAFETY: the caller holds this mutex, by this function's contract, so it is one, and continues
    // to exist.
    let mutex = unsafe { Mutex::at(pointer) };
    match mutex.served() {
        // SAFETY: forwards this function's own contract.
        Served::Ours(raw) => unsafe { wait_with_ours(cond, mutex, raw, until) },
        // What the C library's own wait returns.
        Served::Elsewhere if !mutex.caller_may_unlock_theirs() => libc::EPERM,
        // SAFETY: the caller holds the mutex, by this function's contract, and according to
        // `served` it is the C library's.
        Served::Elsewhere => unsafe { wait_with_theirs(cond, pointer, until) },
        Served::Invalid => libc::EINVAL,
    }
}

/// # Safety
/// The caller holds the mutex.
unsafe extern "C-unwind" fn wait_with_ours(
    cond: &Cond,
    mutex: &Mutex,
    raw: &RawPosixMutex,
    until: Option<&Deadline>,
) -> c_int {
    let work = |call: &Call| {
        // Relaxed: both are counted with the mutex held.
        mutex.users.fetch_add(1, Relaxed);
        // SAFETY: the caller holds the mutex, by this function's contract. If other threads wait
        // here with another mutex, the result is EINVAL.
        let waited = unsafe { cond.raw.wait_interruptible(raw, until, call.interrupter()) };
        mutex.users.fetch_sub(1, Relaxed);
        ended(waited)
    };
    // The thread leaves with the mutex held, as with glibc, even by a jump.
    call::run_point(work, |_| {})
}

/// # Safety
/// The caller holds the mutex, which is the C library's, and may unlock it.
unsafe extern "C-unwind" fn wait_with_theirs(
    cond: &Cond,
    pointer: *mut pthread_mutex_t,
    until: Option<&Deadline>,
) -> c_int {
    let work = |call: &Call| {
        let unlock = || {
            // SAFETY: the caller holds it and may unlock it, by the enclosing function's contract.
            unsafe { pthread_mutex_unlock(pointer) };
        };
        // SAFETY: `unlock` is called once at most, in this call and so on this thread;
        // `pthread_mutex_unlock` does not panic.
        let waited =
            unsafe { cond.raw.wait_with(pointer.addr(), unlock, until, call.interrupter()) };
        if let Err(LockError::Invalid) = waited {
            // The wait did not begin.
            return Ended::with(libc::EINVAL);
        }
        // SAFETY: the mutex that was unlocked above, which must exist while threads wait, by
        // POSIX's contract.
        let locked = unsafe { pthread_mutex_lock(pointer) };
        match locked {
            0 => ended(waited),
            // An error of the lock, such as a dead owner, matters more than the timeout.
            _ => Ended { number: locked, ..ended(waited) },
        }
    };
    call::run_point(work, |_| {})
}

/// The result of a wait.
fn ended(waited: Result<Wakeup, LockError>) -> Ended {
    Ended {
        // No signal was spent on this thread.
        requested: matches!(waited, Ok(Wakeup::Interrupted) | Err(LockError::TimedOut)),
        retry: false,
        number: answer(|| waited.map(drop).map_err(Number::from)),
    }
}
