//! Our operations, through the library's own interface: fast paths and slow paths.
//!
//! Each row has a name, the operation, and what is done before it. At most every 10 ms, a wait that
//! sleeps makes one extra system call: it asks for its priority.

use super::operation::Operation;
use super::scene::{IT, asleep, elsewhere, long_ago, make_biased, once_asleep, until};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, fence};
use std::time::Duration;
use waitword::lock_api::{RawRwLock as _, RawRwLockUpgrade as _};
use waitword::{Cmp, Deadline, Futex, Op, RawPosixMutex, WakeOp};

macro_rules! chapters {
    ($($name:literal { $($what:literal $operation:block $(after $prepare:block)?)* })*) => {
        /// All operations, in the order of the table.
        pub(super) fn operations() -> Vec<Operation> {
            vec![$($(Operation {
                chapter: $name,
                what: $what.to_owned(),
                is_ours: true,
                operation: || { let _ = $operation; },
                prepare: || { $(let _ = $prepare;)? },
            },)*)*]
        }
    };
}

chapters! {
    "the counter itself" {
        "a load and a store" { IT.word.store(IT.word.load(Relaxed), Relaxed) }
        "fetch_add on two words" {
            IT.word.fetch_add(1, Relaxed) + IT.other_word.fetch_add(1, Relaxed)
        }
        "swap (xchg)" { IT.word.swap(1, Relaxed) }
        "a compare-and-swap that fails" { IT.word.compare_exchange(7, 8, Relaxed, Relaxed) }
        "a fence (mfence)" { fence(SeqCst) }
        "getppid" { std::os::unix::process::parent_id() }
    }
    "mutex" {
        "lock, unlock: adaptive" { cycle(&IT.adaptive) }
        "lock, unlock: throughput" { cycle(&IT.throughput) }
        "lock, unlock: wait-wake" { cycle(&IT.wait_wake) }
        "lock, unlock: process-shared" { cycle(&IT.shared) }
        "lock, unlock: recursive" { cycle(&IT.recursive) } after { cycle(&IT.recursive) }
        "lock, unlock: error-checking" { cycle(&IT.checking) } after { cycle(&IT.checking) }
        "lock, unlock: priority-inheriting" { cycle(&IT.inheriting) } after {
            cycle(&IT.inheriting)
        }
        "lock, unlock: robust" { robust_cycle() } after { robust_cycle() }
        "lock again: recursive" { IT.recursive.lock() } after { IT.recursive.lock() }
        "try_lock, it is held" { IT.adaptive.try_lock() } after { IT.adaptive.lock() }
        "lock, unlock, 3 wait and one is awake" { cycle(&IT.adaptive) } after {
            one_of_three_is_awake()
        }
        "lock, sleeps: adaptive" { IT.adaptive.lock() } after {
            held(&IT.adaptive);
            sleeps_until(|| unlock(&IT.adaptive))
        }
        "lock, sleeps: wait-wake" { IT.wait_wake.lock() } after {
            held(&IT.wait_wake);
            sleeps_until(|| unlock(&IT.wait_wake))
        }
        "lock, sleeps: process-shared" { IT.shared.lock() } after {
            held(&IT.shared);
            sleeps_until(|| unlock(&IT.shared))
        }
        "unlock, 1 sleeps: adaptive" { unlock(&IT.adaptive) } after {
            held(&IT.adaptive);
            asleep(1, || IT.adaptive.lock())
        }
        "unlock, 3 sleep: adaptive" { unlock(&IT.adaptive) } after {
            held(&IT.adaptive);
            asleep(3, || IT.adaptive.lock())
        }
        "unlock, 3 sleep: throughput" { unlock(&IT.throughput) } after {
            held(&IT.throughput);
            asleep(3, || IT.throughput.lock())
        }
        "unlock, 3 sleep: wait-wake" { unlock(&IT.wait_wake) } after {
            held(&IT.wait_wake);
            asleep(3, || IT.wait_wake.lock())
        }
        "unlock, 3 sleep: process-shared" { unlock(&IT.shared) } after {
            held(&IT.shared);
            asleep(3, || IT.shared.lock())
        }
    }
    "rwlock" {
        "read, unlock" { read() }
        "read, unlock, as another reads" { read() } after { read_elsewhere() }
        "read, unlock: biased" { read() } after { make_biased(&IT.rwlock) }
        "write, unlock" { write() }
        "write, unlock: was biased" { write() } after { make_biased(&IT.rwlock) }
        "lock upgradable, upgrade, unlock" { upgrade() }
        "unlock, 1 reader sleeps" { end_write() } after {
            IT.rwlock.lock_exclusive();
            asleep(1, read)
        }
        "unlock, 8 readers sleep" { end_write() } after {
            IT.rwlock.lock_exclusive();
            asleep(8, read)
        }
        "unlock, 1 writer sleeps" { end_read() } after {
            IT.rwlock.lock_shared();
            asleep(1, write)
        }
    }
    "condition variable" {
        "notify_one, no waiters" { IT.condvar.notify_one() }
        "notify_all, no waiters" { IT.condvar.notify_all() }
        "notify_one, no waiters left: priority-inheriting" { IT.condvar.notify_one() } after {
            has_waited(&IT.inheriting)
        }
        "notify_one, 1 waits, mutex free" { IT.condvar.notify_one() } after { waiting(1) }
        "notify_one, 1 waits, mutex held" { IT.condvar.notify_one() } after {
            waiting(1);
            held(&IT.adaptive)
        }
        "notify_one, 1 waits, and unlock" { signal_and_unlock() } after {
            waiting(1);
            held(&IT.adaptive)
        }
        "notify_all, 8 wait, mutex free" { IT.condvar.notify_all() } after { waiting(8) }
        "notify_all, 8 wait, mutex held" { IT.condvar.notify_all() } after {
            waiting(8);
            held(&IT.adaptive)
        }
        "notify_all, 8 wait, and unlock" { broadcast_and_unlock() } after {
            waiting(8);
            held(&IT.adaptive)
        }
    }
    "semaphore, events, latch, barrier, once" {
        "Semaphore: post, no waiters" { IT.semaphore.post() }
        "Semaphore: wait, it is there" { IT.semaphore.wait() } after { IT.semaphore.post() }
        "Semaphore: try_wait in vain" { IT.semaphore.try_wait() }
        "Semaphore: post, 1 sleeps" { IT.semaphore.post() } after {
            asleep(1, || IT.semaphore.wait())
        }
        "Semaphore: wait, sleeps" { IT.semaphore.wait() } after { sleeps_until(post) }
        "Event: is_set and wait, it is set" { (IT.event.is_set(), IT.event.wait()) } after {
            IT.event.set()
        }
        "Event: set, no waiters" { IT.event.set() }
        "Event: set, 8 sleep" { IT.event.set() } after { asleep(8, || IT.event.wait()) }
        "AutoEvent: set and wait" { (IT.auto_event.set(), IT.auto_event.wait()) }
        "Latch: count_down to zero, no waiters" { IT.latch.count_down(1) }
        "Latch: wait, it is open" { IT.latch.wait() } after { IT.latch.count_down(1) }
        "Barrier: wait, the last of 4" { IT.barrier.wait() } after { asleep(3, arrive) }
        "Once: call_once, done" { IT.once.call_once(|| {}) } after { IT.once.call_once(|| {}) }
        "Once: call_once, the first" { IT.once.call_once(|| {}) }
    }
    "futex" {
        "wake, no waiters" { word().wake(1) }
        "wake, 1 sleeps on another word" { other_word().wake(1) } after { asleep(1, sleep_on_word) }
        "wake, 1 sleeps" { word().wake(1) } after { asleep(1, sleep_on_word) }
        "wake, 8 sleep" { word().wake(8) } after { asleep(8, sleep_on_word) }
        "wait, the value differs" { word().wait(1) }
        "wait, sleeps" { word().wait(0) } after { sleeps_until(wake_one) }
        "requeue, no waiters" { word().requeue(other_word(), 1, 1) }
        "requeue, 8 sleep, all are moved" { word().requeue(other_word(), 0, 8) } after {
            asleep(8, sleep_on_word)
        }
        "requeue, 64 sleep, all are moved" { word().requeue(other_word(), 0, 64) } after {
            asleep(64, sleep_on_word)
        }
        "requeue, 64 sleep, one is woken" { word().requeue(other_word(), 1, 63) } after {
            asleep(64, sleep_on_word)
        }
        "wake_op, no waiters" {
            word().wake_op(1, other_word(), 1, WakeOp::<u32>::new(Op::Add, 1))
        }
        "wake_op, 1 sleeps on each word" { word().wake_op(1, other_word(), 1, add_to_0()) } after {
            asleep(1, sleep_on_word);
            asleep(1, sleep_on_other_word)
        }
        "wake, no waiters: process-shared" { Futex::shared(&*IT.word).wake(1) }
    }
}

