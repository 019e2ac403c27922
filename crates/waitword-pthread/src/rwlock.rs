//! `pthread_rwlock_*`.
//!
//! # Fifty-six bytes
//!
//! | offset | ours | the C library's |
//! |--------|------|-----------------|
//! | 0 | [`RawRwLock`], 8 bytes | `__readers`, `__writers` |
//! | 8 | `whose`: [`OURS`], once decided | `__wrphase_futex`, 0 to 3 |
//! | 16 | `writer`: the thread pointer of the writer that holds it | unused |
//! | 28 | 0 | `__shared` |
//! | 48 | the kind, as the static initialiser wrote it | `__flags` |
//!
//! | `whose` | `__shared` | lock | served by |
//! |---------|------------|------|-----------|
//! | `OURS` | any | private, initialised or used before | us |
//! | 0 | 0 | from a static initialiser, not used yet | us; becomes `OURS` on first use |
//! | anything else | any | process-shared, or initialised with `WAITWORD=off` | the C library |
//!
//! # The writer
//!
//! `EDEADLK` requires knowing the writer. The word itself has room for a number, but storing one
//! there is not free. So the address of the writer's thread block lies beside it: one plain store
//! when the lock is taken and one when it is released (glibc stores its thread's number in the same
//! way). Only the thread itself ever finds its own address there, so no ordering is needed. The
//! field also tells `unlock` that a writer leaves.
//!
//! # Preference, and real-time threads
//!
//! glibc's kinds 0 and 1 are waitword's reader preference, kind 2 is its writer preference; neither
//! class starves (see [`Preference`]). For threads under `SCHED_FIFO` and `SCHED_RR` POSIX's option
//! "Thread Execution Scheduling" demands more, whatever the kind, and glibc implements none of it:
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

use crate::attributes::{RwLockAttributes, preference_of_kind};
use crate::call::{self, Call, Ended};
use crate::mode;
use core::ffi::c_int;
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
};
use libc::{clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use waitword::abi_support::RwLockHalves as _;
use waitword::{Deadline, Preference, RawRwLock, Scope};
use waitword_abi::{Number, answer, clock, deadline};

mod glibc {
    use super::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};

    crate::real::real! {
        fn pthread_rwlock_init(
            lock: *mut pthread_rwlock_t,
            attributes: *const pthread_rwlockattr_t
        ) -> c_int;
        fn pthread_rwlock_rdlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_tryrdlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_clockrdlock(
            lock: *mut pthread_rwlock_t,
            clock: clockid_t,
            until: *const timespec
        ) -> c_int;
        fn pthread_rwlock_wrlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_trywrlock(lock: *mut pthread_rwlock_t) -> c_int;
        fn pthread_rwlock_clockwrlock(
            lock: *mut pthread_rwlock_t,
            clock: clockid_t,
            until: *const timespec
        ) -> c_int;
        fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int;
    }
}

/// A `pthread_rwlock_t` in our layout.
#[repr(C)]
struct RwLock {
    raw: RawRwLock,
    whose: AtomicU32,
    _writers_futex: u32,
    writer: AtomicUsize,
    _cur_writer: u32,
    shared: AtomicU32,
    _rest: [u32; 4],
    kind: i32,
    _end: u32,
}

const _: () = assert!(size_of::<RwLock>() == size_of::<pthread_rwlock_t>());
const _: () = assert!(align_of::<RwLock>() <= align_of::<pthread_rwlock_t>());
const _: () = assert!(core::mem::offset_of!(RwLock, shared) == 28);
const _: () = assert!(core::mem::offset_of!(RwLock, kind) == 48);

const UNDECIDED: u32 = 0;
/// A value that glibc never writes there.
const OURS: u32 = u32::from_be_bytes(*b"wwRW");
/// Ours, in a process that counts locks (`mode.rs`): its fast paths defer to the slow ones.
const COUNTED: u32 = u32::from_be_bytes(*b"wwRC");

/// The value of `whose` for our locks.
fn says_ours() -> u32 {
    if mode::is_counting() { COUNTED } else { OURS }
}

/// Which library serves a lock.
enum Served<'a> {
    /// We do.
    Ours(&'a RawRwLock),
    /// The C library does.
    Elsewhere,
}

/// The lock behind the C pointer.
///
/// # Safety
/// It points to a lock that exists for `'a`.
#[inline(always)]
unsafe fn rwlock<'a>(pointer: *const pthread_rwlock_t) -> &'a RwLock {
    // SAFETY: a lock exists for `'a`, by this function's contract. `RwLock` has the same size and
    // no larger alignment (asserted above), any bytes are a valid `RwLock`, and everything in it
    // that changes is atomic.
    unsafe { &*pointer.cast::<RwLock>() }
}

impl RwLock {
    /// A free lock of ours.
    fn new(wanted: RwLockAttributes) -> Self {
        Self {
            raw: RawRwLock::with(wanted.preference(), Scope::Private),
            whose: AtomicU32::new(says_ours()),
            _writers_futex: 0,
            writer: AtomicUsize::new(NOBODY),
            _cur_writer: 0,
            shared: AtomicU32::new(0),
            _rest: [0; 4],
            kind: 0,
            _end: 0,
        }
    }

