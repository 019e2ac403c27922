//! The thread that takes a lock last may free it, while earlier holders are still on their way out
//! of their unlock. The memory is unmapped, so a late access is a fault.

use super::KINDS;
use std::sync::Barrier;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};
use waitword::lock_api::RawRwLock as _;
use waitword::{Preference, RawRwLock, Scope};
use waitword_testkit::{Mapping, watch};

const PAGE: usize = 4096;
const THREADS: usize = 3;

/// A lock alone in a page.
fn make(preference: Preference, scope: Scope) -> *mut RawRwLock {
    let lock = Mapping::private(PAGE).leak().cast::<RawRwLock>();
    // SAFETY: a new page: large enough and aligned.
    unsafe { lock.write(RawRwLock::with(preference, scope)) };
    lock
}

/// Each thread takes the lock once; the last to take it frees it.
fn last_one_frees(
    preference: Preference,
    scope: Scope,
    rounds: usize,
    writes: impl Fn(usize, usize) -> bool + Sync,
) {
    let lock = AtomicPtr::new(std::ptr::null_mut());
    let (left, start) = (AtomicUsize::new(0), Barrier::new(THREADS));
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (lock, left, start, writes) = (&lock, &left, &start, &writes);
            threads.spawn(move || {
                for round in 0..rounds {
                    if start.wait().is_leader() {
                        left.store(THREADS, SeqCst);
                        lock.store(make(preference, scope), SeqCst);
                    }
                    start.wait();
                    let address = lock.load(SeqCst);
                    // SAFETY: freed only by the last thread to take it.
                    let lock = unsafe { &*address };
                    let writes = writes(round, thread);
                    if writes {
                        lock.lock_exclusive();
                    } else {
                        lock.lock_shared();
                    }
                    let is_last = left.fetch_sub(1, SeqCst) == 1;
                    // SAFETY: taken just now.
                    unsafe {
                        if writes {
                            lock.unlock_exclusive();
                        } else {
                            lock.unlock_shared();
                        }
                    }
                    if is_last {
                        // Readers may still hold it: they were not the last to take it, but are
                        // still inside.
                        lock.lock_exclusive();
                        // SAFETY: taken just now; no thread holds it after that, or will.
                        unsafe {
                            lock.unlock_exclusive();
                            libc::munmap(address.cast(), PAGE);
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn the_last_holder_may_free_the_lock() {
    let watchdog = watch();
    for (preference, scope) in KINDS {
        last_one_frees(preference, scope, 3000, |round, thread| (round + thread) % 2 == 0);
        watchdog.pat();
        last_one_frees(preference, scope, 3000, |_, thread| thread == 0);
        watchdog.pat();
    }
}
