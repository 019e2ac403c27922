//! The kernel's number for the calling thread. A priority-inheriting or robust lock that the thread
//! holds has it in its word.
//!
//! It is read once in each thread and again in each forked child, whose only thread has another
//! number than the thread it was copied from. The cached value is one cell, number and
//! [generation](super::generation) together, so that a handler never sees half of a change.
//!
//! A child that runs in its parent's memory on its parent's thread-local storage (`vfork`) would
//! mistake itself for its parent's thread. It may exec and exit, not lock.

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

    /// The calling thread's number in its PID namespace (`gettid`), without a system call after a
    /// thread's first call: never 0, below 2^22. [`RawRwLock::write`](crate::RawRwLock::write)
    /// identifies a writer by it.
    ///
    /// Does not block. Async-signal-safe. Correct in a forked child, too.
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
        // SAFETY: passes only numbers; signal 0 is not delivered to any thread.
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
        // Not loom's: handing out numbers is not part of any protocol.
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
                // Not `_exit`: a sanitizer's version takes locks of its own, which a thread of the
                // parent may have held.
                // SAFETY: ends the child without running any of the parent's exit handlers.
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
