//! `pthread_rwlock_*`.
//!
//! # Preference, and real-time threads
//!
//! glibc's kinds 0 and 1 are waitword's reader preference, kind 2 is its writer preference; neither
//! class starves (see [`waitword::Preference`]). For threads under `SCHED_FIFO` and `SCHED_RR`
//! POSIX's option "Thread Execution Scheduling" demands more, whatever the kind, and glibc
//! implements none of it:
//!
//! | POSIX | here |
//! |-------|------|
//! | when the lock becomes free, the highest priority gets it first | yes |
//! | at equal priority, writers before readers | yes |
//! | a reader waits while writers of its priority or a higher one wait | yes, but not forever (1) |
//! | a reader of a higher priority than those writers does not wait | it waits briefly (2) |
//!
//! 1. It may already hold a read lock. It waits as long as that writer has waited so far, 1 ms at
//!    first.
//! 2. For the next release, or for 1 ms.
//!
//! A changed priority takes effect the next time that its thread queues, at most 10 ms late.

mod object;

use crate::attributes::{Attributes as _, RwLockAttributes};
use crate::call::{self, Call, Ended};
use crate::record::Release;
use crate::{mode, record};
use core::ffi::c_int;
use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use object::{RwLock, Served};
use waitword::abi_support::RwLockHooks as _;
use waitword::{Deadline, RawRwLock, RwLockError};
use waitword_abi::{Number, answer, deadline_on};
use waitword_record::Take;
use waitword_record::format::Object;

mod glibc {
    use super::{c_int, pthread_rwlock_t, pthread_rwlockattr_t};

    crate::real::real! {
        fn pthread_rwlock_init(
            lock: *mut pthread_rwlock_t,
            attributes: *const pthread_rwlockattr_t
        ) -> c_int;
        fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int;
    }

    crate::real::real_until! {
        fn pthread_rwlock_clockrdlock or pthread_rwlock_timedrdlock (lock: *mut pthread_rwlock_t);
        fn pthread_rwlock_clockwrlock or pthread_rwlock_timedwrlock (lock: *mut pthread_rwlock_t);
    }
}

impl RwLock {
    /// Locks it for reading. `EDEADLK` if the caller holds it for writing.
    fn read(&self, raw: &RawRwLock, until: Option<&Deadline>) -> c_int {
        let undo = || {
            unlock_now(raw);
        };
        self.lock(until, |until| raw.read(0, Some(until)), undo)
    }

    /// Locks it for writing. `EDEADLK` if the caller already holds it for writing.
    fn write(&self, raw: &RawRwLock, until: Option<&Deadline>) -> c_int {
        let take = |until: &Deadline| {
            raw.write(0, Some(until))?;
            self.record_writer();
            Ok(())
        };
        let undo = || {
            self.clear_writer();
            unlock_now(raw);
        };
        self.lock(until, take, undo)
    }

    /// Locks it by `take`. `undo` releases it if the thread leaves the call.
    #[inline(always)]
    fn lock(
        &self,
        until: Option<&Deadline>,
        take: impl Fn(&Deadline) -> Result<(), RwLockError>,
        undo: impl Fn(),
    ) -> c_int {
        if self.is_written_by_caller() {
            return libc::EDEADLK;
        }
        let work = |call: &Call| {
            let until = call.until(until);
            call.ended(answer(|| Ok(take(&until)?)))
        };
        let undo_if_done = |ended: Ended| {
            if ended.is_done() {
                undo();
            }
        };
        call::run(work, undo_if_done)
    }

    /// Locks it for writing if one step does that.
    #[inline(always)]
    fn write_at_once(&self, raw: &RawRwLock) -> bool {
        let is_done = raw.write_at_once();
        if is_done {
            self.record_writer();
        }
        is_done
    }
}

/// Locks if that needs no waiting.
#[inline(always)]
fn try_lock(
    (object, pointer): (Object, *mut pthread_rwlock_t),
    take: impl Fn() -> Result<(), RwLockError>,
) -> c_int {
    let number = call::run_through(|| answer(|| Ok(take()?)));
    if number == 0 && mode::is_watched() {
        mode::count_lock();
        let is_contended = record::is_wanted(pointer);
        record::taken(number, pointer, Take { to_read: object == Object::Read, is_contended });
    }
    number
}

