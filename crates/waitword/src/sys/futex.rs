//! The kernel's futex, on words of our own: parked threads block on it, and so do threads that wait
//! for a process-shared lock. `futex_model.rs` has a model's; `futex_raw.rs` the calls on any
//! address. (`shared_wake` takes any address, too. It is here because models need it.)

use super::Errno;
use super::clock::{Clock, Deadline};
use super::from_raw;
use super::futex_raw::{
    CLOCK_REALTIME_FLAG, PRIVATE_FLAG, WAIT_BITSET, WAKE_BITSET, Waitv, shared_requeue,
    shared_wait, waitv,
};
use super::moving_time::Time;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::thread::futex as kernel;
use syscalls::{Sysno, syscall6};

pub(crate) const ANY_BIT: NonZeroU32 = NonZeroU32::MAX;

/// Sleeps while `word` holds `expected`, until a wake with one of `bits`, the deadline, or a
/// signal. The word is one of ours: private to the process, never unmapped.
///
/// # Errors
/// `EAGAIN`, `ETIMEDOUT`, `EINTR`.
#[inline]
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    bits: NonZeroU32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let time = deadline.map(|deadline| deadline.to_timespec());
    let mut flags = kernel::Flags::PRIVATE;
    if deadline.is_some_and(|deadline| deadline.clock == Clock::Realtime) {
        flags |= kernel::Flags::CLOCK_REALTIME;
    }
    kernel::wait_bitset(word, flags, expected, time.as_ref(), bits).map_err(Errno::of)
}

/// Wakes up to `count` sleepers of one of our own words that wait for one of `bits`.
///
/// Failure means that no thread sleeps there: the word is mapped and aligned.
#[inline]
pub(crate) fn wake(word: &AtomicU32, count: u32, bits: NonZeroU32) {
    let _ = kernel::wake_bitset(word, kernel::Flags::PRIVATE, count, bits);
}

/// Wakes all sleepers of `first` and `second`, both our own words, and adds `change` to `second`,
/// whose value is never zero. False if the kernel cannot (a sandbox that allows only waits and
/// wakes).
pub(crate) fn wake_two(first: &AtomicU32, second: &AtomicU32, change: u32) -> bool {
    kernel::wake_op(
        first,
        kernel::Flags::PRIVATE,
        i32::MAX as u32,
        i32::MAX as u32,
        second,
        kernel::WakeOp::Add,
        kernel::WakeOpCmp::Ne,
        change as u16,
        0,
    )
    .is_ok()
}

/// Sleeps while `word`, which only this process uses, holds `expected`, until a wake, or until
/// `time` on its clock. Another thread may move the time: the kernel reads it when the call begins.
/// A signal handler ends the call, whatever its flags, since there is a timeout.
///
/// The word may no longer exist.
///
/// # Errors
/// `EAGAIN`, even if the time has passed; `ETIMEDOUT`, `EINTR`; `EFAULT` if the word is not mapped.
#[inline]
pub(crate) fn wait_by_time(
    word: *const AtomicU32,
    expected: u32,
    (time, clock): (&Time, Clock),
) -> Result<(), Errno> {
    let by_wall_clock = match clock {
        Clock::Realtime => CLOCK_REALTIME_FLAG,
        Clock::Monotonic => 0,
    };
    // SAFETY: the kernel only reads the word, if it is there, and the time, which is borrowed while
    // the call lasts.
    let answer = unsafe {
        syscall6(
            Sysno::futex,
            word.expose_provenance(),
            WAIT_BITSET | PRIVATE_FLAG | by_wall_clock,
            expected as usize,
            core::ptr::from_ref(time).expose_provenance(),
            0,
            u32::MAX as usize,
        )
    };
    from_raw(answer).map(drop)
}

/// Wakes up to `count` threads that sleep in [`wait_by_time`]; returns how many. The word may no
/// longer exist.
#[inline]
pub(crate) fn wake_by_address(word: *const AtomicU32, count: u32) -> usize {
    let count = count.min(i32::MAX as u32);
    // SAFETY: the kernel looks the address up and does not touch the word.
    let answer = unsafe {
        syscall6(
            Sysno::futex,
            word.expose_provenance(),
            WAKE_BITSET | PRIVATE_FLAG,
            count as usize,
            0,
            0,
            u32::MAX as usize,
        )
    };
    // Failure means that no thread sleeps there.
    from_raw(answer).unwrap_or(0)
}

/// FUTEX_WAKE_BITSET on a process-shared word; wakes one even if `count` is 0 (the kernel's quirk).
///
/// # Errors
/// Those of futex(2).
#[inline]
pub(crate) fn shared_wake(word: *mut u32, count: u32, bits: u32) -> Result<usize, Errno> {
    // SAFETY: for FUTEX_WAKE the address is only a key: the kernel looks up the page there, and
    // returns `EFAULT` if there is none. It neither reads nor writes the word.
    from_raw(unsafe {
        syscall6(
            Sysno::futex,
            word.expose_provenance(),
            WAKE_BITSET,
            count as usize,
            0,
            0,
            bits as usize,
        )
    })
}

/// A word of one of our own locks that threads sleep on in the kernel: 32 bits, or half of 64 (the
/// low one).
pub(crate) trait KernelWord {
    /// The address of the 32 bits. The word may no longer exist.
    fn address(word: *const Self) -> *mut u32;
}

impl KernelWord for AtomicU32 {
    #[inline]
    fn address(word: *const Self) -> *mut u32 {
        word.cast_mut().cast()
    }
}

impl KernelWord for AtomicU64 {
    #[inline]
    fn address(word: *const Self) -> *mut u32 {
        let offset = if cfg!(target_endian = "little") { 0 } else { 4 };
        word.cast_mut().cast::<u32>().wrapping_byte_add(offset)
    }
}

/// [`shared_wait`] on a lock's word.
///
/// # Errors
/// Those of futex(2).
#[inline]
pub(crate) fn word_wait<W: KernelWord>(
    word: &W,
    expected: u32,
    bits: u32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    // SAFETY: `word` is borrowed for the whole call, and `address` leads to 32 aligned bits inside
    // it.
    unsafe { shared_wait(W::address(word), expected, bits, deadline) }
}

/// [`waitv`] on one word of a lock.
///
/// # Errors
/// Those of futex_waitv(2).
pub(crate) fn word_waitv<W: KernelWord>(
    word: &W,
    expected: u32,
    deadline: &Deadline,
) -> Result<(), Errno> {
    const SIZE_U32: u32 = 2;
    let entry = Waitv {
        val: expected.into(),
        uaddr: W::address(word).expose_provenance() as u64,
        flags: SIZE_U32,
        reserved: 0,
    };
    // SAFETY: the entry names 32 aligned bits inside `word`, which is borrowed for the whole call.
    unsafe { waitv(&[entry], Some(deadline)) }.map(drop)
}

/// [`shared_requeue`] between words of locks.
///
/// # Errors
/// Those of futex(2).
#[inline]
pub(crate) fn word_requeue<W: KernelWord, V: KernelWord>(
    from: &W,
    to: &V,
    wake: u32,
    moved: u32,
    expected: Option<u32>,
) -> Result<usize, Errno> {
    // SAFETY: both words are borrowed for the whole call, and `address` leads to 32 aligned bits in
    // each.
    unsafe { shared_requeue(W::address(from), V::address(to), wake, moved, expected) }
}
