//! The results of each operation, between threads and between processes.

use super::*;
use crate::sys::clock::Clock;
use std::sync::atomic::AtomicU32 as Cell32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime};
use waitword_testkit::{Mapping, Way, fork, in_child, sleeps, until, watch};

const BOTH: [Scope; 2] = [Scope::Private, Scope::Shared];

fn soon() -> [Deadline; 2] {
    let soon = Duration::from_millis(5);
    [Deadline::after(soon), Deadline::at_system_time(SystemTime::now() + soon)]
}

/// Runs `body` while another thread holds the lock. `body` gets a function that makes that thread
/// unlock.
fn while_held(word: &AtomicU32, scope: Scope, body: impl FnOnce(&dyn Fn())) {
    let (locked, unlock) = (Cell32::new(0), Cell32::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            assert_eq!(lock(word, scope), Ok(Acquired::Clean));
            locked.store(1, SeqCst);
            until(|| unlock.load(SeqCst) == 1);
            assert_eq!(super::unlock(word, scope), Ok(()));
        });
        until(|| locked.load(SeqCst) == 1);
        body(&|| unlock.store(1, SeqCst));
        unlock.store(1, SeqCst);
    });
}

#[test]
fn the_word_holds_the_owner() {
    let _watchdog = watch();
    for scope in BOTH {
        let word = AtomicU32::new(FREE);
        assert_eq!(unlock(&word, scope), Err(PiError::NotOwner));
        assert_eq!(try_lock(&word, scope), Ok(Acquired::Clean));
        assert_eq!(word.load(SeqCst), tid());
        assert!(is_mine(&word));
        assert_eq!(try_lock(&word, scope), Err(PiError::Busy));
        assert_eq!(lock(&word, scope), Err(PiError::Deadlock));
        for deadline in soon() {
            assert_eq!(lock_until(&word, scope, &deadline), Err(PiError::Deadlock));
        }
        assert_eq!(unlock(&word, scope), Ok(()));
        assert_eq!(word.load(SeqCst), FREE);
        assert!(!is_mine(&word));
        assert_eq!(lock(&word, scope), Ok(Acquired::Clean));
        assert_eq!(unlock(&word, scope), Ok(()));
        // A free lock is taken even after the deadline.
        let past = Deadline::at(Clock::Monotonic, Duration::ZERO);
        assert_eq!(lock_until(&word, scope, &past), Ok(Acquired::Clean));
        assert_eq!(unlock(&word, scope), Ok(()));
    }
}

#[test]
fn another_thread_waits_until_it_is_handed_over() {
    let _watchdog = watch();
    for scope in BOTH {
        let word = AtomicU32::new(FREE);
        while_held(&word, scope, |unlock| {
            assert_eq!(super::unlock(&word, scope), Err(PiError::NotOwner));
            assert_eq!(try_lock(&word, scope), Err(PiError::Busy));
            let waiter = Cell32::new(0);
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    waiter.store(tid(), SeqCst);
                    assert_eq!(lock(&word, scope), Ok(Acquired::Clean));
                    assert!(is_mine(&word));
                    assert_eq!(super::unlock(&word, scope), Ok(()));
                });
                until(|| waiter.load(SeqCst) != 0 && sleeps(waiter.load(SeqCst)));
                assert_ne!(word.load(SeqCst) & WAITERS, 0);
                unlock();
            });
        });
        assert_eq!(word.load(SeqCst), FREE);
    }
}

#[test]
fn deadlines_on_both_clocks_with_and_without_lock_pi2() {
    let _watchdog = watch();
    for old_kernel in [false, true] {
        futex_pi::pretend::WITHOUT_LOCK_PI2.store(old_kernel, SeqCst);
        for scope in BOTH {
            let word = AtomicU32::new(FREE);
            while_held(&word, scope, |_| {
                for deadline in soon() {
                    let locked = lock_until(&word, scope, &deadline);
                    assert_eq!(locked, Err(PiError::TimedOut));
                    assert!(deadline.has_passed(), "early: {deadline:?}");
                    let locked = lock_until(&word, scope, &deadline);
                    assert_eq!(locked, Err(PiError::TimedOut));
                }
            });
            assert_eq!(word.load(SeqCst), FREE);
        }
    }
    futex_pi::pretend::WITHOUT_LOCK_PI2.store(false, SeqCst);
}

#[test]
fn an_owner_that_ended_unnoticed_is_gone() {
    let _watchdog = watch();
    for scope in BOTH {
        let word = AtomicU32::new(FREE);
        std::thread::scope(|threads| {
            // Joined: the scope alone waits for the end of the closure, not of the thread.
            let owner = threads.spawn(|| lock(&word, scope));
            assert_eq!(owner.join().unwrap(), Ok(Acquired::Clean));
        });
        assert_eq!(try_lock(&word, scope), Err(PiError::Busy));
        assert_eq!(lock(&word, scope), Err(PiError::OwnerGone));
    }
}

#[test]
fn a_waiter_inherits_from_an_owner_that_ends() {
    let _watchdog = watch();
    for scope in BOTH {
        let word = AtomicU32::new(FREE);
        let (owner, waiter) = (Cell32::new(0), Cell32::new(0));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert_eq!(lock(&word, scope), Ok(Acquired::Clean));
                owner.store(tid(), SeqCst);
                until(|| waiter.load(SeqCst) != 0 && sleeps(waiter.load(SeqCst)));
            });
            until(|| owner.load(SeqCst) != 0);
            threads.spawn(|| {
                waiter.store(tid(), SeqCst);
                assert_eq!(lock(&word, scope), Ok(Acquired::OwnerDied));
                assert_eq!(unlock(&word, scope), Ok(()));
            });
        });
        // The kernel no longer has a record of it.
        assert_eq!(word.load(SeqCst), FREE);
        assert_eq!(lock(&word, scope), Ok(Acquired::Clean));
        assert_eq!(unlock(&word, scope), Ok(()));
    }
}

