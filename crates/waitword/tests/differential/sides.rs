//! The sides that run a program: the kernel through either of its interfaces, or the library
//! through one of its three.

pub(crate) mod raw;
mod typed;

use super::program::{Change, Clock, Limit, WORDS, Width};
use raw::{Interface, Raw};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};
use typed::Typed;
use waitword::raw::Timespec;
use waitword_testkit::{Answer, Mapping, buckets::APART, raw::To};

/// Operations on the words of a program. Counts are futex(2)'s, where a wake of 0 wakes one.
pub(crate) trait Side: Send + Sync {
    fn name(&self) -> String;
    fn words(&self) -> &Words;
    /// Whether its waiters are queued in the library's table, not in the kernel.
    fn in_our_table(&self) -> bool;

    fn wait(&self, word: usize, expected: u64, mask: u64, limit: Limit) -> Answer;
    fn wait_any(&self, entries: &[(usize, u64)], limit: Limit) -> Answer;
    fn wake(&self, word: usize, count: i32, mask: u64) -> Answer;
    fn requeue(
        &self,
        from: usize,
        to: usize,
        wake: i32,
        moved: i32,
        expected: Option<u64>,
    ) -> Answer;
    fn wake_op(
        &self,
        first: usize,
        count: i32,
        second: usize,
        second_count: i32,
        change: Change,
    ) -> Answer;

    fn width(&self) -> Width {
        self.words().width
    }

    fn load(&self, word: usize) -> u64 {
        self.words().load(word)
    }

    fn store(&self, word: usize, value: u64) {
        self.words().store(word, value);
    }
}

/// Whether words are private or shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum World {
    Private,
    Shared,
}

impl World {
    /// FUTEX_PRIVATE_FLAG or 0; FUTEX2_PRIVATE is the same bit.
    pub(crate) fn flag(self) -> i32 {
        match self {
            World::Private => 128,
            World::Shared => 0,
        }
    }
}

/// The words of a program in memory.
#[derive(Clone)]
pub(crate) struct Words {
    memory: Arc<Mapping>,
    offsets: [usize; WORDS],
    pub(crate) width: Width,
}

/// Size of the memory from which words are chosen, in bytes.
pub(crate) const ROOM: usize = 1 << 16;

impl Words {
    pub(crate) fn at(memory: &Arc<Mapping>, offsets: [usize; WORDS], width: Width) -> Self {
        Self { memory: memory.clone(), offsets, width }
    }

    /// Side by side, or scattered; the place depends on `place`.
    pub(crate) fn laid_out(memory: &Arc<Mapping>, dense: bool, place: u16, width: Width) -> Self {
        let mut random = u64::from(place) + 1;
        let mut offsets = [0; WORDS];
        let mut chosen = 0;
        while chosen < WORDS {
            // Knuth's MMIX generator.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let offset = (random >> 33) as usize % (ROOM / APART) * APART;
            if dense {
                offsets = std::array::from_fn(|word| offset + word * width.bytes());
                break;
            }
            if !offsets[..chosen].contains(&offset) {
                offsets[chosen] = offset;
                chosen += 1;
            }
        }
        Self::at(memory, offsets, width)
    }

    pub(crate) fn address(&self, word: usize) -> *mut u8 {
        self.memory.at::<u64>(self.offsets[word]).cast()
    }

    pub(crate) fn load(&self, word: usize) -> u64 {
        let address = self.address(word);
        // SAFETY: mapped, aligned, and used only at this width while the program runs.
        unsafe {
            match self.width.0 {
                8 => AtomicU8::from_ptr(address).load(SeqCst).into(),
                16 => AtomicU16::from_ptr(address.cast()).load(SeqCst).into(),
                32 => AtomicU32::from_ptr(address.cast()).load(SeqCst).into(),
                _ => AtomicU64::from_ptr(address.cast()).load(SeqCst),
            }
        }
    }

    pub(crate) fn store(&self, word: usize, value: u64) {
        let address = self.address(word);
        // SAFETY: as above.
        unsafe {
            match self.width.0 {
                8 => AtomicU8::from_ptr(address).store(value as u8, SeqCst),
                16 => AtomicU16::from_ptr(address.cast()).store(value as u16, SeqCst),
                32 => AtomicU32::from_ptr(address.cast()).store(value as u32, SeqCst),
                _ => AtomicU64::from_ptr(address.cast()).store(value, SeqCst),
            }
        }
    }
}

/// All interfaces of the library at this width.
pub(crate) fn ours(words: &Words, world: World) -> Vec<Arc<dyn Side>> {
    let raw = |interface| -> Arc<dyn Side> {
        Arc::new(Raw { to: To::Ours, interface, world, words: words.clone() })
    };
    let typed = match words.width.0 {
        8 => Typed::<AtomicU8>::side,
        16 => Typed::<AtomicU16>::side,
        32 => Typed::<AtomicU32>::side,
        _ => Typed::<AtomicU64>::side,
    };
    let classic = (words.width.0 == 32).then(|| raw(Interface::Classic));
    let others = [raw(Interface::Futex2), typed(world, words.clone())];
    classic.into_iter().chain(others).collect()
}

/// A limit as an absolute time, with its clock.
pub(crate) fn absolute(limit: Limit) -> Option<(Clock, Timespec)> {
    let (clock, relative) = relative(limit)?;
    let id = match clock {
        Clock::Monotonic => ClockId::Monotonic,
        Clock::Realtime => ClockId::Realtime,
    };
    if let Limit::Past(_) = limit {
        return Some((clock, Timespec { tv_sec: 0, tv_nsec: 0 }));
    }
    let now = clock_gettime(id);
    let nanoseconds = now.tv_nsec + relative.tv_nsec;
    let time = Timespec {
        tv_sec: now.tv_sec + relative.tv_sec + nanoseconds / 1_000_000_000,
        tv_nsec: nanoseconds % 1_000_000_000,
    };
    Some((clock, time))
}

/// A limit as a time from now, with its clock.
pub(crate) fn relative(limit: Limit) -> Option<(Clock, Timespec)> {
    let (clock, tv_sec, tv_nsec) = match limit {
        Limit::Forever => return None,
        Limit::Past(clock) => (clock, 0, 0),
        Limit::Soon(clock) => (clock, 0, 500_000),
        Limit::Far(clock) => (clock, 3600, 0),
    };
    Some((clock, Timespec { tv_sec, tv_nsec }))
}

/// The address of a time; 0 for none.
pub(crate) fn pointer(time: Option<&Timespec>) -> usize {
    time.map_or(0, |time| (&raw const *time).expose_provenance())
}

/// A clock's ID.
pub(crate) fn clock_id(clock: Option<Clock>) -> i32 {
    match clock {
        Some(Clock::Realtime) => libc::CLOCK_REALTIME,
        _ => libc::CLOCK_MONOTONIC,
    }
}

/// A change in futex(2)'s packed form, at 32 bits.
pub(crate) fn packed(change: Change) -> u32 {
    let width = Width(32);
    let (shift, operand) = change.operand.at(width);
    let twelve = |value: u64| value as u32 & 0xfff;
    (shift | change.op) << 28
        | change.cmp << 24
        | twelve(operand) << 12
        | twelve(change.comparand.at(width))
}
