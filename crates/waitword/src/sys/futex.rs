//! The kernel's futex: as the bed that our own sleepers lie on (safe, 32-bit words of our own), and as
//! the whole of the matter for process-shared words (raw, the caller's addresses).

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

/// Sleeps while `word` holds `expected`, until a wake with one of `bits`, the deadline, or a signal.
/// The word is one of ours: private to the process, never unmapped.
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
/// Failure means that nobody sleeps there: the word is mapped and aligned.
#[inline]
pub(crate) fn wake(word: &AtomicU32, count: u32, bits: NonZeroU32) {
    let _ = kernel::wake_bitset(word, kernel::Flags::PRIVATE, count, bits);
}

/// Wakes everybody who sleeps on `first` or on `second`, both our own, and adds `change` to the second, whose
/// value is never zero. False if the kernel cannot (a sandbox that knows only waits and wakes).
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

/// Sleeps while `word`, which only this process uses, holds `expected`, until a wake, or `time` on
/// its clock. Another thread may move the time: the kernel reads it as the call begins. A signal
/// handler ends the call, whatever its flags, since there is a time.
///
/// The word need not exist any more.
///
/// # Errors
/// `EAGAIN`, also if the time is past; `ETIMEDOUT`, `EINTR`; `EFAULT` if the word is not mapped.
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

/// Wakes up to `count` of those who sleep by [`wait_by_time`]; how many. The word need not exist
/// any more.
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
    // Failure means that nobody sleeps there.
    from_raw(answer).unwrap_or(0)
}

#[inline]
fn pointer<T>(value: Option<&T>) -> usize {
    value.map_or(0, |value| (&raw const *value).addr())
}

/// FUTEX_WAIT_BITSET on a process-shared word.
///
/// # Errors
/// futex(2)'s.
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
    // SAFETY: the kernel reads the word, which this function's contract says is mapped, and `time`,
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
/// futex(2)'s.
#[inline]
pub(crate) fn shared_wake(word: *mut u32, count: u32, bits: u32) -> Result<usize, Errno> {
    // SAFETY: to FUTEX_WAKE the address is only a key: the kernel looks up the page there, and
    // answers `EFAULT` if there is none. It neither reads nor writes the word.
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

/// A word of one of our own locks that the kernel's sleepers sleep on: 32 bits, or the low half of 64.
pub(crate) trait KernelWord {
    /// Of the 32 bits. The word need not exist any more.
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
/// futex(2)'s.
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
/// futex_waitv(2)'s.
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
/// futex(2)'s.
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
/// futex(2)'s.
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
/// futex(2)'s.
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
    // SAFETY: the kernel changes the second word, in one atomic step; that one is mapped, writable,
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

/// futex(2) as it is, for what the door passes on.
///
/// # Errors
/// futex(2)'s.
///
/// # Safety
/// Whatever futex(2) demands of these arguments.
#[inline]
pub(crate) unsafe fn raw(arguments: [usize; 6]) -> Result<usize, Errno> {
    let [word, op, value, timeout, second, value3] = arguments;
    // SAFETY: forwards this function's own contract.
    from_raw(unsafe { syscall6(Sysno::futex, word, op, value, timeout, second, value3) })
}

/// One of the futex2 family (Linux 6.7; futex_waitv 5.16) as it is, for what the door passes on.
///
/// # Errors
/// The call's own; `ENOSYS` if the kernel lacks it.
///
/// # Safety
/// Whatever the call demands of these arguments.
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
    // SAFETY: forwards this function's own contract, which speaks of the call that `number` stands
    // for.
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
    /// Size and kind of the word: [`door::SIZE_U32`](crate::door::SIZE_U32) and its like.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// futex_waitv(2): sleeps until one of these words is woken; its index.
///
/// # Errors
/// The call's own; `ENOSYS` before Linux 5.16.
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
    // the call, and the words, which this function's contract says are mapped.
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

/// Kernels that this machine does not run, for tests of what happens there.
#[cfg(test)]
pub(crate) mod pretend {
    use core::sync::atomic::AtomicBool;

    /// Before Linux 5.16.
    pub(crate) static WITHOUT_WAITV: AtomicBool = AtomicBool::new(false);
}
