//! What locks under torture protect: numbers that are changed in a way that reveals two
//! simultaneous holders.

use crate::actor::{Actor, Verdict};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that is stored twice. A thread that may change it changes the two halves by plain loads
/// and stores, one after the other. Two threads that do so at once see the halves differ, or lose a
/// change.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Pair([AtomicU64; 2]);

impl Pair {
    /// With the lock held: changes it, with `meanwhile` between the halves. Returns whether no
    /// other thread changed it.
    pub(crate) fn change(&self, meanwhile: impl FnOnce()) -> bool {
        let before = self.begin();
        meanwhile();
        self.end(before)
    }

    /// Changes only the first half. Returns its old value.
    pub(crate) fn begin(&self) -> u64 {
        let before = self.0[0].load(Relaxed);
        self.0[0].store(before + 1, Relaxed);
        before
    }

    /// Changes the second half, too. Returns whether no other thread has changed it since `begin`.
    pub(crate) fn end(&self, before: u64) -> bool {
        let alone = self.0[1].load(Relaxed) == before;
        self.0[1].store(before + 1, Relaxed);
        alone
    }

    /// With the lock held for reading: whether no other thread changes it before, during or after
    /// `meanwhile`.
    pub(crate) fn rests(&self, meanwhile: impl FnOnce()) -> bool {
        let [first, second] = self.halves();
        meanwhile();
        first == second && self.halves() == [first, second]
    }

    pub(crate) fn halves(&self) -> [u64; 2] {
        self.0.each_ref().map(|half| half.load(Relaxed))
    }

    pub(crate) fn is_whole(&self) -> bool {
        let [first, second] = self.halves();
        first == second
    }

    /// Makes it whole again, after a thread that began a change and died.
    pub(crate) fn mend(&self) {
        let [first, second] = self.halves();
        let whole = first.max(second);
        self.0.iter().for_each(|half| half.store(whole, Relaxed));
    }

    /// Resets it to zero. Returns the old values.
    pub(crate) fn empty(&self) -> [u64; 2] {
        self.0.each_ref().map(|half| half.swap(0, Relaxed))
    }
}

/// Such a number, and how often it was changed according to the threads that changed it.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Books {
    pair: Pair,
    changes: AtomicU64,
    /// Changes and reads.
    pub(crate) turns: AtomicU64,
}

impl Books {
    /// With the lock held for writing.
    pub(crate) fn change(&self, actor: &mut Actor) -> Verdict {
        self.change_while(actor, Actor::dawdle)
    }

    pub(crate) fn change_while(
        &self,
        actor: &mut Actor,
        meanwhile: impl FnOnce(&mut Actor),
    ) -> Verdict {
        let changes = if actor.miscounts() { 2 } else { 1 };
        if !self.pair.change(|| meanwhile(actor)) {
            return Err("two threads hold it at once, and both write".to_owned());
        }
        self.changes.fetch_add(changes, Relaxed);
        self.turn_over(actor);
        Ok(())
    }

    /// With the lock held for reading.
    pub(crate) fn look(&self, actor: &mut Actor) -> Verdict {
        if !self.pair.rests(|| actor.dawdle()) {
            return Err("a thread wrote while another read".to_owned());
        }
        self.turn_over(actor);
        Ok(())
    }

    fn turn_over(&self, actor: &Actor) {
        self.turns.fetch_add(1, Relaxed);
        actor.step();
    }

    /// After all threads have ended: checks that no change was lost. Then everything is reset.
    pub(crate) fn settle(&self) -> Verdict {
        let changes = self.changes.swap(0, Relaxed);
        self.turns.store(0, Relaxed);
        match self.pair.empty() {
            counted if counted == [changes; 2] => Ok(()),
            counted => Err(format!("{changes} changes were made, but the counts are {counted:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_at_once_are_detected() {
        let pair = Pair::default();
        assert!(pair.change(|| {}));
        assert!(!pair.change(|| assert!(!pair.change(|| {}))));
        assert!(!pair.rests(|| {
            pair.begin();
        }));
        assert!(!pair.is_whole());
        pair.mend();
        assert!(pair.is_whole() && pair.rests(|| {}));
    }
}
