//! Defects on purpose, which `scripts/sanitizers` wants reported before it believes that there are no others. Ignored
//! everywhere else.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use waitword::Mutex;

struct Unguarded(UnsafeCell<u64>);

// SAFETY: it is not: that is what is to be found.
unsafe impl Sync for Unguarded {}

/// Two threads write, and only one holds the mutex. They meet before: a thread that begins when another has ended may
/// have heard of all that it did.
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

/// A mutex is locked that was freed.
#[test]
#[ignore = "a defect, for AddressSanitizer"]
fn planted_use_after_free() {
    let mutex = black_box(Box::into_raw(Box::new(Mutex::new(0))));
    // SAFETY: the first is right; the second is what is to be found.
    unsafe {
        drop(Box::from_raw(mutex));
        drop((*mutex).lock());
    }
}

/// Memory is forgotten.
#[test]
#[ignore = "a defect, for LeakSanitizer"]
fn planted_leak() {
    black_box(Box::leak(black_box(Box::new([1u8; 100]))));
}
