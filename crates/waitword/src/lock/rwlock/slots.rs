//! Visible readers: a process-wide table of slots, for the readers of biased locks.
//!
//! A reader publishes the lock that it holds in a slot. Each thread has a cache line of slots of
//! its own, so readers of one lock do not fetch the lock's cache line from each other. (Dice and
//! Kogan, "BRAVO", USENIX ATC 2019; the deferred readers of folly's SharedMutex.)
//!
//! | bits of a slot | meaning |
//! |------|---------|
//! | all 0 | free |
//! | 3–47, 48–60 | [`Key`]: the address of a lock and the number of its bias (see below) |
//! | 61–63 | the thread's tag |
//! | 0 | `AWAITED`: a claimant sleeps on the slot until it changes |
//!
//! The thread holds the lock with that key, or is about to find out whether it may. The line's
//! index and the tag identify the thread (up to 2^12 threads; beyond that see invariant 3). The
//! *claimant* is the thread that holds `CLAIMED` and revokes the bias.
//!
//! # Why an address is not enough
//!
//! A read guard may be forgotten. The lock may then be moved or dropped, while the slot stays
//! occupied. A lock that is later placed at that address must not wait for the slot. So each time a
//! lock becomes biased, it takes a number that no slot of the table holds ([`free_number`]). It
//! keeps the number in its word until a claimant has seen that its slots are empty, and takes the
//! number along when it is moved.
//!
//! One lock is mistaken for another only if all of this happens: both took the same number, 8,191
//! biases apart; the first is still biased; a guard of the first was forgotten; and the second was
//! moved to the first one's place. Then the second waits for that slot. It never lets a thread in
//! wrongly.
//!
//! # Publishing against revoking
//!
//! ```text
//!   reader                                  claimant (there is at most one: it holds CLAIMED)
//!   ──────                                  ────────
//!   slot: 0 → key         (CAS)             word: clear FAST
//!   fence                                   fence
//!   load word: FAST, same bias? holds it    load every slot: this key? wait until it is not
//!     no: slot → 0, use the word            word: clear SLOTS and BIAS
//! ```
//!
//! One of the two fences comes first. If it is the reader's, the claimant sees the slot and waits
//! for it. If it is the claimant's, the reader sees that `FAST` is cleared.
//!
//! `FAST` may have been set again by the time the reader loads the word. Under the same bias, the
//! next claimant that clears it sees the slot. Under another bias, no claimant would recognize the
//! slot as this lock's, so the reader withdraws. No thread sets `FAST` while `CLAIMED` is held.
//!
//! # Leaving
//!
//! A reader that leaves must wake a claimant that sleeps until then. It must not look into the lock
//! to find out whether there is one: the lock may have been freed. So the claimant announces itself
//! *in the slot*, with a CAS that sets `AWAITED`, and sleeps on the slot. Slots lie in this table,
//! which is never freed:
//!
//! ```text
//!   reader                                  claimant
//!   ──────                                  ────────
//!   CAS(slot: lock → 0)                     CAS(slot: lock → lock+AWAITED)
//!     fails, AWAITED: CAS(slot → 0),          fails: look again
//!            wake the sleeper on the slot   wait while slot == lock+AWAITED
//! ```
//!
//! # Invariants
//!
//! 1. Every change of a slot is a read-modify-write. So no `AWAITED` is lost, and no hold is given
//!    back twice.
//! 2. A hold in a slot and a hold in the word are equivalent, and it does not matter which of the
//!    lock's holds a thread gives back. The thread first looks for a slot of its own. If there is
//!    none, and the word has no reader either, it takes the slot of any thread ([`retract_any`]): a
//!    guard was given back by another thread than the one that acquired it. That slot may belong to
//!    a reader that is about to check whether it may enter. If that reader may not, it gives back
//!    another hold in place of the slot.
//! 3. So if two threads have the same tag and line, each may clear the other's slot. The number of
//!    holds stays right, and so does the lock.
//! 4. `SLOTS` is set in the word whenever a slot may hold the lock. Without `SLOTS`, no thread
//!    looks here.

