//! The table of slots in which readers of biased locks publish themselves: its lines, and the place
//! of each thread. `visible_readers.rs` describes a slot's bits and the protocol.

use super::word::{self, State};
use crate::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use crate::debugger::{Description, Field, fields};

/// A model has a smaller table, which is made again for each execution.
const LINES: usize = if cfg!(loom) { 2 } else { 512 };
pub(super) const SLOTS_IN_LINE: usize = if cfg!(loom) { 1 } else { 8 };

pub(super) const FREE: u64 = 0;
/// A thread sleeps on the slot.
pub(super) const AWAITED: u64 = 1;
const BIAS_SHIFT_IN_SLOT: u32 = 48;
const TAG_SHIFT: u32 = 61;
/// Locks above this address never become biased: a slot has no room for the bias and the tag.
const ADDRESS: u64 = (1 << BIAS_SHIFT_IN_SLOT) - 8;
const KEY: u64 = ADDRESS | (word::LAST_BIAS as u64) << BIAS_SHIFT_IN_SLOT;

/// Identifies a lock and its bias.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    #[inline]
    pub(super) fn new(lock: usize, state: State) -> Self {
        const SHIFT: u32 = BIAS_SHIFT_IN_SLOT - word::BIAS_SHIFT;
        Self(lock as u64 | (state.0 & word::BIAS) << SHIFT)
    }

    /// Whether a slot that holds this value names the lock and the bias.
    #[inline]
    pub(super) fn is_named_by(self, slot: u64) -> bool {
        slot & KEY == self.0
    }
}

/// The number of the bias that a slot with this value names.
pub(super) fn bias_of(slot: u64) -> u64 {
    (slot & KEY) >> BIAS_SHIFT_IN_SLOT
}

/// Whether a lock at this address can become biased.
#[inline]
pub(super) fn has_room_for(lock: usize) -> bool {
    lock as u64 & !ADDRESS == 0
}

/// The slots of one thread, or of several if there are many threads: a cache line.
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [AtomicU64; SLOTS_IN_LINE]);

pub(super) struct Table {
    lines: [Line; LINES],
    /// The number of threads that have used the table. That many lines are in use, and a scan looks
    /// only at those. 64 bits, because a wrap to zero would hide the lines from writers.
    pub(super) threads: AtomicU64,
}

#[cfg(not(loom))]
pub(super) static TABLE: Table = Table {
    lines: [const { Line([const { AtomicU64::new(FREE) }; SLOTS_IN_LINE]) }; LINES],
    threads: AtomicU64::new(0),
};

#[cfg(loom)]
crate::checker::lazy_static! {
    pub(super) static ref TABLE: Table = Table {
        lines: core::array::from_fn(|_| Line(core::array::from_fn(|_| AtomicU64::new(FREE)))),
        threads: AtomicU64::new(0),
    };
}

#[cfg(not(loom))]
#[used]
#[unsafe(link_section = ".waitword_debug")]
static DESCRIPTION: Description<Table, [Field; 3]> =
    Description::new("slots of readers", &TABLE, fields!("slots": Table { lines, threads }));

/// The slots that may be occupied. Call this after the fence: a thread gets its number before it
/// publishes.
#[inline]
pub(super) fn slots_in_use() -> impl Iterator<Item = &'static AtomicU64> {
    let table: &'static Table = &TABLE;
    let threads = table.threads.load(Ordering::Relaxed) as usize;
    let in_use = &table.lines[..threads.min(LINES)];
    in_use.iter().flat_map(|line| &line.0)
}

/// Where a thread publishes its holds.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) line: &'static Line,
    /// Distinguishes its marks from those of other threads that use the line. Lies above the
    /// address.
    tag: u64,
}

impl Place {
    /// The place of the thread with this number (0, 1, ...) as a nonzero word: bits 6 to 14 are the
    /// line, bits 61 to 63 the tag.
    fn word_of(number: u64) -> u64 {
        let (line, tag) = (number % LINES as u64, number / LINES as u64);
        1 | line << 6 | tag << TAG_SHIFT
    }

    #[inline]
    fn of_word(word: u64) -> Self {
        let table: &'static Table = &TABLE;
        Self {
            line: &table.lines[(word >> 6) as usize % LINES],
            tag: word >> TAG_SHIFT << TAG_SHIFT,
        }
    }

    /// The calling thread's place, if it has one. Its word is 0 if it has none yet.
    #[inline]
    pub(super) fn known() -> Option<Self> {
        match PLACE.get() {
            0 => None,
            known => Some(Self::of_word(known)),
        }
    }

    /// The calling thread's place.
    #[inline]
    pub(super) fn mine() -> Self {
        match PLACE.get() {
            0 => Self::first(),
            known => Self::of_word(known),
        }
    }

    #[cold]
    fn first() -> Self {
        #[cfg(not(loom))]
        DESCRIPTION.keep();
        let number = TABLE.threads.fetch_add(1, Ordering::Relaxed);
        let word = Self::word_of(number);
        PLACE.set(word);
        Self::of_word(word)
    }

    #[inline]
    pub(super) fn mark(self, key: Key) -> u64 {
        key.0 | self.tag
    }

    /// The preferred slot for this lock. Neighbouring locks, 8 bytes to some cache lines apart, get
    /// different ones.
    #[inline]
    pub(super) fn slot(self, key: Key) -> &'static AtomicU64 {
        // Bits 3 to 5, which are also the slot's offset in its line.
        let offset = (key.0 ^ (key.0 >> 3)) & 0x38;
        &self.line.0[(offset >> 3) as usize % SLOTS_IN_LINE]
    }
}

#[cfg(not(loom))]
use crate::sys::thread_word::PLACE;
#[cfg(loom)]
use modelled::PLACE;

/// A thread of a model is no thread of the kernel, and needs a thread-local of the checker's.
#[cfg(loom)]
mod modelled {
    use core::cell::Cell;

    crate::checker::thread_local! {
        static WORD: Cell<u64> = Cell::new(0);
    }

    pub(super) struct Place;
    pub(super) const PLACE: Place = Place;

    impl Place {
        pub(super) fn get(self) -> u64 {
            WORD.with(Cell::get)
        }

        pub(super) fn set(self, value: u64) {
            WORD.with(|word| word.set(value));
        }
    }
}
