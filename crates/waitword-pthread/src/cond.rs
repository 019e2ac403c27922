//! `pthread_cond_*`.
//!
//! # Forty-eight bytes
//!
//! | offset | ours | the C library's |
//! |--------|------|-----------------|
//! | 0 | [`RawCondvar`], 16 bytes | `__wseq`, `__g1_start` |
//! | 28 | 0 | since 2.41: `__wrefs`, of which bit 0 is set in process-shared ones |
//! | 36 | 0 | until 2.40: the same |
//! | 40 | `clock` | |
//!
//! All zeros is a private condition variable with the real-time clock, and ours. Process-shared
//! ones are the C library's.
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
//! 1. By `adopt`: a thread that waits with a private mutex waits in this process.

use crate::attributes::CondAttributes;
use crate::call::{self, Call, Ended};
use crate::mode;
use crate::mutex::{Mutex, Served, glibc_owner, pthread_mutex_lock, pthread_mutex_unlock};
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use libc::{clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use waitword::abi_support::{CancellableCondvar as _, CondvarHalves as _, Wakeup};
use waitword::{Clock, Deadline, LockError, RawCondvar, RawPosixMutex};
use waitword_abi::{Number, answer, clock, deadline};

mod glibc {
    use super::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};

    crate::real::real! {
        fn pthread_cond_init(
            cond: *mut pthread_cond_t,
            attributes: *const pthread_condattr_t
        ) -> c_int;
        fn pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int;
        fn pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_cond_timedwait(
            cond: *mut pthread_cond_t,
            mutex: *mut pthread_mutex_t,
            until: *const timespec
        ) -> c_int;
        fn pthread_cond_clockwait(
            cond: *mut pthread_cond_t,
            mutex: *mut pthread_mutex_t,
            clock: clockid_t,
            until: *const timespec
        ) -> c_int;
        fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int;
        fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int;
    }
}

/// A `pthread_cond_t` in our layout.
#[repr(C)]
struct Cond {
    raw: RawCondvar,
    _unused: [u32; 3],
    refs_since_2_41: AtomicU32,
    _more: u32,
    refs_until_2_40: AtomicU32,
    clock: AtomicU32,
    _rest: u32,
}

const _: () = assert!(size_of::<Cond>() == size_of::<pthread_cond_t>());
const _: () = assert!(align_of::<Cond>() <= align_of::<pthread_cond_t>());
const _: () = assert!(size_of::<pthread_condattr_t>() == size_of::<u32>());
const _: () = assert!(core::mem::offset_of!(Cond, refs_since_2_41) == 28);
const _: () = assert!(core::mem::offset_of!(Cond, refs_until_2_40) == 36);

/// Values of `clock`.
const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;

impl Cond {
    /// The condition variable behind the C pointer, if it is ours.
    ///
    /// # Safety
    /// It points to a condition variable that exists for `'a`.
    #[inline(always)]
    unsafe fn ours<'a>(pointer: *const pthread_cond_t) -> Option<&'a Self> {
        // SAFETY: a condition variable exists for `'a`, by this function's contract. `Cond` has the
        // same size and no larger alignment (asserted above), any bytes are a valid `Cond`, and
        // everything in it that changes is atomic.
        let this = unsafe { &*pointer.cast::<Self>() };
        // Acquire: makes the zeros of an adopted one visible. In the C library's, the word that it
        // uses is never 0.
        let refs = this.refs_since_2_41.load(Acquire) | this.refs_until_2_40.load(Acquire);
        (refs == 0 && mode::is_on()).then_some(this)
    }

    fn clock(&self) -> Clock {
        match self.clock.load(Relaxed) {
            MONOTONIC => Clock::Monotonic,
            _ => Clock::Realtime,
        }
    }
}

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
    let clock = if wanted.is_monotonic() {
        MONOTONIC
    } else {
        REALTIME
    };
    let made = Cond {
        raw: RawCondvar::new(),
        _unused: [0; 3],
        refs_since_2_41: AtomicU32::new(0),
        _more: 0,
        refs_until_2_40: AtomicU32::new(0),
        clock: AtomicU32::new(clock),
        _rest: 0,
    };
    // SAFETY: memory for a condition variable that is not in use, by POSIX's contract; `Cond` has
    // the same size and no larger alignment (asserted above).
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

