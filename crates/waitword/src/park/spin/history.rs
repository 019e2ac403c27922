//! How earlier stays awake went ([`SpinRecord`], [`LooksRecord`]). It is remembered in each parker,
//! for sleeps, since threads return to the parker that they used last; and for each lock.
//!
//! Locks have no room for it. Their histories are in a table of 256 entries, indexed by a hash of
//! the lock's address. Two locks that share an entry are judged together.
//!
//! All of it is a guess. Every access is Relaxed and orders nothing, and a lost update does no
//! harm. A forked child inherits its parent's history, or starts with a new one.

use super::policy::{LooksRecord, SpinRecord};
use crate::atomic::{process_static, smaller_in_models};
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Both fields are stored as the difference from the initial record. So all zeros, as in newly
/// mapped memory, is a new history.
pub(crate) struct History {
    /// A [`SpinRecord`]: bits 0-7 `worth_while`, 8-23 `took`, 24-31 `short`.
    stays: AtomicU32,
    /// A [`LooksRecord`]: bits 0-7 `ended`, 8-15 `short`.
    looks: AtomicU16,
}

const fn pack_looks(record: LooksRecord) -> u16 {
    (record.short as u16) << 8 | record.ended as u16
}

const NEW_LOOKS: u16 = pack_looks(LooksRecord::NEW);

const fn pack(record: SpinRecord) -> u32 {
    (record.short as u32) << 24 | (record.took as u32) << 8 | record.worth_while as u32
}

const NEW: u32 = pack(SpinRecord::NEW);

impl History {
    pub(crate) const fn new() -> Self {
        Self { stays: AtomicU32::new(0), looks: AtomicU16::new(0) }
    }

    fn record(&self) -> SpinRecord {
        let bits = self.stays.load(Relaxed) ^ NEW;
        SpinRecord { worth_while: bits as u8, took: (bits >> 8) as u16, short: (bits >> 24) as u8 }
    }

    fn note(&self, before: SpinRecord, after: SpinRecord) {
        if before != after {
            self.stays.store(pack(after) ^ NEW, Relaxed);
        }
    }

    /// The time that the next waiter may stay awake, in nanoseconds: `longest` at most. With
    /// `adapts`, less if recent stays were in vain.
    pub(crate) fn budget(&self, longest: u64, adapts: bool) -> u64 {
        let record = self.record();
        if !adapts {
            return record.in_full(longest);
        }
        let (budget, next) = record.budget(longest);
        self.note(record, next);
        budget
    }

    /// Whether recent stays were seldom worthwhile.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.record().is_in_vain()
    }

    /// Notes how a stay went.
    pub(crate) fn stayed(&self, spent: u64, was_worth_while: bool) {
        let record = self.record();
        self.note(record, record.with(spent, was_worth_while));
    }

    fn looks(&self) -> LooksRecord {
        let bits = self.looks.load(Relaxed) ^ NEW_LOOKS;
        LooksRecord { ended: bits as u8, short: (bits >> 8) as u8 }
    }

    fn note_looks(&self, before: LooksRecord, after: LooksRecord) {
        if before != after {
            self.looks.store(pack_looks(after) ^ NEW_LOOKS, Relaxed);
        }
    }

    /// Whether a wait that the first looks did not end continues with long looks.
    pub(crate) fn looks_long(&self) -> bool {
        let record = self.looks();
        let (is_long, next) = record.looks_long();
        self.note_looks(record, next);
        is_long
    }

    /// Notes whether long looks have ended a wait.
    pub(crate) fn looked_long(&self, has_ended: bool) {
        let record = self.looks();
        self.note_looks(record, record.with(has_ended));
    }
}

/// 16 KiB. If threads wait for more locks than this at the same time, locks share entries.
const ENTRIES: usize = 256;
/// In a model all locks share one: addresses differ from one execution to the next.
const ENTRIES_HERE: usize = smaller_in_models(ENTRIES, 1);

/// How long a wait for a condvar counts, in nanoseconds: longer than a thread may wait for a
/// CPU.
const WAITED_LATELY: u64 = 100_000_000;

/// The history of a lock, on a line of its own.
#[repr(align(64))]
pub(crate) struct LockHistory {
    pub(crate) stays: History,
    /// When a parked waiter was last given its turn, in nanoseconds of the monotonic clock.
    rotated: AtomicU64,
    /// When turns were last counted.
    sampled: AtomicU64,
    /// The result of that count, in an encoding that its caller defines.
    counted: AtomicU64,
    /// When a thread last released the lock to wait for a condvar while other threads wanted
    /// the lock.
    waited: AtomicU64,
}

