//! Readers of a biased lock: they enter and leave through a slot (`visible_readers.rs`), and do not
//! touch the word.
//!
//! A hold in a slot and one in the word are equivalent. So a release gives back whichever it finds:
//! first one in a slot of its own thread, then one in the word, then one in any slot.

use super::RawRwLock;
use super::visible_readers::{self, Published};
use super::word::{READER, Release, SLOTS, State};
use crate::atomic::Ordering::{Acquire, Release as Releasing};

impl RawRwLock {
    /// Tries to enter through a slot. `state` has `BIASED`.
    #[inline]
    pub(super) fn enter_by_slot(&self, state: State) -> bool {
        let Some(published) = visible_readers::publish(self.key(state)) else {
            return false;
        };
        // Acquire: the last writer's release comes before `BIASED` was set.
        if State(self.word.load(Acquire)).is_still_biased_as(state) {
            return true;
        }
        self.withdraw(published);
        false
    }

    /// Takes back a slot through which the thread may not hold the lock.
    pub(super) fn withdraw(&self, published: Published) {
        if !published.retract() {
            // Another thread took the slot for its own hold, which is elsewhere. Give back that one
            // instead.
            self.release_shared_elsewhere();
        }
    }

    /// Gives back a reader's hold.
    #[inline]
    pub(super) fn release_shared(&self) {
        if !self.give_back_alone(READER) {
            self.release_shared_contended();
        }
    }

    #[inline(never)]
    fn release_shared_contended(&self) {
        // The caller holds the lock, so its memory is still valid.
        let state = self.state();
        if !(state.has(SLOTS) && visible_readers::retract(self.key(state))) {
            self.release_shared_elsewhere();
        }
    }

    /// Gives back a reader's hold that is not in a slot of the calling thread. There is one.
    ///
    /// A scan of the slots may miss it: during the scan, a reader enters through a slot that the
    /// scan has passed already, and the slot ahead is cleared by a thread that gives back that
    /// reader's hold.
    #[inline(never)]
    pub(super) fn release_shared_elsewhere(&self) {
        while !self.release_shared_by_word() {
            let state = self.state();
            let is_held = state.readers() != 0 || state.has(SLOTS);
            debug_assert!(is_held, "released a read lock that is not held");
            if !is_held {
                return;
            }
            #[cfg(loom)]
            crate::checker::thread::yield_now();
        }
    }

    /// Gives back a reader's hold. Returns false if there are no readers.
    #[inline]
    pub(super) fn release_shared_if_held(&self) -> bool {
        self.give_back_alone(READER) || self.release_shared_if_held_contended()
    }

    #[inline(never)]
    fn release_shared_if_held_contended(&self) -> bool {
        // The caller holds the lock, so its memory is still valid.
        let state = self.state();
        if state.has(SLOTS) && visible_readers::retract_at_once(self.key(state)) {
            return true;
        }
        self.release_shared_from_anywhere()
    }

    #[inline(never)]
    fn release_shared_from_anywhere(&self) -> bool {
        self.release_own_slot() || self.release_shared_by_word() || self.release_shared_if_found()
    }

    /// Gives back a reader's hold that a scan has missed. Returns false if there are no readers.
    ///
    /// The caller may not be a reader: it may hold the upgradable lock, or be in error. So this
    /// does not try forever. Each miss requires another reader that comes and goes during the scan
    /// ([`release_shared_elsewhere`](Self::release_shared_elsewhere)). After that many misses in a
    /// row, assume that there is no such hold.
    #[cold]
    fn release_shared_if_found(&self) -> bool {
        const LOOKS: u32 = 100;
        (0..LOOKS).any(|_| {
            #[cfg(loom)]
            crate::checker::thread::yield_now();
            let state = self.state();
            (state.readers() != 0 || state.has(SLOTS)) && self.release_shared_by_word()
        })
    }

    /// Gives back a reader's hold that is in a slot of the calling thread. Returns whether there
    /// was one.
    #[inline]
    pub(super) fn release_own_slot(&self) -> bool {
        // The caller holds the lock, so its memory is still valid. While the lock is held through a
        // slot, `SLOTS` and the bias stay.
        let state = self.state();
        state.has(SLOTS) && visible_readers::retract(self.key(state))
    }

    #[inline(never)]
    fn release_shared_by_word(&self) -> bool {
        loop {
            let state = self.state();
            if state.readers() == 0 {
                // The hold is in another thread's slot, or there is none.
                return state.has(SLOTS) && visible_readers::retract_any(self.key(state));
            }
            let after = state.after(Release::Reader);
            if after.must_serve(Release::Reader) {
                self.hand_off(state, Release::Reader);
                return true;
            }
            if self.replace(state, after, Releasing) {
                return true;
            }
        }
    }
}
