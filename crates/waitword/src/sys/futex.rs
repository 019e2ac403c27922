//! The kernel's futex. Parked threads block on it (safe, on 32-bit words of our own), and it is the
//! whole implementation for process-shared words (raw, on the caller's addresses).

use super::Errno;
use super::clock::{Clock, Deadline};
use super::from_raw;
use super::moving_time::Time;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::thread::futex as kernel;
use rustix::time::Timespec;
use syscalls::{Sysno, syscall5, syscall6};

pub(crate) const ANY_BIT: NonZeroU32 = NonZeroU32::MAX;

const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
const PRIVATE_FLAG: usize = 128;
const CLOCK_REALTIME_FLAG: usize = 256;

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

#[inline]
fn pointer<T>(value: Option<&T>) -> usize {
    value.map_or(0, |value| (&raw const *value).addr())
}

/// FUTEX_WAIT_BITSET on a process-shared word.
///
/// # Errors
/// Those of futex(2).
///
/// # Safety
/// `word` is a mapped, aligned 32-bit word.
#[inline]
pub(crate) unsafe fn shared_wait(
    word: *mut u32,
    expected: u32,
    bits: u32,
    deadline: Option<&Deadline>,
) -> Result<(), Errno> {
    let time = deadline.map(|deadline| deadline.to_timespec());
    let clock = match deadline.map(|deadline| deadline.clock) {
        Some(Clock::Realtime) => CLOCK_REALTIME_FLAG,
        _ => 0,
    };
    // SAFETY: the kernel reads the word, which is mapped, by this function's contract, and `time`,
    // a variable here that outlives the call. It writes neither.
    from_raw(unsafe {
        syscall6(
            Sysno::futex,
            word.expose_provenance(),
            WAIT_BITSET | clock,
            expected as usize,
            pointer(time.as_ref()),
            0,
            bits as usize,
        )
    })
    .map(drop)
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

/// FUTEX_REQUEUE, or FUTEX_CMP_REQUEUE if there is an expected value, between process-shared words.
///
/// # Errors
/// Those of futex(2).
///
/// # Safety
/// `from` is a mapped, aligned 32-bit word if a value is expected there.
#[inline]
pub(crate) unsafe fn shared_requeue(
    from: *mut u32,
    to: *mut u32,
    wake: u32,
    moved: u32,
    expected: Option<u32>,
) -> Result<usize, Errno> {
    let op = if expected.is_some() {
        CMP_REQUEUE
    } else {
        REQUEUE
    };
    // SAFETY: the kernel reads the first word if a value is expected there; then it is mapped, by
    // this function's contract. Otherwise both addresses are only keys. Nothing is written.
    from_raw(unsafe {
        syscall6(
            Sysno::futex,
            from.expose_provenance(),
            op,
            wake as usize,
            moved as usize,
            to.expose_provenance(),
            expected.unwrap_or(0) as usize,
        )
    })
}

/// FUTEX_WAKE_OP between process-shared words; each count of 0 wakes one (the kernel's quirk).
///
/// # Errors
/// Those of futex(2).
///
/// # Safety
/// `second` is a mapped, aligned, writable 32-bit word that is used by atomic operations only.
#[inline]
pub(crate) unsafe fn shared_wake_op(
    first: *mut u32,
    count: u32,
    second: *mut u32,
    second_count: u32,
    packed_op: u32,
) -> Result<usize, Errno> {
    // SAFETY: the kernel changes the second word in one atomic step. That word is mapped, writable,
    // and used by atomic operations only, by this function's contract. The first address is only a
    // key.
    from_raw(unsafe {
        syscall6(
            Sysno::futex,
            first.expose_provenance(),
            WAKE_OP,
            count as usize,
            second_count as usize,
            second.expose_provenance(),
            packed_op as usize,
        )
    })
}

/// futex(2) unchanged, for calls that the raw futex interface forwards.
///
/// # Errors
/// Those of futex(2).
///
/// # Safety
/// Everything that futex(2) requires of these arguments.
#[inline]
pub(crate) unsafe fn raw(arguments: [usize; 6]) -> Result<usize, Errno> {
    let [word, op, value, timeout, second, value3] = arguments;
    // SAFETY: forwards this function's own contract.
    from_raw(unsafe { syscall6(Sysno::futex, word, op, value, timeout, second, value3) })
}

/// A call of the futex2 family (Linux 6.7; futex_waitv 5.16) unchanged, for calls that the raw
/// futex interface forwards.
///
/// # Errors
/// Those of the call; `ENOSYS` if the kernel lacks it.
///
/// # Safety
/// Everything that the call requires of these arguments.
#[inline]
pub(crate) unsafe fn futex2(call: Futex2, arguments: [usize; 6]) -> Result<usize, Errno> {
    // These numbers are the same on every architecture.
    let number = match call {
        Futex2::Waitv => Sysno::futex_waitv,
        Futex2::Wake => Sysno::futex_wake,
        Futex2::Wait => Sysno::futex_wait,
        Futex2::Requeue => Sysno::futex_requeue,
    };
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: forwards this function's own contract, which refers to the call with this `number`.
    from_raw(unsafe { syscall6(number, a, b, c, d, e, f) })
}

/// The system calls of futex2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Futex2 {
    Waitv,
    Wake,
    Wait,
    Requeue,
}

/// `struct futex_waitv`: one word of a futex2 call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Waitv {
    /// The value that the word is expected to hold.
    pub val: u64,
    /// The address of the word.
    pub uaddr: u64,
    /// Size and kind of the word: [`raw::SIZE_U32`](crate::raw::SIZE_U32) and the like.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// futex_waitv(2): sleeps until one of these words is woken; returns its index.
///
/// # Errors
/// Those of the call; `ENOSYS` before Linux 5.16.
///
/// # Safety
/// Every entry names a mapped, aligned word.
#[inline]
pub(crate) unsafe fn waitv(entries: &[Waitv], deadline: Option<&Deadline>) -> Result<usize, Errno> {
    #[cfg(test)]
    if pretend::WITHOUT_WAITV.load(core::sync::atomic::Ordering::Relaxed) {
        return Err(Errno::NOSYS);
    }
    let time: Option<Timespec> = deadline.map(|deadline| deadline.to_timespec());
    let clock = match deadline.map(|deadline| deadline.clock) {
        Some(Clock::Realtime) => libc::CLOCK_REALTIME,
        _ => libc::CLOCK_MONOTONIC,
    };
    // SAFETY: the kernel reads `entries`, which are borrowed, `time`, a variable here that outlives
    // the call, and the words, which are mapped, by this function's contract.
    from_raw(unsafe {
        syscall5(
            Sysno::futex_waitv,
            entries.as_ptr().addr(),
            entries.len(),
            0,
            pointer(time.as_ref()),
            clock as usize,
        )
    })
}

/// Simulates kernels other than the running one, for tests of their behaviour.
#[cfg(test)]
pub(crate) mod pretend {
    use core::sync::atomic::AtomicBool;

    /// Before Linux 5.16.
    pub(crate) static WITHOUT_WAITV: AtomicBool = AtomicBool::new(false);
}
