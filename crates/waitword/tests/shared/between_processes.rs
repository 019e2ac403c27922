//! Wait and wake, masks, deadlines, mismatches: every width, both ways.

use crate::{SharedFile, answer_of, cannot_wait, counted, waited};
use libc::{EAGAIN, ENOSYS, ETIMEDOUT};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::time::{Duration, SystemTime};
use waitword::{Clock, Deadline, Error, Futex, Mask, WaitOptions};
use waitword_testkit::{Atomic, for_every_width, watch};

/// The offset of the words of these tests.
const WORD: usize = 64;

#[test]
fn another_process_is_woken() {
    let _watchdog = watch();
    for_every_width!(another_process_is_woken_at());
}

fn another_process_is_woken_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let word = shared.word::<A>(WORD);
    word.set(A::TOP_BIT | 5);
    let children: [_; 3] = std::array::from_fn(|_| {
        let child = shared.other_process(|there| {
            let word = there.word::<A>(WORD);
            waited(Futex::shared(word).wait(A::value(A::TOP_BIT | 5)))
        });
        child.until_asleep();
        child
    });
    assert_eq!(Futex::shared(word).wake(0), Ok(0));
    assert_eq!(Futex::shared(word).wake(1), Ok(1));
    let [first, second, third] = children;
    // In order of arrival.
    assert_eq!(answer_of(first), Ok(0));
    assert_eq!(Futex::shared(word).wake(usize::MAX), Ok(2));
    assert_eq!(answer_of(second), Ok(0));
    assert_eq!(answer_of(third), Ok(0));
    assert_eq!(Futex::shared(word).wake(usize::MAX), Ok(0));
}

#[test]
fn another_process_wakes() {
    let _watchdog = watch();
    for_every_width!(another_process_wakes_at());
}

fn another_process_wakes_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let child = shared.other_process(|there| {
        loop {
            match Futex::shared(there.word::<A>(WORD)).wake(2) {
                Ok(0) => std::thread::yield_now(),
                woken => return counted(woken),
            }
        }
    });
    assert_eq!(Futex::shared(shared.word::<A>(WORD)).wait(A::value(0)), Ok(()));
    assert_eq!(answer_of(child), Ok(1));
}

#[test]
fn a_change_by_another_process_is_a_mismatch() {
    let _watchdog = watch();
    for_every_width!(a_change_by_another_process_is_a_mismatch_at());
}

fn a_change_by_another_process_is_a_mismatch_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let word = shared.word::<A>(WORD);
    // Only its highest bit.
    word.set(A::TOP_BIT);
    let child = shared.other_process(|there| {
        let futex = Futex::shared(there.word::<A>(WORD));
        assert_eq!(futex.wait(A::value(0)), Err(Error::Mismatch));
        waited(futex.wait_until(A::value(1), Deadline::after(Duration::ZERO)))
    });
    assert_eq!(answer_of(child), Err(EAGAIN));
}

#[test]
fn masks_choose_among_processes() {
    let _watchdog = watch();
    masks_choose_at::<AtomicU8>();
    masks_choose_at::<AtomicU16>();
    masks_choose_at::<AtomicU32>();
}

fn masks_choose_at<A: Atomic>() {
    let mask = |bits| Mask::new(A::value(bits)).unwrap();
    let shared = SharedFile::new();
    let futex = Futex::shared(shared.word::<A>(WORD));
    let bits = [1, 2, A::TOP_BIT, A::ALL_BITS];
    let [lowest, second, highest, any] = bits.map(|bits| {
        let child = shared.other_process(|there| {
            let options = WaitOptions::new().mask(mask(bits));
            waited(Futex::shared(there.word::<A>(WORD)).wait_with(A::value(0), options))
        });
        child.until_asleep();
        child
    });
    assert_eq!(futex.wake_mask(1, mask(A::TOP_BIT | 4)), Ok(1));
    assert_eq!(answer_of(highest), Ok(0));
    assert_eq!(futex.wake_mask(usize::MAX, mask(2)), Ok(2));
    assert_eq!(answer_of(second), Ok(0));
    assert_eq!(answer_of(any), Ok(0));
    assert_eq!(futex.wake_mask(usize::MAX, mask(A::ALL_BITS ^ 1)), Ok(0));
    assert_eq!(futex.wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(lowest), Ok(0));
}

