//! `pthread_mutex_*`.
//!
//! # Forty bytes
//!
//! | offset | ours | the C library's |
//! |--------|------|-----------------|
//! | 0 | [`RawPosixMutex`], 8 bytes | `__lock`, `__count` |
//! | 12 | `users`: the number of condition-variable waits that use it | `__nusers` |
//! | 16 | `kind` | `__kind` |
//! | 20 | `more_levels`: levels of a recursive mutex (1) | `__spins` |
//!
//! 1. Those beyond the levels that a raw mutex counts. The field belongs to the owner.
//!
//! The kind lies at the same offset in both layouts and determines which library serves a mutex:
//!
//! | `kind` | mutex | served by |
//! |--------|-------|-----------|
//! | 0 | private and plain: all zeros is a free mutex | us |
//! | 1, 2, 3 | recursive, error-checking, adaptive: from a static initialiser | us (2) |
//! | `MADE` and a type | recursive, error-checking or priority-inheriting, private | us |
//! | bit 4, 6 or 7 | robust, priority-protected, process-shared | the C library |
//! | all ones | destroyed | neither: `EINVAL` |
//!
//! 2. It becomes one of the other kinds on first use.

use crate::attributes::{MutexAttributes, mutex_type};
use crate::call::{self, Call, Ended};
use crate::mode;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use libc::{clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};
use waitword::abi_support::{GivenBack, LateWaiter, MutexHalves as _};
use waitword::{
    Deadline, Kind, LockError, PosixFlavour, PosixMutexOptions, RawPosixMutex, Semaphore,
};
use waitword_abi::{Number, answer, clock, deadline};

mod glibc {
    use super::{c_int, clockid_t, pthread_mutex_t, pthread_mutexattr_t, timespec};

    crate::real::real! {
        fn pthread_mutex_init(
            mutex: *mut pthread_mutex_t,
            attributes: *const pthread_mutexattr_t
        ) -> c_int;
        fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int;
        fn pthread_mutex_clocklock(
            mutex: *mut pthread_mutex_t,
            clock: clockid_t,
            until: *const timespec
        ) -> c_int;
        fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    }
}

/// A `pthread_mutex_t` in our layout.
#[repr(C)]
pub(crate) struct Mutex {
    raw: RawPosixMutex,
    _owner: u32,
    pub(crate) users: AtomicU32,
    kind: AtomicU32,
    more_levels: AtomicU32,
    _rest: [u32; 4],
}

const _: () = assert!(size_of::<Mutex>() == size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, kind) == 16);

/// The bits of `kind`.
mod kind {
    pub(super) const PLAIN: u32 = 0;
    pub(super) const ROBUST: u32 = 16;
    pub(super) const INHERITS: u32 = 32;
    pub(super) const PROTECTS: u32 = 64;
    pub(super) const PROCESS_SHARED: u32 = 128;
    /// The raw mutex has been initialised for this kind.
    pub(super) const MADE: u32 = 1 << 16;
    pub(super) const DESTROYED: u32 = u32::MAX;
}

/// Which library serves a mutex.
pub(crate) enum Served<'a> {
    /// We do.
    Ours(&'a RawPosixMutex),
    /// The C library does.
    Elsewhere,
    /// Neither: it was destroyed, or never was a mutex.
    Invalid,
}

