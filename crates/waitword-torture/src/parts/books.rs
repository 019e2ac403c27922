//! What locks under torture protect: numbers that are changed in a way that betrays two at once.

use crate::actor::{Actor, Verdict};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that is there twice. Whoever may change it changes the halves by plain loads and stores, one after the other: two at once
/// see them differ, or lose a change.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Pair([AtomicU64; 2]);

impl Pair {
    /// With the lock held: changes it, with `meanwhile` between the halves. Whether nobody else did.
    pub(crate) fn change(&self, meanwhile: impl FnOnce()) -> bool {
        let before = self.begin();
        meanwhile();
        self.end(before)
    }

    /// Changes the first half only; what it was.
    pub(crate) fn begin(&self) -> u64 {
        let before = self.0[0].load(Relaxed);
        self.0[0].store(before + 1, Relaxed);
        before
    }

    /// Changes the second one, too. Whether nobody else did since `begin`.
    pub(crate) fn end(&self, before: u64) -> bool {
        let alone = self.0[1].load(Relaxed) == before;
        self.0[1].store(before + 1, Relaxed);
        alone
    }

    /// With the lock held to read: whether nobody changes it before, in or after `meanwhile`.
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

    /// Makes it whole again, after one who has begun a change and died.
    pub(crate) fn mend(&self) {
        let [first, second] = self.halves();
        let whole = first.max(second);
        self.0.iter().for_each(|half| half.store(whole, Relaxed));
    }

    /// Back to zero; what it was.
    pub(crate) fn empty(&self) -> [u64; 2] {
        self.0.each_ref().map(|half| half.swap(0, Relaxed))
    }
}

/// Such a number, and how often it was changed by those who did so.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Books {
    pair: Pair,
    changes: AtomicU64,
    /// Changes, and looks.
    pub(crate) turns: AtomicU64,
}

impl Books {
    /// With the lock held to write.
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
            return Err("two have it at once, and both write".to_owned());
        }
        self.changes.fetch_add(changes, Relaxed);
        self.turn_over(actor);
        Ok(())
    }

    /// With the lock held to read.
    pub(crate) fn look(&self, actor: &mut Actor) -> Verdict {
        if !self.pair.rests(|| actor.dawdle()) {
            return Err("somebody wrote beside a reader".to_owned());
        }
        self.turn_over(actor);
        Ok(())
    }

    fn turn_over(&self, actor: &Actor) {
        self.turns.fetch_add(1, Relaxed);
        actor.step();
    }

    /// When all are gone: that no change was lost. Then it begins anew.
    pub(crate) fn settle(&self) -> Verdict {
        let changes = self.changes.swap(0, Relaxed);
        self.turns.store(0, Relaxed);
        match self.pair.empty() {
            counted if counted == [changes; 2] => Ok(()),
            counted => Err(format!(
                "{changes} changes were made, and counted: {counted:?}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_at_once_are_seen() {
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
