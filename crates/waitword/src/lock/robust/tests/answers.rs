//! What each operation returns.

use super::*;
use crate::sys::clock::Clock;
use std::time::SystemTime;

fn mutex(kind: RobustKind, protocol: RobustProtocol) -> &'static RawRobustMutex {
    Box::leak(Box::new(RawRobustMutex::new(kind, protocol)))
}

fn lock(mutex: &'static RawRobustMutex) -> Result<RobustLocked, RobustError> {
    // SAFETY: never freed.
    unsafe { mutex.lock() }
}

fn try_lock(mutex: &'static RawRobustMutex) -> Result<RobustLocked, RobustError> {
    // SAFETY: never freed.
    unsafe { mutex.try_lock() }
}

fn lock_until(
    mutex: &'static RawRobustMutex,
    deadline: Deadline,
) -> Result<RobustLocked, RobustError> {
    // SAFETY: never freed.
    unsafe { mutex.lock_until(deadline) }
}

const HAD: Result<RobustLocked, RobustError> = Ok(RobustLocked::Clean);
const LOST: Result<RobustLocked, RobustError> = Ok(RobustLocked::OwnerDied);

fn soon() -> [Deadline; 2] {
    let soon = Duration::from_millis(5);
    [Deadline::after(soon), Deadline::at_system_time(SystemTime::now() + soon)]
}

/// Runs a thread that ends while it holds the mutex.
fn lose(mutex: &'static RawRobustMutex) {
    let dies = std::thread::spawn(move || lock(mutex));
    assert!(dies.join().unwrap().is_ok());
}

#[test]
fn locked_and_unlocked() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for kind in [RobustKind::Normal, RobustKind::Recursive, RobustKind::ErrorChecking] {
            let mutex = mutex(kind, protocol);
            assert!(!mutex.is_locked());
            assert_eq!(unlock(mutex), Err(RobustError::NotOwner));
            let past = Deadline::at(Clock::Monotonic, Duration::ZERO);
            for had in [lock(mutex), try_lock(mutex), lock_until(mutex, past)] {
                assert_eq!(had, HAD);
                assert!(mutex.is_locked() && mutex.is_mine());
                assert_eq!(mutex.holder(), crate::sys::tid::tid());
                if kind != RobustKind::Recursive {
                    break;
                }
            }
            let stranger = std::thread::spawn(|| {
                assert_eq!(try_lock(mutex), Err(RobustError::Busy));
                for deadline in soon() {
                    assert_eq!(lock_until(mutex, deadline), Err(RobustError::TimedOut));
                    assert!(deadline.has_passed());
                }
                assert!(!mutex.is_mine());
                assert_eq!(unlock(mutex), Err(RobustError::NotOwner));
                assert_eq!(mutex.mark_consistent(), Err(RobustError::NotInconsistent));
            });
            stranger.join().unwrap();
            assert_eq!(mutex.mark_consistent(), Err(RobustError::NotInconsistent));
            let times = if kind == RobustKind::Recursive { 3 } else { 1 };
            for _ in 0..times {
                assert!(mutex.is_mine());
                assert_eq!(unlock(mutex), Ok(()));
            }
            assert!(!mutex.is_locked());
            assert_eq!(unlock(mutex), Err(RobustError::NotOwner));
        }
    }
}

#[test]
fn locked_again_by_its_holder() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let checking = mutex(RobustKind::ErrorChecking, protocol);
        assert_eq!(lock(checking), HAD);
        assert_eq!(lock(checking), Err(RobustError::Deadlock));
        assert_eq!(lock_until(checking, soon()[0]), Err(RobustError::Deadlock));
        assert_eq!(try_lock(checking), Err(RobustError::Busy));
        assert_eq!(unlock(checking), Ok(()));

        let normal = mutex(RobustKind::Normal, protocol);
        assert_eq!(lock(normal), HAD);
        assert_eq!(try_lock(normal), Err(RobustError::Busy));
        let again = match protocol {
            RobustProtocol::None => RobustError::TimedOut,
            RobustProtocol::Inherit => RobustError::Deadlock,
        };
        assert_eq!(lock_until(normal, soon()[0]), Err(again));
        assert_eq!(lock_until(normal, soon()[1]), Err(again));
        assert_eq!(unlock(normal), Ok(()));

        let recursive = mutex(RobustKind::Recursive, protocol);
        for _ in 0..1000 {
            assert_eq!(lock(recursive), HAD);
        }
        recursive.set_depth(u32::MAX);
        assert_eq!(lock(recursive), Err(RobustError::TooDeep));
        assert_eq!(try_lock(recursive), Err(RobustError::TooDeep));
        recursive.set_depth(2);
        assert_eq!(unlock(recursive), Ok(()));
        assert_eq!(unlock(recursive), Ok(()));
        assert!(!recursive.is_locked());
    }
}

#[test]
fn zeros_are_an_unlocked_mutex() {
    let memory = Box::leak(Box::new([0u64; 5]));
    // SAFETY: the memory has the size and alignment of a mutex, and zeros are documented to be one.
    let mutex: &'static RawRobustMutex = unsafe { &*(&raw const *memory).cast() };
    assert_eq!(lock(mutex), HAD);
    assert_eq!(unlock(mutex), Ok(()));
    lose(mutex);
    assert_eq!(lock(mutex), LOST);
    assert_eq!(unlock(mutex), Ok(()));
}

