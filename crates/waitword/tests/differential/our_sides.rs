//! The library: the futex(2) interface (32 bits), the futex2 interface and the typed interface
//! (every width).

use super::super::program::{Change, Clock, Limit, Width};
use super::{Side, Words, World, absolute, clock_id, packed, pointer, relative};
use crate::support::Answer;
use crate::support::atomic::Atomic;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, with_exposed_provenance};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};
use std::time::Duration;
use waitword::raw::{self, Errno, Waitv};
use waitword::{Cmp, Deadline, Error, Expecting, Futex, Mask, Op, WaitOptions, WakeOp, wait_any};

/// All interfaces of the library at this width.
pub(crate) fn all(words: &Words, world: World) -> Vec<Arc<dyn Side>> {
    let words = || words.clone();
    let futex2 = Arc::new(Futex2 {
        world,
        words: words(),
    });
    match words().width {
        Width(8) => vec![futex2, Typed::<AtomicU8>::side(world, words())],
        Width(16) => vec![futex2, Typed::<AtomicU16>::side(world, words())],
        Width(32) => {
            let classic = Arc::new(Classic {
                world,
                words: words(),
            });
            vec![classic, futex2, Typed::<AtomicU32>::side(world, words())]
        }
        _ => vec![futex2, Typed::<AtomicU64>::side(world, words())],
    }
}

fn answer(result: Result<usize, Errno>) -> Answer {
    result.map_err(Errno::raw_os_error)
}

/// `raw::futex`.
struct Classic {
    world: World,
    words: Words,
}

const WAIT: i32 = 0;
const WAKE: i32 = 1;
const REQUEUE: i32 = 3;
const CMP_REQUEUE: i32 = 4;
const WAKE_OP: i32 = 5;
const WAIT_BITSET: i32 = 9;
const WAKE_BITSET: i32 = 10;
const CLOCK_REALTIME: i32 = 256;

impl Classic {
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
        let [word, second] = [word, second].map(|word| self.words.address(word).cast());
        // SAFETY: mapped words, and a time that is alive or null.
        answer(unsafe { raw::futex(word, op, val as u32, time, second, val3) })
    }
}

impl Side for Classic {
    fn name(&self) -> String {
        format!("our {:?} classic interface", self.world)
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn in_our_table(&self) -> bool {
        self.world == World::Private
    }

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer {
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
        waitv(&self.words, self.world, entries, limit)
    }

    fn wake(&self, word: usize, count: i32, mask: u64) -> Answer {
        if mask == u32::MAX.into() {
            return self.futex(word, WAKE, count as u64, 0, word, 0);
        }
        self.futex(word, WAKE_BITSET, count as u64, 0, word, mask as u32)
    }

    fn requeue(
        &self,
        from: usize,
        to: usize,
        wake: i32,
        moved: i32,
        expected: Option<u64>,
    ) -> Answer {
        let (op, value) = expected.map_or((REQUEUE, 0), |value| (CMP_REQUEUE, value as u32));
        self.futex(from, op, wake as u64, moved as usize, to, value)
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

/// `raw::futex_wait` and the other futex2 calls.
struct Futex2 {
    world: World,
    words: Words,
}

fn flags(words: &Words, world: World) -> u32 {
    words.width.bytes().trailing_zeros() | world.flag() as u32
}

fn entry(words: &Words, world: World, (word, val): (usize, u64)) -> Waitv {
    let uaddr = words.address(word).expose_provenance() as u64;
    Waitv {
        val,
        uaddr,
        flags: flags(words, world),
        reserved: 0,
    }
}

fn waitv(words: &Words, world: World, entries: &[(usize, u64)], limit: Limit) -> Answer {
    let entries: Vec<_> = entries
        .iter()
        .map(|&named| entry(words, world, named))
        .collect();
    let limit = absolute(limit);
    let time = limit
        .as_ref()
        .map_or(ptr::null(), |(_, time)| ptr::from_ref(time));
    let clock = clock_id(limit.map(|(clock, _)| clock));
    // SAFETY: mapped words, and a time that is alive or null.
    answer(unsafe { raw::futex_waitv(entries.as_ptr(), entries.len() as u32, 0, time, clock) })
}

impl Futex2 {
    fn address(&self, word: usize) -> *mut c_void {
        self.words.address(word).cast()
    }

    fn flags(&self) -> u32 {
        flags(&self.words, self.world)
    }
}

impl Side for Futex2 {
    fn name(&self) -> String {
        format!(
            "our {:?} futex2 interface at {} bits",
            self.world, self.words.width.0
        )
    }

    fn words(&self) -> &Words {
        &self.words
    }

    fn in_our_table(&self) -> bool {
        self.world == World::Private
    }

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer {
        let limit = absolute(limit);
        let time = pointer(limit.as_ref().map(|(_, time)| time));
        let clock = clock_id(limit.map(|(clock, _)| clock));
        let time = with_exposed_provenance(time);
        // SAFETY: a mapped word, and a time that is alive or null.
        answer(unsafe {
            raw::futex_wait(
                self.address(word),
                expected,
                mask,
                self.flags(),
                time,
                clock,
            )
        })
    }

    fn wait_any(&self, entries: &[(usize, u64)], limit: Limit) -> Answer {
        waitv(&self.words, self.world, entries, limit)
    }

    fn wake(&self, word: usize, count: i32, mask: u64) -> Answer {
        // SAFETY: a mapped word.
        answer(unsafe { raw::futex_wake(self.address(word), mask, count.max(1), self.flags()) })
    }

    fn requeue(
        &self,
        from: usize,
        to: usize,
        wake: i32,
        moved: i32,
        expected: Option<u64>,
    ) -> Answer {
        let expected = expected.unwrap_or_else(|| self.load(from));
        let pair = [(from, expected), (to, 0)].map(|named| entry(&self.words, self.world, named));
        // SAFETY: mapped words.
        answer(unsafe { raw::futex_requeue(pair.as_ptr(), 0, wake, moved) })
    }

    fn wake_op(
        &self,
        first: usize,
        count: i32,
        second: usize,
        second_count: i32,
        change: Change,
    ) -> Answer {
        let (shift, operand) = change.operand.at(self.width());
        // SAFETY: mapped words.
        answer(unsafe {
            raw::futex_wake_op(
                self.address(first),
                count.max(1),
                self.address(second),
                second_count.max(1),
                shift | change.op,
                operand,
                change.cmp,
                change.comparand.at(self.width()),
                self.flags(),
            )
        })
    }
}

/// `Futex` and `wait_any`.
struct Typed<A> {
    world: World,
    words: Words,
    word: PhantomData<fn() -> A>,
}

impl<A: Atomic> Typed<A> {
    fn side(world: World, words: Words) -> Arc<dyn Side> {
        Arc::new(Self {
            world,
            words,
            word: PhantomData,
        })
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
    if count == i32::MAX {
        usize::MAX
    } else {
        count.max(1) as usize
    }
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
        self.futex(word)
            .wake_mask(to_wake(count), mask)
            .map_err(number)
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
        first
            .wake_op(to_wake(count), second, to_wake(second_count), change)
            .map_err(number)
    }
}
