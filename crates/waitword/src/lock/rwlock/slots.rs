//! Fast readers: a table of slots, one for the whole process, in which readers write down the lock that they hold, each
//! thread in a cache line of its own, so that readers of one lock do not fetch its line from each other. (Dice and Kogan,
//! "BRAVO", USENIX ATC 2019; the deferred readers of folly's SharedMutex.)
//!
//! | bits | meaning |
//! |------|---------|
//! | all 0 | free |
//! | 3–47, 48–60 | the lock's address and the number of its bias: the [`Key`] of a lock that this thread holds, or is about to find out whether it may |
//! | 61–63 | the thread's tag |
//! | 0 | `AWAITED`: a claimant sleeps on the slot until it changes |
//!
//! The tag and the number of the line tell threads apart (until there were 2^12 threads, see
//! invariant 3).
//!
//! # Why an address is not enough
//!
//! A read guard may be forgotten; the lock may then be moved or dropped, and its slot stays. A lock
//! that comes to lie at that address must not wait for it. So each time that a lock becomes fast it
//! takes a number, keeps it in its word until a claimant has seen that its slots are empty, and
//! takes it along when it is moved. No slot of the table holds the number when it is taken
//! ([`free_number`]). A lock is mistaken for another only if both took the same number, 8,191
//! biases apart, the first still fast; a guard of the first was forgotten; and the second was moved
//! to the first one's place. It then waits; it never lets a thread in.
//!
//! # Publishing against driving out
//!
//! ```text
//!   reader                                  claimant (it holds CLAIMED: there is one at most)
//!   ──────                                  ────────
//!   slot: 0 → key         (CAS)             word: FAST cleared
//!   fence                                   fence
//!   r[word]: FAST, same bias? holds it      r[every slot]: this key? wait until it is not
//!     no: slot → 0, and by the word         word: SLOTS and the bias cleared
//! ```
//!
//! One of the two fences is first. If it is the reader's, the claimant sees the slot and waits for it. If it is the claimant's,
//! the reader sees that FAST is gone. If FAST has been set anew by the time the reader looks, under
//! the same bias, a claimant that clears it after that sees the slot; under another one, no
//! claimant would know the slot for this lock's, and the reader withdraws. While the claim is held
//! no thread sets FAST.
//!
//! # Leaving
//!
//! A reader that leaves must wake a claimant who sleeps until then, and must not look into the lock to find out: the
//! lock may be gone. So the claimant says it *in the slot*, by a CAS that sets `AWAITED`, and
//! sleeps on the slot. A slot lies in this table, which is never freed:
//!
//! ```text
//!   reader                                  claimant
//!   ──────                                  ────────
//!   CAS(slot: lock → 0)                     CAS(slot: lock → lock+AWAITED)
//!     fails: AWAITED: swap(slot, 0),          fails: look again
//!            wake whoever sleeps on the slot  wait while slot == lock+AWAITED
//! ```
//!
//! # Invariants
//!
//! 1. Every change of a slot is a read-modify-write, so no `AWAITED` is lost and no hold is given back twice.
//! 2. A hold by a slot and a hold by the word are worth the same, and it does not matter which of its holds a thread gives
//!    back. It looks for a slot of its own first; if the lock then has no reader by the word, for anybody's
//!    ([`retract_any`]): a guard that was given back by another thread than took it. That slot may be of a reader that is about to
//!    look whether it may come in; if it may not, it gives back a hold in place of the slot.
//! 3. So if two threads have the same tag and line, each may clear the other's slot: the number of holds stays right, and with it
//!    the lock.
//! 4. `SLOTS` is set in the word whenever a slot may stand for the lock, so without it nobody looks here.

use super::state::{self, State};
use crate::atomic::{AtomicU64, Ordering, full_fence};
use crate::futex::private::{wait, wake};
use crate::lock::key_of;
use crate::park::spin::Spin;
use crate::private::waiter_table;
use crate::sys::clock::Deadline;

