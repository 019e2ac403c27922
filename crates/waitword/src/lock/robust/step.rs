//! The moments between which a thread may die: every place where a lock or an unlock has just changed something that
//! others, or the kernel, can see. Nothing happens here, except in tests, which die at each.

/// A moment in a lock or an unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Lock: the kernel knows what is being locked; the word is untouched.
    LockBegun,
    /// Lock: others know that somebody waits; about to sleep.
    Announced,
    /// Lock: back from a sleep, whatever for.
    Woken,
    /// Lock: the word is ours, and not yet in the list.
    Taken,
    /// Lock: the death of the one before is noted in the mutex, and no more in the word.
    Noted,
    /// Lock: the node leads into the list, and the list not yet to the node.
    HalfLinked,
    /// Lock: in the list, and still the pending operation.
    Linked,
    /// Locked.
    Locked,
    /// Held, somebody may wait: the word is marked, to find out whether anybody does.
    Marked,
    /// Unlock: the kernel knows what is being unlocked; still in the list.
    UnlockBegun,
    /// Unlock: the successor leads back past the node, the list still to it.
    HalfUnlinked,
    /// Unlock: out of the list; the word is still ours.
    Unlinked,
    /// Unlock: the word is free; nobody has been woken.
    Released,
    /// Unlock: somebody has been woken; still the pending operation.
    WokeOne,
    /// Unlocked.
    Unlocked,
}

impl Step {
    /// All of them.
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

/// Here we are.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn step(_: Step) {}

#[cfg(test)]
pub(crate) use in_tests::{at, step};

#[cfg(test)]
mod in_tests {
    use super::Step;

    /// Does something at the `times`th coming to a step; 0 is the first.
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

    /// Has the calling thread do something when it has come to this step so many times before.
    pub(crate) fn at(step: Step, times: u32, what: fn()) {
        PLAN.with(|plan| plan.set(Some(Plan { step, times, what })));
    }

    pub(crate) fn step(step: Step) {
        PLAN.with(|planned| match planned.get() {
            Some(plan) if plan.step == step && plan.times == 0 => {
                planned.set(None);
                (plan.what)();
            }
            Some(plan) if plan.step == step => planned.set(Some(Plan {
                times: plan.times - 1,
                ..plan
            })),
            _ => {}
        });
    }
}