    /// The raw lock, if this is known to be ours: reads one word of the lock.
    #[inline(always)]
    fn ours(&self) -> Option<&RawRwLock> {
        // Relaxed: a thread that sees this, but not yet what `decide` wrote before it, fails in its
        // first compare-and-swap.
        (self.whose.load(Relaxed) == OURS).then_some(&self.raw)
    }

    /// Which library serves it; turns what a static initialiser has written into a raw lock.
    #[inline]
    fn served(&self) -> Served<'_> {
        match self.ours() {
            Some(raw) => Served::Ours(raw),
            None => self.decide(),
        }
    }

    #[cold]
    #[inline(never)]
    fn decide(&self) -> Served<'_> {
        let whose = self.whose.load(Relaxed);
        // Not only counted ones: another thread may have decided since the caller's check.
        if whose == COUNTED || whose == OURS {
            return Served::Ours(&self.raw);
        }
        let is_new = whose == UNDECIDED && self.shared.load(Relaxed) == 0;
        if !is_new || !mode::is_on() {
            return Served::Elsewhere;
        }
        if preference_of_kind(self.kind) == Preference::Writer {
            let made = RawRwLock::with(Preference::Writer, Scope::Private);
            // SAFETY: a raw lock is one atomic of eight bytes.
            let made: u64 = unsafe { core::mem::transmute(made) };
            let word = core::ptr::from_ref(&self.raw).cast::<AtomicU64>();
            // SAFETY: a raw lock is one atomic of eight bytes, and `self` keeps it borrowed.
            let word = unsafe { &*word };
            // Relaxed: this publishes nothing but the word itself. A thread that comes second finds
            // it initialised, perhaps locked.
            let _ = word.compare_exchange(0, made, Relaxed, Relaxed);
        }
        self.whose.store(says_ours(), Release);
        Served::Ours(&self.raw)
    }

    /// Locks it for reading. `EDEADLK` if the caller holds it for writing.
    fn read(&self, raw: &RawRwLock, until: Option<&Deadline>) -> c_int {
        if self.writer.load(Relaxed) == myself() {
            return libc::EDEADLK;
        }
        let work = |call: &Call| {
            let until = call.until(until);
            call.ended(answer(|| Ok(raw.read(0, Some(&until))?)))
        };
        let undo = |ended: Ended| {
            if ended.is_done() {
                unlock_now(raw);
            }
        };
        call::run(work, undo)
    }

    /// Locks it for writing. `EDEADLK` if the caller already holds it for writing.
    fn write(&self, raw: &RawRwLock, until: Option<&Deadline>) -> c_int {
        if self.writer.load(Relaxed) == myself() {
            return libc::EDEADLK;
        }
        let work = |call: &Call| {
            let until = call.until(until);
            call.ended(answer(|| {
                raw.write(0, Some(&until))?;
                self.says_who_writes();
                Ok(())
            }))
        };
        let undo = |ended: Ended| {
            if ended.is_done() {
                self.forgets_who_writes();
                unlock_now(raw);
            }
        };
        call::run(work, undo)
    }

    /// Records the caller as the writer.
    #[inline(always)]
    fn says_who_writes(&self) {
        self.writer.store(myself(), Relaxed);
    }

    /// Whether the lock is held for writing. If so, clears the recorded writer, which is about to
    /// release it.
    #[inline(always)]
    fn forgets_who_writes(&self) -> bool {
        let is_written = self.writer.load(Relaxed) != NOBODY;
        if is_written {
            // Before the lock is released, and so before the next writer records itself.
            self.writer.store(NOBODY, Relaxed);
        }
        is_written
    }
}

/// No thread.
const NOBODY: usize = 0;

/// Identifies the calling thread: the address of its thread block. It is the same in a forked child
/// as in the thread that forked, so the child may release what that thread held.
#[inline(always)]
fn myself() -> usize {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
    {
        let block: usize;
        // SAFETY: the ABI keeps the thread block's own address at its beginning, which `fs` points
        // to, and it does not change while the thread lives.
        unsafe {
            core::arch::asm!(
                "mov {}, fs:0",
                out(reg) block,
                options(nostack, preserves_flags, pure, readonly),
            );
        }
        block
    }
    #[cfg(target_arch = "aarch64")]
    {
        let block: usize;
        // SAFETY: it reads a register that user space may read, and no memory.
        unsafe {
            core::arch::asm!(
                "mrs {}, tpidr_el0",
                out(reg) block,
                options(nostack, preserves_flags, pure, nomem),
            );
        }
        block
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // SAFETY: `pthread_self` has no preconditions.
        unsafe { libc::pthread_self() as usize }
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
    // and no larger alignment (asserted above).
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
    let this = unsafe { rwlock(pointer) };
    match this.ours() {
        Some(raw) if raw.read_at_once() => 0,
        _ => read_served(pointer, this),
    }
}

/// The rest of it, also for readers of a biased lock.
#[inline(never)]
extern "C-unwind" fn read_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    mode::count_lock();
    match this.served() {
        // It does not wait and holds nothing on its way, so nothing needs to be undone.
        Served::Ours(raw) if raw.read_past_others() => 0,
        Served::Ours(raw) => this.read(raw, None),
        // SAFETY: only `pthread_rwlock_rdlock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_rdlock(pointer) },
    }
}

