//! The word after each operation, refusals, and protocol steps that need one or two threads.

use super::word::{
    BIASED, COLLISIONS, LOW_HALF, OTHER_WAKES, PREFER_WRITER, READER, READERS_TURN, READERS_WAIT,
    READERS_WAKES, REPORTED, SHARED, SLOTS, TURN, WOKEN, WRITERS_WAIT,
};
use super::*;
use crate::sys::clock::{Clock, Deadline};
use ::lock_api::{
    RawRwLock as _, RawRwLockDowngrade as _, RawRwLockFair as _, RawRwLockRecursive as _,
    RawRwLockTimed as _, RawRwLockUpgrade as _, RawRwLockUpgradeDowngrade as _,
    RawRwLockUpgradeTimed as _,
};
use core::sync::atomic::Ordering::SeqCst;
use core::time::Duration;
use std::sync::mpsc::{Receiver, channel};

const KINDS: [(Preference, Scope); 4] = [
    (Preference::Reader, Scope::Private),
    (Preference::Writer, Scope::Private),
    (Preference::Reader, Scope::Shared),
    (Preference::Writer, Scope::Shared),
];

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn passed() -> Deadline {
    Deadline::at(Clock::Monotonic, Duration::ZERO)
}

pub(super) fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(5))
}

/// Does `work` in a new thread. The receiver gets its result.
pub(super) fn start<T: Send + 'static>(
    lock: &'static RawRwLock,
    work: impl FnOnce(&'static RawRwLock) -> T + Send + 'static,
) -> Receiver<T> {
    let (sender, done) = channel();
    std::thread::spawn(move || sender.send(work(lock)));
    done
}

pub(super) fn leaked(preference: Preference, scope: Scope) -> &'static RawRwLock {
    Box::leak(Box::new(RawRwLock::with(preference, scope)))
}

pub(super) fn until(lock: &RawRwLock, bits: u64) {
    let began = std::time::Instant::now();
    while !lock.state().has(bits) {
        assert!(began.elapsed() < PATIENCE, "{lock:?}");
        std::thread::yield_now();
    }
}

#[test]
fn all_zeros_is_an_unlocked_private_lock_that_prefers_readers() {
    // SAFETY: any bits are a valid atomic.
    let lock: RawRwLock = unsafe { core::mem::zeroed() };
    assert_eq!(lock.preference(), Preference::default());
    assert_eq!(lock.preference(), Preference::Reader);
    assert_eq!(lock.scope(), Scope::Private);
    assert!(lock.is_idle() && !lock.is_locked());
    assert_eq!(RawRwLock::new().word.load(SeqCst), 0);
}

#[test]
fn every_operation_leaves_the_word_as_it_found_it() {
    for (preference, scope) in KINDS {
        let lock = leaked(preference, scope);
        let unlocked = lock.word.load(SeqCst);
        let is_unlocked = || lock.word.load(SeqCst) & !(COLLISIONS | REPORTED) == unlocked;
        // SAFETY: each releases what was just acquired.
        unsafe {
            lock.lock_shared();
            assert!(lock.is_locked() && !lock.is_locked_exclusive());
            assert!(lock.try_lock_shared() && !lock.try_lock_exclusive());
            lock.unlock_shared();
            lock.unlock_shared_fair();
            assert!(is_unlocked(), "{lock:?}");
            lock.lock_exclusive();
            assert!(lock.is_locked_exclusive());
            assert!(!lock.try_lock_shared() && !lock.try_lock_upgradable());
            lock.downgrade();
            assert!(lock.try_lock_shared_recursive());
            lock.unlock_shared();
            lock.unlock_shared();
            assert!(is_unlocked(), "{lock:?}");
            lock.lock_upgradable();
            assert!(lock.try_lock_shared() && !lock.try_lock_upgradable());
            assert!(!lock.try_upgrade() && !lock.try_lock_exclusive());
            lock.unlock_shared();
            assert!(lock.try_upgrade());
            lock.downgrade_to_upgradable();
            lock.upgrade();
            lock.unlock_exclusive_fair();
            lock.lock_upgradable();
            lock.downgrade_upgradable();
            lock.unlock_shared();
            assert!(is_unlocked() && lock.is_idle(), "{lock:?}");
        }
    }
}