const LINES: usize = if cfg!(loom) { 2 } else { 512 };
const SLOTS_IN_LINE: usize = if cfg!(loom) { 1 } else { 8 };

const FREE: u64 = 0;
/// Somebody sleeps on the slot.
const AWAITED: u64 = 1;
const BIAS_SHIFT_IN_SLOT: u32 = 48;
const TAG_SHIFT: u32 = 61;
/// Locks above this address are never fast: there is no room for the bias and the tag.
const ADDRESS: u64 = (1 << BIAS_SHIFT_IN_SLOT) - 8;
const KEY: u64 = ADDRESS | (state::LAST_BIAS as u64) << BIAS_SHIFT_IN_SLOT;

/// Which lock, under which bias.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    #[inline]
    pub(super) fn new(lock: usize, state: State) -> Self {
        const SHIFT: u32 = BIAS_SHIFT_IN_SLOT - state::BIAS_SHIFT;
        Self(lock as u64 | (state.0 & state::BIAS) << SHIFT)
    }
}

/// The slots of one thread (or of some, when there are many): a cache line.
#[repr(C, align(64))]
struct Line([AtomicU64; SLOTS_IN_LINE]);

struct Table {
    lines: [Line; LINES],
    /// Threads that have a number so far: as many lines are in use, and no more are looked at. 64 bits: from zero again, it would
    /// hide the lines from whoever wants to write.
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
    /// The lines in which a slot may stand. Asked behind the fence: a thread gets its number before it publishes.
    fn in_use(&self) -> &[Line] {
        let threads = self.threads.load(Ordering::Relaxed) as usize;
        &self.lines[..threads.min(LINES)]
    }
}

/// Where a thread writes down what it holds.
#[derive(Clone, Copy)]
struct Place {
    line: &'static Line,
    /// What tells its marks from those of others who use the line: above the address.
    tag: u64,
}

impl Place {
    /// Of the thread with this number: 0, 1, ... As a word, which is not 0: bits 6 to 14 the line,
    /// 61 to 63 the tag.
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

    /// The calling thread's.
    #[inline]
    fn mine() -> Self {
        thread::place()
    }

    #[inline]
    fn mark(self, key: Key) -> u64 {
        key.0 | self.tag
    }

    /// The slot for this lock, if it is free: neighbouring locks, 8 bytes to some lines apart, are to have different ones.
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

    /// The thread's word says where; 0 if it has no place yet.
    #[inline]
    pub(super) fn place() -> Place {
        match PLACE.get() {
            0 => first(),
            known => Place::of_word(known),
        }
    }

    /// The same, if it has one.
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

/// Whether a lock at this address can have fast readers.
#[inline]
pub(super) fn has_room_for(lock: usize) -> bool {
    lock as u64 & !ADDRESS == 0
}

#[inline]
fn stands_for(slot: u64, key: Key) -> bool {
    slot & KEY == key.0
}

/// A number for a new bias that stands in no slot; `None` if the next few numbers all do.
#[cold]
pub(super) fn free_number() -> Option<u32> {
    /// Each try takes a look at the table. A number is in a slot only while a lock with it is read,
    /// or was forgotten.
    const TRIES: usize = 8;
    static LAST: core::sync::atomic::AtomicU32 = core::sync::atomic::AtomicU32::new(0);
    (0..TRIES)
        .map(|_| 1 + LAST.fetch_add(1, core::sync::atomic::Ordering::Relaxed) % state::LAST_BIAS)
        .find(|&number| {
            let has_it = |slot: &AtomicU64| {
                // Relaxed: a slot of a lock that has this number by now is not what is looked for.
                let seen = slot.load(Ordering::Relaxed) & KEY;
                seen >> BIAS_SHIFT_IN_SLOT == u64::from(number)
            };
            !TABLE.in_use().iter().flat_map(|line| &line.0).any(has_it)
        })
}

/// A full barrier behind a read-modify-write.
#[inline(always)]
fn fence_after_rmw() {
    // On x86-64 the locked instruction was one; only the compiler must be told.
    #[cfg(all(not(loom), target_arch = "x86_64"))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(not(all(not(loom), target_arch = "x86_64")))]
    full_fence();
}

/// A slot in which the calling thread has written down a lock.
#[must_use]
pub(super) struct Published {
    slot: &'static AtomicU64,
    mark: u64,
}

impl Published {
    /// It may not have the lock this way after all. False if another thread has taken this for its own hold (invariant 2).
    #[inline]
    pub(super) fn retract(self) -> bool {
        clear(self.slot, self.mark)
    }
}

/// Writes down that the calling thread holds the lock. It does so only if it then finds `FAST` in the word still, by
/// an Acquire load, which pairs with the release of the last writer. `None`: no slot is free.
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

/// [`publish`] by the first slot only, of a thread that has published before.
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
    // Acquire: what the holder reads is not read before it is written down. (On the way the fence makes that sure too.)
    slot.compare_exchange(FREE, mark, Ordering::Acquire, Ordering::Relaxed)
        .is_ok()
}

