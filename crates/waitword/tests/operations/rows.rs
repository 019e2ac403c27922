//! The operations, and what each may cost.
//!
//! Each row: what it is, its costs (locked instructions, system calls, lines of its own and others that it writes), the
//! operation, and after what. A wait that sleeps makes one call more than it must, every 10 ms: it asks for its priority.

use crate::common::until;
use crate::scene::{IT, asleep, elsewhere, make_fast, once_asleep};
use crate::trace::Costs;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, fence};
use waitword::lock_api::{RawRwLock as _, RawRwLockUpgrade as _};
use waitword::{Futex, Op, RawMutex, WakeOp};

pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) costs: Costs,
    pub(crate) operation: fn(),
    pub(crate) prepare: fn(),
}

pub(crate) struct Chapter {
    pub(crate) name: &'static str,
    pub(crate) rows: &'static [Row],
}

macro_rules! chapters {
    ($($name:literal { $($what:literal [$($cost:literal)*] $operation:block $(after $prepare:block)?)* })*) => {
        pub(crate) const CHAPTERS: &[Chapter] = &[$(Chapter {
            name: $name,
            rows: &[$(Row {
                what: $what,
                costs: [$($cost),*],
                operation: || { let _ = $operation; },
                prepare: || { $(let _ = $prepare;)? },
            }),*],
        }),*];
    };
}

