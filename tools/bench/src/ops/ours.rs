//! This project's futex, at every width.

use super::futexes::{BenchWord, Futexes, Waited};
use core::marker::PhantomData;
use waitword::{Cmp, Error, Futex, Op, WakeOp, Word, table};

/// Words of type `W`, private to the process or shared.
#[derive(Debug)]
pub struct Ours<W, const PRIVATE: bool>(PhantomData<fn() -> W>);

impl<W, const PRIVATE: bool> Ours<W, PRIVATE> {
    /// Creates the contender.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<W, const PRIVATE: bool> Default for Ours<W, PRIVATE> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W, const PRIVATE: bool> Clone for Ours<W, PRIVATE> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W, const PRIVATE: bool> Copy for Ours<W, PRIVATE> {}

impl<W: BenchWord, const PRIVATE: bool> Ours<W, PRIVATE> {
    #[inline(always)]
    fn futex(self, word: &W) -> Futex<'_, W> {
        if PRIVATE { Futex::private(word) } else { Futex::shared(word) }
    }
}

#[inline(always)]
fn counted(call: &str, result: Result<usize, Error>) -> usize {
    result.unwrap_or_else(|error| panic!("waitword, {call}: {error:?}"))
}

impl<W: BenchWord, const PRIVATE: bool> Futexes for Ours<W, PRIVATE>
where
    W::Value: Word,
{
    type Word = W;

    fn name(self) -> String {
        format!("waitword {}", W::BITS)
    }

    #[inline(always)]
    fn wait(self, word: &W, expected: u64) -> Waited {
        match self.futex(word).wait(W::value(expected)) {
            Ok(()) => Waited::Woken,
            Err(Error::Mismatch) => Waited::Mismatch,
            Err(Error::Interrupted) => Waited::Interrupted,
            Err(error) => panic!("waitword, wait: {error:?}"),
        }
    }

    #[inline(always)]
    fn wake(self, word: &W, count: usize) -> usize {
        counted("wake", self.futex(word).wake(count))
    }

    #[inline(always)]
    fn requeue(self, from: &W, to: &W, wake: usize, moved: usize) -> usize {
        let (from, to) = (self.futex(from), self.futex(to));
        counted("requeue", from.requeue(to, wake, moved))
    }

    #[inline(always)]
    fn wake_op(self, first: &W, second: &W) -> usize {
        let change = WakeOp::new(Op::Set, W::value(0)).when(Cmp::Gt, W::value(1));
        let (first, second) = (self.futex(first), self.futex(second));
        counted("wake_op", first.wake_op(1, second, 1, change))
    }

    fn queued(self) -> Option<usize> {
        PRIVATE.then(|| table::snapshot(&mut []).waiters)
    }
}
