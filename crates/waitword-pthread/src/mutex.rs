//! `pthread_mutex_*`.

pub(crate) mod object;

use crate::attributes::{Attributes as _, MutexAttributes};
use crate::call::{self, Call, Ended};
use crate::{mode, record};
use core::cell::Cell;
use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use object::{Mutex, Served};
use waitword::abi_support::{GivenBack, LateWaiter, MutexHooks as _};
use waitword::{Deadline, LockError, RawPosixMutex, Semaphore};
use waitword_abi::{Number, answer, clock, deadline};
use waitword_record::Take;
use waitword_record::format::Object;

mod glibc {
    use super::{c_int, pthread_mutex_t, pthread_mutexattr_t};

    crate::real::real! {
        fn pthread_mutex_init(
            mutex: *mut pthread_mutex_t,
            attributes: *const pthread_mutexattr_t
        ) -> c_int;
        fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    }

    crate::real::real_until! {
        fn pthread_mutex_clocklock or pthread_mutex_timedlock (mutex: *mut pthread_mutex_t);
    }
}

/// The error number for a lock of ours.
///
/// A priority-inheriting mutex of the normal kind that its own thread locks again, or whose owner
/// has ended, never becomes free. POSIX and glibc make the caller wait forever then, and so does
/// this: the caller must not continue as if it held the lock.
fn locked(raw: Result<(), LockError>, this: &Mutex, until: Deadline) -> c_int {
    match raw {
        Ok(()) => 0,
        Err(LockError::Deadlock | LockError::OwnerDied) if this.is_of_normal_type() => {
            forever(until)
        }
        Err(LockError::TooMany) => this.lock_extra_level(),
        Err(error) => answer(|| Err(error.into())),
    }
}

/// Locks a plain mutex that is not free, or that is more than just locked. A call begins only if
/// the thread has to wait: a call takes as long as a short section.
#[inline(never)]
extern "C-unwind" fn lock_contended(raw: &RawPosixMutex) -> c_int {
    match raw.barge_plain() {
        true => 0,
        false => lock_in_call(raw),
    }
}

/// There is nothing to refuse, unless the mutex's bytes were overwritten, for instance by a process
/// that shares them.
#[inline(never)]
extern "C-unwind" fn lock_in_call(raw: &RawPosixMutex) -> c_int {
    let work = |call: &Call| {
        let until = call.until(None);
        call.ended(answer(|| Ok(raw.lock_until(until)?)))
    };
    call::run(work, |ended| give_back(raw, ended))
}

/// Releases what a call has locked that is left.
fn give_back(raw: &RawPosixMutex, ended: Ended) {
    if ended.is_done() {
        // SAFETY: the calling thread has just locked it.
        let _ = unsafe { raw.unlock_checked() };
    }
}

/// As [`lock_contended`].
///
/// # Safety
/// The caller holds it, or acts for the thread that does.
#[inline(never)]
unsafe extern "C-unwind" fn unlock_contended(raw: &RawPosixMutex) -> c_int {
    // SAFETY: forwards this function's own contract.
    match unsafe { raw.unlock_plain_to_the_awake() } {
        true => 0,
        // SAFETY: the same, and it has not been released.
        false => unsafe { unlock_in_call(raw) },
    }
}

/// # Safety
/// As [`unlock_contended`].
#[inline(never)]
unsafe extern "C-unwind" fn unlock_in_call(raw: &RawPosixMutex) -> c_int {
    // SAFETY: forwards this function's own contract.
    call::run_through(|| answer(|| Ok(unsafe { raw.unlock_checked() }?)))
}

/// The rest of an unlock.
#[cold]
#[inline(never)]
fn wake_late(waiter: LateWaiter<'_>) -> c_int {
    call::run_through(|| {
        waiter.wake();
        0
    })
}

/// Waits forever, or until that time.
#[cold]
fn forever(until: Deadline) -> c_int {
    // No thread posts this.
    let _ = Semaphore::new(0).wait_until(until);
    libc::ETIMEDOUT
}

/// Initialises a mutex. Source: POSIX `pthread_mutex_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_init(
    pointer: *mut pthread_mutex_t,
    attributes: *const pthread_mutexattr_t,
) -> c_int {
    // SAFETY: NULL or initialised attributes, by POSIX's contract.
    let wanted = unsafe { MutexAttributes::read(attributes) };
    if !mode::is_on() || wanted.is_the_c_librarys() {
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        return unsafe { glibc::pthread_mutex_init(pointer, attributes) };
    }
    // SAFETY: memory for a mutex that is not in use, by POSIX's contract; `Mutex` has the same size
    // and no larger alignment (asserted in `object.rs`).
    unsafe { pointer.cast::<Mutex>().write(Mutex::new(wanted)) };
    0
}

