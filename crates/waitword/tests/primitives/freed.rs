//! Memory that is freed as soon as it may be: a later access crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use waitword::{AtomicWait, AutoEvent, Barrier, Event, Latch, Scope, Semaphore};
use waitword_testkit::{Mapping, watch};

/// A value in a page of its own, which can be taken away while threads still use it.
struct Page<T> {
    /// Kept for its address.
    page: *mut T,
}

// SAFETY: the value is for all threads.
unsafe impl<T: Sync> Send for Page<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Page<T> {}

impl<T> Page<T> {
    fn new(value: T) -> Self {
        let page = Mapping::anonymous(4096).leak().cast::<T>();
        // SAFETY: a new page.
        unsafe { page.write(value) };
        Self { page }
    }

    /// # Safety
    /// Not after `free`, except where that is what a test is about.
    unsafe fn get(&self) -> &T {
        // SAFETY: mapped until `free`.
        unsafe { &*self.page }
    }

    fn free(&self) {
        // The address stays reserved, so that no other memory is mapped there.
        // SAFETY: our own page.
        let result = unsafe { libc::mprotect(self.page.cast(), 4096, libc::PROT_NONE) };
        assert_eq!(result, 0);
    }
}

impl<T> Drop for Page<T> {
    fn drop(&mut self) {
        // SAFETY: our own page, and all threads are done.
        unsafe { libc::munmap(self.page.cast(), 4096) };
    }
}

/// One thread runs `give`. Another runs `take`, and then frees the memory.
fn given_and_freed<T: Sync>(make: impl Fn() -> T, give: impl Fn(&T) + Sync, take: impl Fn(&T)) {
    for turn in 0..1500 {
        let page = Page::new(make());
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..turn % 32 * 20 {
                    std::hint::spin_loop();
                }
                // SAFETY: this is what is tested: no thread is let through before this one has
                // touched the memory for the last time.
                give(unsafe { page.get() });
            });
            // SAFETY: freed below.
            take(unsafe { page.get() });
            page.free();
        });
    }
}

#[test]
fn by_the_thread_that_was_let_through() {
    let _watchdog = watch();
    for scope in crate::SCOPES {
        given_and_freed(
            || Semaphore::with_scope(0, scope),
            |semaphore| semaphore.post().unwrap(),
            Semaphore::wait,
        );
        given_and_freed(|| Event::with_scope(false, scope), Event::set, Event::wait);
        given_and_freed(|| AutoEvent::with_scope(false, scope), AutoEvent::set, AutoEvent::wait);
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
            // By address: nothing is accessed.
            word.notify_one();
        },
        |word| assert_eq!(word.wait(0), 1),
    );
}

/// A barrier is freed as soon as the first thread has returned from it, whichever that is.
fn barrier_freed_by_the_first(scope: Scope, threads: u32, turns: u32) {
    for _ in 0..turns {
        let page = Arc::new((Page::new(Barrier::with_scope(threads, scope)), AtomicU32::new(0)));
        std::thread::scope(|scope_of_threads| {
            for _ in 0..threads {
                let page = page.clone();
                scope_of_threads.spawn(move || {
                    // SAFETY: this is what is tested: a thread that has not returned yet no longer
                    // accesses the memory.
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
    let _watchdog = watch();
    for scope in crate::SCOPES {
        barrier_freed_by_the_first(scope, 2, 1000);
        barrier_freed_by_the_first(scope, 8, 200);
    }
}
