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
//! | 0 | `AWAITED`: a revoker sleeps on the slot until it changes |
//!
//! The thread holds the lock with that key, or is about to find out whether it may. The line's
//! index and the tag identify the thread (up to 2^12 threads; beyond that see invariant 3). The
//! *revoker* is the thread that holds `UPGRADABLE` and revokes the bias.
//!
//! # Why an address is not enough
//!
//! A read guard may be forgotten. The lock may then be moved or dropped, while the slot stays
//! occupied. A lock that is later placed at that address must not wait for the slot. So each time a
//! lock becomes biased, it takes a number that no slot of the table holds ([`free_number`]). It
//! keeps the number in its word until a revoker has seen that its slots are empty, and takes the
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
//!   reader                                  revoker (there is at most one: it holds UPGRADABLE)
//!   ──────                                  ────────
//!   slot: 0 → key         (CAS)             word: clear BIASED
//!   fence                                   fence
//!   load word: BIASED, same bias? holds it  load every slot: this key? wait until it is not
//!     no: slot → 0, use the word            word: clear SLOTS and BIAS
//! ```
//!
//! One of the two fences comes first. If it is the reader's, the revoker sees the slot and waits
//! for it. If it is the revoker's, the reader sees that `BIASED` is cleared.
//!
//! `BIASED` may have been set again by the time the reader loads the word. Under the same bias,
//! the next revoker that clears it sees the slot. Under another bias, no revoker would recognize
//! the slot as this lock's, so the reader withdraws. No thread sets `BIASED` while `UPGRADABLE` is
//! held.
//!
//! # Leaving
//!
//! A reader that leaves must wake a revoker that sleeps until then. It must not look into the lock
//! to find out whether there is one: the lock may have been freed. So the revoker announces itself
//! *in the slot*, with a CAS that sets `AWAITED`, and sleeps on the slot. Slots lie in this table,
//! which is never freed:
//!
//! ```text
//!   reader                                  revoker
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

use super::slot_table::{AWAITED, FREE, Key, Line, Place, bias_of, slots_in_use};
use super::word;
use crate::atomic::{AtomicU64, Ordering, full_fence, full_fence_after_rmw};
use crate::futex::private::{wait, wake};
use crate::lock::key_of;
use crate::park::spin::Spin;
use crate::private::{Awaited, waiter_table};
use crate::sys::clock::Deadline;

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
                bias_of(slot.load(Ordering::Relaxed)) == u64::from(number)
            };
            !slots_in_use().any(has_it)
        })
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
/// finds `BIASED` in the word, by an Acquire load, which pairs with the release of the last writer.
/// Returns `None` if no slot is free.
#[inline]
pub(super) fn publish(key: Key) -> Option<Published> {
    let place = Place::mine();
    let (slot, mark) = (place.slot(key), place.mark(key));
    let slot = if put(slot, mark) { slot } else { publish_elsewhere(place.line, mark)? };
    full_fence_after_rmw();
    Some(Published { slot, mark })
}

/// [`publish`] for a thread that has published before, trying only its preferred slot.
#[inline]
pub(super) fn publish_at_once(key: Key) -> Option<Published> {
    let place = Place::known()?;
    let (slot, mark) = (place.slot(key), place.mark(key));
    if !put(slot, mark) {
        return None;
    }
    full_fence_after_rmw();
    Some(Published { slot, mark })
}

#[inline]
fn put(slot: &AtomicU64, mark: u64) -> bool {
    // Acquire: the holder does not read the data before it has published itself. (The fence that
    // follows ensures this too.)
    slot.compare_exchange(FREE, mark, Ordering::Acquire, Ordering::Relaxed).is_ok()
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

/// [`retract`] from the preferred slot only, if no revoker sleeps on it. Returns false if nothing
/// has been done.
#[inline]
pub(super) fn retract_at_once(key: Key) -> bool {
    // Release: as in `clear`.
    Place::known().is_some_and(|place| {
        let mark = place.mark(key);
        place.slot(key).compare_exchange(mark, FREE, Ordering::Release, Ordering::Relaxed).is_ok()
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
    slots_in_use().any(|slot| {
        let seen = slot.load(Ordering::Relaxed);
        key.is_named_by(seen) && clear(slot, seen & !AWAITED)
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

/// Whether any slot holds the lock now. Exact for a revoker that has cleared `BIASED` and then
/// executed a full fence.
pub(super) fn any(key: Key) -> bool {
    // Acquire: what the last holder did comes before what the caller does if it finds no holder.
    slots_in_use().any(|slot| key.is_named_by(slot.load(Ordering::Acquire)))
}

/// The deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StillHeld;

/// Waits until no slot holds the lock. The caller holds `UPGRADABLE` and has cleared `BIASED`.
///
/// # Errors
/// The deadline has passed, and a slot still holds the lock.
pub(super) fn wait_until_empty(key: Key, deadline: Option<&Deadline>) -> Result<(), StillHeld> {
    full_fence();
    for slot in slots_in_use() {
        // Acquire: see `any`. If the slot has been reused since, the value comes from a
        // read-modify-write after the clearing one.
        if key.is_named_by(slot.load(Ordering::Acquire)) {
            wait_for(slot, key, deadline)?;
        }
    }
    Ok(())
}

#[cold]
fn wait_for(slot: &AtomicU64, key: Key, deadline: Option<&Deadline>) -> Result<(), StillHeld> {
    let mut spin = Spin::at(core::ptr::from_ref(slot).addr());
    loop {
        let seen = slot.load(Ordering::Acquire);
        if !key.is_named_by(seen) {
            return Ok(());
        }
        if spin.again() {
            continue;
        }
        let awaited = seen | AWAITED;
        // Relaxed: it publishes nothing. The wait has its own fence.
        let announced = seen == awaited
            || slot.compare_exchange(seen, awaited, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if announced {
            let as_expected = || slot.load(Ordering::Relaxed) == awaited;
            let kind = Awaited::RwLock;
            let waited = wait(waiter_table(), key_of(slot), kind, as_expected, u64::MAX, deadline);
            if waited == Err(crate::error::Error::TimedOut) {
                // The mark stays. It costs the thread that clears the slot a look into the waiter
                // table.
                return match key.is_named_by(slot.load(Ordering::Acquire)) {
                    true => Err(StillHeld),
                    false => Ok(()),
                };
            }
        }
    }
}
