//! A wait table in the process, as ours is: `parking_lot_core`, on which parking_lot's locks are
//! built.
//!
//! It has no words: a thread parks on an address if a check under the bucket lock agrees. It is
//! used here as in parking_lot itself: a waiter checks the word first. `wake_op` changes the second
//! word and then wakes, as two separate steps.

use super::futexes::{Futexes, Waited};
use parking_lot_core::{
    DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN, FilterOp, ParkResult, RequeueOp, UnparkResult, park,
    unpark_all, unpark_filter, unpark_one, unpark_requeue,
};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

/// Threads queued in the table. The crate does not expose the number.
static QUEUED: AtomicUsize = AtomicUsize::new(0);

/// Uses 32-bit words; addresses of other widths would work as well.
#[derive(Clone, Copy, Debug)]
pub struct Parked;

#[inline(always)]
fn key(word: &AtomicU32) -> usize {
    word.as_ptr().addr()
}

impl Futexes for Parked {
    type Word = AtomicU32;

    fn name(self) -> String {
        "parking_lot_core".to_owned()
    }

    #[inline(always)]
    fn wait(self, word: &AtomicU32, expected: u64) -> Waited {
        let is_as_expected = || u64::from(word.load(SeqCst)) == expected;
        if !is_as_expected() {
            return Waited::Mismatch;
        }
        let queued = || {
            QUEUED.fetch_add(1, SeqCst);
        };
        // SAFETY: the key is the address of a word that is borrowed until the call returns, so no
        // other user of the table has it; the closures neither panic nor call the table.
        let result =
            unsafe { park(key(word), is_as_expected, queued, |_, _| (), DEFAULT_PARK_TOKEN, None) };
        match result {
            ParkResult::Unparked(_) => {
                QUEUED.fetch_sub(1, SeqCst);
                Waited::Woken
            }
            ParkResult::Invalid => Waited::Mismatch,
            ParkResult::TimedOut => unreachable!("there is no timeout"),
        }
    }

    #[inline(always)]
    fn wake(self, word: &AtomicU32, count: usize) -> usize {
        match count {
            // SAFETY: the closure neither panics nor calls the table; the key is as in `wait`.
            1 => unsafe { unpark_one(key(word), |_| DEFAULT_UNPARK_TOKEN) }.unparked_threads,
            // SAFETY: the key is as in `wait`.
            usize::MAX => unsafe { unpark_all(key(word), DEFAULT_UNPARK_TOKEN) },
            mut left => {
                let filter = |_| {
                    if left == 0 {
                        return FilterOp::Stop;
                    }
                    left -= 1;
                    FilterOp::Unpark
                };
                // SAFETY: the closures neither panic nor call the table; the key is as in `wait`.
                unsafe { unpark_filter(key(word), filter, |_| DEFAULT_UNPARK_TOKEN) }
                    .unparked_threads
            }
        }
    }

    #[inline(always)]
    fn requeue(self, from: &AtomicU32, to: &AtomicU32, wake: usize, moved: usize) -> usize {
        let operation = match (wake, moved) {
            (0, 1) => RequeueOp::RequeueOne,
            (0, usize::MAX) => RequeueOp::RequeueAll,
            (1, 0) => RequeueOp::UnparkOne,
            (1, usize::MAX) => RequeueOp::UnparkOneRequeueRest,
            other => panic!("parking_lot_core, requeue: no operation for {other:?}"),
        };
        let token = |_, _: UnparkResult| DEFAULT_UNPARK_TOKEN;
        // SAFETY: the closures neither panic nor call the table; the keys are as in `wait`.
        let result = unsafe { unpark_requeue(key(from), key(to), || operation, token) };
        result.unparked_threads + result.requeued_threads
    }

    #[inline(always)]
    fn wake_op(self, first: &AtomicU32, second: &AtomicU32) -> usize {
        let before = second.swap(0, SeqCst);
        let of_second = if before > 1 { self.wake(second, 1) } else { 0 };
        self.wake(first, 1) + of_second
    }

    fn queued(self) -> Option<usize> {
        Some(QUEUED.load(SeqCst))
    }
}
