//! `RobustMutex` and its sections.

use std::time::Duration;
use waitword::{Clock, Deadline, RobustAccess, RobustError, RobustMutex, RobustProtocol};
use waitword_testkit::{Mapping, child::die, fork, watch};

const PROTOCOLS: [RobustProtocol; 2] = [RobustProtocol::None, RobustProtocol::Inherit];

#[test]
fn a_static_counts() {
    static COUNT: RobustMutex<u32> = RobustMutex::new(0);
    let _watchdog = watch();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| COUNT.with(|mut count| *count += 1).unwrap()));
        }
    });
    assert_eq!(COUNT.with(|count| *count), Ok(4000));
}

#[test]
fn a_section_excludes_and_says_so() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let mutex = RobustMutex::with_protocol([1, 2], protocol);
        let ran = mutex.with(|mut pair| {
            pair[1] = 3;
            assert!(!RobustAccess::owner_died(&pair));
            assert_eq!(mutex.with(|_| ()), Err(RobustError::Deadlock));
            assert_eq!(mutex.try_with(|_| ()), Err(RobustError::Busy));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!(mutex.try_with(|_| ()), Err(RobustError::Busy));
                    let short = mutex.with_for(Duration::from_millis(2), |_| ());
                    assert_eq!(short, Err(RobustError::TimedOut));
                    let past = Deadline::at(Clock::Realtime, Duration::ZERO);
                    assert_eq!(mutex.with_until(past, |_| ()), Err(RobustError::TimedOut));
                });
            });
            assert!(format!("{mutex:?}").starts_with("RobustMutex"));
            format!("{pair:?}")
        });
        assert_eq!(ran, Ok("[1, 3]".to_owned()));
        assert_eq!(mutex.try_with(|pair| *pair), Ok([1, 3]));
        // Once no section runs, it moves like any value.
        let mut mutex = Box::new(mutex);
        mutex.get_mut()[0] = 0;
        assert_eq!(mutex.with(|pair| pair[0]), Ok(0));
        assert_eq!(mutex.into_inner(), [0, 3]);
    }
}

#[test]
fn a_panic_unlocks_and_is_no_death() {
    let _watchdog = watch();
    let mutex = RobustMutex::new(());
    std::thread::scope(|scope| {
        // Not `panic`: its message would be taken for a failure.
        let section = || mutex.with(|_guard| std::panic::resume_unwind(Box::new(())));
        assert!(scope.spawn(section).join().is_err());
    });
    let owner_died = mutex.with(|access| RobustAccess::owner_died(&access));
    assert_eq!(owner_died, Ok(false));
}

/// A mutex in memory that forked children share; it lives as long as the mapping.
fn in_shared_memory<T>(memory: &Mapping, value: T, protocol: RobustProtocol) -> &RobustMutex<T> {
    let address = memory.at::<RobustMutex<T>>(0);
    // SAFETY: the mapping is new, large enough, and not yet used by any other process. The mutex is
    // never moved.
    unsafe {
        address.write(RobustMutex::with_protocol(value, protocol));
        RobustMutex::at(address)
    }
}

/// Makes a process that is killed in a section, after `change`.
fn killed_in_a_section<T>(mutex: &RobustMutex<T>, change: impl Fn(&mut T)) {
    let child = fork(|| {
        let _ = mutex.with(|mut value| {
            change(&mut value);
            die();
        });
    });
    child.ended();
}

#[test]
fn a_killed_process_is_reported_to_the_next() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let memory = Mapping::anonymous(4096);
        let mutex = in_shared_memory(&memory, [0, 0], protocol);
        for turn in 1..10 {
            killed_in_a_section(mutex, |pair: &mut [u32; 2]| pair[0] = turn);
            let repaired = mutex.with_for(Duration::from_secs(60), |mut pair| {
                assert!(RobustAccess::owner_died(&pair));
                assert_eq!(*pair, [turn, turn - 1]);
                pair[1] = pair[0];
                RobustAccess::mark_consistent(&mut pair);
            });
            assert_eq!(repaired, Ok(()));
            let owner_died = mutex.try_with(|pair| RobustAccess::owner_died(&pair));
            assert_eq!(owner_died, Ok(false));
        }
    }
}

#[test]
fn a_repair_that_panics_or_is_left_out_loses_the_mutex() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        for panics in [false, true] {
            let memory = Mapping::anonymous(4096);
            let mutex = in_shared_memory(&memory, (), protocol);
            killed_in_a_section(mutex, |()| ());
            let repair = std::panic::AssertUnwindSafe(|| {
                mutex.with(|access| {
                    assert!(RobustAccess::owner_died(&access));
                    if panics {
                        std::panic::resume_unwind(Box::new(()));
                    }
                })
            });
            assert_eq!(std::panic::catch_unwind(repair).is_err(), panics);
            assert_eq!(mutex.with(|_| ()), Err(RobustError::NotRecoverable));
            assert_eq!(mutex.try_with(|_| ()), Err(RobustError::NotRecoverable));
        }
    }
}

/// A child that is forked in a section has a copy of it, whose end does nothing.
#[test]
fn a_forked_childs_copy_of_a_section_does_nothing() {
    let _watchdog = watch();
    for protocol in PROTOCOLS {
        let memory = Mapping::anonymous(4096);
        let mutex = in_shared_memory(&memory, 0, protocol);
        let status = mutex.with(|_section| {
            // SAFETY: the child leaves this section, looks at the mutex, and exits, without a lock
            // of the C library.
            match unsafe { libc::fork() } {
                0 => None,
                child => {
                    let mut status = 0;
                    // SAFETY: the child just made; room for its status.
                    let reaped = unsafe { libc::waitpid(child, &raw mut status, 0) };
                    assert_eq!(reaped, child);
                    Some(status)
                }
            }
        });
        if status == Ok(None) {
            // The parent is in its section until this process has ended.
            let is_held = mutex.try_with(|_| ()) == Err(RobustError::Busy);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!is_held)) };
        }
        assert_eq!(status, Ok(Some(0)));
        let owner_died = mutex.try_with(|access| RobustAccess::owner_died(&access));
        assert_eq!(owner_died, Ok(false));
    }
}
