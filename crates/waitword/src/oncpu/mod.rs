//! On which CPU a thread runs, as far as it can be known for free.
//!
//! The kernel keeps each thread's CPU number up to date in the thread's own memory (rseq, Linux
//! 4.18; registered by glibc since 2.35), so to read one's own costs a load. Another thread's
//! `rseq` area must not be read: it goes away with its thread. But a waiter can leave the number of
//! its CPU where it parks: a waker that goes on running does best to wake one that ran elsewhere,
//! and one that is about to sleep, one that ran here.

#[cfg(not(loom))]
pub(crate) use real::current_cpu;

#[cfg(loom)]
pub(crate) use model::{current_cpu, run_all_on_one_cpu};

/// A model has no CPUs that can be known, or one on which all threads are.
#[cfg(loom)]
mod model {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    crate::checker::lazy_static! {
        static ref ONE_CPU: AtomicBool = AtomicBool::new(false);
    }

    /// In this execution.
    pub(crate) fn run_all_on_one_cpu() {
        ONE_CPU.store(true, Relaxed);
    }

    pub(crate) fn current_cpu() -> Option<u32> {
        ONE_CPU.load(Relaxed).then_some(0)
    }
}

#[cfg(not(loom))]
mod real {
    use core::sync::atomic::{AtomicIsize, Ordering};

    /// Not looked up yet.
    const UNKNOWN: isize = isize::MAX;
    /// There is no such thing here.
    const ABSENT: isize = isize::MIN;

    /// Where a thread's `cpu_id` lies, from its thread pointer.
    static CPU_ID_OFFSET: AtomicIsize = AtomicIsize::new(UNKNOWN);

    /// The CPU that the calling thread runs on, or did a moment ago; `None` if that cannot be known without a
    /// system call. Async-signal-safe.
    #[inline]
    pub(crate) fn current_cpu() -> Option<u32> {
        // Relaxed: a number that every thread would come to.
        match CPU_ID_OFFSET.load(Ordering::Relaxed) {
            UNKNOWN => look_up(),
            ABSENT => None,
            // SAFETY: `look_up` found both symbols, a size that is not 0, and so a glibc that has
            // an rseq area at this offset in the static thread-local storage of every thread. There
            // is one where the kernel refused the registration, too: `cpu_id` is negative then.
            offset => u32::try_from(unsafe { thread_word(offset) }).ok(),
        }
    }

    #[cold]
    fn look_up() -> Option<u32> {
        const CPU_ID: isize = 4;
        let offset = match crate::sys::rseq::offset() {
            Some(offset) if cfg!(target_arch = "x86_64") => offset + CPU_ID,
            _ => ABSENT,
        };
        CPU_ID_OFFSET.store(offset, Ordering::Relaxed);
        (offset != ABSENT).then(current_cpu).flatten()
    }

    /// The 32 bits at this distance from the thread pointer; negative if the kernel does not maintain them.
    ///
    /// # Safety
    /// In every thread four readable bytes lie there, which only the thread itself and the kernel
    /// write.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn thread_word(offset: isize) -> i32 {
        let word: i32;
        // SAFETY: there are four such bytes, by this function's contract, and they are the calling
        // thread's own. The kernel changes them at any time, so the block is not `pure`: the load
        // is not assumed to give the same again.
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

    #[cfg(not(target_arch = "x86_64"))]
    unsafe fn thread_word(_: isize) -> i32 {
        -1
    }

    #[cfg(test)]
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
}