/// Destroys a mutex. `EBUSY` if a thread holds it, waits for it, or waits with it in a condition
/// variable. Source: POSIX `pthread_mutex_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_destroy(pointer: *mut pthread_mutex_t) -> c_int {
    // SAFETY: a mutex that exists during this call, by POSIX's contract.
    let this = unsafe { Mutex::at(pointer) };
    match this.served() {
        Served::Ours(raw) => call::run_through(|| {
            answer(|| {
                if this.users.load(Relaxed) != 0 {
                    return Err(LockError::Busy.into());
                }
                raw.destroy()?;
                this.set_destroyed();
                Ok(())
            })
        }),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe { glibc::pthread_mutex_destroy(pointer) },
        Served::Invalid => libc::EINVAL,
    }
}

/// Locks a mutex. Source: POSIX `pthread_mutex_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_lock(pointer: *mut pthread_mutex_t) -> c_int {
    // SAFETY: a mutex that exists during this call, by POSIX's contract.
    let this = unsafe { Mutex::at(pointer) };
    match this.plain() {
        Some(raw) if raw.lock_plain_at_once() => 0,
        Some(raw) => lock_contended(raw),
        None => lock_owned(pointer, this),
    }
}

/// Locks a mutex of another kind: our recursive, error-checking and priority-inheriting ones, which
/// are usually free or held by the caller.
#[inline(never)]
extern "C-unwind" fn lock_owned(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    match this.owned() {
        Some(raw) if raw.lock_owned_at_once() => 0,
        _ => lock_served(pointer, this),
    }
}

#[cold]
#[inline(never)]
extern "C-unwind" fn lock_served(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    match mode::is_watched() {
        true => lock_watched(pointer, this),
        false => lock_now(pointer, this),
    }
}

/// Locks a mutex, and counts and records that.
#[cold]
#[inline(never)]
extern "C-unwind" fn lock_watched(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    mode::count_lock();
    let (number, is_contended) = match this.plain_and_watched() {
        Some(raw) if raw.lock_plain_at_once() => (0, false),
        Some(raw) if raw.barge_plain() || record::is_on() && raw.look_plain() => (0, true),
        Some(raw) => (record::waiting(Object::Mutex, pointer, || lock_in_call(raw)), true),
        None => match this.served() {
            Served::Ours(raw) if raw.lock_owned_at_once() => (0, raw.has_waiters()),
            Served::Ours(_) => {
                (record::waiting(Object::Mutex, pointer, || lock_now(pointer, this)), true)
            }
            Served::Elsewhere | Served::Invalid => (lock_now(pointer, this), false),
        },
    };
    record::taken(number, pointer, Take { to_read: false, is_contended })
}

#[inline(always)]
fn lock_now(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    match this.served() {
        // Its static initialiser has just been read, or the process has just decided.
        Served::Ours(raw) if this.is_plain() => match raw.lock_plain_at_once() {
            true => 0,
            false => lock_contended(raw),
        },
        Served::Ours(raw) => {
            let work = |call: &Call| {
                let until = call.until(None);
                call.ended(locked(raw.lock_until(until), this, until))
            };
            call::run(work, |ended| give_back(raw, ended))
        }
        // SAFETY: only `pthread_mutex_lock` leads here, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_mutex_lock(pointer) },
        Served::Invalid => libc::EINVAL,
    }
}

/// Locks a mutex if that needs no waiting. Source: POSIX `pthread_mutex_trylock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_trylock(pointer: *mut pthread_mutex_t) -> c_int {
    // SAFETY: a mutex that exists during this call, by POSIX's contract.
    let this = unsafe { Mutex::at(pointer) };
    match this.plain() {
        Some(raw) if raw.try_lock() => 0,
        Some(_) => libc::EBUSY,
        None => try_lock_served(pointer, this),
    }
}

#[cold]
#[inline(never)]
extern "C-unwind" fn try_lock_served(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    match this.served() {
        Served::Ours(raw) => match try_locked(raw, this) {
            0 if mode::is_watched() => record_tried(pointer, raw),
            answered => answered,
        },
        // SAFETY: only `pthread_mutex_trylock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_mutex_trylock(pointer) },
        Served::Invalid => libc::EINVAL,
    }
}

/// Counts and records that the mutex has been locked without waiting.
#[cold]
#[inline(never)]
extern "C-unwind" fn record_tried(pointer: *mut pthread_mutex_t, raw: &RawPosixMutex) -> c_int {
    mode::count_lock();
    record::taken(0, pointer, Take { to_read: false, is_contended: raw.has_waiters() })
}

/// Tries to lock a mutex of ours; returns the error number. Touches nothing but the mutex.
fn try_locked(raw: &RawPosixMutex, this: &Mutex) -> c_int {
    match raw.try_lock_checked() {
        Err(LockError::TooMany) => this.lock_extra_level(),
        answered => answer(|| Ok(answered?)),
    }
}

/// Locks a mutex, waiting until a time of `CLOCK_REALTIME` at the latest. Source: POSIX
/// `pthread_mutex_timedlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_timedlock(
    pointer: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { pthread_mutex_clocklock(pointer, libc::CLOCK_REALTIME, until) }
}

