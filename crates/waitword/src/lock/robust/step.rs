//! The steps between which a thread may die: every point at which a lock or an unlock has just
//! changed something that other threads or the kernel can see. Outside tests a step does nothing;
//! the tests kill a thread at each one.

/// A step of a lock or an unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Lock: the kernel knows what is being locked; the word is untouched.
    LockBegun,
    /// Lock: the word shows that a thread waits; it is about to sleep.
    Announced,
    /// Lock: back from a sleep, for whatever reason.
    Woken,
    /// Lock: the word is ours, but the mutex is not yet in the list.
    Taken,
    /// Lock: the previous holder's death is recorded in the mutex and no longer in the word.
    Noted,
    /// Lock: the node points into the list, but the list does not yet point to the node.
    HalfLinked,
    /// Lock: in the list, but still the pending operation.
    Linked,
    /// Locked.
    Locked,
    /// Held, and a thread may wait: the word is marked to find out whether one does.
    Marked,
    /// Unlock: the kernel knows what is being unlocked; the mutex is still in the list.
    UnlockBegun,
    /// Unlock: the next node points back past this node, but the list still leads to it.
    HalfUnlinked,
    /// Unlock: out of the list; the word is still ours.
    Unlinked,
    /// Unlock: the word is free; no thread has been woken yet.
    Released,
    /// Unlock: one thread has been woken; this is still the pending operation.
    WokeOne,
    /// Unlocked.
    Unlocked,
}

impl Step {
    /// All steps.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 15] = [
        Self::LockBegun,
        Self::Announced,
        Self::Woken,
        Self::Taken,
        Self::Noted,
        Self::HalfLinked,
        Self::Linked,
        Self::Locked,
        Self::Marked,
        Self::UnlockBegun,
        Self::HalfUnlinked,
        Self::Unlinked,
        Self::Released,
        Self::WokeOne,
        Self::Unlocked,
    ];
}

/// Marks that the calling thread has reached this step.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn step(_: Step) {}

#[cfg(test)]
pub(crate) use in_tests::{at, step};

#[cfg(test)]
mod in_tests {
    use super::Step;

    /// Runs `what` the next time the step is reached after `times` earlier visits; 0 is the first.
    #[derive(Clone, Copy)]
    struct Plan {
        step: Step,
        times: u32,
        what: fn(),
    }

    #[cfg(not(loom))]
    std::thread_local! {
        static PLAN: core::cell::Cell<Option<Plan>> = const { core::cell::Cell::new(None) };
    }
    #[cfg(loom)]
    crate::checker::thread_local! {
        static PLAN: core::cell::Cell<Option<Plan>> = core::cell::Cell::new(None);
    }

    /// Makes the calling thread run `what` once it has reached `step` this many times before.
    pub(crate) fn at(step: Step, times: u32, what: fn()) {
        PLAN.with(|plan| plan.set(Some(Plan { step, times, what })));
    }

    pub(crate) fn step(step: Step) {
        PLAN.with(|planned| match planned.get() {
            Some(plan) if plan.step == step && plan.times == 0 => {
                planned.set(None);
                (plan.what)();
            }
            Some(plan) if plan.step == step => {
                planned.set(Some(Plan { times: plan.times - 1, ..plan }))
            }
            _ => {}
        });
    }
}
