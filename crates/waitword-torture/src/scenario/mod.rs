//! The scenarios: what is tortured, and the invariant that each checks.

mod cond;
mod condvar;
mod fork;
mod growth;
mod herd;
mod kills;
mod locks;
mod mutex;
mod order;
mod requeue;
mod ring;
mod rwlock;
mod shared;
mod signals;
mod threads;
mod tokens;
mod traffic;
mod wait_any;
mod wake_op;

use crate::actor::Verdict;
use crate::context::Context;
use crate::drop_in::DropIn;
use crate::pthread;
use std::time::Duration;

/// A scenario, run in a process of its own.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// For a reader of the list.
    pub(crate) about: &'static str,
    pub(crate) run: fn(&'static Context) -> Verdict,
    /// The longest that one process is used for, where a fresh one matters.
    pub(crate) slice: Option<Duration>,
    pub(crate) environment: &'static [(&'static str, &'static str)],
}

/// The scenarios of the library, or of the drop-in.
pub(crate) fn all(drop_in: Option<DropIn>) -> &'static [Scenario] {
    match drop_in {
        None => &ALL,
        Some(_) => &pthread::ALL,
    }
}

pub(crate) const fn scenario(
    name: &'static str,
    about: &'static str,
    run: fn(&'static Context) -> Verdict,
) -> Scenario {
    Scenario {
        name,
        about,
        run,
        slice: None,
        environment: &[],
    }
}

static ALL: [Scenario; 17] = [
    scenario(
        "tokens",
        "Semaphores of all sizes, tiny deadlines, masks: tokens given are tokens taken, waits that \
         returned Ok are waiters that wakes have counted",
        tokens::run,
    ),
    scenario(
        "ring",
        "A baton goes round by wake, requeue and wake_op; one lost wake-up stops the ring",
        ring::run,
    ),
    scenario(
        "requeue",
        "A storm of requeues among words of one bucket and of several, racing with deadlines: every \
         wait ends, and counts are exact",
        requeue::run,
    ),
    scenario(
        "condvar",
        "Producers and consumers with condition variables that requeue onto the mutex",
        condvar::run,
    ),
    scenario(
        "mutex",
        "Mutexes of every flavour, kind and scope: one holder at a time, no turn lost, with deadlines, naps, \
         moves from CPU to CPU, and threads that come and go",
        mutex::run,
    ),
    scenario(
        "rwlock",
        "Reader/writer locks of both preferences and scopes: nobody beside a writer, no write lost, with deadlines, \
         upgrades, downgrades, and reads inside of reads",
        rwlock::run,
    ),
    scenario(
        "cond",
        "Tokens through condvars with mutexes of every sort: none lost, none doubled, and a wait says whether \
         it was signalled",
        cond::run,
    ),
    scenario(
        "wake_op",
        "glibc's old condition variable: signal and unlock in one wake_op, counts add up",
        wake_op::run,
    ),
    scenario(
        "wait_any",
        "Takers wait on many words, of all sizes, private and shared mixed",
        wait_any::run,
    ),
    scenario(
        "order",
        "Order of arrival, masks, requeues and counts against a model, one operation at a time",
        order::run,
    ),
    scenario(
        "herd",
        "All threads asleep on one word, woken at once, in batches, by mask, after a requeue: the \
         exact number each time",
        herd::run,
    ),
    scenario(
        "threads",
        "Thousands of threads that wait once and end: nothing is left behind",
        threads::run,
    ),
    Scenario {
        slice: Some(Duration::from_millis(700)),
        environment: &[("WAITWORD_BUCKETS", "1")],
        ..scenario(
            "growth",
            "The table grows from its least size while everybody waits and wakes",
            growth::run,
        )
    },
    scenario(
        "signals",
        "Handlers wake in a storm of signals, whatever they interrupt: nothing is lost, EINTR as in \
         signal(7)",
        signals::run,
    ),
    scenario(
        "fork",
        "Forks in the middle of everything, by libc and by the bare system call: the child's table \
         is empty and its futexes work",
        fork::run,
    ),
    scenario(
        "shared",
        "Words of all sizes between processes that map them at different addresses: tokens and \
         counts as between threads",
        shared::run,
    ),
    scenario(
        "kills",
        "Processes on shared words are killed at any moment: the others go on, and no word is \
         corrupted",
        kills::run,
    ),
];
