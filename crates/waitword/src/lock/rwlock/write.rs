//! Acquiring the lock for writing and releasing it.

use super::uncontended::held_by;
use super::word::{READERS_WAIT, Release, Right, SLOTS, UPGRADE_WAITS, WRITER, WRITERS_WAIT};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::{Acquire, Release as Releasing};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Acquires the lock for writing if that needs no waiting.
    #[inline]
    pub(super) fn enter_exclusive(&self, owner: u32) -> bool {
        self.take_unlocked(held_by(owner)) || self.enter_exclusive_contended(owner)
    }

    #[inline]
    pub(super) fn acquire_exclusive(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        if self.take_unlocked(held_by(owner)) {
            return Ok(());
        }
        self.acquire_exclusive_contended(owner, deadline)
    }

    #[inline(never)]
    fn acquire_exclusive_contended(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut state = self.state();
        while state.admits_writer(Right::Newcomer) && !state.has(SLOTS) {
            if self.replace(state, state.with_writer(owner), Acquire) {
                return Ok(());
            }
            state = self.state();
        }
        if state.is_shared() {
            self.wait_exclusive_in_kernel(Wish::Write(owner), deadline)
        } else {
            self.wait_exclusive(Wish::Write(owner), deadline)
        }
    }

    #[inline(never)]
    fn enter_exclusive_contended(&self, owner: u32) -> bool {
        loop {
            let state = self.state();
            if !state.admits_writer(Right::Newcomer) {
                return false;
            }
            if state.has(SLOTS) {
                return self.enter_past_slots(state, owner);
            }
            if self.replace(state, state.with_writer(owner), Acquire) {
                return true;
            }
        }
    }

    /// Gives back a writer's hold.
    #[inline]
    pub(super) fn release_exclusive(&self) {
        if !self.give_back_alone(WRITER) {
            self.release_exclusive_contended();
        }
    }

    #[inline(never)]
    fn release_exclusive_contended(&self) {
        let state = self.state();
        if state.low_half() == WRITER as u32 {
            // The word holds the writer's owner number and nothing else.
            if self.word.fetch_sub(state.0, Releasing) != state.0 {
                self.hand_off_late();
            }
        } else {
            self.release_exclusive_to(Release::Writer);
        }
    }

    /// Gives back a writer's hold, or downgrades it to a reader's hold or to the upgradable lock.
    #[inline(never)]
    pub(super) fn release_exclusive_to(&self, release: Release) {
        loop {
            let state = self.state();
            debug_assert!(state.has(WRITER), "not held for writing");
            let after = state.after(release);
            if after.must_serve(release) {
                return self.hand_off(state, release);
            }
            if self.replace(state, after, Releasing) {
                return;
            }
        }
    }

    /// Whether threads wait, as far as the word shows.
    pub(crate) fn has_waiters(&self) -> bool {
        self.state().has(UPGRADE_WAITS | READERS_WAIT | WRITERS_WAIT)
    }

    /// Gives back a hold. If threads wait, the first waiter gets the lock. In the kernel's queue no
    /// waiter can be chosen, so a process-shared lock is released as always.
    #[cold]
    pub(super) fn release_fairly(&self, release: Release) {
        const WAITING: u64 = UPGRADE_WAITS | READERS_WAIT | WRITERS_WAIT;
        if release == Release::Reader && self.release_own_slot() {
            return;
        }
        let state = self.state();
        let by_slot = release == Release::Reader && state.readers() == 0;
        if by_slot || state.is_shared() || !state.has(WAITING) {
            match release {
                Release::Reader => self.release_shared(),
                Release::Upgradable => self.release_upgradable_to(release),
                _ => self.release_exclusive_to(release),
            }
        } else {
            self.hand_off_fairly(release);
        }
    }
}