/// Signals the thread that has waited longest. Source: POSIX `pthread_cond_signal`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_signal(pointer: *mut pthread_cond_t) -> c_int {
    // SAFETY: a condition variable that exists during this call, by POSIX's contract.
    match unsafe { Cond::ours(pointer) } {
        Some(cond) if !cond.raw.may_have_waiters() => 0,
        Some(cond) => notify(cond, false),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_cond_signal(pointer) },
    }
}

/// Signals all waiters. Source: POSIX `pthread_cond_broadcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_broadcast(pointer: *mut pthread_cond_t) -> c_int {
    // SAFETY: a condition variable that exists during this call, by POSIX's contract.
    match unsafe { Cond::ours(pointer) } {
        Some(cond) if !cond.raw.may_have_waiters() => 0,
        Some(cond) => notify(cond, true),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_cond_broadcast(pointer) },
    }
}

/// The condition variable behind the C pointer, if it is ours or becomes ours.
///
/// # Safety
/// It points to a condition variable that exists for `'a`, and the caller holds the mutex.
#[inline]
unsafe fn ours_for_wait<'a>(
    pointer: *mut pthread_cond_t,
    mutex: *const pthread_mutex_t,
) -> Option<&'a Cond> {
    // SAFETY: forwards this function's own contract.
    unsafe { Cond::ours(pointer).or_else(|| adopt(pointer, mutex)) }
}

/// Makes a process-shared condition variable ours if a thread is about to wait on it with a mutex
/// of ours and no thread waits on it: all simultaneous waiters use the same mutex, and this one is
/// known only to this process. (Programs make all their condition variables process-shared, and
/// their mutexes not.)
///
/// Two threads that come at once have the same mutex. A signal that comes at any point of this
/// finds no waiter, in either layout.
///
/// # Safety
/// As [`ours_for_wait`].
#[cold]
#[inline(never)]
unsafe fn adopt<'a>(
    pointer: *mut pthread_cond_t,
    mutex: *const pthread_mutex_t,
) -> Option<&'a Cond> {
    const FLAGS: u32 = 7;
    const MONOTONIC_FLAG: u32 = 2;
    // SAFETY: the caller holds this mutex, by this function's contract, so it is one.
    if unsafe { !mode::is_on() || !Mutex::is_ours(mutex) } {
        return None;
    }
    // SAFETY: a condition variable exists for `'a`, by this function's contract: twelve words,
    // aligned as such, which other threads access meanwhile only as atomics, if at all.
    let words = unsafe { &*pointer.cast::<[AtomicU32; 12]>() };
    let refs_at = glibc_refs_at()?;
    let refs = words[refs_at].load(Relaxed);
    if refs & !FLAGS != 0 {
        // The current waiters wait with another mutex, which POSIX does not allow.
        return None;
    }
    for (index, word) in words.iter().enumerate() {
        if index != refs_at {
            word.store(0, Relaxed);
        }
    }
    // SAFETY: a condition variable exists for `'a`, by this function's contract. `Cond` has the
    // same size and no larger alignment (asserted above), any bytes are a valid `Cond`, and
    // everything in it that changes is atomic.
    let this = unsafe { &*pointer.cast::<Cond>() };
    let clock = if refs & MONOTONIC_FLAG == 0 {
        REALTIME
    } else {
        MONOTONIC
    };
    this.clock.store(clock, Relaxed);
    // Release: from here on it is ours, and all zeros except the clock.
    words[refs_at].store(0, Release);
    Some(this)
}