/// Locks and unlocks.
#[inline(always)]
fn cycle(mutex: &RawPosixMutex) {
    mutex.lock();
    unlock(mutex);
}

fn held(mutex: &RawPosixMutex) {
    mutex.lock();
}

#[inline(always)]
fn unlock(mutex: &RawPosixMutex) {
    // SAFETY: every caller has locked the mutex, or acts for the thread that has.
    unsafe { mutex.unlock() };
}

#[inline(always)]
fn robust_cycle() {
    // SAFETY: a static does not move.
    let locked = unsafe { IT.robust.lock() };
    debug_assert!(locked.is_ok());
    // SAFETY: locked just above.
    let _ = unsafe { IT.robust.unlock() };
}

/// One waiter has been woken but has made no progress yet; two other waiters sleep.
fn one_of_three_is_awake() {
    IT.adaptive.lock();
    asleep(1, || IT.adaptive.lock());
    unlock(&IT.adaptive);
    // Of the unlocks since the wake-up, numbers 0, 1, 2, 4 and 8 check whether the successor is
    // late, and the stopped thread soon is. The unlock that is measured is number 6.
    for _ in 1..5 {
        cycle(&IT.adaptive);
    }
    IT.adaptive.lock();
    asleep(2, || IT.adaptive.lock());
    unlock(&IT.adaptive);
}

