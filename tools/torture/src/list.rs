//! The list of scenarios: what is tortured, and the invariant that each checks.

use crate::actor::Verdict;
use crate::context::Context;
use crate::fault::kind::Fault;
use crate::objects::{library, pthread};
use crate::scenario::{
    across, atomic_wait, barrier, cancel, cond, condvar, destructors, events, exec, fork,
    fork_handlers, growth, herd, kills, mutex, once, order, raw, requeue, reuse, ring, robust,
    rwlock, semaphore, shared, signals, threads, tokens, wait_any, wake_op,
};
use crate::slice::DropIn;
use std::time::Duration;

/// A scenario, run in a process of its own.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Its description in the list.
    pub(crate) about: &'static str,
    pub(crate) run: fn(&'static Context) -> Verdict,
    /// The longest time for which one process is used. After that comes a new one, with other
    /// faults.
    pub(crate) slice: Duration,
    /// Faults that it cannot tolerate, for a reason of its own.
    pub(crate) without: &'static [Fault],
    pub(crate) environment: &'static [(&'static str, &'static str)],
}

/// The scenarios of the library, or of the drop-in.
pub(crate) fn all(drop_in: Option<DropIn>) -> &'static [Scenario] {
    match drop_in {
        None => &LIBRARY,
        Some(_) => &PTHREAD,
    }
}

const fn scenario(
    name: &'static str,
    about: &'static str,
    run: fn(&'static Context) -> Verdict,
) -> Scenario {
    Scenario { name, about, run, slice: Duration::from_secs(4), without: &[], environment: &[] }
}

/// The scenarios of the library.
static LIBRARY: [Scenario; 26] = [
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
        "A storm of requeues among words of one bucket and of several, racing with deadlines: \
         every wait ends, and counts are exact",
        requeue::run,
    ),
    scenario(
        "condvar",
        "Producers and consumers with condition variables that requeue onto the mutex",
        condvar::run,
    ),
    scenario(
        "mutex",
        "Mutexes of every flavour, kind and scope: one holder at a time, no turn lost, no thread \
         starved, with deadlines, naps, moves from CPU to CPU, and threads that come and go",
        mutex::run::<library::mutex::Mutex>,
    ),
    scenario(
        "rwlock",
        "Reader/writer locks of both preferences and scopes: a writer is alone, no write lost, no \
         thread starved, with deadlines, upgrades, downgrades, and nested reads",
        rwlock::run::<library::rwlock::RwLock>,
    ),
    scenario(
        "cond",
        "Tokens through condvars with mutexes of every sort: none lost, none doubled, a wait says \
         whether it was signalled, and waiters are signalled in order of arrival",
        cond::run::<library::condvar::Condvar>,
    ),
    scenario(
        "semaphore",
        "Semaphores, posted once and often, by threads and by signal handlers, waited for with \
         deadlines and interrupters: every post is taken once, EINTR as in signal(7)",
        semaphore::run::<library::semaphore::Semaphore>,
    ),
    scenario(
        "barrier",
        "Barriers, with waiters that give up and come again: no thread passes early, one leader \
         each time",
        barrier::run::<library::barrier::Barrier>,
    ),
    scenario(
        "events",
        "Events, auto events and latches: all threads pass each time, none twice, none early",
        events::run,
    ),
    scenario(
        "once",
        "Many threads come to the same Once; some routines call another or unwind: each is done \
         once",
        once::run::<library::once::Once>,
    ),
    scenario(
        "atomic",
        "C++20's wait and notify on atomics of all kinds: a change by the partner is always seen",
        atomic_wait::run,
    ),
    scenario(
        "robust",
        "Robust mutexes whose holders die, threads that end and processes that are killed: each \
         death is announced",
        robust::run::<library::robust::RobustMutex>,
    ),
    scenario(
        "wake_op",
        "glibc's old condition variable: signal and unlock in one wake_op, counts add up",
        wake_op::run,
    ),
    scenario(
        "wait_any",
        "Takers, and rings with batons, wait on many words of all sizes, private and shared mixed",
        wait_any::run,
    ),
    scenario(
        "raw",
        "futex(2) and futex2 by their own calls, on shared words mixed with the kernel's: a baton \
         comes round",
        raw::run,
    ),
    Scenario {
        // Real-time threads are queued before others.
        without: &[Fault::Priority],
        ..scenario(
            "order",
            "Order of arrival, masks, requeues and counts against a model, one operation at a time",
            order::run,
        )
    },
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
        slice: Duration::from_millis(700),
        environment: &[("WAITWORD_BUCKETS", "1")],
        ..scenario(
            "growth",
            "The table grows from its least size while all threads wait and wake",
            growth::run,
        )
    },
    scenario(
        "signals",
        "Handlers wake in a storm of signals, whatever they interrupt: nothing is lost, EINTR as \
         in signal(7)",
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
        "across",
        "Mutexes, rwlocks, condvars and semaphores in memory that several processes map, each at \
         another address",
        across::run,
    ),
    Scenario {
        // The filter stays, but its handler does not exist in the new program.
        without: &[Fault::Memory],
        ..scenario(
            "exec",
            "Processes on shared words execute another program, in the middle of everything: all \
             make progress, and no word is corrupted",
            exec::run,
        )
    },
    scenario(
        "kills",
        "Processes on shared words are killed at any moment: the others make progress, and no word \
         is corrupted",
        kills::run,
    ),
];

