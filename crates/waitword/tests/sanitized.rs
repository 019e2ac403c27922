//! Deliberate defects, which `scripts/sanitizers` requires to be reported before it trusts that
//! there are no others. Ignored everywhere else.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use waitword::Mutex;

struct Unguarded(UnsafeCell<u64>);

// SAFETY: it is not safe; that is the defect to be found.
unsafe impl Sync for Unguarded {}

/// Two threads write, and only one holds the mutex. They meet before that: a thread that begins
/// after another has ended may be ordered after everything that the other did.
#[test]
#[ignore = "a defect, for ThreadSanitizer"]
fn planted_race() {
    let mutex = Mutex::new(());
    let data = Unguarded(UnsafeCell::new(0));
    let meeting = Barrier::new(2);
    let (mutex, data, meeting) = (&mutex, &data, &meeting);
    thread::scope(|threads| {
        for is_careful in [true, false] {
            threads.spawn(move || {
                meeting.wait();
                let _held = is_careful.then(|| mutex.lock());
                // SAFETY: none.
                unsafe { *data.0.get() += 1 };
            });
        }
    });
}

/// A freed mutex is locked.
#[test]
#[ignore = "a defect, for AddressSanitizer"]
fn planted_use_after_free() {
    let mutex = black_box(Box::into_raw(Box::new(Mutex::new(0))));
    // SAFETY: the first is correct; the second is the defect to be found.
    unsafe {
        drop(Box::from_raw(mutex));
        drop((*mutex).lock());
    }
}

/// Memory is leaked.
#[test]
#[ignore = "a defect, for LeakSanitizer"]
fn planted_leak() {
    black_box(Box::leak(black_box(Box::new([1u8; 100]))));
}
