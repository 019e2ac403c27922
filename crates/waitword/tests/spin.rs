//! Waiters that spin. The budget belongs to the whole process, so these tests have a process of
//! their own.

use std::time::Duration;
use waitword::Futex;
use waitword_testkit::{Atomic, for_every_width, watch};

/// A wake that finds its waiter still spinning. With a budget that outlasts every test the waiter
/// never sleeps, and must be woken nevertheless.
#[test]
fn spinners_are_woken_and_counted() {
    let _watchdog = watch();
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