/// The scenarios of `--drop-in`. They call the C library's functions by name, and so torture
/// whatever is loaded: the drop-in or, for comparison, the C library itself. What they check must
/// hold for both, because POSIX promises it.
static PTHREAD: [Scenario; 12] = [
    Scenario {
        // Threads whose priority is above the ceiling must not lock a mutex with a priority
        // ceiling.
        without: &[Fault::Priority],
        ..scenario(
            "pthread-mutex",
            "Mutexes of every type, protocol, robustness and scope, C11's, and spin locks: one \
             holder at a time, no turn lost, no deadline early, errors for owners and non-owners",
            mutex::run::<pthread::mutex::Mutex>,
        )
    },
    scenario(
        "pthread-cond",
        "Tokens through condition variables of every sort with mutexes of every sort, another \
         mutex in each round: none lost, none doubled, no deadline early",
        cond::run::<pthread::condvar::Condvar>,
    ),
    scenario(
        "pthread-cancel",
        "Waiters for tokens are cancelled and replaced: cleanup handlers find the mutex held, no \
         token and no signal is lost with a cancelled thread",
        cancel::run,
    ),
    scenario(
        "pthread-rwlock",
        "Reader/writer locks of all kinds: a writer is alone, no write lost, no deadline early",
        rwlock::run::<pthread::rwlock::RwLock>,
    ),
    scenario(
        "pthread-sem",
        "Semaphores, private, shared and named, posted by threads and by signal handlers: counts \
         are exact, EINTR as in signal(7)",
        semaphore::run::<pthread::semaphore::Semaphore>,
    ),
    scenario(
        "pthread-barrier",
        "Barriers that are destroyed and made again as soon as they have been passed: no thread \
         passes early, one serial thread each time",
        barrier::run::<pthread::barrier::Barrier>,
    ),
    scenario(
        "pthread-once",
        "Once-routines that call other routines, unwind, or end their thread: each completes once, \
         and no caller returns before",
        once::run::<pthread::once::Once>,
    ),
    scenario(
        "pthread-owners",
        "Owners of robust mutexes end or are killed while they hold them: exactly one thread is \
         notified of each",
        robust::run::<pthread::robust::RobustMutex>,
    ),
    scenario(
        "pthread-reuse",
        "Objects that are destroyed as soon as POSIX allows, and whose memory is taken away: no \
         thread touches them any more",
        reuse::run,
    ),
    scenario(
        "pthread-threads",
        "Threads that come and go, whose destructors lock and signal, while other threads allocate \
         and load libraries: nothing is lost",
        destructors::run,
    ),
    scenario(
        "pthread-fork",
        "Forks in the middle of everything, with fork handlers that lock; children use the objects \
         with threads of their own, or execute another program",
        fork_handlers::run,
    ),
    scenario(
        "raw-futex",
        "Batons go round by each operation of futex(2) and futex2, called through `syscall`, on \
         private and on shared words: none is lost",
        raw::run,
    ),
];
