//! The semaphore by itself: counts, limits, order, deadlines, many threads.

use crate::{SCOPES, answer, entries, far, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use waitword::{CountError, Deadline, Error, Scope, Semaphore};
use waitword_testkit::{Crew, watch};

#[test]
fn counts_up_and_down() {
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(2, scope);
        assert!(semaphore.try_wait());
        semaphore.wait();
        assert_eq!(semaphore.value(), 0);
        assert!(!semaphore.try_wait());
        semaphore.post().unwrap();
        semaphore.post_many(3).unwrap();
        semaphore.post_many(0).unwrap();
        assert_eq!(semaphore.value(), 4);
        assert!(semaphore.wait_until(far()));
        assert!(semaphore.wait_for(Duration::MAX));
        assert_eq!(semaphore.wait_interruptible(None), Ok(()));
        assert_eq!(semaphore.value(), 1);
    }
}

#[test]
fn a_post_above_the_maximum_is_refused() {
    const MAX: u32 = Semaphore::MAX_VALUE;
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(MAX - 1, scope);
        assert_eq!(semaphore.post_many(2), Err(CountError::Overflow));
        assert_eq!(semaphore.post_many(u32::MAX), Err(CountError::Overflow));
        assert_eq!(semaphore.value(), MAX - 1);
        assert_eq!(semaphore.post(), Ok(()));
        assert_eq!(semaphore.post(), Err(CountError::Overflow));
        assert_eq!(semaphore.value(), MAX);
        assert!(semaphore.try_wait());
        let refused = Semaphore::try_with_scope(MAX + 1, scope);
        assert_eq!(refused.map(drop), Err(CountError::Invalid));
    }
    assert_eq!(CountError::Overflow.raw_os_error(), libc::EOVERFLOW);
    assert_eq!(CountError::Invalid.raw_os_error(), libc::EINVAL);
}

#[test]
fn deadlines_on_both_clocks() {
    let _watchdog = watch();
    for scope in SCOPES {
        let semaphore = Semaphore::with_scope(0, scope);
        let wall_clock = || Deadline::at_system_time(SystemTime::now() + Duration::from_millis(2));
        for deadline in [soon(), wall_clock()] {
            assert!(!semaphore.wait_until(deadline));
            assert!(deadline.has_passed(), "woken early");
            let interruptible = semaphore.wait_interruptible(Some(deadline));
            assert_eq!(interruptible, Err(Error::TimedOut));
            // There is a token, so the deadline is not checked.
            semaphore.post().unwrap();
            assert!(semaphore.wait_until(deadline));
        }
        assert!(!semaphore.wait_for(Duration::ZERO));
        // No waiter that gave up is counted.
        assert!(format!("{semaphore:?}").contains("waiters: 0"));
    }
}

#[test]
fn waiters_are_woken_in_order_of_arrival() {
    let mut crew = Crew::new(4);
    for scope in SCOPES {
        let semaphore = Arc::new(Semaphore::with_scope(0, scope));
        crew.line_up(0..4, entries(scope), &semaphore, move |semaphore| {
            answer(semaphore.wait_until(far()))
        });
        semaphore.post().unwrap();
        assert_eq!(crew.settle(), [(0, Ok(1))]);
        semaphore.post_many(2).unwrap();
        assert_eq!(crew.settle(), [(1, Ok(1)), (2, Ok(1))]);
        semaphore.post_many(3).unwrap();
        assert_eq!(crew.settle(), [(3, Ok(1))]);
        assert_eq!(semaphore.value(), 2);
    }
}

/// Nothing is lost and nothing appears from nowhere, with more waiters than posts at a time, and
/// with impatient waiters.
fn crowd(scope: Scope, impatient: bool) {
    const THREADS: usize = 8;
    const EACH: usize = 4000;
    let semaphore = Semaphore::with_scope(0, scope);
    let taken = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for taker in 0..THREADS {
            let (semaphore, taken) = (&semaphore, &taken);
            threads.spawn(move || {
                let mut mine = 0;
                for turn in 0.. {
                    if mine == EACH {
                        break;
                    }
                    mine += match impatient && (turn + taker) % 2 == 0 {
                        true => semaphore.wait_for(Duration::from_micros(turn as u64 % 40)).into(),
                        false => {
                            semaphore.wait();
                            1
                        }
                    };
                }
                taken.fetch_add(mine, SeqCst);
            });
        }
        for giver in 0..2 {
            let semaphore = &semaphore;
            threads.spawn(move || {
                let mut left = THREADS * EACH / 2;
                while left > 0 {
                    let count = (1 + giver * 2).min(left);
                    semaphore.post_many(count as u32).unwrap();
                    left -= count;
                    if left % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!(taken.load(SeqCst), THREADS * EACH);
    assert_eq!(semaphore.value(), 0);
}

#[test]
fn no_token_is_lost_in_a_crowd() {
    let _watchdog = watch();
    for scope in SCOPES {
        for impatient in [false, true] {
            crowd(scope, impatient);
        }
    }
}

/// As a lock: at most this many threads inside.
#[test]
fn never_more_inside_than_the_value() {
    let _watchdog = watch();
    for scope in SCOPES {
        let (semaphore, inside) = (Semaphore::with_scope(2, scope), AtomicUsize::new(0));
        std::thread::scope(|threads| {
            for _ in 0..6 {
                threads.spawn(|| {
                    for turn in 0..2000 {
                        semaphore.wait();
                        assert!(inside.fetch_add(1, SeqCst) < 2);
                        if turn % 64 == 0 {
                            std::thread::yield_now();
                        }
                        inside.fetch_sub(1, SeqCst);
                        semaphore.post().unwrap();
                    }
                });
            }
        });
        assert_eq!(semaphore.value(), 2);
    }
}