#[test]
fn a_thread_that_ends_leaves_it_to_the_next() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let mutex = mutex(RobustKind::Recursive, protocol);
        for takes in [lock, try_lock, |mutex| lock_until(mutex, soon()[0])] {
            lose(mutex);
            assert!(!mutex.is_locked());
            assert_eq!(takes(mutex), LOST);
            // The death must not be reported twice.
            assert_eq!(mutex.word().load(SeqCst), crate::sys::tid::tid());
            // Inconsistent, but locked.
            assert_eq!(takes(mutex), HAD);
            assert_eq!(unlock(mutex), Ok(()));
            assert_eq!(mutex.mark_consistent(), Ok(()));
            assert_eq!(mutex.mark_consistent(), Err(RobustError::NotInconsistent));
            assert_eq!(unlock(mutex), Ok(()));
            assert_eq!(takes(mutex), HAD);
            assert_eq!(unlock(mutex), Ok(()));
        }
    }
}

#[test]
fn unlocked_without_recovery_it_is_lost_forever() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let mutex = mutex(RobustKind::Normal, protocol);
        lose(mutex);
        assert_eq!(lock(mutex), LOST);
        let waiters: [_; 3] = std::array::from_fn(|_| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waiter = std::thread::spawn(move || {
                sender.send(crate::sys::tid::tid()).unwrap();
                lock(mutex)
            });
            let waiter_is = receiver.recv().unwrap();
            until(|| sleeps(waiter_is));
            waiter
        });
        assert_eq!(unlock(mutex), Ok(()));
        let lost = Err(RobustError::NotRecoverable);
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), lost);
        }
        for takes in [lock, try_lock, |mutex| lock_until(mutex, soon()[0])] {
            assert_eq!(takes(mutex), lost);
            assert!(!mutex.is_locked());
        }
        assert_eq!(unlock(mutex), Err(RobustError::NotOwner));
        assert_eq!(mutex.mark_consistent(), Err(RobustError::NotInconsistent));
    }
}

/// A thread that dies while it tries to lock an unrecoverable mutex does not change the mutex's
/// state.
#[test]
fn deaths_do_not_bring_it_back() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let shared = Shared::new(RobustKind::Normal, protocol);
        let dies = fork(|| {
            die_at(shared, Step::Locked, 0);
            shared.turn()
        });
        assert_eq!(dies.ended(), KILLED);
        assert_eq!(shared.lock(), LOST);
        unlock(&shared.mutex).unwrap();
        for step in [Step::Taken, Step::Released] {
            let dies = fork(|| {
                die_at(shared, step, 0);
                shared.turn()
            });
            assert_eq!(dies.ended(), KILLED);
            assert_eq!(shared.lock(), Err(RobustError::NotRecoverable));
        }
    }
}

/// After many waiters have come and gone, the word records no waiters again: unlock needs no system
/// call.
#[test]
fn the_waiters_bit_heals() {
    let _watchdog = watch();
    let shared = Shared::new(RobustKind::Normal, RobustProtocol::None);
    assert_eq!(shared.lock(), HAD);
    let waiters = [(); 3].map(|()| fork(|| shared.turn()));
    waiters.iter().for_each(Child::until_asleep);
    unlock(&shared.mutex).unwrap();
    for waiter in waiters {
        assert_eq!(waiter.ended(), FINE);
    }
    assert_ne!(shared.mutex.word().load(SeqCst), 0, "nothing to heal");
    for _ in 0..8 {
        assert!(shared.turn());
    }
    assert_eq!(shared.mutex.word().load(SeqCst), 0);
}

/// The bit stays set while a thread sleeps.
#[test]
fn the_waiters_bit_stays_while_a_thread_sleeps() {
    let _watchdog = watch();
    let shared = Shared::new(RobustKind::Normal, RobustProtocol::None);
    assert_eq!(shared.lock(), HAD);
    let sleeper = fork(|| shared.turn());
    sleeper.until_asleep();
    let me = crate::sys::tid::tid();
    for _ in 0..8 {
        super::super::word::tidy(shared.mutex.word(), me);
        assert_eq!(shared.mutex.word().load(SeqCst), me | 0x8000_0000);
    }
    unlock(&shared.mutex).unwrap();
    assert_eq!(sleeper.ended(), FINE);
}

#[test]
fn a_forked_child_holds_nothing() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let shared = Shared::new(RobustKind::ErrorChecking, protocol);
        assert_eq!(shared.lock(), HAD);
        let child = fork(|| {
            // SAFETY: never unmapped.
            let tried = unsafe { shared.mutex.try_lock() };
            !shared.mutex.is_mine()
                && unlock(&shared.mutex) == Err(RobustError::NotOwner)
                && tried == Err(RobustError::Busy)
        });
        // The child's end is not its parent's.
        assert_eq!(child.ended(), FINE);
        assert!(shared.mutex.is_mine());
        unlock(&shared.mutex).unwrap();
        shared.finish();
    }
}

#[test]
fn answers_have_posixs_numbers() {
    assert_eq!(RobustLocked::Clean.raw_os_error(), 0);
    assert_eq!(RobustLocked::OwnerDied.raw_os_error(), libc::EOWNERDEAD);
    for (error, number) in [
        (RobustError::NotRecoverable, libc::ENOTRECOVERABLE),
        (RobustError::Busy, libc::EBUSY),
        (RobustError::TimedOut, libc::ETIMEDOUT),
        (RobustError::Deadlock, libc::EDEADLK),
        (RobustError::TooDeep, libc::EAGAIN),
        (RobustError::NotOwner, libc::EPERM),
        (RobustError::NotInconsistent, libc::EINVAL),
        (RobustError::Unsupported, libc::ENOTSUP),
        (RobustError::OutOfMemory, libc::ENOMEM),
        (RobustError::Kernel(libc::ESRCH), libc::ESRCH),
    ] {
        assert_eq!(error.raw_os_error(), number);
        assert_eq!(std::io::Error::from(error).raw_os_error(), Some(number));
        assert!(!error.to_string().is_empty());
    }
}