/// Locks a mutex, waiting until a time of this clock at the latest. The time is examined only if
/// the call must wait. Source: POSIX 2024 `pthread_mutex_clocklock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_clocklock(
    pointer: *mut pthread_mutex_t,
    clock_number: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a mutex that exists during this call, by POSIX's contract.
    let this = unsafe { Mutex::at(pointer) };
    match this.served() {
        // SAFETY: forwards this function's own contract.
        Served::Ours(raw) => unsafe {
            match mode::is_watched() {
                true => clock_lock_watched(pointer, raw, clock_number, until),
                false => clock_lock_now(this, raw, clock_number, until, |wait| wait()),
            }
        },
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe {
            glibc::pthread_mutex_clocklock(pointer, clock_number, until)
        },
        Served::Invalid => libc::EINVAL,
    }
}

/// Locks a mutex of ours until a time, and counts and records that.
///
/// # Safety
/// As [`pthread_mutex_clocklock`].
#[cold]
#[inline(never)]
unsafe extern "C-unwind" fn clock_lock_watched(
    pointer: *mut pthread_mutex_t,
    raw: &RawPosixMutex,
    clock_number: clockid_t,
    until: *const timespec,
) -> c_int {
    mode::count_lock();
    let has_waited = Cell::new(false);
    // SAFETY: forwards this function's own contract.
    let number = unsafe {
        let this = Mutex::at(pointer);
        clock_lock_now(this, raw, clock_number, until, |wait| {
            has_waited.set(true);
            record::waiting_until(Object::Mutex, pointer, wait)
        })
    };
    let is_contended = has_waited.get() || raw.has_waiters();
    record::taken(number, pointer, Take { to_read: false, is_contended })
}

/// Locks a mutex of ours until a time. `waits` calls what it is given, which waits.
///
/// # Safety
/// As [`pthread_mutex_clocklock`].
#[inline(always)]
unsafe fn clock_lock_now(
    this: &Mutex,
    raw: &RawPosixMutex,
    clock_number: clockid_t,
    until: *const timespec,
    waits: impl FnOnce(&dyn Fn() -> c_int) -> c_int,
) -> c_int {
    let clock = match clock(clock_number) {
        Ok(clock) => clock,
        Err(Number(number)) => return number,
    };
    match try_locked(raw, this) {
        libc::EBUSY => {}
        answered => return answered,
    }
    // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
    match unsafe { deadline(clock, until) } {
        Ok(deadline) => {
            let work = |call: &Call| {
                let until = call.until(Some(&deadline));
                call.ended(locked(raw.lock_until(until), this, until))
            };
            waits(&|| call::run(work, |ended| give_back(raw, ended)))
        }
        // It would not have waited.
        Err(_) if raw.would_deadlock() && !this.is_of_normal_type() => libc::EDEADLK,
        Err(Number(number)) => number,
    }
}

/// Unlocks a mutex. Source: POSIX `pthread_mutex_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_mutex_unlock(pointer: *mut pthread_mutex_t) -> c_int {
    // SAFETY: a mutex that exists during this call, by POSIX's contract.
    let this = unsafe { Mutex::at(pointer) };
    match this.plain() {
        // SAFETY: the caller holds the mutex, or acts for the thread that does, by POSIX's
        // contract.
        Some(raw) => match unsafe { raw.unlock_plain_at_once() } {
            true => 0,
            // SAFETY: the same; it has not been released.
            false => unsafe { unlock_contended(raw) },
        },
        None => unlock_owned(pointer, this),
    }
}

/// As [`lock_owned`].
#[inline(never)]
extern "C-unwind" fn unlock_owned(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    if !this.is_made() {
        return unlock_watched(pointer, this);
    }
    match this.owned().map(|raw| this.release_at_once(raw)) {
        Some(GivenBack::Yes) => 0,
        Some(GivenBack::Unless(waiter)) => wake_late(waiter),
        Some(GivenBack::No) => unlock_served(pointer, this),
        None => unlock_watched(pointer, this),
    }
}

/// Unlocks a mutex in a process that records, or one of the C library's.
#[cold]
#[inline(never)]
extern "C-unwind" fn unlock_watched(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    if let Some(raw) = this.plain_and_watched() {
        record::releasing(pointer, object::release_of(raw));
        // SAFETY: the caller holds the mutex, or acts for the thread that does, by POSIX's
        // contract.
        return match unsafe { raw.unlock_plain_at_once() } {
            true => 0,
            // SAFETY: the same; it has not been released.
            false => unsafe { unlock_contended(raw) },
        };
    }
    if mode::is_watched() {
        record::releasing(pointer, this.release());
    }
    unlock_served(pointer, this)
}

#[cold]
#[inline(never)]
extern "C-unwind" fn unlock_served(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    match this.served() {
        Served::Ours(_) if this.unlock_extra_level() => 0,
        // SAFETY: only `pthread_mutex_unlock` calls this, with its own arguments, so POSIX's
        // contract for that call holds: a mutex that does not record its owner is held by the
        // caller; any other can check.
        Served::Ours(raw) => call::run_through(|| answer(|| Ok(unsafe { raw.unlock_checked() }?))),
        // SAFETY: only `pthread_mutex_unlock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_mutex_unlock(pointer) },
        Served::Invalid => libc::EINVAL,
    }
}
