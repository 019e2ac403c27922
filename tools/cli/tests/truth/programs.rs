//! The programs, and what must be found in each.

use waitword_profile::explain::Kind::{
    self, Asleep, Chain, Computes, Convoy, Herd, InVain, Inversion, Preempted, Starved, Unfair,
};

/// A program that ends by itself.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) source: &'static str,
    /// The function that released the lock of each waiting function.
    pub(crate) released_by: &'static [(&'static str, &'static str)],
    /// What `explain` must find.
    pub(crate) must: &'static [Kind],
    /// What it may find, on a busy machine say. Nothing else.
    pub(crate) may: &'static [Kind],
    /// What its text must contain.
    pub(crate) says: &'static [&'static str],
    /// Waits are so near the threshold that there may be fewer than by the program's own clock.
    pub(crate) may_be_fewer: bool,
}

const NONE: Truth =
    Truth { source: "", released_by: &[], must: &[], may: &[], says: &[], may_be_fewer: false };
const BY_HOLDER: &[(&str, &str)] = &[("waiter_of_lock", "holder_of_lock")];

pub(crate) const TRUTHS: [Truth; 17] = [
    Truth {
        source: "holder-sleeps.c",
        released_by: BY_HOLDER,
        must: &[Asleep],
        says: &["holder_of_lock", "clock_nanosleep"],
        ..NONE
    },
    Truth {
        source: "holder-computes.c",
        released_by: BY_HOLDER,
        must: &[Computes],
        may: &[Preempted],
        says: &["holder_of_lock"],
        ..NONE
    },
    Truth {
        source: "holder-preempted.c",
        released_by: BY_HOLDER,
        must: &[Preempted],
        says: &["preempted_holder_of_lock"],
        ..NONE
    },
    Truth {
        source: "priority-inversion.c",
        released_by: &[("more_urgent_waiter", "less_urgent_holder")],
        must: &[Inversion],
        may: &[Preempted],
        says: &["more_urgent_waiter", "less_urgent_holder", "niceness 19"],
        ..NONE
    },
    Truth {
        source: "holder-reads.c",
        released_by: BY_HOLDER,
        must: &[Asleep],
        says: &["holder_of_lock", "in the system call read."],
        ..NONE
    },
    Truth {
        source: "chain.c",
        released_by: &[
            ("a_waits_for_lock_1", "c_holds_lock_2"),
            ("b_waits_for_lock_2", "c_holds_lock_2"),
        ],
        must: &[Asleep, Chain],
        says: &["a_waits_for_lock_1", "c_holds_lock_2"],
        ..NONE
    },
    Truth { source: "idle-workers.c", ..NONE },
    Truth {
        source: "convoy.c",
        released_by: &[("thread_in_the_convoy", "thread_in_the_convoy")],
        must: &[Convoy],
        // A flavour for throughput serves threads in no order.
        may: &[Preempted, Unfair],
        says: &["thread_in_the_convoy", "16 threads queue"],
        ..NONE
    },
    Truth {
        source: "starved-writer.c",
        released_by: &[("starved_writer", "overlapping_reader")],
        must: &[Starved],
        // The readers sleep in their sections.
        may: &[Asleep],
        says: &["starved_writer", "overlapping_reader"],
        ..NONE
    },
    Truth {
        source: "herd.c",
        must: &[Herd],
        may: &[Convoy, Computes, Preempted, Asleep, Unfair],
        says: &["waiter_in_the_herd", "64 threads were woken together"],
        ..NONE
    },
    Truth {
        source: "uncontended.c",
        released_by: BY_HOLDER,
        must: &[Asleep],
        says: &["1 lock", "clock_nanosleep"],
        ..NONE
    },
    Truth {
        source: "unfair.c",
        released_by: &[
            ("thread_that_locks_often", "thread_that_locks_seldom"),
            ("thread_that_locks_seldom", "thread_that_locks_often"),
        ],
        must: &[Asleep, Unfair],
        says: &["9.0 times as often"],
        ..NONE
    },
    // Without a CPU for long, some of its waits are long.
    Truth {
        source: "below-threshold.c",
        may: &[Computes, Preempted, Unfair],
        may_be_fewer: true,
        ..NONE
    },
    Truth {
        source: "inlined.cpp",
        // `audit` unlocks by a tail call, so its own frame is gone by then.
        must: &[Asleep],
        says: &["truth::Ledger::take", "clock_nanosleep"],
        ..NONE
    },
    Truth {
        source: "std_locks.rs",
        released_by: &[("waiter_of_pthread_mutex", "holder_of_pthread_mutex")],
        must: &[Asleep],
        says: &["waiter_of_pthread_mutex", "holder_of_pthread_mutex"],
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
