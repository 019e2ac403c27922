//! Fast readers: a table of slots, one for the whole process, in which readers write down the lock that they hold, each
//! thread in a cache line of its own, so that readers of one lock do not fetch its line from each other. (Dice and Kogan,
//! "BRAVO", USENIX ATC 2019; the deferred readers of folly's SharedMutex.)
//!
//! | slot | meaning |
//! |------|---------|
//! | 0 | free |
//! | lock's address, thread's tag | this thread holds the lock, or is about to look whether it may |
//! | the same and `AWAITED` | and somebody sleeps on the slot until it changes |
//!
//! The tag and the number of the line tell threads apart (until there were 2^25 threads, see invariant 3).
//!
//! # Publishing against driving out
//!
//! ```text
//!   reader                                  claimant (it holds CLAIMED: there is one at most)
//!   ──────                                  ────────
//!   slot: 0 → lock        (CAS)             word: FAST cleared
//!   fence                                   fence
//!   r[word]: FAST? then it holds the lock   r[every slot]: this lock? wait until it is not
//!     no: slot → 0, and by the word         word: SLOTS cleared
//! ```
//!
//! One of the two fences is first. If it is the reader's, the claimant sees the slot and waits for it. If it is the claimant's,
//! the reader sees that FAST is gone. That FAST may be set anew by the time the reader looks does no harm: whoever clears it
//! after that sees the slot. While the claim is held nobody sets it.
//!
//! # Leaving
//!
//! A reader that leaves must wake a claimant who sleeps until then, and must not look into the lock to find out: the
//! lock may be gone. So the claimant says it *in the slot*, by a CAS that sets `AWAITED`, and sleeps on the slot, which lies in this
//! table and is there for ever:
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

use crate::atomic::{AtomicU64, Ordering, full_fence};
use crate::futex::private::{wait, wake};
use crate::lock::key_of;
use crate::private::repository;
use crate::sys::clock::Deadline;

const LINES: usize = if cfg!(loom) { 2 } else { 512 };
const SLOTS_IN_LINE: usize = if cfg!(loom) { 1 } else { 8 };

const FREE: u64 = 0;
/// Somebody sleeps on the slot. (Locks are aligned to 8 bytes.)
const AWAITED: u64 = 1;
const TAG_SHIFT: u32 = 48;
/// Locks above this address are never fast: there is no room for the tag.
const ADDRESS: u64 = (1 << TAG_SHIFT) - 8;

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
    /// Of the thread with this number: 0, 1, ...
    fn of(number: u64) -> Self {
        let index = number as usize;
        Self {
            line: line(index % LINES),
            tag: u64::from((index / LINES) as u16) << TAG_SHIFT,
        }
    }

    /// The calling thread's.
    #[inline]
    fn mine() -> Self {
        thread::place()
    }

    #[inline]
    fn mark(self, lock: usize) -> u64 {
        lock as u64 | self.tag
    }

    /// The slot for this lock, if it is free: neighbouring locks, 8 bytes to some lines apart, are to have different ones.
    #[inline]
    fn slot(self, lock: usize) -> &'static AtomicU64 {
        &self.line.0[((lock >> 3) ^ (lock >> 6)) % SLOTS_IN_LINE]
    }
}

#[cfg(not(loom))]
mod thread {
    use super::{Ordering, Place, TABLE};
    use crate::sys::thread_word::PLACE;

    /// The thread's word holds its number, and one more; 0 if it has none yet.
    #[inline]
    pub(super) fn place() -> Place {
        match PLACE.get() {
            0 => first(),
            known => Place::of(known - 1),
        }
    }

    #[cold]
    fn first() -> Place {
        let number = TABLE.threads.fetch_add(1, Ordering::Relaxed);
        PLACE.set(number + 1);
        Place::of(number)
    }
}

#[cfg(loom)]
mod thread {
    use super::{Ordering, Place, TABLE};
    use core::cell::Cell;

    crate::checker::thread_local! {
        static PLACE: Cell<Option<Place>> = Cell::new(None);
    }

