//! Interrupters, which end waits as cancellation does. A wait borrows one, and meanwhile another
//! thread triggers them at random.

use crate::actor::Actor;
use crate::count::Count;
use crate::nap::{let_others_run, nap};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use waitword::abi_support::Interrupter;

struct Slot {
    interrupter: Interrupter,
    is_lent: AtomicBool,
}

const SLOTS: usize = 256;
static ALL: [Slot; SLOTS] =
    [const { Slot { interrupter: Interrupter::new(), is_lent: AtomicBool::new(false) } }; SLOTS];

/// An interrupter for one wait. It may have been triggered before the wait begins.
pub(super) struct Lent(&'static Slot);

/// Lends an interrupter, if the one that the dice choose is free.
pub(super) fn lend(actor: &mut Actor) -> Option<Lent> {
    let slot = &ALL[actor.dice.usize(0..SLOTS)];
    (!slot.is_lent.swap(true, SeqCst)).then(|| Lent(slot))
}

impl Lent {
    pub(super) fn interrupter(&self) -> &'static Interrupter {
        &self.0.interrupter
    }

    /// After a wait that was interrupted: whether by this interrupter.
    pub(super) fn has_interrupted(&self, actor: &Actor) -> bool {
        let by_this = self.0.interrupter.is_interrupted();
        if by_this {
            self.0.interrupter.clear();
            actor.count(Count::Interrupted, 1);
        }
        by_this
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.is_lent.store(false, SeqCst);
    }
}

/// Triggers some of those that are lent.
pub(super) fn interrupt_some(actor: &mut Actor) {
    let from = actor.dice.usize(0..SLOTS);
    (0..SLOTS)
        .map(|number| &ALL[(from + number) % SLOTS])
        .filter(|slot| slot.is_lent.load(SeqCst))
        .take(actor.dice.usize(1..=8))
        .for_each(|slot| slot.interrupter.interrupt());
    match actor.dice.u32(0..8) {
        0 => nap(actor.dice.u64(0..200)),
        _ => let_others_run(),
    }
}
