//! The CPU that a thread runs on, as far as it can be found without a system call, and how long its
//! pause instruction takes.
//!
//! The kernel keeps each thread's CPU number up to date in the thread's own memory (rseq, Linux
//! 4.18; registered by glibc since 2.35), so a thread reads its own with one load. It must not read
//! another thread's `rseq` area, which goes away with its thread. But a waiter can record its CPU
//! number where it parks. A waker that keeps running does best to wake a waiter that ran on another
//! CPU; a waker that is about to sleep, one that ran on the same CPU.

use super::gettime::monotonic;
use super::rseq;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicIsize, Ordering};

/// Not looked up yet.
const UNKNOWN: isize = isize::MAX;
/// Not available here.
const ABSENT: isize = isize::MIN;

/// The offset of a thread's `cpu_id` from its thread pointer.
static CPU_ID_OFFSET: AtomicIsize = AtomicIsize::new(UNKNOWN);

/// The CPU that the calling thread runs on, or did a moment ago. `None` if that cannot be known
/// without a system call. Async-signal-safe.
#[inline]
pub(crate) fn current_cpu() -> Option<u32> {
    // Relaxed: every thread would compute the same number.
    match CPU_ID_OFFSET.load(Ordering::Relaxed) {
        UNKNOWN => look_up(),
        ABSENT => None,
        // SAFETY: `look_up` has found both symbols and a size that is not 0. So this is a glibc
        // with an rseq area at this offset in the static thread-local storage of every thread.
        // The area exists even where the kernel refused the registration; then `cpu_id` is
        // negative.
        offset => u32::try_from(unsafe { thread_word(offset) }).ok(),
    }
}

#[cold]
fn look_up() -> Option<u32> {
    const CPU_ID: isize = 4;
    let offset = match rseq::offset() {
        Some(offset) if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) => {
            offset + CPU_ID
        }
        _ => ABSENT,
    };
    CPU_ID_OFFSET.store(offset, Ordering::Relaxed);
    (offset != ABSENT).then(current_cpu).flatten()
}

/// Reads the 32 bits at this offset from the thread pointer. Negative if the kernel does not
/// maintain them.
///
/// # Safety
/// In every thread, four readable bytes lie there that only the thread itself and the kernel
/// write.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn thread_word(offset: isize) -> i32 {
    let word: i32;
    // SAFETY: the four bytes exist, by this function's contract, and belong to the calling
    // thread. The kernel may change them at any time, so the block is not `pure`: the compiler
    // must not assume that a second load returns the same value.
    unsafe {
        core::arch::asm!(
            "mov {word:e}, fs:[{offset}]",
            word = out(reg) word,
            offset = in(reg) offset,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
unsafe fn thread_word(offset: isize) -> i32 {
    let word: i32;
    // SAFETY: the four bytes exist, by this function's contract, and belong to the calling thread:
    // the register has its thread pointer. Not `pure`, as above.
    unsafe {
        core::arch::asm!(
            "mrs {pointer}, tpidr_el0",
            "ldr {word:w}, [{pointer}, {offset}]",
            pointer = out(reg) _,
            word = lateout(reg) word,
            offset = in(reg) offset,
            options(nostack, preserves_flags, readonly),
        );
    }
    word
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn thread_word(_: isize) -> i32 {
    -1
}

/// The number of pause instructions that take 1024 ns; at least 1. One takes 10 to 140 cycles,
/// depending on the CPU. Takes a few microseconds.
pub(crate) fn pauses_in_1024_ns() -> u64 {
    const PAUSES: u64 = 16;
    const TIMES: u32 = 5;
    let time = || {
        let start = monotonic();
        for _ in 0..PAUSES {
            spin_loop();
        }
        (monotonic() - start).as_nanos() as u64
    };
    // The shortest: in the others this thread may have lost its CPU.
    let took = (0..TIMES).map(|_| time()).min().unwrap_or(0).max(1);
    (PAUSES * 1024 / took).max(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_bound_to_one_cpu_is_on_it() {
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        for cpu in (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)) {
            std::thread::spawn(move || {
                let mut one = rustix::thread::CpuSet::new();
                one.set(cpu);
                rustix::thread::sched_setaffinity(None, &one).unwrap();
                assert!(matches!(current_cpu(), None | Some(_)));
                if let Some(here) = current_cpu() {
                    assert_eq!(here as usize, cpu);
                }
            })
            .join()
            .unwrap();
        }
    }
}