/// Locks, waiting until a time at the latest. An invalid clock or time is refused before anything
/// else, as by glibc.
#[inline(always)]
fn lock_until(
    (object, pointer): (Object, *mut pthread_rwlock_t),
    until: Result<Deadline, Number>,
    at_once: impl FnOnce() -> bool,
    wait: impl Fn(&Deadline) -> c_int,
) -> c_int {
    match until {
        Ok(until) if mode::is_watched() => {
            mode::count_lock();
            let (number, has_waited) = match at_once() {
                true => (0, false),
                false => (record::waiting_until(object, pointer, || wait(&until)), true),
            };
            let is_contended = has_waited || record::is_wanted(pointer);
            record::taken(number, pointer, Take { to_read: object == Object::Read, is_contended })
        }
        Ok(until) => match at_once() {
            true => 0,
            false => wait(&until),
        },
        Err(Number(number)) => number,
    }
}

/// Initialises a lock. Source: POSIX `pthread_rwlock_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_init(
    pointer: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    // SAFETY: NULL or initialised attributes, by POSIX's contract.
    let wanted = unsafe { RwLockAttributes::read(attributes) };
    if !mode::is_on() || wanted.is_the_c_librarys() {
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        return unsafe { glibc::pthread_rwlock_init(pointer, attributes) };
    }
    // SAFETY: memory for a lock that is not in use, by POSIX's contract; `RwLock` has the same size
    // and no larger alignment (asserted in `object.rs`).
    unsafe { pointer.cast::<RwLock>().write(RwLock::new(wanted)) };
    0
}

/// Destroys a lock. It does nothing and reads nothing, like glibc's, whichever library serves the
/// lock: programs destroy locks that they hold, and lock what they have destroyed, as they end.
/// Source: POSIX `pthread_rwlock_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_destroy(_: *mut pthread_rwlock_t) -> c_int {
    0
}

/// Locks it for reading. Source: POSIX `pthread_rwlock_rdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_rdlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.ours() {
        Some(raw) if raw.read_at_once() => 0,
        _ => read_served(pointer, this),
    }
}

/// The rest of it, also for readers of a biased lock.
#[inline(never)]
extern "C-unwind" fn read_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match mode::is_watched() {
        true => read_watched(pointer, this),
        false => read_now(pointer, this),
    }
}

/// Locks it for reading, and counts and records that.
#[cold]
#[inline(never)]
extern "C-unwind" fn read_watched(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    mode::count_lock();
    this.count();
    let (number, has_waited) = match this.served() {
        Served::Ours(raw) if raw.read_at_once() || raw.read_past_others() => (0, false),
        _ => (record::waiting(Object::Read, pointer, || read_now(pointer, this)), true),
    };
    let is_contended = has_waited || record::is_wanted(pointer);
    record::taken(number, pointer, Take { to_read: true, is_contended })
}

#[inline(always)]
fn read_now(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        // It does not wait and holds nothing on its way, so nothing needs to be undone.
        Served::Ours(raw) if raw.read_past_others() => 0,
        Served::Ours(raw) => this.read(raw, None),
        // SAFETY: only `pthread_rwlock_rdlock` leads here, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_rdlock(pointer) },
    }
}

/// Locks it for reading if that needs no waiting. Source: POSIX `pthread_rwlock_tryrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_tryrdlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.ours() {
        Some(raw) if raw.read_at_once() => 0,
        _ => try_read_served(pointer, this),
    }
}

/// The rest of it, also for readers of a biased lock.
#[inline(never)]
extern "C-unwind" fn try_read_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => try_lock((Object::Read, pointer), || raw.try_read()),
        // SAFETY: only `pthread_rwlock_tryrdlock` calls this, with its own arguments: POSIX's
        // contract for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_tryrdlock(pointer) },
    }
}

/// Locks it for reading, waiting until a time of `CLOCK_REALTIME` at the latest. Source: POSIX
/// `pthread_rwlock_timedrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_timedrdlock(
    pointer: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { pthread_rwlock_clockrdlock(pointer, libc::CLOCK_REALTIME, until) }
}

/// Locks it for reading, waiting until a time of this clock at the latest. Source: POSIX 2024
/// `pthread_rwlock_clockrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_clockrdlock(
    pointer: *mut pthread_rwlock_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.served() {
        Served::Ours(raw) => lock_until(
            (Object::Read, pointer),
            // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
            unsafe { deadline_on(clock, until) },
            || raw.read_at_once(),
            |until| this.read(raw, Some(until)),
        ),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_clockrdlock(pointer, clock, until) },
    }
}

/// Locks it for writing. Source: POSIX `pthread_rwlock_wrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_wrlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.ours() {
        Some(raw) if this.write_at_once(raw) => 0,
        _ => write_served(pointer, this),
    }
}