process_static! {
    static ALL: [LockHistory; ENTRIES_HERE] =
        [const { LockHistory::new() }; ENTRIES_HERE];
}

impl LockHistory {
    const fn new() -> Self {
        Self {
            stays: History::new(),
            rotated: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    /// The history of the lock at this address.
    pub(crate) fn at(address: usize) -> &'static Self {
        // Fibonacci hashing: the upper bits depend on the whole address.
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &ALL[(hash >> (u64::BITS - ENTRIES.ilog2())) as usize % ENTRIES_HERE]
    }

    /// Whether a parked waiter's turn is due: at least `every` nanoseconds have passed since
    /// the last one. If so, notes that it has its turn `now`.
    pub(crate) fn rotates(&self, now: u64, every: u64) -> bool {
        let is_time = now.wrapping_sub(self.rotated.load(Relaxed)) >= every;
        if is_time {
            self.rotated.store(now, Relaxed);
        }
        is_time
    }

    /// Whether turns were last counted at least `every` nanoseconds ago.
    pub(crate) fn is_sample_due(&self, now: u64, every: u64) -> bool {
        now.wrapping_sub(self.sampled.load(Relaxed)) >= every
    }

    /// Notes that a thread releases the lock to wait for a condvar while other threads want the
    /// lock.
    pub(crate) fn note_wait(&self, now: u64) {
        // Seldom, so as not to take the line from other threads.
        if !self.has_waited(|| now, WAITED_LATELY / 16) {
            self.waited.store(now, Relaxed);
        }
    }

    /// Whether a thread did so lately. Reads the clock only if one ever did.
    #[inline]
    pub(crate) fn has_waited_lately(&self, now: impl FnOnce() -> u64) -> bool {
        self.has_waited(now, WAITED_LATELY)
    }

    #[inline]
    fn has_waited(&self, now: impl FnOnce() -> u64, within: u64) -> bool {
        // Saturating: another thread's clock may be a little ahead.
        let waited = self.waited.load(Relaxed);
        waited != 0 && now().saturating_sub(waited) < within
    }

    /// The result of the last count of turns; 0 if there was none.
    pub(crate) fn counted(&self) -> u64 {
        self.counted.load(Relaxed)
    }

    /// Notes the result of a new count.
    pub(crate) fn note_counted(&self, now: u64, counted: u64) {
        self.sampled.store(now, Relaxed);
        if self.counted() != counted {
            self.counted.store(counted, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::park::spin::LONGEST_STAY;

    #[test]
    fn a_record_survives_a_round_trip() {
        let record = SpinRecord { worth_while: 0xab, took: 0x1234, short: 7 };
        let history = History::new();
        assert_eq!(history.record(), SpinRecord::NEW);
        history.note(SpinRecord::NEW, record);
        assert_eq!(history.record(), record);
    }

    #[test]
    fn a_turn_is_due_every_so_often() {
        let history = LockHistory::new();
        assert!(history.rotates(500, 500));
        assert!(!history.rotates(999, 500));
        assert!(history.rotates(1000, 500));
    }

    #[test]
    fn turns_are_counted_every_so_often() {
        let history = LockHistory::new();
        assert!(history.is_sample_due(500, 500));
        history.note_counted(500, 20);
        assert!(!history.is_sample_due(999, 500));
        assert!(history.is_sample_due(1000, 500));
        assert_eq!(history.counted(), 20);
    }

    #[test]
    fn a_wait_for_a_condvar_counts_for_a_while() {
        let history = LockHistory::new();
        assert!(!history.has_waited_lately(|| WAITED_LATELY));
        history.note_wait(1000);
        // Already known: not stored again.
        history.note_wait(2000);
        assert!(history.has_waited_lately(|| 1000 + WAITED_LATELY - 1));
        assert!(!history.has_waited_lately(|| 1000 + WAITED_LATELY));
        // By another CPU's clock.
        assert!(history.has_waited_lately(|| 900));
    }

    #[test]
    fn only_a_lock_that_adapts_lowers_its_budget_after_stays_in_vain() {
        let history = History::new();
        let before = history.budget(LONGEST_STAY, true);
        (0..20).for_each(|_| history.stayed(0, false));
        assert_eq!(history.budget(LONGEST_STAY, false), before);
        assert!(history.budget(LONGEST_STAY, true) < before);
    }

    #[test]
    fn no_budget_exceeds_the_limit() {
        let history = History::new();
        assert_eq!(history.budget(100, true), 100);
        (0..20).for_each(|_| history.stayed(0, false));
        assert!((0..32).all(|_| history.budget(100, true) == 100));
    }
}
