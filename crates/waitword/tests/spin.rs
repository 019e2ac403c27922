//! Waiters that spin. The budget belongs to the whole process, so these tests have a process of
//! their own.

mod support;

use std::time::Duration;
use support::atomic::Atomic;
use support::watchdog::watch;
use waitword::Futex;

/// A wake that finds its waiter still spinning. With a budget that outlasts every test the waiter
/// never sleeps, and must be woken nevertheless.
#[test]
fn spinners_are_woken_and_counted() {
    let _watchdog = watch("spinners_are_woken_and_counted");
    for_every_width!(spinners_are_woken_and_counted_at());
}

fn spinners_are_woken_and_counted_at<A: Atomic>() {
    waitword::spin::set_budget(Duration::from_secs(1));
    let word = A::default();
    for _ in 0..50 {
        std::thread::scope(|threads| {
            threads.spawn(|| assert_eq!(Futex::private(&word).wait(A::value(0)), Ok(())));
            while Futex::private(&word).wake(1).unwrap() == 0 {
                std::thread::yield_now();
            }
        });
    }
}
