//! Revoking the reader bias: how a writer, or an upgrade, gets from `UPGRADABLE` to `WRITER`.
//!
//! The thread that holds `UPGRADABLE` clears `BIASED`, so that no reader enters through a slot,
//! waits until all slots are empty, clears `SLOTS`, and waits for the readers in the word.
//! Meanwhile readers still enter through the word. `visible_readers.rs` has the protocol with the
//! slots.

use super::bias::Cost;
use super::rank::UPGRADE;
use super::surroundings::{Machine, sooner};
use super::visible_readers::{self, wait_until_empty};
use super::waiter::{Queued, Waiter};
use super::word::{
    BIAS, BIASED, COLLISIONS, REPORTED, Release, Right, SLOTS, State, TURN, UPGRADABLE,
    UPGRADE_WAITS,
};
use super::{RawRwLock, RwLockError};
use crate::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sys::clock::Deadline;

impl Waiter<'_> {
    /// Waits until no thread holds the lock through a slot. The caller holds `UPGRADABLE`.
    ///
    /// Meanwhile readers enter through the word, and the readers in slots may have lost their CPUs
    /// to them. So here, too, the re-check timer takes the turn.
    fn wait_for_slots(&mut self, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        loop {
            self.recheck.begin_awake(&Machine);
            let until = sooner(deadline.copied(), Machine.deadline(&self.recheck));
            if wait_until_empty(self.lock.key(self.lock.state()), until.as_ref()).is_ok() {
                return Ok(());
            }
            if deadline.is_some_and(Deadline::has_passed) {
                // Relaxed: it orders nothing.
                self.lock.word.fetch_and(!UPGRADE_WAITS, Relaxed);
                return Err(self.give_up());
            }
            self.recheck.fire();
            self.right = self.right.max(Right::Waited);
            loop {
                let state = self.lock.state();
                let turn = state.with(UPGRADE_WAITS).with_turn(self.recheck.turn());
                if self.lock.replace(state, turn, Relaxed) {
                    break;
                }
            }
        }
    }
}

impl RawRwLock {
    /// Acquires the lock for writing where slots may hold it, if that needs no waiting. Succeeds
    /// only if none does.
    pub(super) fn enter_past_slots(&self, state: State, owner: u32) -> bool {
        // Scan first, which costs the readers nothing.
        if visible_readers::any(self.key(state)) {
            return false;
        }
        // Acquire: as when a waiter takes `UPGRADABLE`.
        if !self.replace(state, state.with(UPGRADABLE).without(BIASED), Acquire) {
            return false;
        }
        if self.try_become_writer(owner) {
            return true;
        }
        self.release_upgradable_to(Release::Upgradable);
        false
    }

    /// Records the caller as the writer.
    pub(super) fn set_owner(&self, owner: u32) {
        if owner != 0 {
            // Relaxed: only the owner itself reads it.
            self.word.fetch_add(u64::from(owner) << 32, Relaxed);
        }
    }

    /// Goes from `UPGRADABLE` to `WRITER`. Gives up `UPGRADABLE` if the deadline passes.
    pub(super) fn revoke_and_write(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let result = self.wait_upgrade(owner, deadline);
        if result.is_err() {
            self.release_upgradable_to(Release::Upgradable);
        }
        result
    }

    /// Goes from `UPGRADABLE`, which the caller holds, to `WRITER`. Revokes the reader bias, waits
    /// until the readers in slots have left, and then waits for the readers in the word.
    ///
    /// # Errors
    /// The deadline has passed. The caller still holds `UPGRADABLE`.
    #[cold]
    pub(super) fn wait_upgrade(
        &self,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut waiter = Waiter::new(self, UPGRADE, Right::Newcomer);
        if self.clear_bias() {
            let cost = Cost::begin();
            let emptied = waiter.wait_for_slots(deadline);
            cost.end(self.address());
            emptied?;
            // Relaxed: reading the slots acquired what their readers did. And no slot is used for
            // this lock again before this thread, or a later one, gives up `UPGRADABLE`.
            self.word.fetch_and(!(SLOTS | BIAS), Relaxed);
        }
        loop {
            let state = self.state();
            if state.readers() == 0 {
                let new = match waiter.right {
                    Right::Newcomer => state,
                    _ => state.without(TURN),
                };
                let new = waiter.without_woken(new).with_writer(owner);
                if self.replace(state, new, Acquire) {
                    return Ok(());
                }
                continue;
            }
            waiter.note_contention();
            if waiter.spin.again() {
                continue;
            }
            match waiter.queue(state, deadline) {
                Queued::Granted | Queued::UpgradableGranted => {
                    self.set_owner(owner);
                    return Ok(());
                }
                Queued::Looks => {}
                Queued::TimedOut => return Err(waiter.give_up()),
            }
        }
    }

    /// Stops readers from entering through slots. Returns whether some may be in slots already.
    fn clear_bias(&self) -> bool {
        let state = self.state();
        debug_assert!(state.has(UPGRADABLE));
        if !state.has(SLOTS) {
            return false;
        }
        // Resets the counters that lead to a bias. AcqRel: the ordering that matters comes from the
        // fence that follows (`visible_readers.rs`).
        self.word.fetch_and(!(BIASED | COLLISIONS | REPORTED), AcqRel);
        true
    }

    /// The same as [`wait_upgrade`](Self::wait_upgrade) if that needs no waiting. Returns whether
    /// it succeeded.
    pub(super) fn try_become_writer(&self, owner: u32) -> bool {
        if self.clear_bias() {
            crate::atomic::full_fence();
            if visible_readers::any(self.key(self.state())) {
                return false;
            }
            self.word.fetch_and(!(SLOTS | BIAS), Relaxed);
        }
        loop {
            let state = self.state();
            if state.readers() != 0 {
                return false;
            }
            if self.replace(state, state.with_writer(owner), Acquire) {
                return true;
            }
        }
    }
}
