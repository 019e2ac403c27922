//! Mutexes, reader-writer locks and condition variables with a fault.

use super::{Spared, sleep_forever};
use crate::locks::{BenchCondvar, BenchMutex, BenchRwLock, glibc};
use crate::workload::guarded::open::Open;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// A lock whose waiters keep sleeping, except for the first `SPARED` waits of the process. If there
/// are spared waits, holders are slow, so that other threads have to wait.
pub(in crate::workload::faults) struct SleepsOnLock<const SPARED: u32>(AtomicBool);

/// Waits for any of these locks so far.
static WAITED: AtomicU32 = AtomicU32::new(0);

impl<const SPARED: u32> SleepsOnLock<SPARED> {
    const HELD: Duration = Duration::from_micros(100);
    const LOOK_AGAIN: Duration = Duration::from_micros(20);

    fn take(&self) -> bool {
        !self.0.swap(true, SeqCst)
    }

    fn wait_for_it(&self) {
        if !self.take() {
            if WAITED.fetch_add(1, SeqCst) >= SPARED {
                sleep_forever();
            }
            while !self.take() {
                thread::sleep(Self::LOOK_AGAIN);
            }
        }
        if SPARED > 0 {
            thread::sleep(Self::HELD);
        }
    }

    fn give_back(&self) {
        self.0.store(false, SeqCst);
    }

    fn unlocked() -> Self {
        Self(AtomicBool::new(false))
    }
}

// SAFETY: taken by an atomic swap, by one thread at a time.
unsafe impl<const SPARED: u32> BenchMutex for SleepsOnLock<SPARED> {
    const NAME: &'static str = "sleeps on";
    fn new() -> Self {
        Self::unlocked()
    }
    fn lock(&self) {
        self.wait_for_it();
    }
    fn try_lock(&self) -> bool {
        self.take()
    }
    unsafe fn unlock(&self) {
        self.give_back();
    }
}

// SAFETY: as above; readers exclude each other, too.
unsafe impl<const SPARED: u32> BenchRwLock for SleepsOnLock<SPARED> {
    const NAME: &'static str = "sleeps on";
    fn new() -> Self {
        Self::unlocked()
    }
    fn read_lock(&self) {
        self.wait_for_it();
    }
    unsafe fn read_unlock(&self) {
        self.give_back();
    }
    fn write_lock(&self) {
        self.wait_for_it();
    }
    unsafe fn write_unlock(&self) {
        self.give_back();
    }
}

type PlainMutex = glibc::Mutex<glibc::Normal>;

/// A mutex whose `try_lock` always fails.
pub(in crate::workload::faults) struct NeverHad(PlainMutex);

// SAFETY: the C library's, except for a `try_lock` that never locks.
unsafe impl BenchMutex for NeverHad {
    const NAME: &'static str = "never had";
    fn new() -> Self {
        Self(BenchMutex::new())
    }
    fn lock(&self) {
        self.0.lock();
    }
    fn try_lock(&self) -> bool {
        false
    }
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds it, per this method's contract.
        unsafe { self.0.unlock() }
    }
}

/// Excludes only writers from each other.
pub(in crate::workload::faults) struct OpenToReaders(PlainMutex);

// SAFETY: deliberately false; used only where nothing but atomic numbers is guarded.
unsafe impl BenchRwLock for OpenToReaders {
    const NAME: &'static str = "open to readers";
    fn new() -> Self {
        Self(BenchMutex::new())
    }
    fn read_lock(&self) {}
    unsafe fn read_unlock(&self) {}
    fn write_lock(&self) {
        self.0.lock();
    }
    unsafe fn write_unlock(&self) {
        // SAFETY: the caller holds it, per this method's contract.
        unsafe { self.0.unlock() }
    }
}

/// A condition variable that is sound except that its mutex does not exclude.
pub(in crate::workload::faults) struct OpenCondvar;

// SAFETY: as for `Open`.
unsafe impl BenchCondvar for OpenCondvar {
    type Mutex = Open;
    fn new() -> Self {
        Self
    }
    unsafe fn wait(&self, _: &Open) {
        thread::yield_now();
    }
    fn signal(&self) {}
    fn broadcast(&self) {}
}

/// A condition variable whose waiters keep sleeping after the first eight waits.
pub(in crate::workload::faults) struct SleepsOnCondvar {
    condvar: glibc::Condvar,
    spared: Spared,
}

// SAFETY: the C library's, or one whose wait never returns.
unsafe impl BenchCondvar for SleepsOnCondvar {
    type Mutex = PlainMutex;
    fn new() -> Self {
        Self { condvar: BenchCondvar::new(), spared: Spared::new(8) }
    }
    unsafe fn wait(&self, mutex: &PlainMutex) {
        if self.spared.is_lost() {
            // SAFETY: the caller holds it, per this method's contract.
            unsafe { mutex.unlock() };
            sleep_forever();
        }
        // SAFETY: the caller holds the mutex, per this method's contract.
        unsafe { self.condvar.wait(mutex) };
    }
    fn signal(&self) {
        self.condvar.signal();
    }
    fn broadcast(&self) {
        self.condvar.broadcast();
    }
}

/// A condition variable whose wait never sleeps and whose signal does nothing.
pub(in crate::workload::faults) struct NeverWaits;

// SAFETY: it unlocks the mutex and locks it again.
unsafe impl BenchCondvar for NeverWaits {
    type Mutex = PlainMutex;
    fn new() -> Self {
        Self
    }
    unsafe fn wait(&self, mutex: &PlainMutex) {
        // SAFETY: the caller holds it, per this method's contract.
        unsafe { mutex.unlock() };
        thread::yield_now();
        mutex.lock();
    }
    fn signal(&self) {}
    fn broadcast(&self) {}
}
