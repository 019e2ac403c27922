//! Biased locks and leaked read guards: a lock that is moved, dropped or created is not affected by
//! the slots that other locks have left at its address.

use super::word::{FAST, SLOTS};
use super::{RawRwLock, slots};
use lock_api::RawRwLock as _;
use std::sync::atomic::Ordering::SeqCst;

/// Makes the lock biased, under a new number.
fn become_fast(lock: &RawRwLock) {
    assert!(lock.state().may_become_fast());
    let number = slots::free_number().unwrap();
    lock.word.store(lock.state().biased(number).0, SeqCst);
}

fn fast() -> RawRwLock {
    let lock = RawRwLock::new();
    become_fast(&lock);
    lock
}

/// A thread reads through a slot and ends.
fn leak_a_reader(lock: &RawRwLock) {
    std::thread::scope(|scope| {
        scope.spawn(|| lock.lock_shared()).join().unwrap();
    });
    assert!(lock.state().has(SLOTS) && lock.state().readers() == 0);
    assert!(lock.is_locked() && !lock.try_lock_exclusive());
}

/// The lock can be acquired for writing and reading in every way, as if no thread had used it
/// before.
fn is_free(lock: &RawRwLock) {
    assert!(!lock.is_locked() && lock.is_idle(), "{lock:?}");
    lock.lock_shared();
    assert!(!lock.try_lock_exclusive());
    // SAFETY: taken above.
    unsafe { lock.unlock_shared() };
    assert!(
        !lock.is_locked(),
        "a stranger's hold was given back: {lock:?}"
    );
    assert!(lock.try_lock_exclusive(), "{lock:?}");
    // SAFETY: taken just now.
    unsafe { lock.unlock_exclusive() };
    assert!(!lock.state().has(FAST | SLOTS));
    assert_eq!(lock.state().0, 0, "a number stays behind");
}

/// S5: it would wait forever for the reader of the other lock.
#[test]
fn a_fast_lock_that_is_moved_to_where_a_leaked_reader_stands_is_free() {
    let mut here = fast();
    leak_a_reader(&here);
    let mut there = fast();
    core::mem::swap(&mut here, &mut there);
    is_free(&here);
    // The other lock has left its reader behind.
    is_free(&there);
}

#[test]
fn a_lock_that_is_made_where_a_leaked_reader_stands_is_free() {
    let mut here = fast();
    for _ in 0..slots_of_a_thread() {
        leak_a_reader(&here);
        // As if it were dropped, and the next one created in its memory.
        here = fast();
        is_free(&here);
        become_fast(&here);
    }
}

/// As many as a thread can leave, and more.
fn slots_of_a_thread() -> usize {
    10
}

/// The thread's own slot for the earlier lock is neither taken for a hold of this one, nor given
/// back in its place.
#[test]
fn a_thread_that_leaked_a_reader_tells_its_locks_apart() {
    let mut here = fast();
    here.lock_shared();
    let forgotten = slots::Key::new(here.address(), here.state());
    here = fast();
    let holds = slots::Key::new(here.address(), here.state());
    assert!(slots::holds(forgotten) && !slots::holds(holds));
    here.lock_shared();
    assert!(slots::holds(forgotten) && slots::holds(holds));
    // SAFETY: taken above.
    unsafe { here.unlock_shared() };
    assert!(slots::holds(forgotten) && !slots::holds(holds));
    is_free(&here);
    assert!(slots::retract(forgotten));
}

/// A lock whose writer gave up keeps its number for those that still read under it.
#[test]
fn a_lock_that_becomes_fast_again_before_its_slots_are_empty_keeps_its_number() {
    let lock = fast();
    lock.lock_shared();
    let before = lock.state();
    let past = crate::Deadline::at(crate::Clock::Monotonic, core::time::Duration::ZERO);
    assert!(lock.lock_exclusive_until(past).is_err());
    assert!(!lock.state().has(FAST) && lock.state().has(SLOTS));
    become_fast(&lock);
    assert!(lock.state().is_still_biased_as(before));
    assert!(!lock.try_lock_exclusive());
    // SAFETY: taken above.
    unsafe { lock.unlock_shared() };
    is_free(&lock);
}

#[test]
fn no_slot_holds_a_new_number() {
    let lock = fast();
    lock.lock_shared();
    let taken = lock.state();
    for _ in 0..2 * super::word::LAST_BIAS {
        let number = slots::free_number().unwrap();
        let next = RawRwLock::new().state().biased(number);
        assert!(!next.is_still_biased_as(taken), "{number}");
    }
    // SAFETY: taken above.
    unsafe { lock.unlock_shared() };
}
