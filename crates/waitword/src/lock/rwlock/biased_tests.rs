//! Biased locks: every way in sees the visible readers. Leaked read guards: a lock that is moved,
//! dropped or created is not affected by the slots that other locks have left at its address.

use super::slot_table::Key;
use super::tests::{PATIENCE, leaked, passed, soon, start, until};
use super::visible_readers::free_number;
use super::word::{self, BIASED, SLOTS, WRITERS_WAIT};
use super::{Preference, RawRwLock, RwLockError, visible_readers};
use crate::futex::Scope;
use lock_api::{RawRwLock as _, RawRwLockUpgrade as _};
use std::sync::atomic::Ordering::SeqCst;

/// Makes the lock biased, under a new number.
fn become_biased(lock: &RawRwLock) {
    assert!(lock.state().may_become_biased());
    let number = free_number().unwrap();
    lock.word.store(lock.state().biased(number).0, SeqCst);
}

fn biased() -> RawRwLock {
    let lock = RawRwLock::new();
    become_biased(&lock);
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
    assert!(!lock.is_locked(), "another lock's hold was given back: {lock:?}");
    assert!(lock.try_lock_exclusive(), "{lock:?}");
    // SAFETY: taken just now.
    unsafe { lock.unlock_exclusive() };
    assert!(!lock.state().has(BIASED | SLOTS));
    assert_eq!(lock.state().0, 0, "a number stays behind");
}

/// S5: it would wait forever for the reader of the other lock.
#[test]
fn a_biased_lock_moved_to_a_leaked_reader_s_address_is_free() {
    let mut here = biased();
    leak_a_reader(&here);
    let mut there = biased();
    core::mem::swap(&mut here, &mut there);
    is_free(&here);
    // The other lock has left its reader behind.
    is_free(&there);
}

#[test]
fn a_lock_made_at_a_leaked_reader_s_address_is_free() {
    let mut here = biased();
    for _ in 0..slots_of_a_thread() {
        leak_a_reader(&here);
        // As if it were dropped, and the next one created in its memory.
        here = biased();
        is_free(&here);
        become_biased(&here);
    }
}

/// As many as a thread can leave, and more.
fn slots_of_a_thread() -> usize {
    10
}

/// The thread's own slot for the earlier lock is neither taken for a hold of this one, nor given
/// back in its place.
#[test]
fn a_thread_that_leaked_a_reader_distinguishes_its_locks() {
    let mut here = biased();
    here.lock_shared();
    let forgotten = Key::new(here.address(), here.state());
    here = biased();
    let holds = Key::new(here.address(), here.state());
    assert!(visible_readers::holds(forgotten) && !visible_readers::holds(holds));
    here.lock_shared();
    assert!(visible_readers::holds(forgotten) && visible_readers::holds(holds));
    // SAFETY: taken above.
    unsafe { here.unlock_shared() };
    assert!(visible_readers::holds(forgotten) && !visible_readers::holds(holds));
    is_free(&here);
    assert!(visible_readers::retract(forgotten));
}

/// A lock whose writer gave up keeps its number for those that still read under it.
#[test]
fn a_lock_biased_again_before_its_slots_are_empty_keeps_its_number() {
    let lock = biased();
    lock.lock_shared();
    let before = lock.state();
    assert!(lock.lock_exclusive_until(passed()).is_err());
    assert!(!lock.state().has(BIASED) && lock.state().has(SLOTS));
    become_biased(&lock);
    assert!(lock.state().is_still_biased_as(before));
    assert!(!lock.try_lock_exclusive());
    // SAFETY: taken above.
    unsafe { lock.unlock_shared() };
    is_free(&lock);
}

#[test]
fn no_slot_holds_a_new_number() {
    let lock = biased();
    lock.lock_shared();
    let taken = lock.state();
    for _ in 0..2 * super::word::LAST_BIAS {
        let number = free_number().unwrap();
        let next = RawRwLock::new().state().biased(number);
        assert!(!next.is_still_biased_as(taken), "{number}");
    }
    // SAFETY: taken above.
    unsafe { lock.unlock_shared() };
}

