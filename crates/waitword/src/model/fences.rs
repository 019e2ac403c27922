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

/// A number that says that data may change from here on, and data that changes after it: the record
/// of a thread's locks (`deadlock/record.rs`), a ring whose cells are overwritten once they are in
/// a file (`ring.rs` in waitword-record). Data that was read is old if the number still is.
fn what_is_read_is_old(writer_fences: bool, reader_fences: bool) {
    crate::checker::model(move || {
        let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (number, data) = &*shared;
                number.store(1, Ordering::Release);
                if writer_fences {
                    fence(Ordering::Release);
                }
                data.store(1, Ordering::Relaxed);
            })
        };
        let (number, data) = &*shared;
        let read = data.load(Ordering::Relaxed);
        if reader_fences {
            fence(Ordering::Acquire);
        }
        let is_as_before = number.load(Ordering::Relaxed) == 0;
        writer.join().unwrap();
        assert!(!(read == 1 && is_as_before), "new data was taken for old");
    });
}

#[test]
fn with_both_fences_what_is_read_is_old() {
    what_is_read_is_old(true, true);
}

#[test]
#[should_panic(expected = "new data was taken for old")]
fn without_the_writer_s_fence_it_may_be_new() {
    what_is_read_is_old(false, true);
}

#[test]
#[should_panic(expected = "new data was taken for old")]
fn without_the_reader_s_fence_it_may_be_new() {
    what_is_read_is_old(true, false);
}

/// A request in `state`, and a switch that both threads write: another process, which can only
/// write, and the thread that follows (`control.rs` in waitword-record). If the thread's is the
/// last write of the switch, it finds the request.
fn no_request_is_lost(other_fences: bool, thread_fences: bool) {
    const ASKED: u32 = 2;
    crate::checker::model(move || {
        let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (state, switch) = &*shared;
                state.store(1, Ordering::Relaxed);
                if other_fences {
                    fence(Ordering::SeqCst);
                }
                switch.store(ASKED, Ordering::Relaxed);
            })
        };
        let (state, switch) = &*shared;
        switch.store(1, Ordering::Relaxed);
        if thread_fences {
            fence(Ordering::SeqCst);
        }
        let finds_it = state.load(Ordering::Relaxed) == 1;
        other.join().unwrap();
        let is_asked = switch.load(Ordering::Relaxed) == ASKED;
        assert!(finds_it || is_asked, "a request was lost");
    });
}

#[test]
fn with_both_fences_no_request_is_lost() {
    no_request_is_lost(true, true);
}

#[test]
#[should_panic(expected = "a request was lost")]
fn without_the_other_s_fence_a_request_is_lost() {
    no_request_is_lost(false, true);
}

#[test]
#[should_panic(expected = "a request was lost")]
fn without_the_thread_s_fence_a_request_is_lost() {
    no_request_is_lost(true, false);
}

/// A flag that one waiter sets, and another finds set, before each goes into the kernel
/// (`raw/pi.rs`). The kernel makes a fence of its own and compares the word.
fn a_flag_of_another_s_is_found(waker_fences: bool) {
    crate::checker::model(move || {
        let shared = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
        let first = {
            let shared = shared.clone();
            thread::spawn(move || shared.0.store(1, Ordering::Relaxed))
        };
        let second = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (ever, word) = &*shared;
                let is_set = ever.load(Ordering::Relaxed) == 1;
                fence(Ordering::SeqCst);
                is_set && word.load(Ordering::Relaxed) == 0
            })
        };
        let (ever, word) = &*shared;
        word.store(1, Ordering::Relaxed);
        if waker_fences {
            fence(Ordering::SeqCst);
        }
        let passes_by = ever.load(Ordering::Relaxed) == 0;
        let sleeps = second.join().unwrap();
        first.join().unwrap();
        assert!(!(sleeps && passes_by), "a wake-up was lost");
    });
}

#[test]
#[should_panic(expected = "a wake-up was lost")]
fn without_the_waker_s_fence_a_flag_is_missed() {
    a_flag_of_another_s_is_found(false);
}

#[test]
fn with_the_waker_s_fence_a_flag_is_found() {
    a_flag_of_another_s_is_found(true);
}
