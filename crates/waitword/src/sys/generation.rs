//! The fork generation of this process. A lock's word may record that *threads are awake*. That
//! holds in one generation only, since a forked child has one thread.
//!
//! The kernel zeroes a page of ours in the child of any kind of fork (`MADV_WIPEONFORK`). A thread
//! that finds the zero there begins the next generation. If the kernel refuses that, a handler of
//! `pthread_atfork` zeroes a word instead (`fork.rs`).

use super::{fork, mem};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The page that is wiped; null until first needed.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// The last number that was used up for a generation, in this process or an ancestor. A number is
/// stored here before it is stored in the page.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Replaces the page if there is none; the fork handler zeroes it.
static UNWIPED: AtomicU32 = AtomicU32::new(0);

/// The generation: a number that differs from that of every ancestor, except those of some 2^32
/// forks ago. Its low byte is never 0, and differs from those of the last 254 ancestors. (Of fewer
/// if threads have begun a generation at the same moment: each of them uses up a number.)
#[inline]
pub(crate) fn generation() -> u32 {
    // Acquire: the page is mapped before its address is known.
    // SAFETY: null, the static `UNWIPED`, or a page that is mapped and zeroed before its address is
    // stored and never unmapped after. A word there is only used as an atomic; the kernel zeroes it
    // only in children, before they run.
    match unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        // Relaxed: only the number itself matters.
        Some(page) => match page.load(Ordering::Relaxed) {
            0 => begin(page),
            generation => generation,
        },
        None => first(),
    }
}

#[cold]
fn begin(page: &AtomicU32) -> u32 {
    let following = |last: u32| match last.wrapping_add(1) {
        next if next as u8 == 0 => next | 1,
        next => next,
    };
    // Relaxed: a number that orders nothing by itself.
    let last =
        LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(following(last)));
    let next = last.map_or_else(following, following);
    // Release: a thread that finds the number in the page, and forks, has a child that finds at
    // least this one in `LAST`. (The read need not acquire: fork is a barrier.)
    match page.compare_exchange(0, next, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => next,
        // Another thread of this process began it. Our number stays unused.
        Err(generation) => generation,
    }
}

/// In a forked child: the next generation begins, if the kernel has not wiped the page.
pub(super) fn begin_if_unwiped() {
    UNWIPED.store(0, Ordering::Relaxed);
}

#[cold]
fn first() -> u32 {
    let page = wiped_page().unwrap_or_else(|| {
        fork::register();
        (&raw const UNWIPED).cast_mut()
    });
    // Release: a thread that finds the address finds the page. A page that lost the race stays
    // mapped, unused.
    let _ =
        PAGE.compare_exchange(core::ptr::null_mut(), page, Ordering::Release, Ordering::Relaxed);
    generation()
}

/// A page that the kernel zeroes in children; `None` if memory is short or the kernel does not zero
/// it.
fn wiped_page() -> Option<*mut AtomicU32> {
    let page = mem::map(mem::PAGE)?;
    // SAFETY: `page` is one whole mapping of this length, made just above. Zero is a valid state:
    // "not begun".
    match unsafe { mem::wipe_on_fork(page, mem::PAGE) } {
        Ok(()) => Some(page.as_ptr().cast()),
        Err(_) => {
            // SAFETY: `page` is the mapping made just above. No other place has its address.
            unsafe { mem::unmap(page, mem::PAGE) };
            None
        }
    }
}

/// Whether `check` holds in a child of `fork`. It must not allocate, nor take a lock that another
/// thread may hold: the child has only the calling thread.
#[cfg(all(test, not(loom)))]
pub(crate) fn ends_well(check: impl FnOnce() -> bool) -> bool {
    waitword_testkit::fork(check).join() == 0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_and_its_child_another() {
        let parents = generation();
        assert_ne!(parents as u8, 0);
        assert_eq!(generation(), parents);
        in_child(|| generation() != parents && generation() == generation());
        assert_eq!(generation(), parents);
    }

    /// Four billion forks of forks, or the last few of them.
    #[test]
    fn generations_wrap_around_without_a_zero_in_the_low_byte() {
        fn descend(steps: u32, parent: u32) -> bool {
            let here = generation();
            let sound = here != parent && here as u8 != 0;
            sound && (steps == 0 || ends_well(|| descend(steps - 1, here)))
        }
        for last in [0xfd, u32::MAX - 3] {
            in_child(|| {
                // Before this child has asked for its generation.
                LAST.store(last, Ordering::Relaxed);
                descend(6, 0)
            });
        }
    }

    /// A thread that reads the number may fork before the one that wrote it executes another
    /// instruction. If a child then found an older number in `LAST`, it would begin with its
    /// parent's.
    #[test]
    fn a_number_is_used_up_before_a_thread_can_read_it() {
        let parents = generation();
        let page = PAGE.load(Ordering::Relaxed);
        let mut child = waitword_testkit::fork(|| {
            // SAFETY: the child lets itself be traced; SIGSTOP lets the parent begin.
            unsafe {
                libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                libc::raise(libc::SIGSTOP);
            }
            generation() != parents
        });
        let (mut begun_after, mut early) = (None, None);
        for step in 0.. {
            let status = child.next_status();
            if libc::WIFEXITED(status) {
                assert_eq!(libc::WEXITSTATUS(status), 0);
                break;
            }
            let [now, last] = [page.cast_const(), &raw const LAST].map(|word| {
                let aligned = word.addr() & !7;
                // SAFETY: the child is stopped; its memory is where this process has it.
                let both = unsafe { libc::ptrace(libc::PTRACE_PEEKDATA, child.id(), aligned, 0) };
                (both as u64 >> (8 * (word.addr() - aligned))) as u32
            });
            if now != 0 {
                begun_after.get_or_insert(step);
            }
            if now != 0 && now != last {
                early.get_or_insert((step, now, last));
            }
            // SAFETY: the child is stopped, and continues for one instruction.
            unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child.id(), 0, 0) };
        }
        assert!(begun_after > Some(1), "{begun_after:?}");
        assert_eq!(early, None, "step, in the page, in LAST");
    }

    #[track_caller]
    fn in_child(check: impl FnOnce() -> bool) {
        assert!(ends_well(check));
    }
}