    pub(super) fn place() -> Place {
        PLACE.with(|place| {
            if place.get().is_none() {
                place.set(Some(Place::of(
                    TABLE.threads.fetch_add(1, Ordering::Relaxed),
                )));
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
fn stands_for(slot: u64, lock: usize) -> bool {
    slot & ADDRESS == lock as u64
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
pub(super) fn publish(lock: usize) -> Option<Published> {
    let place = Place::mine();
    let (slot, mark) = (place.slot(lock), place.mark(lock));
    let slot = if put(slot, mark) {
        slot
    } else {
        publish_elsewhere(place.line, mark)?
    };
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
pub(super) fn retract(lock: usize) -> bool {
    let place = Place::mine();
    let mark = place.mark(lock);
    clear(place.slot(lock), mark) || retract_elsewhere(place.line, mark)
}

#[cold]
fn retract_elsewhere(line: &'static Line, mark: u64) -> bool {
    let is_mine = |slot: &AtomicU64| slot.load(Ordering::Relaxed) & !AWAITED == mark;
    line.0.iter().any(|slot| is_mine(slot) && clear(slot, mark))
}

/// Gives back whoever's hold stands in a slot; false if there is none.
#[cold]
pub(super) fn retract_any(lock: usize) -> bool {
    let mut all = TABLE.in_use().iter().flat_map(|line| &line.0);
    all.any(|slot| {
        let seen = slot.load(Ordering::Relaxed);
        stands_for(seen, lock) && clear(slot, seen & !AWAITED)
    })
}

/// Whether the calling thread holds the lock by a slot.
#[cold]
pub(super) fn holds(lock: usize) -> bool {
    let place = Place::mine();
    let mark = place.mark(lock);
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
        wake(repository(), key_of(slot), usize::MAX, u64::MAX);
    }
    cleared.is_ok()
}

/// Whether the lock stands in a slot now. Exact for the holder of the claim, behind a fence behind the clearing of `FAST`.
pub(super) fn any(lock: usize) -> bool {
    let mut all = TABLE.in_use().iter().flat_map(|line| &line.0);
    // Acquire: what the last holder did comes before what the caller does when it finds nobody.
    all.any(|slot| stands_for(slot.load(Ordering::Acquire), lock))
}

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StillThere;

/// Waits until the lock stands in no slot. The caller holds the claim and has cleared `FAST`.
///
/// # Errors
/// The deadline has passed, and somebody is still there.
pub(super) fn wait_until_empty(lock: usize, deadline: Option<&Deadline>) -> Result<(), StillThere> {
    full_fence();
    for slot in TABLE.in_use().iter().flat_map(|line| &line.0) {
        // Acquire: see `any`. A slot that was used anew since is read from a read-modify-write behind the clearing.
        if stands_for(slot.load(Ordering::Acquire), lock) {
            wait_for(slot, lock, deadline)?;
        }
    }
    Ok(())
}

#[cold]
fn wait_for(slot: &AtomicU64, lock: usize, deadline: Option<&Deadline>) -> Result<(), StillThere> {
    let mut spin = super::spin::Spin::new();
    loop {
        let seen = slot.load(Ordering::Acquire);
        if !stands_for(seen, lock) {
            return Ok(());
        }
        if spin.again(|| true) {
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
            let waited = wait(repository(), key_of(slot), as_expected, u64::MAX, deadline);
            if waited == Err(crate::futex::Error::TimedOut) {
                // The mark stays; it costs whoever clears it a look into the table of waiters.
                return match stands_for(slot.load(Ordering::Acquire), lock) {
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

    #[test]
    fn what_a_thread_writes_down_it_finds_and_others_see() {
        assert!(!holds(NOWHERE) && !any(NOWHERE) && !retract(NOWHERE));
        // Twice: two slots.
        let _ = (publish(NOWHERE).unwrap(), publish(NOWHERE).unwrap());
        assert!(holds(NOWHERE) && any(NOWHERE));
        std::thread::spawn(|| {
            assert!(!holds(NOWHERE) && any(NOWHERE) && !retract(NOWHERE));
            assert!(retract_any(NOWHERE));
        })
        .join()
        .unwrap();
        assert!(holds(NOWHERE));
        // One of the two was given back for us; it does not matter which.
        assert!(retract(NOWHERE) && !retract(NOWHERE) && !any(NOWHERE));
    }

    #[test]
    fn a_full_line_has_no_room() {
        let locks: Vec<usize> = (0..SLOTS_IN_LINE)
            .map(|n| 0x7ffe_0000_0000 + 8 * n)
            .collect();
        for &lock in &locks {
            let _ = publish(lock).unwrap();
        }
        assert!(publish(NOWHERE + 8).is_none());
        assert!(locks.into_iter().all(retract));
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
                let _ = publish(LOCK).unwrap();
                (any(LOCK), retract(LOCK))
            };
            assert_eq!(std::thread::spawn(reads).join().unwrap(), (true, true));
        }
    }

    #[test]
    fn whoever_waits_for_a_slot_is_woken_when_it_is_cleared() {
        use crate::sys::clock::Clock;
        const LOCK: usize = NOWHERE + 0x1000;
        let _ = publish(LOCK).unwrap();
        let past = Deadline::at(Clock::Monotonic, core::time::Duration::ZERO);
        assert_eq!(wait_until_empty(LOCK, Some(&past)), Err(StillThere));
        let (sender, done) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(wait_until_empty(LOCK, None)));
        assert!(
            done.recv_timeout(core::time::Duration::from_millis(20))
                .is_err()
        );
        assert!(retract(LOCK));
        let minute = core::time::Duration::from_secs(60);
        assert_eq!(done.recv_timeout(minute), Ok(Ok(())));
    }
}
