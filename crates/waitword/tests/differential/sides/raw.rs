//! The kernel's interfaces, to the kernel (32 bits) and to the library: futex(2) (32 bits) and
//! futex2 (every width).

use super::super::program::{Change, Clock, Limit, WORDS, Width};
use super::{ROOM, Side, Words, World, absolute, clock_id, packed, pointer, relative};
use std::sync::Arc;
use syscalls::Sysno;
use waitword::raw::{Errno, Waitv, futex_wake_op};
use waitword_testkit::raw::{To, op};
use waitword_testkit::{Answer, Crew, Mapping, buckets::are_apart, buckets::choose_words};

/// One of the kernel's interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Classic,
    Futex2,
}

/// An interface, to the kernel or to the library.
pub(crate) struct Raw {
    pub(crate) to: To,
    pub(crate) interface: Interface,
    pub(crate) world: World,
    pub(crate) words: Words,
}

impl Raw {
    fn futex(
        &self,
        word: usize,
        op: i32,
        val: i32,
        time: usize,
        second: usize,
        val3: u32,
    ) -> Answer {
        let (op, val, val3) = (op | self.world.flag(), val as usize, val3 as usize);
        let [word, second] = [word, second].map(|word| self.address(word));
        let arguments = [word, op as usize, val, time, second, val3];
        self.to.call(Sysno::futex, arguments)
    }

    fn flags(&self) -> u32 {
        self.width().bytes().trailing_zeros() | self.world.flag() as u32
    }

    fn address(&self, word: usize) -> usize {
        self.words.address(word).expose_provenance()
    }

    fn entry(&self, (word, val): (usize, u64)) -> Waitv {
        Waitv { val, uaddr: self.address(word) as u64, flags: self.flags(), reserved: 0 }
    }
}

impl Side for Raw {
    fn name(&self) -> String {
        let (Self { to, interface, world, .. }, bits) = (self, self.width().0);
        format!("{to:?}: {world:?} {interface:?} interface at {bits} bits")
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn in_our_table(&self) -> bool {
        self.to == To::Ours && self.world == World::Private
    }

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer {
        let at = absolute(limit);
        let absolute = pointer(at.as_ref().map(|(_, time)| time));
        if self.interface == Interface::Futex2 {
            let clock = clock_id(at.map(|(clock, _)| clock)) as usize;
            let (expected, mask, flags) = (expected as usize, mask as usize, self.flags() as usize);
            let arguments = [self.address(word), expected, mask, flags, absolute, clock];
            return self.to.call(Sysno::futex_wait, arguments);
        }
        let expected = expected as i32;
        let from_now = relative(limit);
        let on_realtime = from_now.is_some_and(|(clock, _)| clock == Clock::Realtime);
        if mask == u32::MAX.into() && !on_realtime {
            let time = pointer(from_now.as_ref().map(|(_, time)| time));
            return self.futex(word, op::WAIT, expected, time, word, 0);
        }
        let clock = if on_realtime { op::CLOCK_REALTIME } else { 0 };
        self.futex(word, op::WAIT_BITSET | clock, expected, absolute, word, mask as u32)
    }

    fn wait_any(&self, entries: &[(usize, u64)], limit: Limit) -> Answer {
        let entries: Vec<_> = entries.iter().map(|&named| self.entry(named)).collect();
        let limit = absolute(limit);
        let time = pointer(limit.as_ref().map(|(_, time)| time));
        let clock = clock_id(limit.map(|(clock, _)| clock)) as usize;
        let list = entries.as_ptr().expose_provenance();
        let arguments = [list, entries.len(), 0, time, clock, 0];
        self.to.call(Sysno::futex_waitv, arguments)
    }

    fn wake(&self, word: usize, count: i32, mask: u64) -> Answer {
        match self.interface {
            // The kernel is asked in one way only.
            Interface::Classic if self.to == To::Ours && mask == u32::MAX.into() => {
                self.futex(word, op::WAKE, count, 0, word, 0)
            }
            Interface::Classic => self.futex(word, op::WAKE_BITSET, count, 0, word, mask as u32),
            Interface::Futex2 => {
                let (mask, count, flags) = (mask as usize, count.max(1) as usize, self.flags());
                let arguments = [self.address(word), mask, count, flags as usize, 0, 0];
                self.to.call(Sysno::futex_wake, arguments)
            }
        }
    }

    fn requeue(
        &self,
        from: usize,
        to: usize,
        wake: i32,
        moved: i32,
        expected: Option<u64>,
    ) -> Answer {
        if self.interface == Interface::Classic {
            let op = expected.map_or(op::REQUEUE, |_| op::CMP_REQUEUE);
            let expected = expected.unwrap_or(0) as u32;
            return self.futex(from, op, wake, moved as usize, to, expected);
        }
        // There is no requeue without a comparison.
        let expected = expected.unwrap_or_else(|| self.load(from));
        let pair = [(from, expected), (to, 0)].map(|named| self.entry(named));
        let (list, wake, moved) = (pair.as_ptr(), wake as usize, moved as usize);
        let arguments = [list.expose_provenance(), 0, wake, moved, 0, 0];
        self.to.call(Sysno::futex_requeue, arguments)
    }

    fn wake_op(
        &self,
        first: usize,
        count: i32,
        second: usize,
        second_count: i32,
        change: Change,
    ) -> Answer {
        // The kernel has it in futex(2) only.
        if self.to == To::Kernel || self.interface == Interface::Classic {
            let (op, change) = (op::WAKE_OP, packed(change));
            return self.futex(first, op, count, second_count as usize, second, change);
        }
        let (shift, operand) = change.operand.at(self.width());
        let [first, second] = [first, second].map(|word| self.words.address(word).cast());
        let [count, second_count] = [count, second_count].map(|count| count.max(1));
        let (op, comparand) = (shift | change.op, change.comparand.at(self.width()));
        // SAFETY: mapped words.
        let answer = unsafe {
            futex_wake_op(
                first,
                count,
                second,
                second_count,
                op,
                operand,
                change.cmp,
                comparand,
                self.flags(),
            )
        };
        answer.map_err(Errno::raw_os_error)
    }
}

/// Words that are in different buckets of the kernel.
pub(crate) fn words_in_different_buckets(
    memory: &Arc<Mapping>,
    world: World,
    crew: &mut Crew,
) -> Words {
    let offsets = choose_words(memory, ROOM, &[], world.flag() as usize, crew);
    Words::at(memory, offsets, Width(32))
}

impl Words {
    /// Whether they are in different buckets of the kernel, as shared words. Zeroes them.
    pub(crate) fn are_in_different_buckets(&self, crew: &mut Crew) -> bool {
        let words = std::array::from_fn::<_, WORDS, _>(|word| {
            self.store(word, 0);
            self.address(word).expose_provenance()
        });
        are_apart(&words, World::Shared.flag() as usize, crew)
    }
}
