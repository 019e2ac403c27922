//! Futexes with a fault.

use super::{Spared, sleep_forever};
use crate::ops::{BenchWord, Futexes, Kernel, Waited};
use std::sync::atomic::AtomicU32;

/// A futex whose wake-ups are counted and, after the spared ones, lost.
#[derive(Clone, Copy)]
pub(in crate::workload::faults) struct SleepsOn<F> {
    futex: F,
    spared: &'static Spared,
}

impl<F: Futexes> SleepsOn<F> {
    pub(in crate::workload::faults) fn after(spared: u32, futex: F) -> Self {
        // A futex is a plain value, so its counter lives as long as the test process.
        let spared = Box::leak(Box::new(Spared::new(spared)));
        Self { futex, spared }
    }
}

impl<F: Futexes> Futexes for SleepsOn<F> {
    type Word = F::Word;

    fn name(self) -> String {
        "sleeps on".to_owned()
    }

    fn wait(self, word: &F::Word, expected: u64) -> Waited {
        let waited = self.futex.wait(word, expected);
        if waited == Waited::Woken && self.spared.is_lost() {
            sleep_forever();
        }
        waited
    }

    fn wake(self, word: &F::Word, count: usize) -> usize {
        self.futex.wake(word, count)
    }

    fn requeue(self, from: &F::Word, to: &F::Word, wake: usize, moved: usize) -> usize {
        self.futex.requeue(from, to, wake, moved)
    }

    fn wake_op(self, first: &F::Word, second: &F::Word) -> usize {
        self.futex.wake_op(first, second)
    }

    fn queued(self) -> Option<usize> {
        self.futex.queued()
    }
}

/// The operation that a [`Liar`] does not perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workload::faults) enum Lie {
    /// A wait never sleeps, as if it were woken at once.
    NeverWaits,
    /// A wait never checks the word, as if the value were always wrong.
    AlwaysMismatches,
    /// A wake finds no waiter, without looking.
    WakesNone,
    /// A requeue finds no waiter, without looking.
    RequeuesNone,
    /// A requeue reports one moved waiter and moves none.
    MovesNone,
    /// A wake_op finds no waiter and changes nothing.
    OperatesOnNothing,
}

/// The kernel's futex without one of its operations.
#[derive(Clone, Copy)]
pub(in crate::workload::faults) struct Liar<const PRIVATE: bool>(
    pub(in crate::workload::faults) Lie,
);

impl<const PRIVATE: bool> Futexes for Liar<PRIVATE> {
    type Word = AtomicU32;

    fn name(self) -> String {
        format!("{:?}", self.0)
    }

    fn wait(self, word: &AtomicU32, expected: u64) -> Waited {
        match self.0 {
            Lie::NeverWaits if BenchWord::load(word) == expected => Waited::Woken,
            Lie::AlwaysMismatches => Waited::Mismatch,
            _ => Kernel::<PRIVATE>.wait(word, expected),
        }
    }

    fn wake(self, word: &AtomicU32, count: usize) -> usize {
        match self.0 {
            Lie::WakesNone => 0,
            _ => Kernel::<PRIVATE>.wake(word, count),
        }
    }

    fn requeue(self, from: &AtomicU32, to: &AtomicU32, wake: usize, moved: usize) -> usize {
        match self.0 {
            Lie::RequeuesNone => 0,
            Lie::MovesNone => 1,
            _ => Kernel::<PRIVATE>.requeue(from, to, wake, moved),
        }
    }

    fn wake_op(self, first: &AtomicU32, second: &AtomicU32) -> usize {
        match self.0 {
            Lie::OperatesOnNothing => 0,
            _ => Kernel::<PRIVATE>.wake_op(first, second),
        }
    }
}