#[inline(always)]
fn read() {
    IT.rwlock.lock_shared();
    end_read();
}

#[inline(always)]
fn end_read() {
    // SAFETY: every caller holds a read lock.
    unsafe { IT.rwlock.unlock_shared() };
}

#[inline(always)]
fn write() {
    IT.rwlock.lock_exclusive();
    end_write();
}

#[inline(always)]
fn end_write() {
    // SAFETY: every caller holds the write lock.
    unsafe { IT.rwlock.unlock_exclusive() };
}

#[inline(always)]
fn upgrade() {
    IT.rwlock.lock_upgradable();
    // SAFETY: the lock is held upgradably.
    unsafe { IT.rwlock.upgrade() };
    end_write();
}

fn read_elsewhere() {
    static READS: AtomicBool = AtomicBool::new(false);
    elsewhere(|| {
        IT.rwlock.lock_shared();
        READS.store(true, SeqCst);
    });
    until(|| READS.load(SeqCst));
}

fn waiting(count: usize) {
    asleep(count, || {
        IT.adaptive.lock();
        // SAFETY: locked.
        let _ = unsafe { IT.condvar.wait(&IT.adaptive, None) };
    });
}

/// A wait with this mutex that has already ended.
fn has_waited(mutex: &'static RawPosixMutex) {
    mutex.lock();
    let past = Deadline::after(Duration::ZERO);
    // SAFETY: locked.
    let _ = unsafe { IT.condvar.wait(mutex, Some(&past)) };
    unlock(mutex);
}

#[inline(always)]
fn signal_and_unlock() {
    IT.condvar.notify_one();
    unlock(&IT.adaptive);
}

#[inline(always)]
fn broadcast_and_unlock() {
    IT.condvar.notify_all();
    unlock(&IT.adaptive);
}

#[inline(always)]
fn word() -> Futex<'static, AtomicU32> {
    Futex::private(&IT.word)
}

#[inline(always)]
fn other_word() -> Futex<'static, AtomicU32> {
    Futex::private(&IT.other_word)
}

fn add_to_0() -> WakeOp<u32> {
    WakeOp::new(Op::Add, 1).when(Cmp::Eq, 0)
}

/// Prepares an operation that sleeps until another thread does `work`.
fn sleeps_until(work: fn()) {
    // The first wait of a thread is different: it measures how long a pause takes, for example. Do
    // it now.
    let held = RawPosixMutex::new();
    held.lock();
    let _ = held.lock_until(Deadline::after(Duration::from_millis(1)));
    long_ago();
    once_asleep(work);
}

fn sleep_on_other_word() {
    let _ = other_word().wait(0);
}

fn sleep_on_word() {
    let _ = word().wait(0);
}

fn wake_one() {
    let _ = word().wake(1);
}

fn post() {
    let _ = IT.semaphore.post();
}

fn arrive() {
    let _ = IT.barrier.wait();
}
