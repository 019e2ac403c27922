//! The same operations of every lock, through the benchmark's traits.
//!
//! Each operation is one function call, or two (`locks/mod.rs`). It has been done once before, so
//! that a library's one-time work is not counted: binding a function, memory for a thread's first
//! wait.
//!
//! | primitive | fast paths | slow paths |
//! |---|---|---|
//! | mutex | lock, unlock; a failed `try_lock` | a lock that sleeps; unlock with 1 and 3 sleepers |
//! | condvar | signal, broadcast without waiters | a wait; signal, broadcast, mutex free and held |
//! | rwlock | read, write | end of a write with 1 and 8 sleeping readers, of a read with a writer |
//! | futex | calls that change nothing | wake, requeue |
//! | semaphore, once | both | |

mod condvar;
mod futex;
mod mutex;
mod others;
mod rows;
mod rwlock;

use super::operation::Operation;
use crate::locks::glibc::{self, ErrorChecking, Inherit, Recursive};
use crate::locks::pthread::{CLibrary, DropIn, is_loaded};
use crate::locks::{every_condvar, every_mutex, every_rwlock, ours};
use crate::ops::{Called, Kernel, Ours};
use condvar::condvar;
use futex::futex;
use mutex::mutex;
use others::others;
use rows::side_by_side;
use rwlock::rwlock;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// All operations, in the order of the table.
pub(super) fn operations() -> Vec<Operation> {
    let mut all = every_mutex!(mutex());
    all.push(mutex::<glibc::Mutex<Recursive>>());
    all.push(mutex::<glibc::Mutex<ErrorChecking>>());
    if is_loaded() {
        all.push(mutex::<glibc::Mutex<glibc::Adaptive, DropIn>>());
        all.push(mutex::<glibc::Mutex<Inherit, DropIn>>());
        all.push(mutex::<glibc::Mutex<Recursive, DropIn>>());
        all.push(mutex::<glibc::Mutex<ErrorChecking, DropIn>>());
    }
    let mut chapters = vec![
        side_by_side("mutex and its peers", all),
        side_by_side("condition variable and its peers", every_condvar!(condvar())),
        side_by_side("rwlock and its peers", every_rwlock!(rwlock())),
    ];
    let mut all = vec![others::<CLibrary>("glibc")];
    if is_loaded() {
        all.push(others::<DropIn>("drop-in"));
    }
    chapters.push(side_by_side("semaphore and once, beside the C library's", all));
    let all = vec![
        futex::<Called<Kernel<true>>>(),
        futex::<Called<Ours<AtomicU8, true>>>(),
        futex::<Called<Ours<AtomicU16, true>>>(),
        futex::<Called<Ours<AtomicU32, true>>>(),
        futex::<Called<Ours<AtomicU64, true>>>(),
    ];
    chapters.push(side_by_side("futex, beside the kernel's", all));
    let all = vec![
        mutex::as_shipped::<ours::Mutex<ours::Adaptive>>(),
        mutex::as_shipped::<ours::Mutex<ours::Throughput>>(),
        mutex::as_shipped::<ours::Mutex<ours::WaitWake>>(),
    ];
    chapters.push(side_by_side("mutex, ours as shipped", all));
    chapters.into_iter().flatten().collect()
}
