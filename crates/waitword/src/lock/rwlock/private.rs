//! Waiting for a private lock: spin for a while, then queue in the process's waiter table.
//!
//! Every waiter announces itself in the word under the bucket lock, in one step with joining the
//! queue. So its waiter bit is set by the time a release must see it. A waiter that gives up clears
//! its bit in one step with leaving the queue. (In parking_lot #465 the bit was cleared outside
//! that lock, and a later waiter's bit was lost with it.)
//!
//! # Anti-starvation
//!
//! A waiter has a re-check timer (`Recheck`). It first fires after 100 µs to 10 ms (`policy.rs`),
//! and then each time after twice as long, at most a second. The waiter then leaves the queue and
//! takes a turn (`TURN`): newcomers queue, while the waiter spins for the lock once more. The
//! waiter is awake, so no thread waits for its wake-up. If it still does not get the lock, because
//! the critical sections are long, it queues again and leaves the turn set. The next release then
//! hands the lock off to the first waiter in the queue. After that, threads barge as before.
//!
//! Under reader preference a turn keeps readers out. One of them may hold the lock already, or a
//! holder may be waiting for it; the word cannot tell. So a reader waits for a turn no longer than
//! the thread that has the turn has waited (`Patience`). Then the reader enters, and that ends the
//! turn. The next turn comes when its owner has waited twice as long, and lasts twice as long. At
//! the latest, the turn that is longer than the readers' critical sections lets the writer in. So a
//! recursive read never deadlocks, although it may take long. A thread that holds the lock through
//! a slot, or that says that it may hold the lock (`Right::Holder`), does not wait for a turn at
//! all.
//!
//! Under writer preference, readers take turns too. The release after that lets all readers in.
//!
//! A real-time writer takes its turn as it queues, and is queued before all waiters of a lower
//! priority (`rank.rs`).

use super::policy::Policy;
use super::rank::{READ, READ_UPGRADABLY, WRITE};
use super::read::Entered;
use super::visible_readers;
use super::waiter::{Queued, Waiter};
use super::word::{BIASED, READERS_WAIT, Right, SLOTS, TURN, UPGRADABLE, UPGRADE_WAITS};
use super::{RawRwLock, RwLockError, Wish};
use crate::atomic::Ordering::Acquire;
use crate::record::{self, Object};
use crate::sys::clock::Deadline;

impl RawRwLock {
    /// Waits to read.
    #[cold]
    pub(super) fn wait_shared(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        record::waiting(Object::Read, self.address(), deadline.is_some(), || {
            self.wait_shared_unrecorded(right, owner, deadline)
        })
    }

    #[inline(always)]
    fn wait_shared_unrecorded(
        &self,
        right: Right,
        owner: u32,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let mut waiter = Waiter::new(self, READ, right);
        loop {
            let state = match self.enter_shared_contended(waiter.right) {
                Entered::Yes => {
                    waiter.spin.won();
                    return Ok(());
                }
                Entered::Full => return Err(RwLockError::TooManyReaders),
                Entered::No(state) => state,
            };
            waiter.has_no_slot = state.has(BIASED);
            if owner != 0 && state.owner() == owner {
                return Err(RwLockError::Deadlock);
            }
            let may_hold = state.has(SLOTS) && waiter.right != Right::Holder;
            if may_hold && visible_readers::holds(self.key(state)) {
                // No writer can hold the lock while this thread does (unless the word is garbage),
                // and waiting writers must wait for this thread anyway.
                waiter.right = Right::Holder;
                continue;
            }
            waiter.note_contention();
            if waiter.spin.again() {
                continue;
            }
            match waiter.queue(state, deadline) {
                Queued::Granted | Queued::UpgradableGranted => return Ok(()),
                Queued::Looks => {}
                Queued::TimedOut => return Err(waiter.give_up()),
            }
        }
    }

    /// Waits to write, or for the upgradable lock.
    #[cold]
    pub(super) fn wait_exclusive(
        &self,
        wish: Wish,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        record::waiting(Object::Write, self.address(), deadline.is_some(), || {
            self.wait_exclusive_unrecorded(wish, deadline)
        })
    }

    #[inline(always)]
    fn wait_exclusive_unrecorded(
        &self,
        wish: Wish,
        deadline: Option<&Deadline>,
    ) -> Result<(), RwLockError> {
        let (kind, owner) = match wish {
            Wish::Write(owner) => (WRITE, owner),
            Wish::ReadUpgradably => (READ_UPGRADABLY, 0),
        };
        let mut waiter = Waiter::new(self, kind, Right::Newcomer);
        loop {
            let state = self.state();
            if waiter.is_admitted(state) {
                // Taking the upgradable lock leaves `BIASED` set.
                let revokes = kind == WRITE && state.has(SLOTS);
                let new = match kind {
                    READ_UPGRADABLY => state.with(UPGRADABLE),
                    _ if revokes => state.with(UPGRADABLE).without(BIASED),
                    _ => state.with_writer(owner),
                };
                let barred = revokes && Policy::revocation_bars_readers(state);
                let new = new.having(UPGRADE_WAITS, barred || new.has(UPGRADE_WAITS));
                let new = match waiter.right {
                    Right::Newcomer => new,
                    // The turn has been used.
                    _ => new.without(TURN),
                };
                if !self.replace(state, waiter.without_woken(new), Acquire) {
                    continue;
                }
                if revokes {
                    return self.revoke_and_write(owner, deadline);
                }
                waiter.spin.won();
                if kind == READ_UPGRADABLY && new.has(READERS_WAIT) {
                    // Those readers waited for this thread.
                    self.let_in();
                }
                return Ok(());
            }
            if owner != 0 && state.owner() == owner {
                return Err(RwLockError::Deadlock);
            }
            waiter.note_contention();
            if waiter.spin.again() {
                continue;
            }
            match waiter.queue(state, deadline) {
                Queued::Granted => {
                    self.set_owner(owner);
                    return Ok(());
                }
                Queued::UpgradableGranted => return self.revoke_and_write(owner, deadline),
                Queued::Looks => {}
                Queued::TimedOut => return Err(waiter.give_up()),
            }
        }
    }
}
