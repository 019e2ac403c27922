//! A `pthread_cond_t`: its bytes, and which library serves it.
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

use super::glibc;
use crate::mode;
use crate::mutex::object::{Mutex, Served};
use core::mem::MaybeUninit;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use libc::{pthread_cond_t, pthread_condattr_t, pthread_mutex_t};
use waitword::{Clock, RawCondvar};

/// A `pthread_cond_t` in our layout.
#[repr(C)]
pub(super) struct Cond {
    pub(super) raw: RawCondvar,
    _unused: [u32; 3],
    refs_since_2_41: AtomicU32,
    _more: u32,
    refs_until_2_40: AtomicU32,
    clock: AtomicU32,
    _rest: u32,
}

const _: () = assert!(size_of::<Cond>() == size_of::<pthread_cond_t>());
const _: () = assert!(align_of::<Cond>() <= align_of::<pthread_cond_t>());
const _: () = assert!(core::mem::offset_of!(Cond, refs_since_2_41) == 28);
const _: () = assert!(core::mem::offset_of!(Cond, refs_until_2_40) == 36);

/// Values of `clock`.
const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;

fn number_of_clock(is_monotonic: bool) -> u32 {
    match is_monotonic {
        true => MONOTONIC,
        false => REALTIME,
    }
}

impl Cond {
    /// The condition variable behind the C pointer, if it is ours.
    ///
    /// # Safety
    /// It points to a condition variable that exists for `'a`.
    #[inline(always)]
    pub(super) unsafe fn ours<'a>(pointer: *const pthread_cond_t) -> Option<&'a Self> {
        // SAFETY: a condition variable exists for `'a`, by this function's contract. `Cond` has the
        // same size and no larger alignment (asserted above), any bytes are a valid `Cond`, and
        // everything in it that changes is atomic.
        let this = unsafe { &*pointer.cast::<Self>() };
        // Acquire: makes the zeros of an adopted one visible. In the C library's, the word that it
        // uses is never 0.
        let refs = this.refs_since_2_41.load(Acquire) | this.refs_until_2_40.load(Acquire);
        (refs == 0 && mode::is_on()).then_some(this)
    }

    /// The same; also `None` in a process that records waits.
    ///
    /// # Safety
    /// As [`ours`](Self::ours).
    #[inline(always)]
    pub(super) unsafe fn ours_at_once<'a>(pointer: *const pthread_cond_t) -> Option<&'a Self> {
        // SAFETY: as in `ours`.
        let this = unsafe { &*pointer.cast::<Self>() };
        // Acquire: as in `ours`.
        let refs = this.refs_since_2_41.load(Acquire) | this.refs_until_2_40.load(Acquire);
        (refs == 0 && mode::is_fast()).then_some(this)
    }

    /// The condition variable behind the C pointer, if it is ours or becomes ours.
    ///
    /// # Safety
    /// It points to a condition variable that exists for `'a`, and the caller holds the mutex.
    #[inline]
    pub(super) unsafe fn ours_or_adopted<'a>(
        pointer: *mut pthread_cond_t,
        mutex: *const pthread_mutex_t,
    ) -> Option<&'a Self> {
        // SAFETY: forwards this function's own contract.
        unsafe { Self::ours(pointer).or_else(|| adopt(pointer, mutex)) }
    }

    /// One of ours that no thread waits on.
    pub(super) fn new(is_monotonic: bool) -> Self {
        Self {
            raw: RawCondvar::new(),
            _unused: [0; 3],
            refs_since_2_41: AtomicU32::new(0),
            _more: 0,
            refs_until_2_40: AtomicU32::new(0),
            clock: AtomicU32::new(number_of_clock(is_monotonic)),
            _rest: 0,
        }
    }

    pub(super) fn clock(&self) -> Clock {
        match self.clock.load(Relaxed) {
            MONOTONIC => Clock::Monotonic,
            _ => Clock::Realtime,
        }
    }
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
/// As [`Cond::ours_or_adopted`].
#[cold]
#[inline(never)]
unsafe fn adopt<'a>(
    pointer: *mut pthread_cond_t,
    mutex: *const pthread_mutex_t,
) -> Option<&'a Cond> {
    const FLAGS: u32 = 7;
    const MONOTONIC_FLAG: u32 = 2;
    // SAFETY: the caller holds this mutex, by this function's contract, so it is one.
    let Served::Ours(_) = unsafe { Mutex::at(mutex) }.served() else {
        return None;
    };
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
    let clock = number_of_clock(refs & MONOTONIC_FLAG != 0);
    this.clock.store(clock, Relaxed);
    // Release: from here on it is ours, and all zeros except the clock.
    words[refs_at].store(0, Release);
    Some(this)
}

/// The word of a condition variable in which the C library counts its users: found by letting it
/// initialise one.
fn glibc_refs_at() -> Option<usize> {
    let mut attributes = MaybeUninit::<pthread_condattr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    let mut made = [0_u32; 12];
    // SAFETY: `attributes` is a place for attributes, which are initialised before they are used.
    // `made` has the right size (asserted above), is aligned for numbers as glibc's own is, and is
    // read only as numbers.
    unsafe {
        libc::pthread_condattr_init(attributes);
        libc::pthread_condattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED);
        glibc::pthread_cond_init((&raw mut made).cast(), attributes);
    }
    const SINCE_2_41: usize = 7;
    const UNTIL_2_40: usize = 9;
    [UNTIL_2_40, SINCE_2_41].into_iter().find(|&word| made[word] & 1 != 0)
}
