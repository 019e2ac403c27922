//! The system calls for a batch of wake-ups: one for each group that has sleepers, not one for each
//! thread.

use super::Sleeps;
use super::pool::{Group, ParkerId, Pool};
use crate::atomic::{Ordering, smaller_in_models};
use crate::sys;
use core::num::NonZeroU32;

/// Groups remembered before the calls for them are made. 16 groups hold 512 threads.
const GROUPS: usize = smaller_in_models(16, 2);

/// Collects the parkers to wake. Wakes them when it is dropped, or sooner if many groups are
/// involved.
pub(crate) struct WakeCalls<'a> {
    pool: &'a Pool,
    /// The number of each group, and the bits of the parkers to wake in it.
    groups: [(usize, u32); GROUPS],
    len: usize,
}

impl<'a> WakeCalls<'a> {
    pub(crate) fn new(pool: &'a Pool) -> Self {
        Self { pool, groups: [(0, 0); GROUPS], len: 0 }
    }

    /// Ensures that the user of parker `id`, which has just been given a notice, wakes up from
    /// wherever it sleeps. A thread without a parker polls and needs no call.
    pub(crate) fn add(&mut self, id: Option<ParkerId>, sleeps: Sleeps) {
        match (id, sleeps) {
            (None, _) | (_, Sleeps::Not) => {}
            (Some(id), Sleeps::Alone) => self.pool.wake_alone(id),
            (Some(id), Sleeps::InGroup) => self.add_sleeper(id.group(), id.bit().get()),
        }
    }

    fn add_sleeper(&mut self, group: usize, bit: u32) {
        // Neighbours come together, so the last one remembered is most often the right one.
        let known = self.groups[..self.len].iter_mut().rev();
        if let Some((_, bits)) = known.into_iter().find(|(known, _)| *known == group) {
            *bits |= bit;
            return;
        }
        if self.len == GROUPS {
            self.flush();
        }
        self.groups[self.len] = (group, bit);
        self.len += 1;
    }

    fn flush(&mut self) {
        // A group that is woken as a whole, waiting for a second one.
        let mut whole: Option<&Group> = None;
        for &(group, bits) in &self.groups[..self.len] {
            let group = self.pool.group(group);
            let Some(bits) = NonZeroU32::new(bits) else {
                continue;
            };
            if bits != Group::ALL {
                wake_in_group(group, bits);
            } else if let Some(other) = whole.take() {
                wake_two_groups(other, group);
            } else {
                whole = Some(group);
            }
        }
        if let Some(group) = whole {
            wake_in_group(group, Group::ALL);
        }
        self.len = 0;
    }
}

/// The count starts at 1 and goes up by two, so it is never zero, which means "never used"
/// (`park`).
pub(super) const ONE_CALL: u32 = 2;

#[inline]
fn wake_in_group(group: &Group, bits: NonZeroU32) {
    // Release: see the diagram in the parent module.
    group.calls.fetch_add(ONE_CALL, Ordering::Release);
    sys::futex::wake(&group.calls, bits.get().count_ones(), bits);
}

/// Wakes all sleepers of two groups in one call. FUTEX_WAKE_OP makes this possible: it wakes the
/// sleepers of one word, adds the call to the count in the second, and wakes the sleepers of the
/// second too, since its old value is not zero. Each return to user space in the middle of a herd
/// is a chance for the woken threads to preempt the waker.
fn wake_two_groups(first: &Group, second: &Group) {
    first.calls.fetch_add(ONE_CALL, Ordering::Release);
    if !sys::futex::wake_two(&first.calls, &second.calls, ONE_CALL) {
        wake_in_group(first, Group::ALL);
        wake_in_group(second, Group::ALL);
    }
}

impl Pool {
    /// [`WakeCalls::add`] for one thread, without a batch: the common case.
    #[inline]
    pub(crate) fn wake_one(&self, id: Option<ParkerId>, sleeps: Sleeps) {
        match (id, sleeps) {
            (None, _) | (_, Sleeps::Not) => {}
            (Some(id), Sleeps::Alone) => self.wake_alone(id),
            (Some(id), Sleeps::InGroup) => {
                let place = self.place(id);
                wake_in_group(place.group, place.bit);
            }
        }
    }

    #[cold]
    fn wake_alone(&self, id: ParkerId) {
        let alone = &self.place(id).slot.alone;
        // Release: as in a group.
        alone.fetch_add(ONE_CALL, Ordering::Release);
        sys::futex::wake(alone, 1, sys::futex::ANY_BIT);
    }
}

impl Drop for WakeCalls<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