use super::word::{self, State};
use crate::atomic::{AtomicU64, Ordering, full_fence};
use crate::futex::private::{wait, wake};
use crate::lock::key_of;
use crate::park::spin::Spin;
use crate::private::waiter_table;
use crate::sys::clock::Deadline;

const LINES: usize = if cfg!(loom) { 2 } else { 512 };
const SLOTS_IN_LINE: usize = if cfg!(loom) { 1 } else { 8 };

const FREE: u64 = 0;
/// A thread sleeps on the slot.
const AWAITED: u64 = 1;
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
}

/// The slots of one thread, or of several if there are many threads: a cache line.
#[repr(C, align(64))]
struct Line([AtomicU64; SLOTS_IN_LINE]);

struct Table {
    lines: [Line; LINES],
    /// The number of threads that have used the table. As many lines are in use, and a scan looks
    /// at no more. 64 bits, because a wrap to zero would hide the lines from writers.
    threads: AtomicU64,
}

#[cfg(not(loom))]
static TABLE: Table = Table {
    lines: [const { Line([const { AtomicU64::new(FREE) }; SLOTS_IN_LINE]) }; LINES],
    threads: AtomicU64::new(0),
};

#[cfg(loom)]
crate::checker::lazy_static! {
    static ref TABLE: Table = Table {
        lines: core::array::from_fn(|_| Line(core::array::from_fn(|_| AtomicU64::new(FREE)))),
        threads: AtomicU64::new(0),
    };
}

impl Table {
    /// The lines that may have occupied slots. Call this after the fence: a thread gets its number
    /// before it publishes.
    fn in_use(&self) -> &[Line] {
        let threads = self.threads.load(Ordering::Relaxed) as usize;
        &self.lines[..threads.min(LINES)]
    }
}

/// Where a thread publishes its holds.
#[derive(Clone, Copy)]
struct Place {
    line: &'static Line,
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
        Self {
            line: line((word >> 6) as usize % LINES),
            tag: word >> TAG_SHIFT << TAG_SHIFT,
        }
    }

    /// The calling thread's place.
    #[inline]
    fn mine() -> Self {
        thread::place()
    }

    #[inline]
    fn mark(self, key: Key) -> u64 {
        key.0 | self.tag
    }

    /// The preferred slot for this lock. Neighbouring locks, 8 bytes to some cache lines apart, get
    /// different ones.
    #[inline]
    fn slot(self, key: Key) -> &'static AtomicU64 {
        // Bits 3 to 5, which are also the slot's offset in its line.
        let offset = (key.0 ^ (key.0 >> 3)) & 0x38;
        &self.line.0[(offset >> 3) as usize % SLOTS_IN_LINE]
    }
}

#[cfg(not(loom))]
mod thread {
    use super::{Ordering, Place, TABLE};
    use crate::sys::thread_word::PLACE;

    /// The place from the thread-local word, which is 0 if the thread has none yet.
    #[inline]
    pub(super) fn place() -> Place {
        match PLACE.get() {
            0 => first(),
            known => Place::of_word(known),
        }
    }

    /// The place, if the thread has one.
    #[inline]
    pub(super) fn known_place() -> Option<Place> {
        match PLACE.get() {
            0 => None,
            known => Some(Place::of_word(known)),
        }
    }

    #[cold]
    fn first() -> Place {
        let number = TABLE.threads.fetch_add(1, Ordering::Relaxed);
        let word = Place::word_of(number);
        PLACE.set(word);
        Place::of_word(word)
    }
}

#[cfg(loom)]
mod thread {
    use super::{Ordering, Place, TABLE};
    use core::cell::Cell;

    crate::checker::thread_local! {
        static PLACE: Cell<Option<Place>> = Cell::new(None);
    }

