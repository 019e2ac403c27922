//! The number that the kernel has for the calling thread: what stands in the word of a priority-inheriting or
//! robust lock that it holds.
//!
//! Asked for once in a thread and once more in each forked child, whose only thread has another number
//! than the thread it was copied from. What is known lies in one cell, number and
//! [generation](super::generation) together, so that a handler never sees half of a change.
//!
//! A child that runs in its parent's memory on its parent's thread-local storage (`vfork`) would take
//! itself for its parent's thread. It may exec and exit, not lock.

#[cfg(not(loom))]
pub use real::tid;

#[cfg(all(feature = "deadlock_detection", not(loom)))]
pub(crate) use real::exists;

#[cfg(loom)]
pub(crate) use model::tid;

#[cfg(not(loom))]
mod real {
    use crate::sys::generation::generation;
    /// The generation in the high half, the number in the low one. No generation is 0.
    use crate::sys::thread_word::NUMBER as KNOWN;

    /// The calling thread's number in its PID namespace (`gettid`), without a system call after a thread's first: never 0, below
    /// 2^22. What [`RawRwLock::write`](crate::RawRwLock::write) knows a writer by.
    ///
    /// Does not block. Async-signal-safe. Right in a forked child, too.
    #[inline]
    pub fn tid() -> u32 {
        let known = KNOWN.get();
        let generation = generation();
        if (known >> 32) as u32 == generation {
            known as u32
        } else {
            ask(generation)
        }
    }

    /// Whether a thread of this process has this number.
    #[cfg(feature = "deadlock_detection")]
    pub(crate) fn exists(number: u32) -> bool {
        let process = std::process::id();
        // SAFETY: passes numbers; signal 0 is sent to no thread.
        unsafe { libc::syscall(libc::SYS_tgkill, process, number, 0) == 0 }
    }

    #[cold]
    fn ask(generation: u32) -> u32 {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        KNOWN.set(u64::from(generation) << 32 | u64::from(tid));
        tid
    }
}

/// In a model threads are numbered in the order in which they first ask.
#[cfg(loom)]
mod model {
    use core::cell::Cell;
    use std::sync::atomic::{AtomicU32, Ordering};

    crate::checker::lazy_static! {
        // Not loom's: to hand out numbers is no part of any protocol.
        static ref LAST: AtomicU32 = AtomicU32::new(0);
    }
    crate::checker::thread_local! {
        static KNOWN: Cell<u32> = Cell::new(0);
    }

    pub(crate) fn tid() -> u32 {
        KNOWN.with(|known| {
            if known.get() == 0 {
                known.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
            }
            known.get()
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::tid;
    use crate::lock::pi::watchdog::watch;

    fn asked() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(tid(), asked());
        assert_eq!(tid(), asked());
        let here = tid();
        let there = std::thread::spawn(|| (tid(), tid(), asked()));
        let (first, second, asked) = there.join().unwrap();
        assert_eq!((first, second), (asked, asked));
        assert_ne!(first, here);
    }

    #[test]
    fn a_forked_child_has_another_however_it_was_made() {
        let _watchdog = watch("a_forked_child_has_another_however_it_was_made");
        for bare in [false, true] {
            let parents = tid();
            // SAFETY: the child compares numbers and exits.
            let child = unsafe {
                match bare {
                    false => libc::fork(),
                    true => libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as i32,
                }
            };
            assert!(child >= 0);
            if child == 0 {
                let right = tid() == asked() && tid() != parents;
                // Not `_exit`: a sanitizer's asks for locks of its own, which some thread of the parent's may have held.
                // SAFETY: ends the child without running anything of the parent's.
                unsafe { libc::syscall(libc::SYS_exit_group, i32::from(!right)) };
            }
            let mut status = 0;
            // SAFETY: waits for the child made above.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0);
            assert_eq!(tid(), parents);
        }
    }
}
