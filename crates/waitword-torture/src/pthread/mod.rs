//! The scenarios of `--drop-in`: they call the C library's functions by their names, and so torture whatever is loaded, the
//! drop-in or, to compare with, the C library itself.
//!
//! What they check must hold for both: it is what POSIX promises.

mod abi;
mod bare;
mod barrier;
mod bell;
mod cancel;
mod cond;
mod fork;
mod lock;
mod mutex;
mod object;
mod once;
mod owners;
mod real_time;
mod reuse;
mod rwlock;
mod sem;
mod threads;
mod until;

use crate::fault::Fault;
use crate::scenario::{Scenario, door, scenario};

pub(crate) static ALL: [Scenario; 12] = [
    Scenario {
        // A mutex with a priority ceiling is for those whose priority is below it.
        without: &[Fault::Priority],
        ..scenario(
            "pthread-mutex",
            "Mutexes of every type, protocol, robustness and scope, C11's, and spin locks: one holder at a time, no turn \
             lost, no deadline early, owners and strangers told apart",
            mutex::run,
        )
    },
    scenario(
        "pthread-cond",
        "Tokens through condition variables of every sort with mutexes of every sort, another mutex in each round: none lost, none doubled, no deadline early",
        cond::run,
    ),
    scenario(
        "pthread-cancel",
        "Waiters for tokens are cancelled and replaced: cleanup handlers find the mutex held, no token and no signal is lost with a cancelled thread",
        cancel::run,
    ),
    scenario(
        "pthread-rwlock",
        "Reader/writer locks of all kinds: nobody beside a writer, no write lost, no deadline early",
        rwlock::run,
    ),
    scenario(
        "pthread-sem",
        "Semaphores, private, shared and named, posted by threads and by signal handlers: counts are exact, EINTR as in signal(7)",
        sem::run,
    ),
    scenario(
        "pthread-barrier",
        "Barriers that are destroyed and made anew as soon as they have been passed: nobody passes early, one serial thread each time",
        barrier::run,
    ),
    scenario(
        "pthread-once",
        "Routines to be called once that call others, unwind, or end their thread: each comes to its end once, and nobody returns before",
        once::run,
    ),
    scenario(
        "pthread-owners",
        "Owners of robust mutexes end, are cancelled or killed with them: exactly one is told of each",
        owners::run,
    ),
    scenario(
        "pthread-reuse",
        "Objects that end as soon as they may, and whose memory is taken away: nobody touches them any more",
        reuse::run,
    ),
    scenario(
        "pthread-threads",
        "Threads that come and go, whose destructors lock and signal, while others allocate and load libraries: nothing is \
         lost",
        threads::run,
    ),
    scenario(
        "pthread-fork",
        "Forks in the middle of everything, with fork handlers that lock; children use the objects with threads of their own, or \
         execute another program",
        fork::run,
    ),
    scenario(
        "raw-futex",
        "Batons go round by each operation of futex(2) and futex2, called through `syscall`, on private and on shared words: \
         none is lost",
        door::run,
    ),
];