    pub(super) fn known_place() -> Option<Place> {
        Some(place())
    }

    pub(super) fn place() -> Place {
        PLACE.with(|place| {
            if place.get().is_none() {
                let number = TABLE.threads.fetch_add(1, Ordering::Relaxed);
                place.set(Some(Place::of_word(Place::word_of(number))));
            }
            place.get().unwrap()
        })
    }
}

#[inline]
fn line(index: usize) -> &'static Line {
    #[cfg(not(loom))]
    return &TABLE.lines[index];
    #[cfg(loom)]
    return {
        let table: &'static Table = &TABLE;
        &table.lines[index]
    };
}

/// Whether a lock at this address can become biased.
#[inline]
pub(super) fn has_room_for(lock: usize) -> bool {
    lock as u64 & !ADDRESS == 0
}

#[inline]
fn stands_for(slot: u64, key: Key) -> bool {
    slot & KEY == key.0
}

/// Returns a number for a new bias that no slot holds, or `None` if the next few numbers are all in
/// slots.
#[cold]
pub(super) fn free_number() -> Option<u32> {
    /// Each try scans the table. A number is in a slot only while a lock with that number is held
    /// for reading, or after its guard was forgotten.
    const TRIES: usize = 8;
    static LAST: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    (0..TRIES)
        .map(|_| 1 + LAST.fetch_add(1, core::sync::atomic::Ordering::Relaxed) % word::LAST_BIAS)
        .find(|&number| {
            let has_it = |slot: &AtomicU64| {
                // Relaxed: the search is for old slots. A slot whose lock takes this number only
                // now may be missed.
                let seen = slot.load(Ordering::Relaxed) & KEY;
                seen >> BIAS_SHIFT_IN_SLOT == u64::from(number)
            };
            !TABLE.in_use().iter().flat_map(|line| &line.0).any(has_it)
        })
}

/// A full fence after a read-modify-write.
#[inline(always)]
fn fence_after_rmw() {
    // On x86-64 the locked instruction is a full fence already. Only the compiler needs one.
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(not(loom), target_arch = "x86_64")))]
    full_fence();
}

/// A slot in which the calling thread has published a lock.
#[must_use]
pub(super) struct Published {
    slot: &'static AtomicU64,
    mark: u64,
}

impl Published {
    /// Withdraws, because the thread may not hold the lock this way. Returns false if another
    /// thread has given this back as its own hold (invariant 2).
    #[inline]
    pub(super) fn retract(self) -> bool {
        clear(self.slot, self.mark)
    }
}

/// Publishes that the calling thread holds the lock. The thread holds it only if it then still
/// finds `FAST` in the word, by an Acquire load, which pairs with the release of the last writer.
/// Returns `None` if no slot is free.
#[inline]
pub(super) fn publish(key: Key) -> Option<Published> {
    let place = Place::mine();
    let (slot, mark) = (place.slot(key), place.mark(key));
    let slot = if put(slot, mark) {
        slot
    } else {
        publish_elsewhere(place.line, mark)?
    };
    fence_after_rmw();
    Some(Published { slot, mark })
}

/// [`publish`] for a thread that has published before, trying only its preferred slot.
#[inline]
pub(super) fn publish_at_once(key: Key) -> Option<Published> {
    let place = thread::known_place()?;
    let (slot, mark) = (place.slot(key), place.mark(key));
    if !put(slot, mark) {
        return None;
    }
    fence_after_rmw();
    Some(Published { slot, mark })
}

