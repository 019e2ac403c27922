//! Waiters that spin. The budget is the whole process's, so these tests have one to themselves.

mod support;

use std::time::Duration;
use support::atomic::Atomic;
use support::watchdog::watch;
use waitword::Futex;

/// A wake that finds its waiter still awake, as it spins: with a budget that outlasts every test the waiter
/// never sleeps, and must be woken all the same.
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