/// The words that the kernel leaves when the owner of a robust mutex dies without waiters.
#[test]
fn a_word_of_the_dead_is_taken_through_the_kernel() {
    let _watchdog = watch();
    for scope in BOTH {
        for take in [lock, try_lock] {
            for left in [OWNER_DIED, OWNER_DIED | WAITERS] {
                let word = AtomicU32::new(left);
                assert_eq!(take(&word, scope), Ok(Acquired::OwnerDied));
                assert_eq!(word.load(SeqCst) & TID_MASK, tid());
                assert_eq!(unlock(&word, scope), Ok(()));
                assert_eq!(word.load(SeqCst), FREE);
            }
        }
    }
}

#[test]
fn owners_that_wait_for_each_other_are_told() {
    let _watchdog = watch();
    let words = [AtomicU32::new(FREE), AtomicU32::new(FREE)];
    let barrier = std::sync::Barrier::new(2);
    let ring = |mine: usize| {
        let (mine, other) = (&words[mine], &words[1 - mine]);
        assert_eq!(lock(mine, Scope::Private), Ok(Acquired::Clean));
        barrier.wait();
        let second = lock(other, Scope::Private);
        if second.is_ok() {
            assert_eq!(unlock(other, Scope::Private), Ok(()));
        }
        assert_eq!(unlock(mine, Scope::Private), Ok(()));
        second
    };
    let answers = std::thread::scope(|threads| {
        let both = [threads.spawn(|| ring(0)), threads.spawn(|| ring(1))];
        both.map(|thread| thread.join().unwrap())
    });
    assert!(answers.contains(&Err(PiError::Deadlock)), "{answers:?}");
}

#[test]
fn many_threads_count_without_loss() {
    let _watchdog = watch();
    const TURNS: u32 = 2_000;
    for scope in BOTH {
        let word = AtomicU32::new(FREE);
        let count = Cell32::new(0);
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let (word, count) = (&word, &count);
                threads.spawn(move || {
                    for turn in 0..TURNS {
                        while turn % 4 == thread
                            && lock_until(word, scope, &soon()[0]) == Err(PiError::TimedOut)
                        {
                        }
                        if turn % 4 != thread {
                            assert_eq!(lock(word, scope), Ok(Acquired::Clean));
                        }
                        // Not atomic: the lock must make it so.
                        count.store(count.load(SeqCst) + 1, SeqCst);
                        assert_eq!(unlock(word, scope), Ok(()));
                    }
                });
            }
        });
        assert_eq!(count.load(SeqCst), 4 * TURNS);
        assert_eq!(word.load(SeqCst), FREE);
    }
}

#[test]
fn between_processes() {
    let _watchdog = watch();
    let memory = Mapping::anonymous(4096);
    // SAFETY: zeros are valid atomics, and it is used only as these.
    let [word, stage]: &[AtomicU32; 2] = unsafe { memory.get(0) };
    let child = fork(|| {
        let fine = lock(word, Scope::Shared) == Ok(Acquired::Clean);
        stage.store(1, SeqCst);
        let minute = Deadline::after(Duration::from_secs(60));
        while word.load(SeqCst) & WAITERS == 0 && !minute.has_passed() {
            std::hint::spin_loop();
        }
        let fine = fine && unlock(word, Scope::Shared) == Ok(());
        // Lock it once more, and die while holding it.
        fine && lock_until(word, Scope::Shared, &minute).is_ok()
    });
    until(|| stage.load(SeqCst) == 1);
    let minute = Deadline::after(Duration::from_secs(60));
    assert_eq!(lock_until(word, Scope::Shared, &minute), Ok(Acquired::Clean));
    // The child waits, so it gets the lock. After its death, the lock comes to us or has no owner.
    child.until_asleep();
    assert_eq!(unlock(word, Scope::Shared), Ok(()));
    match lock_until(word, Scope::Shared, &minute) {
        Ok(Acquired::OwnerDied) | Err(PiError::OwnerGone) => {}
        other => panic!("{other:?}"),
    }
    child.succeeds();
}

#[test]
fn a_forked_child_owns_nothing() {
    let _watchdog = watch();
    let word = AtomicU32::new(FREE);
    assert_eq!(lock(&word, Scope::Private), Ok(Acquired::Clean));
    in_child(Way::Fork, || {
        unlock(&word, Scope::Private) == Err(PiError::NotOwner)
            && try_lock(&word, Scope::Private) == Err(PiError::Busy)
    });
    assert_eq!(unlock(&word, Scope::Private), Ok(()));
}

#[test]
fn errors_have_posixs_numbers() {
    let numbers = [
        (PiError::Busy, libc::EBUSY),
        (PiError::Deadlock, libc::EDEADLK),
        (PiError::OwnerGone, libc::ESRCH),
        (PiError::TimedOut, libc::ETIMEDOUT),
        (PiError::NotOwner, libc::EPERM),
        (PiError::OutOfMemory, libc::ENOMEM),
        (PiError::Unsupported, libc::ENOSYS),
        (PiError::Kernel(libc::EINVAL), libc::EINVAL),
    ];
    for (error, number) in numbers {
        assert_eq!(error.raw_os_error(), number);
        assert_eq!(PiError::from(Errno::from_raw_os_error(number)).raw_os_error(), number);
    }
}