/// Locks it for reading if that needs no waiting. Source: POSIX `pthread_rwlock_tryrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_tryrdlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { rwlock(pointer) };
    match this.ours() {
        Some(raw) if raw.read_at_once() => 0,
        _ => try_read_served(pointer, this),
    }
}

/// The rest of it, also for readers of a biased lock.
#[inline(never)]
extern "C-unwind" fn try_read_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => call::run_through(|| {
            answer(|| {
                raw.try_read()?;
                mode::count_lock();
                Ok(())
            })
        }),
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

/// Locks it for reading, waiting until a time of this clock at the latest. An invalid clock or time
/// is refused before anything else, as by glibc. Source: POSIX 2024 `pthread_rwlock_clockrdlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_clockrdlock(
    pointer: *mut pthread_rwlock_t,
    clock_number: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { rwlock(pointer) };
    match this.served() {
        Served::Ours(raw) => {
            // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
            let until = clock(clock_number).and_then(|clock| unsafe { deadline(clock, until) });
            match until {
                Ok(until) => {
                    mode::count_lock();
                    match raw.read_at_once() {
                        true => 0,
                        false => this.read(raw, Some(&until)),
                    }
                }
                Err(Number(number)) => number,
            }
        }
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe {
            glibc::pthread_rwlock_clockrdlock(pointer, clock_number, until)
        },
    }
}

/// Locks it for writing. Source: POSIX `pthread_rwlock_wrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_wrlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { rwlock(pointer) };
    match this.ours() {
        Some(raw) if raw.write_at_once() => {
            this.says_who_writes();
            0
        }
        _ => write_served(pointer, this),
    }
}

#[cold]
#[inline(never)]
extern "C-unwind" fn write_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    mode::count_lock();
    match this.served() {
        Served::Ours(raw) => this.write(raw, None),
        // SAFETY: only `pthread_rwlock_wrlock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_wrlock(pointer) },
    }
}

/// Locks it for writing if that needs no waiting. Source: POSIX `pthread_rwlock_trywrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_trywrlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { rwlock(pointer) };
    match this.ours() {
        Some(raw) if raw.write_at_once() => {
            this.says_who_writes();
            0
        }
        _ => try_write_served(pointer, this),
    }
}

#[inline(never)]
extern "C-unwind" fn try_write_served(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => call::run_through(|| {
            answer(|| {
                raw.try_write(0)?;
                mode::count_lock();
                this.says_who_writes();
                Ok(())
            })
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

/// Locks it for writing, waiting until a time of this clock at the latest. An invalid clock or time
/// is refused before anything else, as by glibc. Source: POSIX 2024 `pthread_rwlock_clockwrlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_clockwrlock(
    pointer: *mut pthread_rwlock_t,
    clock_number: clockid_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { rwlock(pointer) };
    match this.served() {
        Served::Ours(raw) => {
            // SAFETY: a time, by POSIX's contract, or NULL, which is reported as an error.
            let until = clock(clock_number).and_then(|clock| unsafe { deadline(clock, until) });
            match until {
                Ok(until) => {
                    mode::count_lock();
                    if raw.write_at_once() {
                        this.says_who_writes();
                        return 0;
                    }
                    this.write(raw, Some(&until))
                }
                Err(Number(number)) => number,
            }
        }
        // SAFETY: forwards this function's own contract, POSIX's, to the function of the same name.
        Served::Elsewhere => unsafe {
            glibc::pthread_rwlock_clockwrlock(pointer, clock_number, until)
        },
    }
}

/// Unlocks it, whichever way it is held. `EPERM` if no thread holds it. The calling thread is not
/// checked, so a thread may release what another has taken, as with glibc. Source: POSIX
/// `pthread_rwlock_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_rwlock_unlock(pointer: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: a lock that exists during this call, by POSIX's contract.
    let this = unsafe { rwlock(pointer) };
    match this.ours() {
        Some(raw) => unlock_ours(raw, this.forgets_who_writes()),
        None => unlock_theirs(pointer, this),
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
        false => unlock_among_others(raw),
    }
}

/// Unlocks it if other threads read or wait, or if no thread holds it.
#[inline(never)]
extern "C-unwind" fn unlock_among_others(raw: &RawRwLock) -> c_int {
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
extern "C-unwind" fn unlock_theirs(pointer: *mut pthread_rwlock_t, this: &RwLock) -> c_int {
    match this.served() {
        Served::Ours(raw) => unlock_ours(raw, this.forgets_who_writes()),
        // SAFETY: only `pthread_rwlock_unlock` calls this, with its own arguments: POSIX's contract
        // for that call holds. The object is the C library's.
        Served::Elsewhere => unsafe { glibc::pthread_rwlock_unlock(pointer) },
    }
}
