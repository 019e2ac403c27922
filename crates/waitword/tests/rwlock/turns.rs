//! No thread starves, and recursive reading continues, however many threads wait.

use super::KINDS;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use waitword::lock_api::{RawRwLock as _, RawRwLockRecursive as _};
use waitword::{Preference, RawRwLock, Scope};
use waitword_testkit::watch;

fn linger(microseconds: u64) {
    std::thread::sleep(Duration::from_micros(microseconds));
}

/// Runs `crowd` in `threads` threads until `one` has returned.
fn beside(threads: usize, crowd: impl Fn(usize) + Sync, one: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (over, crowd) = (&over, &crowd);
            scope.spawn(move || {
                while !over.load(SeqCst) {
                    crowd(thread);
                }
            });
        }
        one();
        over.store(true, SeqCst);
    });
}

/// There is always a reader inside, as long as nothing keeps the next one out.
#[test]
fn a_writer_is_not_starved_by_readers() {
    let watchdog = watch();
    for (preference, scope) in KINDS {
        let lock = RawRwLock::with(preference, scope);
        let crowd = |thread| {
            lock.lock_shared();
            linger(200 + 37 * thread as u64);
            // SAFETY: taken just now.
            unsafe { lock.unlock_shared() };
        };
        beside(4, crowd, || {
            for _ in 0..20 {
                lock.lock_exclusive();
                // SAFETY: taken just now.
                unsafe { lock.unlock_exclusive() };
            }
        });
        watchdog.pat();
    }
}

/// Regression: readers that were never outside the lock for long, so that it was biased, and more
/// readers than CPUs. The writer waited for visible readers that had lost their CPUs to readers
/// that came in through the word: for at least one round of the scheduler.
#[test]
fn a_writer_is_not_starved_by_visible_readers() {
    let watchdog = watch();
    for preference in [Preference::Reader, Preference::Writer] {
        let lock = RawRwLock::with(preference, Scope::Private);
        let crowd = |_| {
            lock.lock_shared();
            (0..100).for_each(|_| std::hint::spin_loop());
            // SAFETY: taken just now.
            unsafe { lock.unlock_shared() };
        };
        beside(20, crowd, || {
            for _ in 0..10 {
                lock.lock_exclusive();
                // SAFETY: taken just now.
                unsafe { lock.unlock_exclusive() };
            }
        });
        watchdog.pat();
    }
}

#[test]
fn a_reader_is_not_starved_by_writers() {
    let watchdog = watch();
    for (preference, scope) in KINDS {
        let lock = RawRwLock::with(preference, scope);
        let crowd = |_| {
            lock.lock_exclusive();
            linger(20);
            // SAFETY: taken just now.
            unsafe { lock.unlock_exclusive() };
        };
        beside(4, crowd, || {
            for _ in 0..20 {
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe { lock.unlock_shared() };
            }
        });
        watchdog.pat();
    }
}

/// Each reader reads again while it reads, while writers take their turn whenever they can.
#[test]
fn reading_again_while_one_reads_never_deadlocks() {
    let watchdog = watch();
    for (preference, scope) in KINDS {
        let lock = RawRwLock::with(preference, scope);
        let crowd = |thread| {
            if thread % 2 == 0 {
                lock.lock_exclusive();
                // SAFETY: taken just now.
                unsafe { lock.unlock_exclusive() };
            } else {
                lock.lock_shared();
                linger(300);
                read_again(&lock, preference);
                // SAFETY: taken above.
                unsafe { lock.unlock_shared() };
            }
        };
        beside(4, crowd, || {
            for _ in 0..100 {
                lock.lock_shared();
                linger(500);
                read_again(&lock, preference);
                // SAFETY: taken above.
                unsafe { lock.unlock_shared() };
            }
        });
        watchdog.pat();
    }
}

fn read_again(lock: &RawRwLock, preference: Preference) {
    match preference {
        Preference::Reader => lock.lock_shared(),
        Preference::Writer => lock.lock_shared_recursive(),
    }
    // SAFETY: taken just now.
    unsafe { lock.unlock_shared() };
}

/// Beyond what POSIX requires: under reader preference a reader may wait for another thread to
/// read, as with glibc's lock.
#[test]
fn a_reader_may_wait_for_another_thread_to_read() {
    let watchdog = watch();
    for scope in [Scope::Private, Scope::Shared] {
        let lock = RawRwLock::with(Preference::Reader, scope);
        let writes = AtomicU64::new(0);
        std::thread::scope(|threads| {
            lock.lock_shared();
            threads.spawn(|| {
                lock.lock_exclusive();
                writes.fetch_add(1, SeqCst);
                // SAFETY: taken just now.
                unsafe { lock.unlock_exclusive() };
            });
            // The writer has its turn by then.
            linger(5000);
            let other = threads.spawn(|| {
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe { lock.unlock_shared() };
            });
            other.join().expect("the other reader");
            assert_eq!(writes.load(SeqCst), 0);
            // SAFETY: taken above.
            unsafe { lock.unlock_shared() };
        });
        assert_eq!(writes.into_inner(), 1);
        watchdog.pat();
    }
}