#[cold]
fn publish_elsewhere(line: &'static Line, mark: u64) -> Option<&'static AtomicU64> {
    line.0.iter().find(|slot| put(slot, mark))
}

/// Gives back a hold of the calling thread that stands in a slot; false if there is none.
#[inline]
pub(super) fn retract(key: Key) -> bool {
    let place = Place::mine();
    let mark = place.mark(key);
    clear(place.slot(key), mark) || retract_elsewhere(place.line, mark)
}

/// [`retract`] from the first slot only, if no claimant sleeps on it. False: nothing has been done.
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

/// Gives back whoever's hold stands in a slot; false if there is none.
#[cold]
pub(super) fn retract_any(key: Key) -> bool {
    let mut all = TABLE.in_use().iter().flat_map(|line| &line.0);
    all.any(|slot| {
        let seen = slot.load(Ordering::Relaxed);
        stands_for(seen, key) && clear(slot, seen & !AWAITED)
    })
}

/// Whether the calling thread holds the lock by a slot.
#[cold]
pub(super) fn holds(key: Key) -> bool {
    let place = Place::mine();
    let mark = place.mark(key);
    let is_mine = |slot: &AtomicU64| slot.load(Ordering::Relaxed) & !AWAITED == mark;
    place.line.0.iter().any(is_mine)
}

/// Empties a slot that holds `mark`, or that and `AWAITED`. False if somebody else has done so (invariant 3).
///
/// After this nothing of the lock's memory is touched: its holder may have been the last.
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

/// Whether the lock stands in a slot now. Exact for the holder of the claim, behind a fence behind the clearing of `FAST`.
pub(super) fn any(key: Key) -> bool {
    let mut all = TABLE.in_use().iter().flat_map(|line| &line.0);
    // Acquire: what the last holder did comes before what the caller does when it finds nobody.
    all.any(|slot| stands_for(slot.load(Ordering::Acquire), key))
}

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StillThere;

/// Waits until the lock stands in no slot. The caller holds the claim and has cleared `FAST`.
///
/// # Errors
/// The deadline has passed, and somebody is still there.
pub(super) fn wait_until_empty(key: Key, deadline: Option<&Deadline>) -> Result<(), StillThere> {
    full_fence();
    for slot in TABLE.in_use().iter().flat_map(|line| &line.0) {
        // Acquire: see `any`. A slot that was used anew since is read from a read-modify-write behind the clearing.
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
        // Relaxed: it passes nothing on. The wait is ordered by its own fence.
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
            if waited == Err(crate::futex::Error::TimedOut) {
                // The mark stays; it costs whoever clears it a look into the table of waiters.
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
        Key::new(lock, State(7 << state::BIAS_SHIFT))
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
        // One of the two was given back for us; it does not matter which.
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
