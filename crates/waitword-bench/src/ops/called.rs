//! A call is a call: the operations as functions that are called and return, or as part of the loop.

use super::{Futexes, Waited};

/// Every operation is a function that is called and returns, as it is in any program: this is how all
/// contenders are measured.
///
/// It matters more than one would think. On the way through the kernel the CPU's memory of where to return to
/// is overwritten (return-stack mitigations, and all of it at a context switch), so the first return after
/// a system call is mispredicted. On an EPYC of 2022 in a virtual machine this costs 70 to 80 ns a call and
/// up to 450 ns a hand-over between two threads. A bare `syscall` instruction inlined into an endless
/// loop never returns and never pays; whether the compiler inlines it would decide the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Called<F>(pub F);

impl<F: Futexes> Futexes for Called<F> {
    type Word = F::Word;

    fn name(self) -> String {
        self.0.name()
    }

    #[inline(never)]
    fn wait(self, word: &F::Word, expected: u64) -> Waited {
        self.0.wait(word, expected)
    }

    #[inline(never)]
    fn wake(self, word: &F::Word, count: usize) -> usize {
        self.0.wake(word, count)
    }

    #[inline(never)]
    fn requeue(self, from: &F::Word, to: &F::Word, wake: usize, moved: usize) -> usize {
        self.0.requeue(from, to, wake, moved)
    }

    #[inline(never)]
    fn wake_op(self, first: &F::Word, second: &F::Word) -> usize {
        self.0.wake_op(first, second)
    }

    fn queued(self) -> Option<usize> {
        self.0.queued()
    }
}

/// Every operation is part of the loop it stands in: the least that it can cost. Shown for the kernel's futex
/// where it makes a difference, and nobody's baseline.
#[derive(Clone, Copy, Debug)]
pub struct Inlined<F>(pub F);

impl<F: Futexes> Futexes for Inlined<F> {
    type Word = F::Word;

    fn name(self) -> String {
        format!("{}, inlined", self.0.name())
    }

    #[inline(always)]
    fn wait(self, word: &F::Word, expected: u64) -> Waited {
        self.0.wait(word, expected)
    }

    #[inline(always)]
    fn wake(self, word: &F::Word, count: usize) -> usize {
        self.0.wake(word, count)
    }

    #[inline(always)]
    fn requeue(self, from: &F::Word, to: &F::Word, wake: usize, moved: usize) -> usize {
        self.0.requeue(from, to, wake, moved)
    }

    #[inline(always)]
    fn wake_op(self, first: &F::Word, second: &F::Word) -> usize {
        self.0.wake_op(first, second)
    }

    fn queued(self) -> Option<usize> {
        self.0.queued()
    }
}