#[inline]
fn put(slot: &AtomicU64, mark: u64) -> bool {
    // Acquire: the holder does not read the data before it has published itself. (The fence that
    // follows ensures this too.)
    slot.compare_exchange(FREE, mark, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}

#[cold]
fn publish_elsewhere(line: &'static Line, mark: u64) -> Option<&'static AtomicU64> {
    line.0.iter().find(|slot| put(slot, mark))
}

/// Gives back a hold of the calling thread that is in a slot. Returns false if there is none.
#[inline]
pub(super) fn retract(key: Key) -> bool {
    let place = Place::mine();
    let mark = place.mark(key);
    clear(place.slot(key), mark) || retract_elsewhere(place.line, mark)
}

/// [`retract`] from the preferred slot only, if no claimant sleeps on it. Returns false if nothing
/// has been done.
#[inline]
pub(super) fn retract_at_once(key: Key) -> bool {
    // Release: as in `clear`.
    thread::known_place().is_some_and(|place| {
        let mark = place.mark(key);
        place
            .slot(key)
            .compare_exchange(mark, FREE, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    })
}

#[cold]
fn retract_elsewhere(line: &'static Line, mark: u64) -> bool {
    let is_mine = |slot: &AtomicU64| slot.load(Ordering::Relaxed) & !AWAITED == mark;
    line.0.iter().any(|slot| is_mine(slot) && clear(slot, mark))
}

/// Gives back any thread's hold that is in a slot. Returns false if there is none.
#[cold]
pub(super) fn retract_any(key: Key) -> bool {
    let mut all = TABLE.in_use().iter().flat_map(|line| &line.0);
    all.any(|slot| {
        let seen = slot.load(Ordering::Relaxed);
        stands_for(seen, key) && clear(slot, seen & !AWAITED)
    })
}

/// Whether the calling thread holds the lock through a slot.
#[cold]
pub(super) fn holds(key: Key) -> bool {
    let place = Place::mine();
    let mark = place.mark(key);
    let is_mine = |slot: &AtomicU64| slot.load(Ordering::Relaxed) & !AWAITED == mark;
    place.line.0.iter().any(is_mine)
}

/// Empties a slot that holds `mark`, with or without `AWAITED`. Returns false if another thread has
/// done so already (invariant 3).
///
/// Nothing of the lock's memory is touched after this: the thread that leaves may have been the
/// last holder.
#[inline]
fn clear(slot: &'static AtomicU64, mark: u64) -> bool {
    // Release: what the holder did comes before.
    match slot.compare_exchange(mark, FREE, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => true,
        Err(seen) if seen == mark | AWAITED => clear_awaited(slot, seen),
        Err(_) => false,
    }
}

#[cold]
fn clear_awaited(slot: &'static AtomicU64, seen: u64) -> bool {
    let cleared = slot.compare_exchange(seen, FREE, Ordering::Release, Ordering::Relaxed);
    if cleared.is_ok() {
        wake(waiter_table(), key_of(slot), usize::MAX, u64::MAX);
    }
    cleared.is_ok()
}

/// Whether any slot holds the lock now. Exact for a claimant that has cleared `FAST` and then
/// executed a full fence.
pub(super) fn any(key: Key) -> bool {
    let mut all = TABLE.in_use().iter().flat_map(|line| &line.0);
    // Acquire: what the last holder did comes before what the caller does if it finds no holder.
    all.any(|slot| stands_for(slot.load(Ordering::Acquire), key))
}

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StillThere;

/// Waits until no slot holds the lock. The caller holds `CLAIMED` and has cleared `FAST`.
///
/// # Errors
/// The deadline has passed, and a slot still holds the lock.
pub(super) fn wait_until_empty(key: Key, deadline: Option<&Deadline>) -> Result<(), StillThere> {
    full_fence();
    for slot in TABLE.in_use().iter().flat_map(|line| &line.0) {
        // Acquire: see `any`. If the slot has been reused since, the value comes from a
        // read-modify-write after the clearing one.
        if stands_for(slot.load(Ordering::Acquire), key) {
            wait_for(slot, key, deadline)?;
        }
    }
    Ok(())
}

#[cold]
fn wait_for(slot: &AtomicU64, key: Key, deadline: Option<&Deadline>) -> Result<(), StillThere> {
    let mut spin = Spin::at(core::ptr::from_ref(slot).addr());
    loop {
        let seen = slot.load(Ordering::Acquire);
        if !stands_for(seen, key) {
            return Ok(());
        }
        if spin.again() {
            continue;
        }
        let awaited = seen | AWAITED;
        // Relaxed: it publishes nothing. The wait has its own fence.
        let announced = seen == awaited
            || slot
                .compare_exchange(seen, awaited, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if announced {
            let as_expected = || slot.load(Ordering::Relaxed) == awaited;
            let waited = wait(
                waiter_table(),
                key_of(slot),
                as_expected,
                u64::MAX,
                deadline,
            );
            if waited == Err(crate::error::Error::TimedOut) {
                // The mark stays. It costs the thread that clears the slot a look into the waiter
                // table.
                return match stands_for(slot.load(Ordering::Acquire), key) {
                    true => Err(StillThere),
                    false => Ok(()),
                };
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// No lock lies here.
    const NOWHERE: usize = 0x7fff_0000_1238;

    fn key(lock: usize) -> Key {
        Key::new(lock, State(7 << word::BIAS_SHIFT))
    }

    #[test]
    fn what_a_thread_writes_down_it_finds_and_others_see() {
        assert!(!holds(key(NOWHERE)) && !any(key(NOWHERE)) && !retract(key(NOWHERE)));
        // Twice: two slots.
        let _ = (
            publish(key(NOWHERE)).unwrap(),
            publish(key(NOWHERE)).unwrap(),
        );
        assert!(holds(key(NOWHERE)) && any(key(NOWHERE)));
        std::thread::spawn(|| {
            assert!(!holds(key(NOWHERE)) && any(key(NOWHERE)) && !retract(key(NOWHERE)));
            assert!(retract_any(key(NOWHERE)));
        })
        .join()
        .unwrap();
        assert!(holds(key(NOWHERE)));
        // The other thread gave back one of the two. It does not matter which.
        assert!(retract(key(NOWHERE)) && !retract(key(NOWHERE)) && !any(key(NOWHERE)));
    }

    #[test]
    fn a_full_line_has_no_room() {
        let locks: Vec<usize> = (0..SLOTS_IN_LINE)
            .map(|n| 0x7ffe_0000_0000 + 8 * n)
            .collect();
        for &lock in &locks {
            let _ = publish(key(lock)).unwrap();
        }
        assert!(publish(key(NOWHERE + 8)).is_none());
        assert!(locks.into_iter().all(|lock| retract(key(lock))));
    }

    /// A server with a thread for each request gets there in weeks.
    #[test]
    fn whoever_comes_after_two_to_the_32_threads_is_seen() {
        const LOCK: usize = NOWHERE + 0x2000;
        TABLE
            .threads
            .fetch_max(u64::from(u32::MAX) - 1, Ordering::Relaxed);
        for _ in 0..4 {
            let reads = || {
                let _ = publish(key(LOCK)).unwrap();
                (any(key(LOCK)), retract(key(LOCK)))
            };
            assert_eq!(std::thread::spawn(reads).join().unwrap(), (true, true));
        }
    }

    #[test]
    fn whoever_waits_for_a_slot_is_woken_when_it_is_cleared() {
        use crate::sys::clock::Clock;
        const LOCK: usize = NOWHERE + 0x1000;
        let _ = publish(key(LOCK)).unwrap();
        let past = Deadline::at(Clock::Monotonic, core::time::Duration::ZERO);
        assert_eq!(wait_until_empty(key(LOCK), Some(&past)), Err(StillThere));
        let (sender, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(wait_until_empty(key(LOCK), None)));
        assert!(
            done.recv_timeout(core::time::Duration::from_millis(20))
                .is_err()
        );
        assert!(retract(key(LOCK)));
        let minute = core::time::Duration::from_secs(60);
        assert_eq!(done.recv_timeout(minute), Ok(Ok(())));
    }
}
