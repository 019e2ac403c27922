//! Whether an operation is a function call or inlined into the loop.

use super::futexes::{Futexes, Waited};

/// Makes every operation a function that is called and returns, as in a real program. All
/// contenders are measured this way.
///
/// This matters more than one would expect. On the way through the kernel the CPU's return
/// predictor is overwritten (by return-stack mitigations, and completely at a context switch), so
/// the first return after a system call is mispredicted. On a 2022 EPYC in a virtual machine this
/// costs 70 to 80 ns per call and up to 450 ns per hand-off between two threads. A bare `syscall`
/// instruction inlined into an endless loop never returns and never pays, so the compiler's
/// inlining decision would decide the comparison.
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

/// Inlines every operation into the loop around it: the lower bound of its cost. Shown for the
/// kernel's futex where it makes a difference; never a baseline.
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
