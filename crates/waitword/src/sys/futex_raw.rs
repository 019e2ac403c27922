//! The kernel's futex on any address: the operations on process-shared words (`shared`), and calls
//! that the raw futex interface forwards (`raw`).

use super::Errno;
use super::clock::{Clock, Deadline};
use super::from_raw;
use rustix::time::Timespec;
use syscalls::{Sysno, syscall5, syscall6};

const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
pub(super) const WAIT_BITSET: usize = 9;
pub(super) const WAKE_BITSET: usize = 10;
pub(super) const PRIVATE_FLAG: usize = 128;
pub(super) const CLOCK_REALTIME_FLAG: usize = 256;

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
    let op = if expected.is_some() { CMP_REQUEUE } else { REQUEUE };
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
