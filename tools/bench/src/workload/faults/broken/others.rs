//! Semaphores, barriers and events with a fault.

use super::{Spared, sleep_forever};
use crate::locks::barrier::BenchBarrier;
use crate::locks::event::{BenchEvent, Flag};
use crate::locks::glibc;
use crate::locks::semaphore::BenchSemaphore;
use std::sync::{Condvar, Mutex, PoisonError};

/// A semaphore that always has a token, a barrier that never waits, an event that is always set.
pub(in crate::workload::faults) struct OpenToAll;

impl BenchSemaphore for OpenToAll {
    const NAME: &'static str = "bottomless";
    fn new(_: u32) -> Self {
        Self
    }
    fn wait(&self) {}
    fn post(&self) {}
}

impl BenchBarrier for OpenToAll {
    const NAME: &'static str = "open";
    fn new(_: u32) -> Self {
        Self
    }
    fn wait(&self) -> bool {
        false
    }
}

impl BenchEvent for OpenToAll {
    fn name() -> String {
        "open".to_owned()
    }
    fn new() -> Self {
        Self
    }
    fn wait(&self) {}
    fn set(&self) {}
}

/// A semaphore whose waiters keep sleeping after the first `SPARED` waits.
pub(in crate::workload::faults) struct SleepsOnSemaphore<const SPARED: u32> {
    value: Mutex<u32>,
    posted: Condvar,
    spared: Spared,
}

impl<const SPARED: u32> BenchSemaphore for SleepsOnSemaphore<SPARED> {
    const NAME: &'static str = "sleeps on";
    fn new(value: u32) -> Self {
        Self { value: Mutex::new(value), posted: Condvar::new(), spared: Spared::new(SPARED) }
    }
    fn wait(&self) {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if *value == 0 && self.spared.is_lost() {
            drop(value);
            sleep_forever();
        }
        while *value == 0 {
            let woken = self.posted.wait(value);
            value = woken.unwrap_or_else(PoisonError::into_inner);
        }
        *value -= 1;
    }
    fn post(&self) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.posted.notify_one();
    }
}

/// A barrier at which threads keep sleeping after the first eight passes.
pub(in crate::workload::faults) struct SleepsOnBarrier {
    barrier: std::sync::Barrier,
    spared: Spared,
}

impl BenchBarrier for SleepsOnBarrier {
    const NAME: &'static str = "sleeps on";
    fn new(threads: u32) -> Self {
        Self { barrier: std::sync::Barrier::new(threads as usize), spared: Spared::new(8) }
    }
    fn wait(&self) -> bool {
        let is_leader = self.barrier.wait().is_leader();
        if self.spared.is_lost() {
            sleep_forever();
        }
        is_leader
    }
}

/// An event whose third waiter keeps sleeping.
pub(in crate::workload::faults) struct SleepsOnEvent {
    event: Flag<glibc::Condvar>,
    spared: Spared,
}

impl BenchEvent for SleepsOnEvent {
    fn name() -> String {
        "sleeps on".to_owned()
    }
    fn new() -> Self {
        Self { event: BenchEvent::new(), spared: Spared::new(2) }
    }
    fn wait(&self) {
        self.event.wait();
        if self.spared.is_lost() {
            sleep_forever();
        }
    }
    fn set(&self) {
        self.event.set();
    }
}
