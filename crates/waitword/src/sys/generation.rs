//! Which generation of forks this process is: what a lock's word says of *threads that are awake* holds in
//! one generation only, since a forked child has one thread.
//!
//! The kernel zeroes a page of ours in the child of any kind of fork (`MADV_WIPEONFORK`); whoever finds the zero
//! there begins the next generation. Where the kernel refuses that, a handler of `pthread_atfork` does it, which `fork`
//! runs and `_Fork` does not.

use super::mem;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The page that is wiped; null until first asked for.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// The number of the last generation that began in this process or an ancestor.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Stands in for the page where there is none; the fork handler zeroes it.
static UNWIPED: AtomicU32 = AtomicU32::new(0);

/// The generation: another number than that of any ancestor but for those of some 2^32 forks ago. Its low byte is never 0, and differs
/// from those of the last 254 ancestors.
#[inline]
pub(crate) fn generation() -> u32 {
    // Acquire: the page is mapped before its address is known.
    // SAFETY: null, or a page that is never unmapped.
    match unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        Some(page) => match page.load(Ordering::Relaxed) {
            0 => begin(page),
            generation => generation,
        },
        None => first(),
    }
}

#[cold]
fn begin(page: &AtomicU32) -> u32 {
    let next = LAST.load(Ordering::Relaxed).wrapping_add(1);
    let next = if next as u8 == 0 { next | 1 } else { next };
    match page.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            LAST.store(next, Ordering::Relaxed);
            next
        }
        // Another thread of this process began it.
        Err(generation) => generation,
    }
}

#[cold]
fn first() -> u32 {
    let page = wiped_page().unwrap_or_else(|| {
        extern "C" fn child() {
            UNWIPED.store(0, Ordering::Relaxed);
        }
        // A failure leaves children in their parent's generation; there is nobody to tell.
        // SAFETY: the handler is a function without arguments that lives as long as the process.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
        (&raw const UNWIPED).cast_mut()
    });
    // Release: whoever finds the address finds the page. One that lost the race stays mapped, unused.
    let _ = PAGE.compare_exchange(
        core::ptr::null_mut(),
        page,
        Ordering::Release,
        Ordering::Relaxed,
    );
    generation()
}

/// A page that the kernel zeroes in children; `None` if memory is short or the kernel does not.
fn wiped_page() -> Option<*mut AtomicU32> {
    let page = mem::map(mem::PAGE)?;
    // SAFETY: one whole mapping, and zero means "not begun".
    match unsafe { mem::wipe_on_fork(page, mem::PAGE) } {
        Ok(()) => Some(page.as_ptr().cast()),
        Err(_) => {
            // SAFETY: mapped just above, seen by nobody.
            unsafe { mem::unmap(page, mem::PAGE) };
            None
        }
    }
}

#[cfg(test)]
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
    fn generations_begin_anew_without_a_zero_in_the_low_byte() {
        fn descend(steps: u32, mother: u32) -> bool {
            let here = generation();
            let sound = here != mother && here as u8 != 0;
            sound && (steps == 0 || ends_well(|| descend(steps - 1, here)))
        }
        for last in [0xfd, u32::MAX - 3] {
            in_child(|| {
                // Before this child has asked.
                LAST.store(last, Ordering::Relaxed);
                descend(6, 0)
            });
        }
    }

    /// Whether `check` holds in a child.
    fn ends_well(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child reads and writes some words, forks and exits.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!check())) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        status == 0
    }

    #[track_caller]
    fn in_child(check: impl FnOnce() -> bool) {
        assert!(ends_well(check));
    }
}
