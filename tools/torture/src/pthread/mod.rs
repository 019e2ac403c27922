//! The scenarios of `--drop-in`. They call the C library's functions by name, and so torture
//! whatever is loaded: the drop-in or, for comparison, the C library itself.
//!
//! What they check must hold for both, because POSIX promises it.

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
use crate::scenario::{Scenario, raw, scenario};

pub(crate) static ALL: [Scenario; 12] = [
    Scenario {
        // Threads whose priority is above the ceiling must not lock a mutex with a priority
        // ceiling.
        without: &[Fault::Priority],
        ..scenario(
            "pthread-mutex",
            "Mutexes of every type, protocol, robustness and scope, C11's, and spin locks: one \
             holder at a time, no turn lost, no deadline early, errors for owners and non-owners",
            mutex::run,
        )
    },
    scenario(
        "pthread-cond",
        "Tokens through condition variables of every sort with mutexes of every sort, another \
         mutex in each round: none lost, none doubled, no deadline early",
        cond::run,
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
        rwlock::run,
    ),
    scenario(
        "pthread-sem",
        "Semaphores, private, shared and named, posted by threads and by signal handlers: counts \
         are exact, EINTR as in signal(7)",
        sem::run,
    ),
    scenario(
        "pthread-barrier",
        "Barriers that are destroyed and made again as soon as they have been passed: no thread \
         passes early, one serial thread each time",
        barrier::run,
    ),
    scenario(
        "pthread-once",
        "Once-routines that call other routines, unwind, or end their thread: each completes once, \
         and no caller returns before",
        once::run,
    ),
    scenario(
        "pthread-owners",
        "Owners of robust mutexes end, are cancelled or killed while they hold them: exactly one \
         thread is notified of each",
        owners::run,
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
        threads::run,
    ),
    scenario(
        "pthread-fork",
        "Forks in the middle of everything, with fork handlers that lock; children use the objects \
         with threads of their own, or execute another program",
        fork::run,
    ),
    scenario(
        "raw-futex",
        "Batons go round by each operation of futex(2) and futex2, called through `syscall`, on \
         private and on shared words: none is lost",
        raw::run,
    ),
];
