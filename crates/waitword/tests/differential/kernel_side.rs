//! The kernel, through futex(2) or through futex2; 32 bits.

use super::super::program::{Change, Clock, Limit, WORDS, Width};
use super::{ROOM, Side, Words, World, absolute, clock_id, packed, pointer, relative};
use crate::support::buckets::{are_apart, choose_words};
use crate::support::crew::Crew;
use crate::support::memory::Mapping;
use crate::support::{Answer, kernel, kernel_has};
use std::sync::Arc;
use syscalls::Sysno;
use waitword::raw::{SIZE_U32, Waitv};

/// The kernel's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface {
    Classic,
    Futex2,
}

pub(crate) struct Kernel {
    pub(crate) interface: Interface,
    pub(crate) world: World,
    pub(crate) words: Words,
}

/// Whether the running kernel has all of futex2 (Linux 6.7).
pub(crate) fn has_futex2() -> bool {
    [Sysno::futex_wait, Sysno::futex_wake, Sysno::futex_requeue]
        .into_iter()
        .all(kernel_has)
}

impl Kernel {
    fn futex(
        &self,
        word: usize,
        op: i32,
        val: u64,
        time: usize,
        second: usize,
        val3: u32,
    ) -> Answer {
        let op = op | self.world.flag();
        let [word, second] = [word, second].map(|word| self.address(word));
        kernel(
            Sysno::futex,
            [word, op as usize, val as usize, time, second, val3 as usize],
        )
    }

    fn flags(&self) -> u32 {
        SIZE_U32 | self.world.flag() as u32
    }

    fn address(&self, word: usize) -> usize {
        self.words.address(word).expose_provenance()
    }

    fn entry(&self, word: usize, val: u64) -> Waitv {
        Waitv {
            val,
            uaddr: self.address(word) as u64,
            flags: self.flags(),
            reserved: 0,
        }
    }
}

const WAIT: i32 = 0;
const REQUEUE: i32 = 3;
const CMP_REQUEUE: i32 = 4;
const WAKE_OP: i32 = 5;
const WAIT_BITSET: i32 = 9;
const WAKE_BITSET: i32 = 10;
const CLOCK_REALTIME: i32 = 256;

impl Side for Kernel {
    fn name(&self) -> String {
        format!("the kernel's {:?} {:?}", self.world, self.interface)
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn in_our_table(&self) -> bool {
        false
    }

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer {
        if self.interface == Interface::Futex2 {
            let limit = absolute(limit);
            let time = pointer(limit.as_ref().map(|(_, time)| time));
            let clock = clock_id(limit.map(|(clock, _)| clock)) as usize;
            let (value, mask) = (expected as usize, mask as usize);
            let arguments = [
                self.address(word),
                value,
                mask,
                self.flags() as usize,
                time,
                clock,
            ];
            return kernel(Sysno::futex_wait, arguments);
        }
        let on_realtime = relative(limit).is_some_and(|(clock, _)| clock == Clock::Realtime);
        if mask == u32::MAX.into() && !on_realtime {
            let time = relative(limit).map(|(_, time)| time);
            return self.futex(word, WAIT, expected, pointer(time.as_ref()), word, 0);
        }
        let clock = if on_realtime { CLOCK_REALTIME } else { 0 };
        let time = absolute(limit).map(|(_, time)| time);
        self.futex(
            word,
            WAIT_BITSET | clock,
            expected,
            pointer(time.as_ref()),
            word,
            mask as u32,
        )
    }

    fn wait_any(&self, entries: &[(usize, u64)], limit: Limit) -> Answer {
        let entries: Vec<_> = entries
            .iter()
            .map(|&(word, value)| self.entry(word, value))
            .collect();
        let limit = absolute(limit);
        let time = pointer(limit.as_ref().map(|(_, time)| time));
        let clock = clock_id(limit.map(|(clock, _)| clock)) as usize;
        let list = entries.as_ptr().expose_provenance();
        kernel(Sysno::futex_waitv, [list, entries.len(), 0, time, clock, 0])
    }

    fn wake(&self, word: usize, count: i32, mask: u64) -> Answer {
        match self.interface {
            Interface::Classic => self.futex(word, WAKE_BITSET, count as u64, 0, word, mask as u32),
            Interface::Futex2 => {
                let (mask, count) = (mask as usize, count.max(1) as usize);
                let arguments = [self.address(word), mask, count, self.flags() as usize, 0, 0];
                kernel(Sysno::futex_wake, arguments)
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
        match (self.interface, expected) {
            (Interface::Classic, None) => {
                self.futex(from, REQUEUE, wake as u64, moved as usize, to, 0)
            }
            (Interface::Classic, Some(value)) => self.futex(
                from,
                CMP_REQUEUE,
                wake as u64,
                moved as usize,
                to,
                value as u32,
            ),
            // There is no requeue without a comparison.
            (Interface::Futex2, expected) => {
                let expected = expected.unwrap_or_else(|| self.load(from));
                let pair = [self.entry(from, expected), self.entry(to, 0)];
                let pair = pair.as_ptr().expose_provenance();
                kernel(
                    Sysno::futex_requeue,
                    [pair, 0, wake as usize, moved as usize, 0, 0],
                )
            }
        }
    }

    fn wake_op(
        &self,
        first: usize,
        count: i32,
        second: usize,
        second_count: i32,
        change: Change,
    ) -> Answer {
        self.futex(
            first,
            WAKE_OP,
            count as u64,
            second_count as usize,
            second,
            packed(change),
        )
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
