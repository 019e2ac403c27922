//! The programs, and what must be found in each.

use waitword_profile::explain::Kind::{
    self, Asleep, Chain, Computes, Convoy, Herd, InVain, Preempted, Starved, Unfair,
};

/// What a recording does not contain yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// How often each thread took a lock without a wait.
    Acquisitions,
}

/// Take a line out, and its comparisons are made.
pub(crate) const NOT_RECORDED: &[Lack] = &[Lack::Acquisitions];

/// Nothing is lacking, or this.
pub(crate) type Needs = Option<Lack>;

pub(crate) fn is_recorded(needs: Needs) -> bool {
    needs.is_none_or(|lack| !NOT_RECORDED.contains(&lack))
}

/// A program that ends by itself.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) source: &'static str,
    /// The function that released the lock of each waiting function.
    pub(crate) released_by: &'static [(&'static str, &'static str)],
    /// What `explain` must find.
    pub(crate) must: &'static [(Kind, Needs)],
    /// What it may find, on a busy machine say. Nothing else.
    pub(crate) may: &'static [Kind],
    /// What its text must contain.
    pub(crate) says: &'static [(&'static str, Needs)],
    /// Waits are so near the threshold that there may be fewer than by the program's own clock.
    pub(crate) may_be_fewer: bool,
}

const NONE: Truth =
    Truth { source: "", released_by: &[], must: &[], may: &[], says: &[], may_be_fewer: false };
const BY_HOLDER: &[(&str, &str)] = &[("waiter_of_lock", "holder_of_lock")];

pub(crate) const TRUTHS: [Truth; 16] = [
    Truth {
        source: "holder-sleeps.c",
        released_by: BY_HOLDER,
        must: &[(Asleep, None)],
        says: &[("holder_of_lock", None), ("clock_nanosleep", None)],
        ..NONE
    },
    Truth {
        source: "holder-computes.c",
        released_by: BY_HOLDER,
        must: &[(Computes, None)],
        may: &[Preempted],
        says: &[("holder_of_lock", None)],
        ..NONE
    },
    Truth {
        source: "holder-preempted.c",
        released_by: BY_HOLDER,
        must: &[(Preempted, None)],
        says: &[("preempted_holder_of_lock", None)],
        ..NONE
    },
    Truth {
        source: "holder-reads.c",
        released_by: BY_HOLDER,
        must: &[(Asleep, None)],
        says: &[("holder_of_lock", None), ("in the system call read.", None)],
        ..NONE
    },
    Truth {
        source: "chain.c",
        released_by: &[
            ("a_waits_for_lock_1", "c_holds_lock_2"),
            ("b_waits_for_lock_2", "c_holds_lock_2"),
        ],
        must: &[(Asleep, None), (Chain, None)],
        says: &[("a_waits_for_lock_1", None), ("c_holds_lock_2", None)],
        ..NONE
    },
    Truth { source: "idle-workers.c", ..NONE },
    Truth {
        source: "convoy.c",
        released_by: &[("thread_in_the_convoy", "thread_in_the_convoy")],
        must: &[(Convoy, None)],
        // A flavour for throughput serves threads in no order.
        may: &[Preempted, Unfair],
        says: &[("thread_in_the_convoy", None), ("16 threads queue", None)],
        ..NONE
    },
    Truth {
        source: "starved-writer.c",
        released_by: &[("starved_writer", "overlapping_reader")],
        must: &[(Starved, None)],
        // The readers sleep in their sections.
        may: &[Asleep],
        says: &[("starved_writer", None), ("overlapping_reader", None)],
        ..NONE
    },
    Truth {
        source: "herd.c",
        must: &[(Herd, None)],
        may: &[Convoy, Computes, Preempted, Asleep, Unfair],
        says: &[("waiter_in_the_herd", None), ("64 threads were woken together", None)],
        ..NONE
    },
    Truth {
        source: "uncontended.c",
        released_by: BY_HOLDER,
        must: &[(Asleep, None)],
        says: &[("1 lock", None), ("clock_nanosleep", None)],
        ..NONE
    },
    Truth {
        source: "unfair.c",
        released_by: &[
            ("thread_that_locks_often", "thread_that_locks_seldom"),
            ("thread_that_locks_seldom", "thread_that_locks_often"),
        ],
        must: &[(Asleep, None), (Unfair, Some(Lack::Acquisitions))],
        says: &[("9.0 times as often", Some(Lack::Acquisitions))],
        ..NONE
    },
    Truth { source: "below-threshold.c", may: &[Computes, Preempted], may_be_fewer: true, ..NONE },
    Truth {
        source: "inlined.cpp",
        // `audit` unlocks by a tail call, so its own frame is gone by then.
        must: &[(Asleep, None)],
        says: &[("truth::Ledger::take", None), ("clock_nanosleep", None)],
        ..NONE
    },
    Truth {
        source: "std_locks.rs",
        released_by: &[("waiter_of_pthread_mutex", "holder_of_pthread_mutex")],
        must: &[(Asleep, None)],
        says: &[("waiter_of_pthread_mutex", None), ("holder_of_pthread_mutex", None)],
        ..NONE
    },
    Truth { source: "semaphore-work.c", may: &[InVain], ..NONE },
    Truth { source: "join.c", ..NONE },
];

/// A program that hangs on purpose.
#[derive(Debug)]
pub(crate) struct Hanging {
    pub(crate) source: &'static str,
    /// The threads that wait, by the keys of their answers, and the thread that has what it waits
    /// for.
    pub(crate) waits_for: &'static [(&'static str, &'static str)],
}

pub(crate) const HANGING: [Hanging; 3] = [
    Hanging {
        source: "deadlock-abba.c",
        waits_for: &[
            ("holds_a_wants_b", "holds_b_wants_c"),
            ("holds_b_wants_c", "holds_c_wants_a"),
            ("holds_c_wants_a", "holds_a_wants_b"),
        ],
    },
    Hanging { source: "deadlock-self.c", waits_for: &[("holds_and_wants", "holds_and_wants")] },
    Hanging { source: "holder-ended.c", waits_for: &[("waiter", "ended_holder")] },
];