impl Mutex {
    /// The mutex behind the C pointer.
    ///
    /// # Safety
    /// It points to a mutex that exists for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at<'a>(pointer: *const pthread_mutex_t) -> &'a Self {
        // SAFETY: a mutex exists for `'a`, by this function's contract. `Mutex` has the same size
        // and no larger alignment (asserted above), any bytes are a valid `Mutex`, and everything
        // in it that changes is atomic.
        unsafe { &*pointer.cast::<Self>() }
    }

    /// Whether the mutex behind the C pointer is ours.
    ///
    /// # Safety
    /// It points to a mutex.
    pub(crate) unsafe fn is_ours(pointer: *const pthread_mutex_t) -> bool {
        // SAFETY: forwards this function's own contract.
        matches!(unsafe { Self::at(pointer) }.served(), Served::Ours(_))
    }

    /// A free mutex of ours.
    fn new(wanted: MutexAttributes) -> Self {
        let raw = match wanted.mutex_type() {
            mutex_type::RECURSIVE => Kind::Recursive,
            mutex_type::ERROR_CHECKING => Kind::ErrorChecking,
            _ => Kind::Normal,
        };
        let options = PosixMutexOptions::new().kind(raw);
        let inherits = wanted.inherits_priority();
        let options = match inherits {
            true => options.flavour(PosixFlavour::PriorityInheriting),
            false => options,
        };
        let kind = match (inherits, raw) {
            (false, Kind::Normal) => kind::PLAIN,
            (false, _) => kind::MADE | wanted.mutex_type(),
            (true, _) => kind::MADE | kind::INHERITS | wanted.mutex_type(),
        };
        Self {
            raw: options.build_raw(),
            _owner: 0,
            users: AtomicU32::new(0),
            kind: AtomicU32::new(kind),
            more_levels: AtomicU32::new(0),
            _rest: [0; 4],
        }
    }

    /// Counts another lock by the owner, beyond the levels that a raw mutex counts.
    #[cold]
    fn lock_once_more(&self) -> c_int {
        // Relaxed: only the owner accesses it.
        match self.more_levels.load(Relaxed).checked_add(1) {
            Some(more) => {
                self.more_levels.store(more, Relaxed);
                0
            }
            None => libc::EAGAIN,
        }
    }

    /// Releases one of those levels if the caller holds the mutex that often; returns whether it
    /// did.
    fn unlock_once_less(&self) -> bool {
        let more = self.more_levels.load(Relaxed);
        // For a thread that is not the owner, the result is that the mutex is held.
        let is_owner = || self.raw.try_lock_checked() == Err(LockError::TooMany);
        if more == 0 || !is_owner() {
            return false;
        }
        self.more_levels.store(more - 1, Relaxed);
        true
    }

    /// Unlocks it if that takes no more than a step or two.
    #[inline(always)]
    fn gives_back_at_once<'a>(&self, raw: &'a RawPosixMutex) -> GivenBack<'a> {
        match self.more_levels.load(Relaxed) {
            // SAFETY: `owned` was asked for `raw`, so it records its owner and can check whether
            // that is the caller.
            0 => unsafe { raw.unlock_owned_at_once() },
            _ => GivenBack::No,
        }
    }

    fn is_of_normal_type(&self) -> bool {
        matches!(
            self.kind.load(Relaxed) & 3,
            mutex_type::NORMAL | mutex_type::ADAPTIVE
        )
    }

    /// The most common kind: this checks only one word of the mutex and one of ours.
    #[inline(always)]
    fn plain(&self) -> Option<&RawPosixMutex> {
        // Relaxed: the kind was written before the mutex was published.
        (self.kind.load(Relaxed) == kind::PLAIN && mode::is_fast()).then_some(&self.raw)
    }

    /// The raw mutex, if the mutex is known to be ours and records its owner.
    #[inline(always)]
    fn owned(&self) -> Option<&RawPosixMutex> {
        // Relaxed: as in `plain`. A destroyed mutex has no such state in its raw mutex.
        (self.kind.load(Relaxed) & kind::MADE != 0 && mode::is_fast()).then_some(&self.raw)
    }

    /// Which library serves it; turns what a static initialiser has written into a raw mutex.
    #[cold]
    #[inline(never)]
    pub(crate) fn served(&self) -> Served<'_> {
        if !mode::is_on() {
            return Served::Elsewhere;
        }
        match self.kind.load(Relaxed) {
            kind::PLAIN => Served::Ours(&self.raw),
            kind::DESTROYED => Served::Invalid,
            made if made & kind::MADE != 0 => Served::Ours(&self.raw),
            mutex_type::ADAPTIVE => {
                self.kind.store(kind::PLAIN, Relaxed);
                Served::Ours(&self.raw)
            }
            recursive @ mutex_type::RECURSIVE => self.make(recursive, Kind::Recursive),
            checking @ mutex_type::ERROR_CHECKING => self.make(checking, Kind::ErrorChecking),
            theirs if theirs & (kind::ROBUST | kind::PROTECTS | kind::PROCESS_SHARED) != 0 => {
                Served::Elsewhere
            }
            _ => Served::Invalid,
        }
    }

    /// Turns zeros with the kind of a static initialiser into the corresponding raw mutex.
    fn make(&self, of_type: u32, raw: Kind) -> Served<'_> {
        let made = PosixMutexOptions::new().kind(raw).build_raw();
        // SAFETY: two atomics of four bytes; any bytes are two numbers.
        let [made, data]: [u32; 2] = unsafe { core::mem::transmute(made) };
        debug_assert_eq!(data, 0, "as the static initialiser has it");
        let word = core::ptr::from_ref(&self.raw).cast::<AtomicU32>();
        // SAFETY: a raw mutex begins with its word, an atomic of this size, which all its users
        // access as such; `self` keeps it borrowed.
        let word = unsafe { &*word };
        // Relaxed: this publishes nothing but the word itself. A thread that comes second finds it
        // initialised, perhaps locked.
        let _ = word.compare_exchange(0, made, Relaxed, Relaxed);
        self.kind.store(of_type | kind::MADE, Relaxed);
        Served::Ours(&self.raw)
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
        Err(LockError::TooMany) => this.lock_once_more(),
        Err(error) => answer(|| Err(error.into())),
    }
}

