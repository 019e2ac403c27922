//! The library's typed interface, at every width.

use super::super::program::{Change, Clock, Limit};
use super::{Side, Words, World, absolute};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use waitword::{Cmp, Deadline, Error, Expecting, Futex, Mask, Op, WaitOptions, WakeOp, wait_any};
use waitword_testkit::{Answer, Atomic};

/// `Futex` and `wait_any`.
pub(crate) struct Typed<A> {
    world: World,
    words: Words,
    word: PhantomData<fn() -> A>,
}

impl<A: Atomic> Typed<A> {
    pub(crate) fn side(world: World, words: Words) -> Arc<dyn Side> {
        Arc::new(Self { world, words, word: PhantomData })
    }

    fn futex(&self, word: usize) -> Futex<'_, A> {
        // SAFETY: mapped and aligned for as long as `words` lives, and an atomic of this width.
        let word = unsafe { &*self.words.address(word).cast::<A>() };
        match self.world {
            World::Private => Futex::private(word),
            World::Shared => Futex::shared(word),
        }
    }
}

fn deadline(limit: Limit) -> Option<Deadline> {
    let (clock, time) = absolute(limit)?;
    let clock = match clock {
        Clock::Monotonic => waitword::Clock::Monotonic,
        Clock::Realtime => waitword::Clock::Realtime,
    };
    let since_zero = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
    Some(Deadline::at(clock, since_zero))
}

/// A count of futex(2), where 0 wakes one, as a count of ours.
fn to_wake(count: i32) -> usize {
    if count == i32::MAX { usize::MAX } else { count.max(1) as usize }
}

fn number(error: Error) -> i32 {
    error.raw_os_error()
}

impl<A: Atomic> Side for Typed<A> {
    fn name(&self) -> String {
        format!("our {:?} Futex at {} bits", self.world, self.words.width.0)
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn in_our_table(&self) -> bool {
        self.world == World::Private
    }

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer {
        let mask = Mask::new(A::value(mask)).expect("programs have no empty masks");
        let options = WaitOptions::new().mask(mask);
        let options = deadline(limit).map_or(options, |deadline| options.deadline(deadline));
        let waited = self.futex(word).wait_with(A::value(expected), options);
        waited.map(|()| 0).map_err(number)
    }

    fn wait_any(&self, entries: &[(usize, u64)], limit: Limit) -> Answer {
        let words: Vec<Expecting<'_>> = entries
            .iter()
            .map(|&(word, value)| self.futex(word).expecting(A::value(value)))
            .collect();
        wait_any(&words, deadline(limit)).map_err(number)
    }

    fn wake(&self, word: usize, count: i32, mask: u64) -> Answer {
        let mask = Mask::new(A::value(mask)).expect("programs have no empty masks");
        self.futex(word).wake_mask(to_wake(count), mask).map_err(number)
    }

    fn requeue(
        &self,
        from: usize,
        to: usize,
        wake: i32,
        moved: i32,
        expected: Option<u64>,
    ) -> Answer {
        let (wake, moved) = (wake as usize, moved as usize);
        let (from, to) = (self.futex(from), self.futex(to));
        let result = match expected {
            None => from.requeue(to, wake, moved),
            Some(value) => from.cmp_requeue(A::value(value), to, wake, moved),
        };
        result.map_err(number)
    }

    fn wake_op(
        &self,
        first: usize,
        count: i32,
        second: usize,
        second_count: i32,
        change: Change,
    ) -> Answer {
        let op = [Op::Set, Op::Add, Op::Or, Op::AndNot, Op::Xor][change.op as usize];
        let cmp = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge][change.cmp as usize];
        let operand = A::value(change.operand.meaning_at(self.width()));
        let comparand = A::value(change.comparand.at(self.width()));
        let change = WakeOp::new(op, operand).when(cmp, comparand);
        let (first, second) = (self.futex(first), self.futex(second));
        first.wake_op(to_wake(count), second, to_wake(second_count), change).map_err(number)
    }
}