chapters! {
    "the counter itself" {
        "a load and a store" [0 0 1 0] { IT.word.store(IT.word.load(Relaxed), Relaxed) }
        "fetch_add on two words" [2 0 2 0] { IT.word.fetch_add(1, Relaxed) + IT.other_word.fetch_add(1, Relaxed) }
        "swap (xchg)" [1 0 1 0] { IT.word.swap(1, Relaxed) }
        "a compare-and-swap that fails" [1 0 1 0] { IT.word.compare_exchange(7, 8, Relaxed, Relaxed) }
        "a fence (mfence)" [1 0 0 0] { fence(SeqCst) }
        "getppid" [0 1 0 0] { std::os::unix::process::parent_id() }
    }
    "mutex" {
        "lock, unlock: adaptive" [2 0 1 0] { cycle(&IT.adaptive) }
        "lock, unlock: throughput" [2 0 1 0] { cycle(&IT.throughput) }
        "lock, unlock: wait-wake" [2 0 1 0] { cycle(&IT.wait_wake) }
        "lock, unlock: process-shared" [2 0 1 0] { cycle(&IT.shared) }
        "lock, unlock: recursive" [2 0 1 0] { cycle(&IT.recursive) } after { cycle(&IT.recursive) }
        "lock, unlock: error-checking" [2 0 1 0] { cycle(&IT.checking) } after { cycle(&IT.checking) }
        "lock, unlock: priority-inheriting" [2 0 1 0] { cycle(&IT.inheriting) } after { cycle(&IT.inheriting) }
        "lock, unlock: robust" [2 0 1 0] { robust_cycle() } after { robust_cycle() }
        "lock again: recursive" [1 0 1 0] { IT.recursive.lock() } after { IT.recursive.lock() }
        "try_lock, it is held" [0 0 0 0] { IT.adaptive.try_lock() } after { IT.adaptive.lock() }
        "lock, unlock, 3 wait and one is awake" [2 0 1 0] { cycle(&IT.adaptive) } after { one_of_three_is_awake() }
        "lock, sleeps: adaptive" [8 2 1 2] { IT.adaptive.lock() } after { held(&IT.adaptive); once_asleep(|| unlock(&IT.adaptive)) }
        "lock, sleeps: wait-wake" [8 2 1 2] { IT.wait_wake.lock() } after { held(&IT.wait_wake); once_asleep(|| unlock(&IT.wait_wake)) }
        "unlock, 1 sleeps: adaptive" [6 1 1 3] { unlock(&IT.adaptive) } after { held(&IT.adaptive); asleep(1, || IT.adaptive.lock()) }
        "unlock, 3 sleep: adaptive" [6 1 1 5] { unlock(&IT.adaptive) } after { held(&IT.adaptive); asleep(3, || IT.adaptive.lock()) }
        "unlock, 3 sleep: wait-wake" [6 1 1 5] { unlock(&IT.wait_wake) } after { held(&IT.wait_wake); asleep(3, || IT.wait_wake.lock()) }
        "unlock, 3 sleep: process-shared" [1 1 1 0] { unlock(&IT.shared) } after { held(&IT.shared); asleep(3, || IT.shared.lock()) }
    }
    "rwlock" {
        "read, give back" [2 0 1 0] { read() }
        "read, give back, as another reads" [2 0 1 0] { read() } after { read_elsewhere() }
        "read, give back: fast" [2 0 0 1] { read() } after { make_fast(&IT.rwlock) }
        "write, give back" [2 0 1 0] { write() }
        "write, give back: it was fast" [6 0 1 1] { write() } after { make_fast(&IT.rwlock) }
        "hold upgradably, upgrade, give back" [3 0 1 0] { upgrade() }
        "give back, 1 reader sleeps" [7 1 1 3] { end_write() } after { IT.rwlock.lock_exclusive(); asleep(1, read) }
        "give back, 8 readers sleep" [14 1 1 10] { end_write() } after { IT.rwlock.lock_exclusive(); asleep(8, read) }
        "give back, 1 writer sleeps" [7 1 1 3] { end_read() } after { IT.rwlock.lock_shared(); asleep(1, write) }
    }
    "condition variable" {
        "notify_one, nobody waits" [0 0 0 0] { IT.condvar.notify_one() }
        "notify_all, nobody waits" [0 0 0 0] { IT.condvar.notify_all() }
        "notify_one, 1 waits, mutex free" [13 1 2 4] { IT.condvar.notify_one() } after { waiting(1) }
        "notify_one, 1 waits, mutex held" [11 0 2 3] { IT.condvar.notify_one() } after { waiting(1); held(&IT.adaptive) }
        "notify_one, 1 waits, and unlock" [17 1 2 4] { signal_and_unlock() } after { waiting(1); held(&IT.adaptive) }
        "notify_all, 8 wait, mutex free" [13 1 2 11] { IT.condvar.notify_all() } after { waiting(8) }
        "notify_all, 8 wait, mutex held" [11 0 2 10] { IT.condvar.notify_all() } after { waiting(8); held(&IT.adaptive) }
        "notify_all, 8 wait, and unlock" [17 1 2 11] { broadcast_and_unlock() } after { waiting(8); held(&IT.adaptive) }
    }
    "semaphore, events, latch, barrier, once" {
        "Semaphore: post, nobody waits" [1 0 1 0] { IT.semaphore.post() }
        "Semaphore: wait, it is there" [1 0 1 0] { IT.semaphore.wait() } after { IT.semaphore.post() }
        "Semaphore: try_wait in vain" [0 0 0 0] { IT.semaphore.try_wait() }
        "Semaphore: post, 1 sleeps" [7 1 1 3] { IT.semaphore.post() } after { asleep(1, || IT.semaphore.wait()) }
        "Semaphore: wait, sleeps" [8 2 1 2] { IT.semaphore.wait() } after { once_asleep(post) }
        "Event: is_set and wait, it is set" [0 0 0 0] { (IT.event.is_set(), IT.event.wait()) } after { IT.event.set() }
        "Event: set, nobody waits" [1 0 1 0] { IT.event.set() }
        "Event: set, 8 sleep" [14 1 1 10] { IT.event.set() } after { asleep(8, || IT.event.wait()) }
        "AutoEvent: set and wait" [2 0 1 0] { (IT.auto_event.set(), IT.auto_event.wait()) }
        "Latch: count_down to zero, nobody waits" [1 0 1 0] { IT.latch.count_down(1) }
        "Latch: wait, it is open" [0 0 0 0] { IT.latch.wait() } after { IT.latch.count_down(1) }
        "Barrier: wait, the last of 4" [7 1 1 5] { IT.barrier.wait() } after { asleep(3, arrive) }
        "Once: call_once, done" [0 0 0 0] { IT.once.call_once(|| {}) } after { IT.once.call_once(|| {}) }
        "Once: call_once, the first" [2 0 1 0] { IT.once.call_once(|| {}) }
    }
    "futex" {
        "wake, nobody waits" [1 0 0 0] { word().wake(1) }
        "wake, 1 sleeps on another word" [1 0 0 0] { other_word().wake(1) } after { asleep(1, sleep_on_word) }
        "wake, 1 sleeps" [6 1 0 3] { word().wake(1) } after { asleep(1, sleep_on_word) }
        "wake, 8 sleep" [13 1 0 10] { word().wake(8) } after { asleep(8, sleep_on_word) }
        "wait, the value differs" [0 0 0 0] { word().wait(1) }
        "wait, sleeps" [6 2 0 2] { word().wait(0) } after { once_asleep(wake_one) }
        "requeue, nobody waits" [1 0 0 0] { word().requeue(other_word(), 1, 1) }
        "requeue, 8 sleep, all are moved" [11 0 0 10] { word().requeue(other_word(), 0, 8) } after { asleep(8, sleep_on_word) }
        "wake_op, nobody waits" [3 0 1 0] { word().wake_op(1, other_word(), 1, WakeOp::<u32>::new(Op::Add, 1)) }
        "wake, nobody waits: process-shared" [0 1 0 0] { Futex::shared(&*IT.word).wake(1) }
    }
}

/// Locks and unlocks.
#[inline(always)]
fn cycle(mutex: &RawMutex) {
    mutex.lock();
    unlock(mutex);
}

fn held(mutex: &RawMutex) {
    mutex.lock();
}

#[inline(always)]
fn unlock(mutex: &RawMutex) {
    // SAFETY: all who call this have locked it, or act for who has.
    unsafe { mutex.unlock() };
}

#[inline(always)]
fn robust_cycle() {
    // SAFETY: a static stays where it is.
    let locked = unsafe { IT.robust.lock() };
    debug_assert!(locked.is_ok());
    let _ = IT.robust.unlock();
}

/// A waiter has been woken, and has not got on yet; two others sleep.
fn one_of_three_is_awake() {
    IT.adaptive.lock();
    asleep(1, || IT.adaptive.lock());
    unlock(&IT.adaptive);
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
    // SAFETY: all who call this read.
    unsafe { IT.rwlock.unlock_shared() };
}

#[inline(always)]
fn write() {
    IT.rwlock.lock_exclusive();
    end_write();
}

#[inline(always)]
fn end_write() {
    // SAFETY: all who call this write.
    unsafe { IT.rwlock.unlock_exclusive() };
}

#[inline(always)]
fn upgrade() {
    IT.rwlock.lock_upgradable();
    // SAFETY: held so.
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