#[test]
fn a_64_bit_wait_with_a_mask_is_refused() {
    let _watchdog = watch();
    let word = AtomicU64::new(0);
    let options = WaitOptions::new().mask(Mask::new(1).unwrap());
    assert_eq!(Futex::shared(&word).wait_with(0, options), Err(Error::Unsupported));
    assert_eq!(Error::Unsupported.raw_os_error(), ENOSYS);
    if cannot_wait::<AtomicU64>() {
        return;
    }
    // All bits are the same as no mask.
    let options = WaitOptions::new()
        .mask(Mask::new(u64::MAX).unwrap())
        .deadline(Deadline::after(Duration::ZERO));
    assert_eq!(Futex::shared(&word).wait_with(0, options), Err(Error::TimedOut));
}

#[test]
fn deadlines_on_both_clocks() {
    let _watchdog = watch();
    for_every_width!(deadlines_on_both_clocks_at());
}

fn deadlines_on_both_clocks_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let word = shared.word::<A>(WORD);
    let soon = Duration::from_millis(3);
    let wall_clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    for make in [
        &(|| Deadline::after(soon)) as &dyn Fn() -> Deadline,
        &|| Deadline::at(Clock::Realtime, wall_clock() + soon),
        &|| Deadline::at_system_time(SystemTime::now() + soon),
        &|| Deadline::at(Clock::Realtime, Duration::ZERO),
    ] {
        for futex in [Futex::shared(word), Futex::private(word)] {
            let deadline = make();
            assert_eq!(futex.wait_until(A::value(0), deadline), Err(Error::TimedOut));
            assert!(deadline.has_passed(), "woken early, {} bits", A::BITS);
            assert_eq!(futex.wait_until(A::value(1), deadline), Err(Error::Mismatch));
        }
    }
    // A waiter that timed out is no longer there, and takes no wake from another waiter.
    let timed_out = shared.other_process(|there| {
        let futex = Futex::shared(there.word::<A>(WORD));
        waited(futex.wait_until(A::value(0), Deadline::after(soon)))
    });
    assert_eq!(answer_of(timed_out), Err(ETIMEDOUT));
    let woken = shared
        .other_process(|there| waited(Futex::shared(there.word::<A>(WORD)).wait(A::value(0))));
    woken.until_asleep();
    assert_eq!(Futex::shared(word).wake(1), Ok(1));
    assert_eq!(answer_of(woken), Ok(0));
}

#[test]
fn worlds_are_apart() {
    let _watchdog = watch();
    for_every_width!(worlds_are_apart_at());
}

/// A private wake does not find a shared waiter, or the other way round.
fn worlds_are_apart_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let word = shared.word::<A>(WORD);
    let child = shared
        .other_process(|there| waited(Futex::shared(there.word::<A>(WORD)).wait(A::value(0))));
    child.until_asleep();
    assert_eq!(Futex::private(word).wake(usize::MAX), Ok(0));
    assert_eq!(Futex::private(word).requeue(Futex::private(word), 1, 1), Ok(0));
    assert_eq!(
        Futex::private(word).requeue(Futex::shared(word), 1, 1),
        Err(Error::DifferentScopes)
    );
    assert_eq!(Futex::shared(word).wake(usize::MAX), Ok(1));
    assert_eq!(answer_of(child), Ok(0));
}

#[test]
fn a_killed_waiter_takes_no_wake_with_it() {
    let _watchdog = watch();
    for_every_width!(a_killed_waiter_takes_no_wake_with_it_at());
}

fn a_killed_waiter_takes_no_wake_with_it_at<A: Atomic>() {
    if cannot_wait::<A>() {
        return;
    }
    let shared = SharedFile::new();
    let [killed, woken] = std::array::from_fn(|_| {
        let child = shared
            .other_process(|there| waited(Futex::shared(there.word::<A>(WORD)).wait(A::value(0))));
        child.until_asleep();
        child
    });
    // Dropped: killed and reaped.
    drop(killed);
    assert_eq!(Futex::shared(shared.word::<A>(WORD)).wake(1), Ok(1));
    assert_eq!(answer_of(woken), Ok(0));
}
