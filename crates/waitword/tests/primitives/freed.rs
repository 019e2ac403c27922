//! Memory that is gone as soon as it may be: whoever touches it later dies of it.

use crate::support::memory::Mapping;
use crate::support::watchdog::watch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use waitword::{AtomicWait, AutoEvent, Barrier, Event, Latch, Scope, Semaphore};

/// Something in a page of its own, which can be taken away under its users' hands.
struct Page<T> {
    /// Kept for its address.
    page: *mut T,
}

// SAFETY: what lies there is for all threads.
unsafe impl<T: Sync> Send for Page<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Page<T> {}

impl<T> Page<T> {
    fn new(value: T) -> Self {
        let mapping = Mapping::anonymous(4096);
        let page = mapping.at::<T>(0);
        std::mem::forget(mapping);
        // SAFETY: a new page.
        unsafe { page.write(value) };
        Self { page }
    }

    /// # Safety
    /// Not after `free`, but for what the tests are about.
    unsafe fn get(&self) -> &T {
        // SAFETY: mapped until `free`.
        unsafe { &*self.page }
    }

    fn free(&self) {
        // The address stays taken, so that nobody else's memory comes to lie there.
        // SAFETY: our own page.
        let result = unsafe { libc::mprotect(self.page.cast(), 4096, libc::PROT_NONE) };
        assert_eq!(result, 0);
    }
}

impl<T> Drop for Page<T> {
    fn drop(&mut self) {
        // SAFETY: our own page, and all threads are through.
        unsafe { libc::munmap(self.page.cast(), 4096) };
    }
}

/// `give` by one thread; `take` by another, which then frees the memory.
fn given_and_freed<T: Sync>(make: impl Fn() -> T, give: impl Fn(&T) + Sync, take: impl Fn(&T)) {
    for turn in 0..1500 {
        let page = Page::new(make());
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..turn % 32 * 20 {
                    std::hint::spin_loop();
                }
                // SAFETY: what is tested: nobody is let through before this has touched the memory for the last time.
                give(unsafe { page.get() });
            });
            // SAFETY: freed below.
            take(unsafe { page.get() });
            page.free();
        });
    }
}

#[test]
fn by_who_was_let_through() {
    let _watchdog = watch("freed by_who_was_let_through");
    for scope in crate::SCOPES {
        given_and_freed(
            || Semaphore::with_scope(0, scope),
            |semaphore| semaphore.post().unwrap(),
            Semaphore::wait,
        );
        given_and_freed(|| Event::with_scope(false, scope), Event::set, Event::wait);
        given_and_freed(
            || AutoEvent::with_scope(false, scope),
            AutoEvent::set,
            AutoEvent::wait,
        );
        given_and_freed(
            || Latch::with_scope(1, scope),
            |latch| latch.count_down(1).unwrap(),
            Latch::wait,
        );
    }
    given_and_freed(
        || AtomicU32::new(0),
        |word| {
            word.store(1, SeqCst);
            // By address: nothing is touched.
            word.notify_one();
        },
        |word| assert_eq!(word.wait(0), 1),
    );
}

/// A barrier is gone as soon as the first has returned from it, whoever that is.
fn barrier_freed_by_the_first(scope: Scope, threads: u32, turns: u32) {
    for _ in 0..turns {
        let page = Arc::new((
            Page::new(Barrier::with_scope(threads, scope)),
            AtomicU32::new(0),
        ));
        std::thread::scope(|scope_of_threads| {
            for _ in 0..threads {
                let page = page.clone();
                scope_of_threads.spawn(move || {
                    // SAFETY: what is tested: who has not returned yet does not look at the memory any more.
                    let barrier = unsafe { page.0.get() };
                    barrier.wait();
                    if page.1.fetch_add(1, SeqCst) == 0 {
                        if scope == Scope::Shared {
                            assert!(barrier.destroy());
                        }
                        page.0.free();
                    }
                });
            }
        });
    }
}

#[test]
fn by_the_first_through_a_barrier() {
    let _watchdog = watch("freed by_the_first_through_a_barrier");
    for scope in crate::SCOPES {
        barrier_freed_by_the_first(scope, 2, 1000);
        barrier_freed_by_the_first(scope, 8, 200);
    }
}
