//! The system calls of a batch of wake-ups: one for each group with sleepers in it, not one for each thread.

use super::pool::{Group, ParkerId, Pool, Sleeper};
use crate::atomic::Ordering;
use crate::sys;
use core::num::NonZeroU32;

/// Groups remembered before the calls for them are made. 16 groups hold 512 threads.
const GROUPS: usize = if cfg!(loom) { 2 } else { 16 };

/// Collects whom to wake, and wakes them as it is dropped, or sooner if many groups are touched.
pub(crate) struct WakeCalls<'a> {
    pool: &'a Pool,
    groups: [Option<(&'a Group, NonZeroU32)>; GROUPS],
    len: usize,
}

impl<'a> WakeCalls<'a> {
    pub(crate) fn new(pool: &'a Pool) -> Self {
        Self {
            pool,
            groups: [None; GROUPS],
            len: 0,
        }
    }

    /// Unparks the user of parker `id`, to whom the caller has just given a reason to wake up. A thread without
    /// a parker looks for itself.
    pub(crate) fn add(&mut self, id: Option<ParkerId>) {
        match id.and_then(|id| self.pool.unpark(id)) {
            None => {}
            Some(Sleeper::Alone(word)) => sys::futex::wake(word, 1, sys::futex::ANY_BIT),
            Some(Sleeper::InGroup(group, bit)) => self.add_sleeper(group, bit),
        }
    }

    fn add_sleeper(&mut self, group: &'a Group, bit: NonZeroU32) {
        // Neighbours come together, so the last one remembered is most often the right one.
        let known = self.groups[..self.len]
            .iter_mut()
            .rev()
            .flatten()
            .find(|(known, _)| core::ptr::eq(*known, group));
        if let Some((_, bits)) = known {
            *bits |= bit;
            return;
        }
        if self.len == GROUPS {
            self.flush();
        }
        self.groups[self.len] = Some((group, bit));
        self.len += 1;
    }

    fn flush(&mut self) {
        for (group, bits) in self.groups[..self.len].iter().flatten() {
            wake_in_group(group, *bits);
        }
        self.len = 0;
    }
}

#[inline]
fn wake_in_group(group: &Group, bits: NonZeroU32) {
    // Release: see the diagram in the module above.
    group.calls.fetch_add(1, Ordering::Release);
    sys::futex::wake(&group.calls, bits.get().count_ones(), bits);
}

impl Pool {
    /// The same for one thread, which is what most wakes are for.
    #[inline]
    pub(crate) fn wake_one(&self, id: Option<ParkerId>) {
        match id.and_then(|id| self.unpark(id)) {
            None => {}
            Some(Sleeper::Alone(word)) => sys::futex::wake(word, 1, sys::futex::ANY_BIT),
            Some(Sleeper::InGroup(group, bit)) => wake_in_group(group, bit),
        }
    }
}

impl Drop for WakeCalls<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}
