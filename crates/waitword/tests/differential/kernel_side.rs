//! The kernel, through futex(2) or through futex2; 32 bits.

use super::super::program::{Change, Clock, Limit, WORDS, Width};
use super::{APART, ROOM, Side, Words, World, absolute, clock_id, packed, pointer, relative};
use crate::support::crew::Crew;
use crate::support::memory::Mapping;
use crate::support::{Answer, kernel, kernel_has};
use std::sync::{Arc, Once};
use syscalls::Sysno;
use waitword::door::{SIZE_U32, Waitv};

/// The kernel's door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Classic,
    Futex2,
}

pub(crate) struct Kernel {
    pub(crate) door: Door,
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
        format!("the kernel's {:?} {:?}", self.world, self.door)
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn in_our_table(&self) -> bool {
        false
    }

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer {
        if self.door == Door::Futex2 {
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
        match self.door {
            Door::Classic => self.futex(word, WAKE_BITSET, count as u64, 0, word, mask as u32),
            Door::Futex2 => {
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
        match (self.door, expected) {
            (Door::Classic, None) => self.futex(from, REQUEUE, wake as u64, moved as usize, to, 0),
            (Door::Classic, Some(value)) => self.futex(
                from,
                CMP_REQUEUE,
                wake as u64,
                moved as usize,
                to,
                value as u32,
            ),
            // There is none without a comparison.
            (Door::Futex2, expected) => {
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

/// Words that stand in different buckets of the kernel, found by trial.
///
/// The kernel moves a requeued waiter behind those of its new word only if the two words' buckets differ;
/// in one bucket, it stays where it arrived. That is an accident of hashing, and our order ("behind those
/// who wait there") has to be compared with the other case.
pub(crate) fn words_in_different_buckets(
    memory: &Arc<Mapping>,
    world: World,
    crew: &mut Crew,
) -> Words {
    use_global_hash();
    let mut offsets: Vec<usize> = Vec::new();
    let candidates = (0..ROOM / APART).map(|line| line * APART);
    for candidate in candidates {
        let apart = offsets
            .iter()
            .all(|&offset| bucket_differs([offset, candidate], memory, world, crew));
        if apart {
            offsets.push(candidate);
        }
        if let Ok(offsets) = offsets.as_slice().try_into() {
            return Words::at(memory, offsets, Width(32));
        }
    }
    panic!("the kernel puts all words into fewer than {WORDS} buckets");
}

fn bucket_differs(
    [one, other]: [usize; 2],
    memory: &Arc<Mapping>,
    world: World,
    crew: &mut Crew,
) -> bool {
    let words = Words::at(memory, [one, other, one, other], Width(32));
    let side = Arc::new(Kernel {
        door: Door::Classic,
        world,
        words,
    });
    let all = u64::from(u32::MAX);
    for word in [0, 1] {
        let side = side.clone();
        crew.order(word, 0, move || {
            side.wait(word, side.load(word), all, Limit::Forever)
        });
        crew.settle();
    }
    assert_eq!(side.requeue(0, 1, 0, 1, None), Ok(1));
    assert_eq!(side.wake(1, 1, all), Ok(1));
    let first = crew.settle();
    assert_eq!(side.wake(1, 1, all), Ok(1));
    crew.settle();
    // The one who stood there before, or the one who was moved.
    first == [(1, Ok(0))]
}

/// Puts the process on the kernel's global hash table for good (Linux 6.16): its own would be rebuilt as
/// threads come, and words would change buckets in the middle of a run. Others have no table of their own.
fn use_global_hash() {
    static ONCE: Once = Once::new();
    const PR_FUTEX_HASH: usize = 78;
    const SET_SLOTS: usize = 1;
    ONCE.call_once(|| {
        let _ = kernel(Sysno::prctl, [PR_FUTEX_HASH, SET_SLOTS, 0, 0, 0, 0]);
    });
}
