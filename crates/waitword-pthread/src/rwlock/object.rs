//! A `pthread_rwlock_t`: its bytes, which library serves it, and its writer.
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

use crate::attributes::{RwLockAttributes, preference_of_kind};
use crate::mode;
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
};
use libc::pthread_rwlock_t;
use waitword::{Preference, RawRwLock, Scope};

/// A `pthread_rwlock_t` in our layout.
#[repr(C)]
pub(super) struct RwLock {
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
/// Ours, in a process that counts locks (`mode.rs`): its fast paths defer to the slow ones. A lock
/// becomes that when a thread waits for it there, and `OURS` when one uses it elsewhere.
const COUNTED: u32 = u32::from_be_bytes(*b"wwRC");

/// The value of `whose` for our locks.
fn whose_if_ours() -> u32 {
    if mode::is_watched() { COUNTED } else { OURS }
}

/// Which library serves a lock.
pub(super) enum Served<'a> {
    /// We do.
    Ours(&'a RawRwLock),
    /// The C library does.
    Elsewhere,
}

impl RwLock {
    /// The lock behind the C pointer.
    ///
    /// # Safety
    /// It points to a lock that exists for `'a`.
    #[inline(always)]
    pub(super) unsafe fn at<'a>(pointer: *const pthread_rwlock_t) -> &'a Self {
        // SAFETY: a lock exists for `'a`, by this function's contract. `RwLock` has the same size
        // and no larger alignment (asserted above), any bytes are a valid `RwLock`, and everything
        // in it that changes is atomic.
        unsafe { &*pointer.cast::<Self>() }
    }

    /// A free lock of ours.
    pub(super) fn new(wanted: RwLockAttributes) -> Self {
        Self {
            raw: RawRwLock::with(wanted.preference(), Scope::Private),
            whose: AtomicU32::new(whose_if_ours()),
            _writers_futex: 0,
            writer: AtomicUsize::new(NO_WRITER),
            _cur_writer: 0,
            shared: AtomicU32::new(0),
            _rest: [0; 4],
            kind: 0,
            _end: 0,
        }
    }

    /// The raw lock, if this is known to be ours: reads one word of the lock.
    #[inline(always)]
    pub(super) fn ours(&self) -> Option<&RawRwLock> {
        // Relaxed: a thread that sees this, but not yet what `decide` wrote before it, fails in its
        // first compare-and-swap.
        (self.whose.load(Relaxed) == OURS).then_some(&self.raw)
    }

    /// Which library serves it; turns what a static initialiser has written into a raw lock.
    #[inline]
    pub(super) fn served(&self) -> Served<'_> {
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
            if whose == COUNTED && !mode::is_watched() {
                // A recording has ended. (Relaxed: both are ours.)
                self.whose.store(OURS, Relaxed);
            }
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
        self.whose.store(whose_if_ours(), Release);
        Served::Ours(&self.raw)
    }

    /// In a process that counts locks, from now on this one is counted, which may be older.
    pub(super) fn count(&self) {
        // Relaxed: both are ours.
        if self.whose.load(Relaxed) == OURS {
            self.whose.store(COUNTED, Relaxed);
        }
    }

    /// Whether the caller holds it for writing.
    pub(super) fn is_written_by_caller(&self) -> bool {
        self.writer.load(Relaxed) == myself()
    }

    /// Records the caller as the writer.
    #[inline(always)]
    pub(super) fn record_writer(&self) {
        self.writer.store(myself(), Relaxed);
    }

    /// Whether the lock is held for writing. If so, clears the recorded writer, which is about to
    /// release it.
    #[inline(always)]
    pub(super) fn clear_writer(&self) -> bool {
        let is_written = self.writer.load(Relaxed) != NO_WRITER;
        if is_written {
            // Before the lock is released, and so before the next writer records itself.
            self.writer.store(NO_WRITER, Relaxed);
        }
        is_written
    }
}

/// The value of `writer` while no thread holds the lock for writing.
const NO_WRITER: usize = 0;

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
