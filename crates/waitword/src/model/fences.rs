//! The store/load pair of the waiter count (`private/bucket.rs`), in isolation: neither side may
//! miss the other, and each of the two fences is needed.

use crate::checker::sync::Arc;
use crate::checker::sync::atomic::{AtomicU32, Ordering, fence};
use crate::checker::thread;

/// Waiter: count itself, fence, read the word. Waker: change the word, fence, read the count.
fn neither_misses_the_other(waiter_fences: bool, waker_fences: bool) {
    crate::checker::model(move || {
        let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let waiter = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (word, count) = &*shared;
                count.fetch_add(1, Ordering::Relaxed);
                if waiter_fences {
                    fence(Ordering::SeqCst);
                }
                let sleeps = word.load(Ordering::Relaxed) == 0;
                sleeps
            })
        };
        let (word, count) = &*shared;
        word.store(1, Ordering::Relaxed);
        if waker_fences {
            fence(Ordering::SeqCst);
        }
        let passes_by = count.load(Ordering::Relaxed) == 0;
        let sleeps = waiter.join().unwrap();
        assert!(!(sleeps && passes_by), "a wake-up was lost");
    });
}

#[test]
fn with_both_fences_no_wake_is_lost() {
    neither_misses_the_other(true, true);
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn without_the_waiter_s_fence_a_wake_is_lost() {
    neither_misses_the_other(false, true);
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn without_the_waker_s_fence_a_wake_is_lost() {
    neither_misses_the_other(true, false);
}

/// The same with the table pointer added: a waker that uses an old table must not miss a waiter
/// that found the new one (`private/grow.rs`).
#[test]
fn a_waker_finds_the_table_that_the_waiter_found() {
    crate::checker::model(|| {
        // The counts of table 0 and table 1, which table is current, and the word.
        let shared = Arc::new((
            [AtomicU32::new(0), AtomicU32::new(0)],
            AtomicU32::new(0),
            AtomicU32::new(0),
        ));
        let grower = {
            let shared = shared.clone();
            thread::spawn(move || shared.1.store(1, Ordering::Release))
        };
        let waiter = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (counts, current, word) = &*shared;
                let table = current.load(Ordering::Acquire) as usize;
                counts[table].fetch_add(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                // In table 0 the waiter would find, under the lock, that the table has grown, and
                // start again.
                table == 1 && word.load(Ordering::Relaxed) == 0
            })
        };
        let (counts, current, word) = &*shared;
        word.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let table = current.load(Ordering::Acquire) as usize;
        let passes_by = counts[table].load(Ordering::Relaxed) == 0;
        let sleeps = waiter.join().unwrap();
        grower.join().unwrap();
        assert!(!(sleeps && passes_by), "a wake-up was lost");
    });
}