#[test]
fn a_deadline_is_looked_at_only_if_there_is_something_to_wait_for() {
    for (preference, scope) in KINDS {
        let lock = leaked(preference, scope);
        lock.lock_exclusive_until(passed()).unwrap();
        let waits = start(lock, |lock| {
            assert_eq!(lock.lock_shared_until(soon()), Err(RwLockError::TimedOut));
            assert_eq!(lock.lock_exclusive_until(soon()), Err(RwLockError::TimedOut));
            assert_eq!(lock.read_upgradably(Some(&soon())), Err(RwLockError::TimedOut));
            assert!(!lock.try_lock_shared_for(Duration::from_millis(2)));
            assert!(!lock.try_lock_upgradable_for(Duration::from_millis(2)));
        });
        waits.recv_timeout(PATIENCE).unwrap();
        // SAFETY: taken above.
        unsafe { lock.unlock() }.unwrap();
        lock.lock_shared_until(passed()).unwrap();
        lock.read_upgradably(Some(&passed())).unwrap();
        // SAFETY: the upgradable lock is held, and a reader is in its way.
        unsafe {
            assert_eq!(lock.upgrade_checked(0, Some(&soon())), Err(RwLockError::TimedOut));
            assert!(!lock.try_upgrade_for(Duration::from_millis(2)));
            lock.unlock_shared();
            lock.upgrade_checked(0, Some(&passed())).unwrap();
            lock.unlock().unwrap();
        }
        assert!(lock.is_idle() || scope == Scope::Shared, "{lock:?}");
        // The next release clears what waiters have announced in vain.
        lock.lock_exclusive();
        // SAFETY: taken just now.
        unsafe { lock.unlock_exclusive() };
        assert!(lock.is_idle(), "{lock:?}");
    }
}

#[test]
fn what_posix_calls_errors() {
    for (preference, scope) in KINDS {
        let lock = leaked(preference, scope);
        // SAFETY: it is not held.
        assert_eq!(unsafe { lock.unlock() }, Err(RwLockError::NotLocked));
        lock.write(7, None).unwrap();
        assert_eq!(lock.write(7, None), Err(RwLockError::Deadlock));
        assert_eq!(lock.read(7, Some(&passed())), Err(RwLockError::Deadlock));
        assert_eq!(lock.write(8, Some(&soon())), Err(RwLockError::TimedOut));
        assert_eq!(lock.try_write(7), Err(RwLockError::Busy));
        assert_eq!(lock.try_read(), Err(RwLockError::Busy));
        // SAFETY: taken above.
        unsafe { lock.unlock() }.unwrap();
        // The maximum number of readers.
        let unlocked = lock.word.load(SeqCst);
        lock.word.fetch_add(READER * word::MOST_READERS, SeqCst);
        assert_eq!(lock.read(0, None), Err(RwLockError::TooManyReaders));
        assert_eq!(lock.try_read(), Err(RwLockError::TooManyReaders));
        assert!(!lock.try_lock_shared());
        lock.word.fetch_sub(READER, SeqCst);
        lock.read(0, None).unwrap();
        lock.word.store(unlocked, SeqCst);
        assert!(lock.is_idle());
    }
    let numbers = [
        (RwLockError::Busy, libc::EBUSY),
        (RwLockError::TimedOut, libc::ETIMEDOUT),
        (RwLockError::TooManyReaders, libc::EAGAIN),
        (RwLockError::Deadlock, libc::EDEADLK),
        (RwLockError::NotLocked, libc::EPERM),
    ];
    for (error, number) in numbers {
        assert_eq!(error.raw_os_error(), number);
        assert!(!error.to_string().is_empty());
    }
}

