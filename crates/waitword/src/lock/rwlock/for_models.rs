//! What models need beyond the public interface.

use super::word::{Release, WRITERS_WAIT};
use super::{RawRwLock, RwLockError};
use crate::Deadline;
use crate::atomic::Ordering::Relaxed;

impl RawRwLock {
    /// Makes the lock biased, as colliding readers would.
    pub(crate) fn become_biased(&self, number: u32) {
        assert!(self.try_to_become_biased(number));
    }

    /// The same while other threads may interfere. Returns whether the lock is biased now.
    pub(crate) fn try_to_become_biased(&self, number: u32) -> bool {
        let state = self.state();
        state.may_become_biased() && self.replace(state, state.biased(number), Relaxed)
    }

    /// Whether a writer is queued.
    pub(crate) fn keeps_a_writer_waiting(&self) -> bool {
        self.state().has(WRITERS_WAIT)
    }

    /// Sets a stale bit, as in a word copied by a fork.
    pub(crate) fn pretend_that_a_writer_waits(&self) {
        self.word.fetch_or(WRITERS_WAIT, Relaxed);
    }

    /// The same as dropping a reader's guard.
    pub(crate) fn unlock_shared(&self) {
        self.release_shared();
    }

    pub(crate) fn unlock_shared_fairly(&self) {
        self.release_fairly(Release::Reader);
    }

    /// Acquires the upgradable lock.
    pub(crate) fn read_upgradably_of_model(&self) -> bool {
        self.acquire_upgradable(None).is_ok()
    }

    /// Upgrades to writing.
    pub(crate) fn upgrade_of_model(&self, deadline: Option<&Deadline>) -> Result<(), RwLockError> {
        self.become_writer(0, deadline)
    }

    pub(crate) fn release_upgradable_of_model(&self) {
        self.release_upgradable();
    }

    /// Downgrades from writing to reading.
    pub(crate) fn become_reader(&self) {
        self.release_exclusive_to(Release::WriterToReader);
    }
}
