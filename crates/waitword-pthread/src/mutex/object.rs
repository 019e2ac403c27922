//! A `pthread_mutex_t`: its bytes, and which library serves it.
//!
//! # Forty bytes, or forty-eight on AArch64
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
use crate::mode;
use crate::record::Release;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use libc::pthread_mutex_t;
use waitword::abi_support::{GivenBack, MutexHooks as _};
use waitword::{Kind, LockError, PosixFlavour, PosixMutexOptions, RawPosixMutex};

/// A `pthread_mutex_t` in our layout.
#[repr(C)]
pub(crate) struct Mutex {
    raw: RawPosixMutex,
    /// The C library's; not used in ours.
    owner: AtomicU32,
    pub(crate) users: AtomicU32,
    kind: AtomicU32,
    more_levels: AtomicU32,
    _rest: [u32; REST],
}

/// The numbers behind the fields that are used.
const REST: usize = size_of::<pthread_mutex_t>() / size_of::<u32>() - 6;

const _: () = assert!(size_of::<Mutex>() == size_of::<pthread_mutex_t>());
const _: () = assert!(align_of::<Mutex>() <= align_of::<pthread_mutex_t>());
const _: () = assert!(core::mem::offset_of!(Mutex, owner) == 8);
const _: () = assert!(core::mem::offset_of!(Mutex, kind) == 16);

/// The bits of `kind`. The first five are glibc's (`nptl/pthreadP.h`): static initialisers that the
/// program was compiled with contain them.
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

    /// Whether it is of the most common kind.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        // Relaxed: the kind was written before the mutex was published.
        self.kind.load(Relaxed) == kind::PLAIN
    }

    /// The raw mutex, if the mutex is plain: this checks only one word of the mutex and one of
    /// ours.
    #[inline(always)]
    pub(super) fn plain(&self) -> Option<&RawPosixMutex> {
        (self.is_plain() && mode::is_fast()).then_some(&self.raw)
    }

    /// The raw mutex, if the mutex is plain, in a process that is watched, where
    /// [`plain`](Self::plain) is `None`.
    #[inline(always)]
    pub(super) fn plain_and_watched(&self) -> Option<&RawPosixMutex> {
        (self.is_plain() && mode::is_watched()).then_some(&self.raw)
    }

    /// Whether it is known to be ours and records its owner.
    #[inline(always)]
    pub(super) fn is_made(&self) -> bool {
        // Relaxed: as in `is_plain`.
        self.kind.load(Relaxed) & kind::MADE != 0
    }

    /// The raw mutex, if the mutex is known to be ours and records its owner.
    #[inline(always)]
    pub(super) fn owned(&self) -> Option<&RawPosixMutex> {
        // Relaxed: as in `is_plain`. A destroyed mutex has no such state in its raw mutex.
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

    /// Whether the C library lets the calling thread unlock this mutex of its own: it records no
    /// owner, or the caller is the owner.
    pub(crate) fn caller_may_unlock_theirs(&self) -> bool {
        let kind = self.kind.load(Relaxed);
        let records_owner = kind & (kind::ROBUST | kind::INHERITS | kind::PROTECTS) != 0
            || matches!(kind & 3, mutex_type::RECURSIVE | mutex_type::ERROR_CHECKING);
        // Not `libc::gettid`, which the C library has since 2.30 only.
        // SAFETY: it takes no arguments, and cannot fail.
        let caller = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        // Relaxed: only the owner finds its own number here.
        !records_owner || self.owner.load(Relaxed) == caller
    }

    /// How its holder would release it.
    pub(crate) fn release(&self) -> Release {
        match self.served() {
            Served::Ours(raw) if self.more_levels.load(Relaxed) == 0 => release_of(raw),
            _ => Release::Alone,
        }
    }

    /// Marks a mutex of ours as destroyed.
    pub(super) fn set_destroyed(&self) {
        self.kind.store(kind::DESTROYED, Relaxed);
    }

    /// A free mutex of ours.
    pub(super) fn new(wanted: MutexAttributes) -> Self {
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
            owner: AtomicU32::new(0),
            users: AtomicU32::new(0),
            kind: AtomicU32::new(kind),
            more_levels: AtomicU32::new(0),
            _rest: [0; REST],
        }
    }

    /// Counts another lock by the owner, beyond the levels that a raw mutex counts.
    #[cold]
    pub(super) fn lock_extra_level(&self) -> c_int {
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
    pub(super) fn unlock_extra_level(&self) -> bool {
        let more = self.more_levels.load(Relaxed);
        // For a thread that is not the owner, the result is that the mutex is held.
        let is_owner = || self.raw.try_lock_checked() == Err(LockError::TooMany);
        if more == 0 || !is_owner() {
            return false;
        }
        self.more_levels.store(more - 1, Relaxed);
        true
    }

    /// Unlocks it if a few instructions are enough.
    #[inline(always)]
    pub(super) fn release_at_once<'a>(&self, raw: &'a RawPosixMutex) -> GivenBack<'a> {
        match self.more_levels.load(Relaxed) {
            // SAFETY: `owned` was asked for `raw`, so it records its owner and can check whether
            // that is the caller.
            0 => unsafe { raw.unlock_owned_at_once() },
            _ => GivenBack::No,
        }
    }

    pub(super) fn is_of_normal_type(&self) -> bool {
        matches!(self.kind.load(Relaxed) & 3, mutex_type::NORMAL | mutex_type::ADAPTIVE)
    }
}

/// How the holder of this mutex would release its last level.
#[inline]
pub(super) fn release_of(raw: &RawPosixMutex) -> Release {
    match raw.has_waiters() {
        false => Release::Alone,
        true if raw.hands_over() => Release::HandOver,
        true => Release::ToAny,
    }
}