#[test]
fn a_biased_lock_is_held_by_slots_and_every_way_in_sees_them() {
    for preference in [Preference::Reader, Preference::Writer] {
        let lock = leaked(preference, Scope::Private);
        become_biased(lock);
        lock.lock_shared();
        assert_eq!(lock.state().readers(), 0, "not by a slot: {lock:?}");
        assert!(lock.is_locked() && !lock.is_idle());
        assert!(!lock.try_lock_exclusive());
        assert!(lock.state().has(BIASED), "an attempt has revoked the bias");
        assert!(lock.try_lock_upgradable());
        // SAFETY: the upgradable lock was acquired just now.
        unsafe {
            assert!(!lock.try_upgrade());
            lock.unlock_upgradable();
        }
        assert!(!lock.state().has(BIASED) && lock.state().has(SLOTS));
        // Newcomers may not use slots. A thread that holds the lock through a slot can read again
        // through the word, whichever threads wait.
        let writer = start(lock, |lock| lock.lock_exclusive());
        until(lock, word::UPGRADABLE);
        lock.lock_shared();
        assert_eq!(lock.state().readers(), 1);
        // SAFETY: taken above.
        unsafe {
            lock.unlock_shared();
            lock.unlock_shared();
        }
        writer.recv_timeout(PATIENCE).unwrap();
        assert!(!lock.state().has(BIASED | SLOTS));
        // SAFETY: taken by the thread that has ended.
        unsafe { lock.unlock_exclusive() };
        assert!(lock.is_idle());
    }
}

/// Found by random bytes in `ww_rwlock_timedrdlock`: it looped forever and never checked its
/// deadline.
#[test]
fn a_reader_whose_slots_are_taken_waits_for_the_word() {
    let lock = leaked(Preference::Writer, Scope::Private);
    become_biased(lock);
    assert!(lock.try_lock_upgradable());
    // As if a thread waited for the upgradable lock.
    lock.word.fetch_or(WRITERS_WAIT, SeqCst);
    let reader = start(lock, |lock| {
        let mut others = Vec::new();
        // As many locks as one thread can hold through slots, and one more.
        while others.last().is_none_or(|last: &&RawRwLock| last.state().readers() == 0) {
            let other = leaked(Preference::Reader, Scope::Private);
            become_biased(other);
            other.lock_shared();
            others.push(other);
        }
        let answer = lock.lock_shared_until(passed());
        for other in others {
            // SAFETY: taken above.
            unsafe { other.unlock_shared() };
        }
        answer
    });
    assert_eq!(reader.recv_timeout(PATIENCE), Ok(Err(RwLockError::TimedOut)));
    assert!(lock.state().has(BIASED));
    // SAFETY: taken above.
    unsafe { lock.unlock_upgradable() };
}

/// As above: the word is impossible, but must not make the reader loop forever.
#[test]
fn a_reader_beside_a_writer_that_cannot_be_looks_at_its_deadline() {
    let lock = leaked(Preference::Reader, Scope::Private);
    become_biased(lock);
    let reader = start(lock, |lock| {
        lock.lock_shared();
        let word = lock.word.swap(SLOTS | word::WRITER, SeqCst);
        let answer = lock.lock_shared_until(passed());
        lock.word.store(word, SeqCst);
        // SAFETY: taken above.
        unsafe { lock.unlock_shared() };
        answer
    });
    assert_eq!(reader.recv_timeout(PATIENCE), Ok(Err(RwLockError::TimedOut)));
}

#[test]
fn a_writer_gives_up_on_visible_readers_and_comes_again() {
    let lock = leaked(Preference::Reader, Scope::Private);
    become_biased(lock);
    lock.lock_shared();
    let writer = start(lock, |lock| lock.lock_exclusive_until(soon()));
    assert_eq!(writer.recv_timeout(PATIENCE), Ok(Err(RwLockError::TimedOut)));
    assert!(!lock.state().has(BIASED | word::UPGRADABLE) && lock.state().has(SLOTS));
    let writer = start(lock, |lock| lock.lock_exclusive());
    until(lock, word::UPGRADABLE);
    // The wait that timed out has left its mark (`AWAITED`) in the slot, and so will this one.
    // SAFETY: acquired above.
    unsafe { lock.unlock_shared() };
    writer.recv_timeout(PATIENCE).unwrap();
    // SAFETY: taken by the thread that has ended.
    unsafe { lock.unlock_exclusive() };
    assert!(lock.is_idle());
}
