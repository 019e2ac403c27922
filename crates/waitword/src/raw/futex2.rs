//! The futex2 calls: one for each operation, with the word's size in the flags.

use super::arguments::{Access, Timespec, at_least_one, check_address, check_argument};
use super::named::{Named, entry, named};
use super::pi;
use crate::futex::wait_any::{Expecting, WAIT_ANY_MAX, wait_any_raw};
use crate::futex::{RawFutex, Scope, requeue::requeue, wait::wait, wake::wake, wake_op::wake_op};
use crate::sys::Errno;
use crate::sys::clock::{Clock, Deadline};
use crate::sys::futex_raw::{self as kernel, Futex2, Waitv};
use crate::word::{RawWakeOp, Size, WordPtr};
use core::ffi::c_void;

/// # Safety
/// `timeout` is null or points to a time.
unsafe fn deadline(timeout: *const Timespec, clockid: i32) -> Result<Option<Deadline>, Errno> {
    if timeout.is_null() {
        return Ok(None);
    }
    let clock = match clockid {
        libc::CLOCK_MONOTONIC => Clock::Monotonic,
        libc::CLOCK_REALTIME => Clock::Realtime,
        _ => return Err(Errno::INVAL),
    };
    check_argument(timeout)?;
    // SAFETY: `timeout` is not null, so it points to a time, by this function's contract. It may be
    // misaligned, so the read is unaligned.
    let time = unsafe { timeout.read_unaligned() };
    Deadline::from_timespec(clock, time.for_sys()).map(Some).ok_or(Errno::INVAL)
}

/// `futex_wait` of futex2 (Linux 6.7): sleeps while the word holds `val`, until a wake whose mask
/// shares a bit with `mask`, or until the absolute time `timeout` (null: no timeout). `clockid` is
/// `CLOCK_MONOTONIC` or `CLOCK_REALTIME` and is ignored without a timeout. Returns 0.
///
/// # Errors
/// `EINVAL`: flags; a value or mask wider than the word; mask 0; clock; time; alignment; NUMA node.
/// `EFAULT`, `EAGAIN`, `ETIMEDOUT`, `EINTR`, and `ENOSYS` in the cases listed at
/// [`Futex::shared`](crate::Futex::shared).
///
/// # Safety
/// While this runs, a word of the size given by `flags` is mapped at `uaddr` and accessed by atomic
/// operations only. With the NUMA flag, so is the node word behind it, which is also writable if it
/// holds -1. `timeout` is null or points to a time.
pub unsafe fn futex_wait(
    uaddr: *mut c_void,
    val: u64,
    mask: u64,
    flags: u32,
    timeout: *const Timespec,
    clockid: i32,
) -> Result<usize, Errno> {
    let Named { futex, for_kernel } = named(uaddr, flags)?;
    if for_kernel {
        let timeout = timeout.expose_provenance();
        let arguments = [
            uaddr.expose_provenance(),
            val as usize,
            mask as usize,
            flags as usize,
            timeout,
            clockid as usize,
        ];
        // SAFETY: this function's own contract.
        return unsafe { kernel::futex2(Futex2::Wait, arguments) };
    }
    let size = futex.word.size;
    if !size.holds(val) || !size.holds(mask) {
        return Err(Errno::INVAL);
    }
    // SAFETY: this function's own contract.
    let deadline = unsafe { deadline(timeout, clockid)? };
    if mask == 0 {
        return Err(Errno::INVAL);
    }
    check_address(futex, Access::Read)?;
    // SAFETY: the word, and the node word with NUMA, are mapped and accessed by atomic operations
    // only, by this function's contract; `check_address` has found them aligned.
    unsafe { wait(futex, val, mask, deadline.as_ref()) }?;
    Ok(0)
}

/// `futex_wake` of futex2 (Linux 6.7): wakes up to `nr` waiters whose mask shares a bit with
/// `mask`. Returns the number woken. `nr` 0 wakes no thread; a negative `nr` wakes one, as in the
/// kernel.
///
/// # Errors
/// `EINVAL`: flags; a mask that is 0 or wider than the word; alignment; NUMA node. `EFAULT`.
///
/// # Safety
/// With the NUMA flag, a node word lies behind the word at `uaddr`: mapped, accessed by atomic
/// operations only, and writable if it holds -1. Nothing else is touched.
pub unsafe fn futex_wake(
    uaddr: *mut c_void,
    mask: u64,
    nr: i32,
    flags: u32,
) -> Result<usize, Errno> {
    let Named { futex, for_kernel } = named(uaddr, flags)?;
    if for_kernel {
        let arguments =
            [uaddr.expose_provenance(), mask as usize, nr as usize, flags as usize, 0, 0];
        // SAFETY: this function's own contract.
        return unsafe { kernel::futex2(Futex2::Wake, arguments) };
    }
    if !futex.word.size.holds(mask) || mask == 0 {
        return Err(Errno::INVAL);
    }
    check_address(futex, Access::of_key(futex.scope))?;
    let count = if nr == 0 { 0 } else { at_least_one(nr) };
    // SAFETY: with NUMA the node word is mapped, by this function's contract, and `check_address`
    // has found it aligned. Without NUMA nothing is touched.
    let woken = unsafe { wake(futex, count, mask) }?;
    pi::found(woken, count, futex)
}