/// A writer that was handed the lock, or got it after revoking the reader bias, is known too.
#[test]
fn the_writer_is_known_however_it_got_the_lock() {
    for (preference, scope) in KINDS {
        let lock = leaked(preference, scope);
        lock.lock_shared();
        let writer = start(lock, |lock| {
            lock.write(9, None).unwrap();
            let again = lock.write(9, None);
            // SAFETY: taken just now.
            unsafe { lock.unlock() }.unwrap();
            again
        });
        until(lock, WRITERS_WAIT);
        // SAFETY: taken above.
        unsafe { lock.unlock_shared_fair() };
        assert_eq!(writer.recv_timeout(PATIENCE), Ok(Err(RwLockError::Deadlock)));
    }
}

#[test]
fn a_waiting_writer_keeps_readers_out_under_writer_preference_only() {
    for (preference, scope) in KINDS {
        let lock = leaked(preference, scope);
        lock.lock_shared();
        let writer = start(lock, |lock| lock.lock_exclusive_until(Deadline::after(PATIENCE)));
        until(lock, WRITERS_WAIT);
        let came_in = lock.try_lock_shared();
        let has_turn = lock.state().has(TURN);
        assert!(!came_in || preference == Preference::Reader);
        assert!(came_in || has_turn || preference == Preference::Writer);
        // A thread that already reads, and says so.
        assert!(lock.try_lock_shared_recursive());
        // SAFETY: acquired above, as many times.
        unsafe {
            if came_in {
                lock.unlock_shared();
            }
            lock.unlock_shared();
            lock.unlock_shared();
        }
        writer.recv_timeout(PATIENCE).unwrap().unwrap();
        // SAFETY: taken by the thread that has ended.
        unsafe { lock.unlock_exclusive() };
    }
}

#[test]
fn a_leaving_writer_is_followed_by_the_class_that_is_preferred() {
    for preference in [Preference::Reader, Preference::Writer] {
        // A re-check timer may fire in between, and then the first waiter in the queue comes first.
        let preferred_came_first = || first_after_a_writer(preference) == preference;
        assert!((0..50).any(|_| preferred_came_first()), "{preference:?}");
    }
}

/// Which class gets a lock of this preference first, if the other class has begun to wait first.
fn first_after_a_writer(preference: Preference) -> Preference {
    let lock = leaked(preference, Scope::Private);
    lock.lock_exclusive();
    let (order, first) = channel();
    let other = match preference {
        Preference::Reader => Preference::Writer,
        Preference::Writer => Preference::Reader,
    };
    let waiters = [other, preference].map(|class| {
        let order = order.clone();
        let waiter = start(lock, move |lock| {
            match class {
                Preference::Reader => lock.lock_shared(),
                Preference::Writer => lock.lock_exclusive(),
            }
            let _ = order.send(class);
            // SAFETY: taken just now.
            unsafe { lock.unlock() }.unwrap();
        });
        until(
            lock,
            match class {
                Preference::Reader => READERS_WAIT,
                Preference::Writer => WRITERS_WAIT,
            },
        );
        waiter
    });
    // SAFETY: taken above.
    unsafe { lock.unlock_exclusive() };
    let first = first.recv_timeout(PATIENCE).unwrap();
    for waiter in waiters {
        waiter.recv_timeout(PATIENCE).unwrap();
    }
    assert!(lock.is_idle(), "{lock:?}");
    first
}