/// The word of a condition variable in which the C library counts its users: found by letting it
/// initialise one.
fn glibc_refs_at() -> Option<usize> {
    let mut attributes = 0_u32;
    let attributes = (&raw mut attributes).cast::<pthread_condattr_t>();
    let mut made = [0_u32; 12];
    // SAFETY: `attributes` and `made` are places of the right sizes (asserted above), aligned for
    // numbers as glibc's are. The attributes are initialised before they are used; the condition
    // variable is read only as numbers.
    unsafe {
        libc::pthread_condattr_init(attributes);
        libc::pthread_condattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED);
        glibc::pthread_cond_init((&raw mut made).cast(), attributes);
    }
    const SINCE_2_41: usize = 7;
    const UNTIL_2_40: usize = 9;
    [UNTIL_2_40, SINCE_2_41]
        .into_iter()
        .find(|&word| made[word] & 1 != 0)
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
        // SAFETY: the caller holds the mutex, by this function's contract, and according to
        // `served` it is the C library's.
        Served::Elsewhere => unsafe { wait_with_theirs(cond, pointer, until) },
        Served::Invalid => libc::EINVAL,
    }
}

/// The result of a wait.
fn ended(waited: Result<Wakeup, LockError>) -> Ended {
    Ended {
        // No signal was spent on this thread.
        asked: matches!(waited, Ok(Wakeup::Interrupted) | Err(LockError::TimedOut)),
        again: false,
        number: answer(|| waited.map(drop).map_err(Number::from)),
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
/// The caller holds the mutex, which is the C library's.
unsafe extern "C-unwind" fn wait_with_theirs(
    cond: &Cond,
    pointer: *mut pthread_mutex_t,
    until: Option<&Deadline>,
) -> c_int {
    // SAFETY: the mutex is the C library's, by this function's contract.
    if unsafe { !glibc_owner::may_unlock(pointer) } {
        return libc::EPERM;
    }
    let work = |call: &Call| {
        let unlock = || {
            // SAFETY: the caller holds it, by the contract of the enclosing function, and was seen
            // to be allowed to unlock it.
            unsafe { pthread_mutex_unlock(pointer) };
        };
        // SAFETY: `unlock` is called once at most, in this call and so on this thread;
        // `pthread_mutex_unlock` does not panic.
        let waited = unsafe {
            cond.raw
                .wait_with(pointer.addr(), unlock, until, call.interrupter())
        };
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
            _ => Ended {
                number: locked,
                ..ended(waited)
            },
        }
    };
    call::run_point(work, |_| {})
}

/// Waits until signalled. A cancellation point. Source: POSIX `pthread_cond_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_wait(
    pointer: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: a condition variable that exists during this call, and a mutex that the caller holds,
    // by POSIX's contract.
    match unsafe { ours_for_wait(pointer, mutex) } {
        // SAFETY: the caller holds the mutex, by POSIX's contract.
        Some(cond) => unsafe { wait(cond, mutex, None) },
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_cond_wait(pointer, mutex) },
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
    // SAFETY: a condition variable that exists during this call, and a mutex that the caller holds,
    // by POSIX's contract.
    match unsafe { ours_for_wait(pointer, mutex) } {
        // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
        Some(cond) => match unsafe { deadline(cond.clock(), until) } {
            // SAFETY: the caller holds the mutex, by POSIX's contract.
            Ok(until) => unsafe { wait(cond, mutex, Some(&until)) },
            Err(Number(number)) => number,
        },
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_cond_timedwait(pointer, mutex, until) },
    }
}

/// Waits until signalled, or until a time of this clock. A cancellation point. Source: POSIX 2024
/// `pthread_cond_clockwait`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cond_clockwait(
    pointer: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock_number: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a condition variable that exists during this call, and a mutex that the caller holds,
    // by POSIX's contract.
    match unsafe { ours_for_wait(pointer, mutex) } {
        Some(cond) => {
            // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
            let until = clock(clock_number).and_then(|clock| unsafe { deadline(clock, until) });
            match until {
                // SAFETY: the caller holds the mutex, by POSIX's contract.
                Ok(until) => unsafe { wait(cond, mutex, Some(&until)) },
                Err(Number(number)) => number,
            }
        }
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        None => unsafe { glibc::pthread_cond_clockwait(pointer, mutex, clock_number, until) },
    }
}