/// `futex_requeue` of futex2 (Linux 6.7): if the word of the first entry holds its value, wakes up
/// to `nr_wake` of its waiters and moves up to `nr_requeue` of the remaining ones to the word of
/// the second entry. Returns the number woken plus the number moved. The second entry's value is
/// ignored.
///
/// # Errors
/// `EINVAL`: flags (must be 0) or entry flags; counts below 0; alignment; NUMA node; a private word
/// and a shared one. `EFAULT`, `EAGAIN`.
///
/// # Safety
/// `waiters` is null or points to two entries, and both meet the requirements of [`futex_wait`] for
/// a word.
pub unsafe fn futex_requeue(
    waiters: *const Waitv,
    flags: u32,
    nr_wake: i32,
    nr_requeue: i32,
) -> Result<usize, Errno> {
    if flags != 0 || waiters.is_null() {
        return Err(Errno::INVAL);
    }
    check_argument(waiters)?;
    // SAFETY: `waiters` is not null, so it points to two entries, by this function's contract. They
    // may be misaligned, so the read is unaligned.
    let pair = unsafe { waiters.cast::<[Waitv; 2]>().read_unaligned() };
    let (from, expected) = entry(&pair[0])?;
    let (to, _) = entry(&pair[1])?;
    if from.for_kernel || to.for_kernel {
        let arguments = [
            waiters.expose_provenance(),
            flags as usize,
            nr_wake as usize,
            nr_requeue as usize,
            0,
            0,
        ];
        // SAFETY: this function's own contract.
        return unsafe { kernel::futex2(Futex2::Requeue, arguments) };
    }
    let (Ok(wake), Ok(moved)) = (usize::try_from(nr_wake), usize::try_from(nr_requeue)) else {
        return Err(Errno::INVAL);
    };
    // Checked before either address, as in the kernel.
    if from.futex.scope != to.futex.scope {
        return Err(Errno::INVAL);
    }
    check_address(from.futex, Access::Key)?;
    check_address(to.futex, Access::Key)?;
    check_address(from.futex, Access::Read)?;
    // SAFETY: the first word, and the node words with NUMA, are mapped and accessed by atomic
    // operations only, by this function's contract; `check_address` has found them aligned.
    let found = unsafe { requeue(from.futex, to.futex, wake, moved, Some(expected)) }?;
    pi::found(found, wake.saturating_add(moved), from.futex)
}

/// `futex_waitv` of futex2 (Linux 5.16): if each of up to 128 words holds its value, sleeps until
/// one of them is woken. Returns the index of one that was woken. `timeout` and `clockid` as for
/// [`futex_wait`].
///
/// # Errors
/// `EINVAL`: flags (must be 0); no words or more than 128 (see [`wait_any`](crate::wait_any)); an
/// entry's flags, value or reserved field; clock; time; alignment; NUMA node. `EFAULT`, `EAGAIN`,
/// `ETIMEDOUT`, `EINTR`, and `ENOSYS` for a shared word before Linux 5.16.
///
/// # Safety
/// `waiters` is null or points to `nr_futexes` entries, and each meets the requirements of
/// [`futex_wait`] for a word. `timeout` is null or points to a time.
pub unsafe fn futex_waitv(
    waiters: *const Waitv,
    nr_futexes: u32,
    flags: u32,
    timeout: *const Timespec,
    clockid: i32,
) -> Result<usize, Errno> {
    let count = nr_futexes as usize;
    if flags != 0 || count == 0 || count > WAIT_ANY_MAX || waiters.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: this function's own contract for `timeout`.
    let deadline = unsafe { deadline(timeout, clockid)? };
    check_argument(waiters)?;
    let nothing = RawFutex {
        word: WordPtr { address: core::ptr::null_mut(), size: Size::U8 },
        scope: Scope::Private,
        numa: false,
    };
    let mut words = [Expecting::raw(nothing, 0); WAIT_ANY_MAX];
    let mut any_for_kernel = false;
    for (index, word) in words[..count].iter_mut().enumerate() {
        // SAFETY: this is one of the `nr_futexes` entries that exist by this function's contract.
        // It may be misaligned, so the read is unaligned.
        let waiter = unsafe { waiters.add(index).read_unaligned() };
        let (named, value) = entry(&waiter)?;
        any_for_kernel |= named.for_kernel;
        *word = Expecting::raw(named.futex, value);
    }
    if any_for_kernel {
        let arguments = [
            waiters.expose_provenance(),
            count,
            0,
            timeout.expose_provenance(),
            clockid as usize,
            0,
        ];
        // SAFETY: this function's own contract. The kernel refuses what it does not support.
        return unsafe { kernel::futex2(Futex2::Waitv, arguments) };
    }
    for word in &words[..count] {
        check_address(word.futex, Access::of_key(word.futex.scope))?;
        if word.futex.numa {
            // The kernel determines all nodes before it compares any word.
            // SAFETY: there is a node word, which is mapped, by this function's contract, and
            // `check_address` has found it aligned.
            unsafe { word.futex.key()? };
        }
    }
    for (index, word) in words[..count].iter().enumerate() {
        if let Err(error) = check_address(word.futex, Access::Read) {
            // The kernel detects a private null address only as it reads the words, one after the
            // other.
            // SAFETY: the word is mapped and accessed by atomic operations only, by this function's
            // contract, and aligned: the words before `index` have passed `check_address` in both
            // loops.
            let differs = |word: &Expecting<'_>| unsafe { word.futex.word.load() } != word.value;
            let mismatch = words[..index].iter().any(differs);
            return Err(if mismatch { Errno::AGAIN } else { error });
        }
    }
    // SAFETY: all words, and the node words with NUMA, are mapped and accessed by atomic operations
    // only, by this function's contract; `check_address` has found them aligned.
    Ok(unsafe { wait_any_raw(&words[..count], deadline.as_ref()) }?)
}