#[test]
fn bits_from_before_a_fork_go_away() {
    // The turn of a thread that has waited for 4 ms.
    const A_TURN: u64 = TURN / 15 * 3;
    for preference in [Preference::Reader, Preference::Writer] {
        let lock = leaked(preference, Scope::Private);
        for stale in [
            READERS_WAIT,
            WRITERS_WAIT,
            WOKEN,
            WRITERS_WAIT | WOKEN,
            A_TURN,
            READERS_WAIT | WRITERS_WAIT | WOKEN | A_TURN,
        ] {
            for writes in [false, true] {
                lock.word.fetch_or(stale, SeqCst);
                let done = start(lock, move |lock| {
                    for _ in 0..2 {
                        if writes {
                            lock.lock_exclusive();
                        } else {
                            lock.lock_shared();
                        }
                        // SAFETY: taken just now.
                        unsafe { lock.unlock() }.unwrap();
                    }
                });
                done.recv_timeout(PATIENCE).unwrap();
            }
            // A woken thread that never looks is forgotten when another thread has waited too long.
            lock.lock_exclusive();
            let waits = start(lock, |lock| {
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe { lock.unlock_shared() };
            });
            until(lock, TURN);
            // SAFETY: taken above.
            unsafe { lock.unlock_exclusive() };
            waits.recv_timeout(PATIENCE).unwrap();
            // Under writer preference the bit counts as long as the lock is held.
            let reads = start(lock, |lock| {
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe { lock.unlock_shared() };
            });
            reads.recv_timeout(PATIENCE).unwrap();
            assert!(lock.is_idle(), "{stale:#x}: {lock:?}");
            assert!(!lock.state().has(TURN), "{stale:#x}: {lock:?}");
        }
    }
}

#[test]
fn a_lock_of_several_processes_or_of_one_thread_never_becomes_biased() {
    for (kind, lock) in [
        ("shared", leaked(Preference::Reader, Scope::Shared)),
        ("private", leaked(Preference::Writer, Scope::Private)),
    ] {
        lock.lock_shared();
        for _ in 0..1000 {
            lock.lock_shared();
            // SAFETY: taken just now.
            unsafe { lock.unlock_shared() };
        }
        assert!(!lock.state().has(BIASED | SLOTS), "{kind}");
        // SAFETY: taken above.
        unsafe { lock.unlock_shared() };
    }
    let kinds = [0, PREFER_WRITER, SHARED, PREFER_WRITER | SHARED];
    assert!(kinds.iter().all(|kind| kind & (BIASED | SLOTS) == 0));
}

/// Turns and collisions are counted in four bits each, in the middle of the word.
#[test]
fn what_is_counted_in_the_word_stays_in_its_bits() {
    let around = State(!(word::TURN | word::COLLISIONS));
    let mut turned = around;
    for turn in [1, 14, 15, 16, 31, u32::MAX] {
        turned = turned.with_turn(turn);
        assert_eq!(turned.turn(), turn.min(15));
        assert_eq!(turned.without(word::TURN), around);
        // It never decreases.
        assert_eq!(turned.with_turn(0), turned);
    }
    let mut collided = around;
    for count in 0..15 {
        assert!(!collided.collides_often(), "{count}");
        collided = collided.with_collision();
        assert_eq!(collided.without(word::COLLISIONS), around);
    }
    assert!(collided.collides_often());
    assert_eq!(collided.with_collision(), collided);
}

#[test]
fn wakes_are_counted_beside_everything_else_and_wrap() {
    for (bit, field, other) in
        [(READERS_WAIT, READERS_WAKES, OTHER_WAKES), (WRITERS_WAIT, OTHER_WAKES, READERS_WAKES)]
    {
        let first = State(!other);
        let mut state = first;
        for _ in 0..1 << field.count_ones() {
            let next = state.waking(bit);
            assert_ne!(next.low_half(), state.low_half());
            assert_eq!(next.0 | field, !(other | bit), "{next:?}");
            assert_eq!(next.has_let_readers_in_since(state), bit == READERS_WAIT);
            state = next;
        }
        assert_eq!(state, first.without(bit));
    }
    let wakes = READERS_WAKES | OTHER_WAKES;
    assert_eq!(wakes | READERS_TURN, LOW_HALF & !(READERS_TURN - 1));
    assert_eq!(wakes & READERS_TURN, 0);
}
