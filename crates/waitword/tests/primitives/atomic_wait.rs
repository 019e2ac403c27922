//! Wait and notify on the standard atomics.

use crate::{answer, far, soon};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8,
    AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst,
};
use std::time::Duration;
use waitword::{AtomicWait, Futex};
use waitword_testkit::{Crew, watch};

/// Waits until the atomic no longer holds `old`. A notification announces `new`.
macro_rules! hand_over {
    ($($atomic:ty, $old:expr, $new:expr;)*) => {$({
        let atomic = <$atomic>::new($old);
        assert_eq!(atomic.wait_until($old, soon()), None);
        assert_eq!(atomic.wait_for($old, Duration::ZERO), None);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| assert_eq!(atomic.wait($old), $new));
            }
            threads.spawn(|| assert_eq!(atomic.wait_until($old, far()), Some($new)));
            std::thread::yield_now();
            atomic.store($new, SeqCst);
            atomic.notify_one();
            atomic.notify_all();
        });
        // A different value already.
        assert_eq!(atomic.wait($old), $new);
        assert_eq!(atomic.wait_until($old, soon()), Some($new));
    })*};
}

#[test]
fn every_kind_of_atomic() {
    let _watchdog = watch();
    let pointer = std::ptr::without_provenance_mut;
    for _ in 0..50 {
        hand_over! {
            AtomicU8, 255, 0;
            AtomicU16, 0x8000, 0;
            AtomicU32, 1 << 31, 0;
            AtomicU64, 1 << 63, 0;
            AtomicUsize, 1 << 40, 0;
            AtomicI8, -1, 1;
            AtomicI16, i16::MIN, 0;
            AtomicI32, -1, -2;
            AtomicI64, i64::MIN, -1;
            AtomicIsize, -1, 0;
            AtomicBool, false, true;
            AtomicBool, true, false;
            AtomicPtr<u8>, pointer(1), pointer(2);
        }
    }
}

/// C++'s `wait` returns only once the value was seen to differ. A futex's wait returns for any
/// wake.
#[test]
fn a_notification_without_a_change_ends_nothing() {
    let mut crew = Crew::new(2);
    let word = Arc::new(AtomicU16::new(7));
    crew.line_up(0..2, 1, &word, move |word| Ok(word.wait(7).into()));
    for _ in 0..20 {
        word.notify_one();
        word.notify_all();
        crew.interrupt(0);
        assert_eq!(crew.settle(), []);
    }
    // To another value and back: no change is visible.
    word.store(8, SeqCst);
    word.store(7, SeqCst);
    word.notify_all();
    assert_eq!(crew.settle(), []);
    word.store(9, SeqCst);
    word.notify_one();
    assert_eq!(crew.settle().len(), 1);
    // A futex's wake is a notification too.
    assert_eq!(Futex::private(&*word).wake(9), Ok(1));
    assert_eq!(crew.settle().len(), 1);
}

#[test]
fn notify_one_wakes_the_first_waiter() {
    let mut crew = Crew::new(3);
    let flag = Arc::new(AtomicBool::new(false));
    crew.line_up(0..3, 1, &flag, move |flag| answer(flag.wait(false)));
    flag.store(true, SeqCst);
    for worker in 0..3 {
        flag.notify_one();
        assert_eq!(crew.settle(), [(worker, Ok(1))]);
    }
}

/// Two threads count alternately, and no turn is missed, at the width that is slowest in other
/// implementations.
#[test]
fn in_turns() {
    let _watchdog = watch();
    let turn = AtomicU8::new(0);
    std::thread::scope(|threads| {
        for mine in 0..2 {
            let turn = &turn;
            threads.spawn(move || {
                for _ in 0..5000 {
                    turn.wait(1 - mine);
                    turn.store(1 - mine, SeqCst);
                    turn.notify_all();
                }
            });
        }
    });
}