/// Locks a plain mutex that is not free, or that is more than just locked. A call begins only if
/// the thread has to wait: a call takes as long as a short section.
#[inline(never)]
extern "C-unwind" fn lock_contended(raw: &RawPosixMutex) -> c_int {
    match raw.barge_plain() {
        true => 0,
        false => lock_among_others(raw),
    }
}

/// There is nothing to refuse, unless the mutex's bytes were overwritten, for instance by a process
/// that shares them.
#[inline(never)]
extern "C-unwind" fn lock_among_others(raw: &RawPosixMutex) -> c_int {
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
        false => unsafe { unlock_among_others(raw) },
    }
}

/// # Safety
/// As [`unlock_contended`].
#[inline(never)]
unsafe extern "C-unwind" fn unlock_among_others(raw: &RawPosixMutex) -> c_int {
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
    // and no larger alignment (asserted above).
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
                this.kind.store(kind::DESTROYED, Relaxed);
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
    mode::count_lock();
    match this.served() {
        // It comes here only to be counted, and is locked as if it were not.
        Served::Ours(raw) if this.kind.load(Relaxed) == kind::PLAIN => {
            match raw.lock_plain_at_once() {
                true => 0,
                false => lock_contended(raw),
            }
        }
        Served::Ours(raw) => {
            let work = |call: &Call| {
                let until = call.until(None);
                call.ended(locked(raw.lock_until(until), this, until))
            };
            call::run(work, |ended| give_back(raw, ended))
        }
        // SAFETY: only `pthread_mutex_lock` calls this, with its own arguments: POSIX's contract
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
        Served::Ours(raw) => {
            let answered = try_locked(raw, this);
            if answered == 0 {
                mode::count_lock();
            }
            answered
        }
        // SAFETY: only `pthread_mutex_trylock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_mutex_trylock(pointer) },
        Served::Invalid => libc::EINVAL,
    }
}

/// Tries to lock a mutex of ours; returns the error number. Touches nothing but the mutex.
fn try_locked(raw: &RawPosixMutex, this: &Mutex) -> c_int {
    match raw.try_lock_checked() {
        Err(LockError::TooMany) => this.lock_once_more(),
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
        Served::Ours(raw) => {
            mode::count_lock();
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
                    call::run(work, |ended| give_back(raw, ended))
                }
                // It would not have waited.
                Err(_) if raw.would_deadlock() && !this.is_of_normal_type() => libc::EDEADLK,
                Err(Number(number)) => number,
            }
        }
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe {
            glibc::pthread_mutex_clocklock(pointer, clock_number, until)
        },
        Served::Invalid => libc::EINVAL,
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
    match this.owned().map(|raw| this.gives_back_at_once(raw)) {
        Some(GivenBack::Yes) => 0,
        Some(GivenBack::Unless(waiter)) => wake_late(waiter),
        _ => unlock_served(pointer, this),
    }
}

#[cold]
#[inline(never)]
extern "C-unwind" fn unlock_served(pointer: *mut pthread_mutex_t, this: &Mutex) -> c_int {
    match this.served() {
        Served::Ours(_) if this.unlock_once_less() => 0,
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

/// Which thread may unlock a mutex of the C library's.
pub(crate) mod glibc_owner {
    use super::{Mutex, kind, mutex_type, pthread_mutex_t};
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// Whether an unlock by the calling thread succeeds: the mutex records no owner, or the caller
    /// is the owner.
    ///
    /// # Safety
    /// It points to a mutex of the C library's.
    pub(crate) unsafe fn may_unlock(pointer: *const pthread_mutex_t) -> bool {
        const OWNER: usize = 8;
        // SAFETY: a mutex, by this function's contract.
        let kind = unsafe { Mutex::at(pointer) }.kind.load(Relaxed);
        let owner = pointer.wrapping_byte_add(OWNER).cast::<AtomicU32>();
        // SAFETY: glibc keeps the owner eight bytes from the start of a mutex, which exists by this
        // function's contract: four aligned bytes, which glibc changes by plain stores of that
        // size.
        let owner = unsafe { &*owner };
        // SAFETY: it cannot fail.
        let caller = unsafe { libc::gettid() } as u32;
        let is_looked_at = kind & (kind::ROBUST | kind::INHERITS | kind::PROTECTS) != 0
            || matches!(kind & 3, mutex_type::RECURSIVE | mutex_type::ERROR_CHECKING);
        !is_looked_at || owner.load(Relaxed) == caller
    }
}