/// An operation that futex2 lacks: `FUTEX_WAKE_OP` for words of every size, with operand and
/// comparand as wide as the word. `op` and `cmp` are futex(2)'s `FUTEX_OP_*` (bit 3: the operand is
/// a shift, modulo the width) and `FUTEX_OP_CMP_*` numbers. `flags` gives the size and scope of
/// both words. Wakes up to `nr` waiters of the first word and, if the second word's old value
/// satisfies the comparison, up to `nr2` of the second. Returns the total. A count of 0 wakes no
/// thread, a negative one wakes one.
///
/// # Errors
/// `EINVAL`: flags; an operand or comparand wider than the word (a sign-extended number is not too
/// wide); alignment; NUMA node. `EFAULT`. `ENOSYS`: unknown `op` or `cmp`, with the word unchanged.
///
/// # Safety
/// A word of the size given by `flags` is mapped at `uaddr2`, writable and accessed by atomic
/// operations only. With the NUMA flag, a node word lies behind both words, as for [`futex_wait`].
#[allow(clippy::too_many_arguments, reason = "the arguments of WAKE_OP, one by one")]
pub unsafe fn futex_wake_op(
    uaddr: *mut c_void,
    nr: i32,
    uaddr2: *mut c_void,
    nr2: i32,
    op: u32,
    oparg: u64,
    cmp: u32,
    cmparg: u64,
    flags: u32,
) -> Result<usize, Errno> {
    let first = named(uaddr, flags)?;
    let second = named(uaddr2, flags)?;
    if first.for_kernel {
        // The kernel has no call for this.
        return Err(Errno::NOSYS);
    }
    let size = second.futex.word.size;
    if !fits_either_way(oparg, size) || !fits_either_way(cmparg, size) {
        return Err(Errno::INVAL);
    }
    // The kernel would refuse a bad address of the first word only after the second was changed.
    check_address(first.futex, Access::of_key(first.futex.scope))?;
    check_address(second.futex, Access::Read)?;
    let change = RawWakeOp::from_numbers(op, oparg, cmp, cmparg, size)?;
    let [nr, nr2] = [nr, nr2].map(|nr| if nr == 0 { 0 } else { at_least_one(nr) });
    let (first, second) = (first.futex, second.futex);
    if first.scope == Scope::Private {
        // SAFETY: the second word, and the node words with NUMA, are mapped and accessed by atomic
        // operations only, and the second word is writable, by this function's contract;
        // `check_address` has found them aligned.
        return unsafe { pi::wake_op(first, nr, second, nr2, change) };
    }
    // SAFETY: this function's own contract.
    Ok(unsafe { wake_op(first, nr, second, nr2, change) }?)
}

/// Whether `value` fits into `size`, unsigned or sign-extended to 64 bits.
fn fits_either_way(value: u64, size: Size) -> bool {
    let sign_bits = size.all_bits() ^ (size.all_bits() >> 1) | !size.all_bits();
    size.holds(value) || value & sign_bits == sign_bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_extended_numbers_fit() {
        assert!(fits_either_way(-1i64 as u64, Size::U8));
        assert!(fits_either_way(-128i64 as u64, Size::U8));
        assert!(!fits_either_way(-129i64 as u64, Size::U8));
        assert!(fits_either_way(255, Size::U8));
        assert!(!fits_either_way(256, Size::U8));
        assert!(fits_either_way(u64::MAX, Size::U64));
    }
}
