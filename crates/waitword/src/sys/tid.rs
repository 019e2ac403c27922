//! The kernel's number for the calling thread. A priority-inheriting or robust lock that the thread
//! holds has it in its word.
//!
//! It is read once in each thread and again in each forked child, whose only thread has another
//! number than the thread it was copied from. The cached value is one cell, number and
//! [generation](super::generation) together, so that a handler never sees half of a change.
//!
//! A child that runs in its parent's memory on its parent's thread-local storage (`vfork`) would
//! mistake itself for its parent's thread. It may exec and exit, not lock.

use super::generation::generation;
use super::sched::new_thread_number;
/// The generation in the high half, the number in the low one. No generation is 0.
use super::thread_word::NUMBER as KNOWN;

/// The calling thread's number in its PID namespace (`gettid`), without a system call after a
/// thread's first call: never 0, below 2^22. [`RawRwLock::write`](crate::RawRwLock::write)
/// identifies a writer by it.
///
/// Does not block. Async-signal-safe. Correct in a forked child, too.
#[inline]
pub fn tid() -> u32 {
    let known = KNOWN.get();
    let generation = generation();
    if (known >> 32) as u32 == generation { known as u32 } else { ask(generation) }
}

#[cold]
fn ask(generation: u32) -> u32 {
    let tid = new_thread_number();
    KNOWN.set(u64::from(generation) << 32 | u64::from(tid));
    tid
}

/// Whether a thread of this process has this number.
#[cfg(feature = "deadlock_detection")]
pub(crate) fn exists(number: u32) -> bool {
    let process = std::process::id();
    // SAFETY: passes only numbers; signal 0 is not delivered to any thread.
    unsafe { libc::syscall(libc::SYS_tgkill, process, number, 0) == 0 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::tid;
    use waitword_testkit::{Way, in_child, watch};

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
        let _watchdog = watch();
        for way in [Way::Fork, Way::RawClone] {
            let parents = tid();
            in_child(way, || tid() == asked() && tid() != parents);
            assert_eq!(tid(), parents);
        }
    }
}
