//! A bounded queue: one mutex, and a condition variable for each side.

use crate::any::cell::{Load, Signal};
use crate::any::crowd::{self, Job, Member, Outcome};
use crate::harness::{Failure, check};
use crate::locks::{BenchCondvar, BenchMutex};
use core::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

#[repr(C, align(128))]
struct Queue<C: BenchCondvar> {
    mutex: C::Mutex,
    room: C,
    items: C,
    /// Used only by the mutex's holder.
    state: UnsafeCell<State>,
    capacity: usize,
    signal: Signal,
    has_ended: AtomicBool,
}

struct State {
    ring: Vec<u64>,
    first: usize,
    length: usize,
}

// SAFETY: only the mutex's holder uses the state.
unsafe impl<C: BenchCondvar> Sync for Queue<C> {}

impl<C: BenchCondvar> Queue<C> {
    /// Waits on one side until the condition holds. The mutex must be held, and is held on return.
    /// Returns false if the run is over.
    fn wait_until(&self, side: &C, is_as_wanted: impl Fn(&State) -> bool) -> bool {
        loop {
            // Relaxed: the flag is written with the mutex held.
            if self.has_ended.load(Relaxed) {
                return false;
            }
            // SAFETY: the caller holds the mutex.
            if is_as_wanted(unsafe { &*self.state.get() }) {
                return true;
            }
            // SAFETY: the mutex is held; every waiter waits with this mutex.
            unsafe { side.wait(&self.mutex) };
        }
    }

    /// Unlocks, and notifies the other side.
    fn leave(&self, side: &C) {
        let unlock = || {
            // SAFETY: the caller holds the mutex.
            unsafe { self.mutex.unlock() };
        };
        match self.signal {
            Signal::Held => {
                side.signal();
                unlock();
            }
            Signal::Unlocked => {
                unlock();
                side.signal();
            }
            Signal::Broadcast => {
                side.broadcast();
                unlock();
            }
        }
    }

    fn put(&self, item: u64, member: &mut Member<'_>) -> bool {
        let is_there = member.wait(|| {
            self.mutex.lock();
            self.wait_until(&self.room, |state| state.length < self.capacity)
        });
        if is_there {
            // SAFETY: the mutex is held.
            let state = unsafe { &mut *self.state.get() };
            let at = (state.first + state.length) % self.capacity;
            state.ring[at] = item;
            state.length += 1;
            member.work_inside();
        }
        self.leave(&self.items);
        is_there
    }

    fn take(&self, member: &mut Member<'_>) -> Option<u64> {
        let is_there = member.wait(|| {
            self.mutex.lock();
            self.wait_until(&self.items, |state| state.length > 0)
        });
        let item = is_there.then(|| {
            // SAFETY: the mutex is held.
            let state = unsafe { &mut *self.state.get() };
            let item = state.ring[state.first];
            state.first = (state.first + 1) % self.capacity;
            state.length -= 1;
            member.work_inside();
            item
        });
        self.leave(&self.room);
        item
    }

    fn end(&self) {
        self.mutex.lock();
        self.has_ended.store(true, SeqCst);
        self.room.broadcast();
        self.items.broadcast();
        // SAFETY: locked above; the queue is boxed and does not move.
        unsafe { self.mutex.unlock() };
    }
}

pub(in crate::any) fn run<C: BenchCondvar>(job: Job<'_>) -> Result<Outcome, Failure> {
    let Load::Queue { producers, capacity, signal, .. } = job.cell.load else {
        return Err(Failure::new("not a cell of this family"));
    };
    let capacity = capacity as usize;
    let queue = Box::new(Queue::<C> {
        mutex: C::Mutex::new(),
        room: C::new(),
        items: C::new(),
        state: UnsafeCell::new(State { ring: vec![0; capacity], first: 0, length: 0 }),
        capacity,
        signal,
        has_ended: AtomicBool::new(false),
    });
    let (put, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut outcome = crowd::run_to_end(
        job,
        || queue.end(),
        |member| {
            let mut sum = 0_u64;
            if member.number < producers as usize {
                let mut item = member.number as u64 + 1;
                while !member.is_over() && queue.put(item, member) {
                    sum = sum.wrapping_add(item);
                    item = item.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
                    member.work_outside();
                }
                put.fetch_add(sum, Relaxed);
            } else {
                while !member.is_over()
                    && let Some(item) = queue.take(member)
                {
                    sum = sum.wrapping_add(item);
                    member.work_outside();
                }
                taken.fetch_add(sum, Relaxed);
            }
        },
    );
    // SAFETY: all threads have ended.
    let state = unsafe { &*queue.state.get() };
    let left = (0..state.length)
        .map(|number| state.ring[(state.first + number) % capacity])
        .fold(0_u64, u64::wrapping_add);
    let (put, taken) = (put.into_inner(), taken.into_inner());
    check(put == taken.wrapping_add(left), || {
        "the items taken out and left over are not those put into the queue".to_owned()
    })?;
    // An item is one operation, but both sides counted it.
    outcome.halve();
    Ok(outcome)
}