#[cold]
#[inline(never)]
extern "C-unwind" fn write_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match mode::is_watched() {
        true => write_watched(pointer, this),
        false => write_now(pointer, this),
    }
}

/// Locks it for writing, and counts and records that.
#[cold]
#[inline(never)]
extern "C-unwind" fn write_watched(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    mode::count_lock();
    this.count();
    let (number, has_waited) = match this.served() {
        Served::Ours(raw) if this.write_at_once(raw) => (0, false),
        _ => (record::waiting(Object::Write, pointer, || write_now(pointer, this)), true),
    };
    let is_contended = has_waited || record::is_wanted(pointer);
    record::taken(number, pointer, Take { to_read: false, is_contended })
}

#[inline(always)]
fn write_now(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => this.write(raw, None),
        // SAFETY: only `pthread_rwlock_wrlock` leads here, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_wrlock(pointer) },
    }
}

/// Locks it for writing if that needs no waiting. Source: POSIX `pthread_rwlock_trywrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_trywrlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.ours() {
        Some(raw) if this.write_at_once(raw) => 0,
        _ => try_write_served(pointer, this),
    }
}

#[inline(never)]
extern "C-unwind" fn try_write_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => try_lock((Object::Write, pointer), || {
            raw.try_write(0)?;
            this.record_writer();
            Ok(())
        }),
        // SAFETY: only `pthread_rwlock_trywrlock` calls this, with its own arguments: POSIX's
        // contract for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_trywrlock(pointer) },
    }
}

/// Locks it for writing, waiting until a time of `CLOCK_REALTIME` at the latest. Source: POSIX
/// `pthread_rwlock_timedwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_timedwrlock(
    pointer: *mut pthread_rwlock_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: forwards this function's own contract.
    unsafe { pthread_rwlock_clockwrlock(pointer, libc::CLOCK_REALTIME, until) }
}

/// Locks it for writing, waiting until a time of this clock at the latest. Source: POSIX 2024
/// `pthread_rwlock_clockwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_clockwrlock(
    pointer: *mut pthread_rwlock_t,
    clock: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.served() {
        Served::Ours(raw) => lock_until(
            (Object::Write, pointer),
            // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
            unsafe { deadline_on(clock, until) },
            || this.write_at_once(raw),
            |until| this.write(raw, Some(until)),
        ),
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_clockwrlock(pointer, clock, until) },
    }
}

/// Unlocks it, whichever way it is held. `EPERM` if no thread holds it. The calling thread is not
/// checked, so a thread may release what another has taken, as with glibc. Source: POSIX
/// `pthread_rwlock_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_unlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { RwLock::at(pointer) };
    match this.ours() {
        Some(raw) => unlock_ours(raw, this.clear_writer()),
        None => unlock_served(pointer, this),
    }
}

#[inline(always)]
fn unlock_ours(raw: &RawRwLock, is_written: bool) -> c_int {
    let is_done = match is_written {
        // SAFETY: `pthread_rwlock_unlock` was called: the caller holds the lock, or acts for the
        // thread that does, by POSIX's contract. It was seen to be held for writing.
        true => unsafe { raw.unlock_write_at_once() },
        // SAFETY: `pthread_rwlock_unlock` was called: the caller holds the lock, if it is held, or
        // acts for a thread that does, by POSIX's contract.
        false => unsafe { raw.unlock_read_at_once() },
    };
    match is_done {
        true => 0,
        false => unlock_in_call(raw),
    }
}

/// Unlocks it if other threads read or wait, or if no thread holds it.
#[inline(never)]
extern "C-unwind" fn unlock_in_call(raw: &RawRwLock) -> c_int {
    call::run_through(|| unlock_now(raw))
}

fn unlock_now(raw: &RawRwLock) -> c_int {
    // SAFETY: only `pthread_rwlock_unlock` and the undoing of a lock call lead here. In the first
    // case POSIX's contract for that call holds: the caller holds the lock, or acts for the thread
    // that does; if it is not held, that is detected. In the second the calling thread has just
    // locked it.
    answer(|| Ok(unsafe { raw.unlock() }?))
}

/// Unlocks a lock that has not been used yet, that is counted, or that is the C library's.
#[cold]
#[inline(never)]
extern "C-unwind" fn unlock_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => {
            if mode::is_watched() {
                let release = match raw.has_waiters() {
                    true => Release::ToAny,
                    false => Release::Alone,
                };
                record::releasing(pointer, release);
            }
            unlock_ours(raw, this.clear_writer())
        }
        // SAFETY: only `pthread_rwlock_unlock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_unlock(pointer) },
    }
}
