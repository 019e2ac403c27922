//! What each thread holds and waits for: written by that thread, read by the check.
//!
//! A thread has a record from the first lock that it takes until it ends. It alone writes there, so
//! a lock that is free costs loads and stores, and no atomic read-modify-write.
//!
//! # The sequence
//!
//! `sequence` is odd while the thread waits. Until it changes, nothing else in the record does:
//!
//! ```text
//!   thread                                    check
//!   ──────                                    ─────
//!   wait = ...                                first = sequence        (Acquire)  odd?
//!   sequence += 1           (Release)         read wait and held
//!   wait for the lock                         fence(Acquire)
//!   sequence += 1                             sequence == first: it waited all the while
//!   fence(Release)
//!   held = ...
//! ```
//!
//! # Without the heap
//!
//! An allocator may stand on these locks, so the hooks must not allocate while the thread holds
//! one. A record is a mapping of its own, which is used again by later threads and never unmapped.
//! What comes from the heap, the thread's handle, is asked for before the thread's first lock.
//!
//! # Fork
//!
//! The kernel wipes the records in a child: all zeros is a record of no thread. The thread that
//! forked still has the address of its old one, and finds another number there than its own.

use super::kind::{LockKind, Way};
use crate::sys::mem;
use core::mem::size_of;
use core::panic::Location;
use core::ptr::{self, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::thread::Thread;

/// One lock, as one thread holds it or waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) lock: usize,
    pub(super) kind: LockKind,
    pub(super) way: Way,
    /// The call that took it, or waits for it.
    pub(super) at: &'static Location<'static>,
}

/// Where a [`Use`] is written.
struct Slot {
    lock: AtomicUsize,
    at: AtomicPtr<Location<'static>>,
    kind: AtomicU32,
    way: AtomicU32,
}

const KINDS: [LockKind; 4] = [
    LockKind::Mutex,
    LockKind::CheckedMutex,
    LockKind::PiMutex,
    LockKind::RwLock,
];
const WAYS: [Way; 4] = [Way::Shared, Way::Upgradable, Way::Exclusive, Way::Upgrade];

impl Slot {
    // Relaxed, here and in `get`: `sequence` orders what the check relies on.
    fn set(&self, lock: Use) {
        self.lock.store(lock.lock, Relaxed);
        self.at.store(ptr::from_ref(lock.at).cast_mut(), Relaxed);
        self.kind.store(lock.kind as u32, Relaxed);
        self.way.store(lock.way as u32, Relaxed);
    }

    fn get(&self) -> Option<Use> {
        let at = self.at.load(Relaxed);
        Some(Use {
            lock: self.lock.load(Relaxed),
            kind: *KINDS.get(self.kind.load(Relaxed) as usize)?,
            way: *WAYS.get(self.way.load(Relaxed) as usize)?,
            // SAFETY: null in a wiped slot, or stored by `set` from a reference that lives as long
            // as the program.
            at: unsafe { at.as_ref() }?,
        })
    }
}

/// The locks beyond this many that one thread holds at once are not written down.
const MOST_HELD: usize = 1024;

/// What one thread holds and waits for.
#[repr(C)]
pub(super) struct Record {
    /// The number of the thread that it belongs to, or 0.
    number: AtomicU32,
    has_ended: AtomicBool,
    /// A thread uses `thread`. A spin lock, since the kernel wipes it in a child.
    is_busy: AtomicBool,
    /// The thread's handle, boxed.
    thread: AtomicPtr<Thread>,
    sequence: AtomicU64,
    wait: Slot,
    /// Where the thread stands, boxed; null if that was not asked for.
    backtrace: AtomicPtr<Backtrace>,
    /// The `sequence` of the last wait that was reported. The check's own.
    pub(super) reported: AtomicU64,
    next: AtomicPtr<Record>,
    held_count: AtomicUsize,
    held: [Slot; MOST_HELD],
}

/// All records. In a child the list ends after the first.
static FIRST: AtomicPtr<Record> = AtomicPtr::new(null_mut());

/// The records of all threads, and some of no thread.
pub(super) fn all() -> impl Iterator<Item = &'static Record> {
    // SAFETY: null, or a record that `map` has published. None is ever unmapped.
    let get = |record: &AtomicPtr<Record>| unsafe { record.load(Acquire).as_ref() };
    core::iter::successors(get(&FIRST), move |record| get(&record.next))
}

/// For the calling thread.
impl Record {
    /// Gives the calling thread, which has this number and no record, one. `None` if memory is
    /// short.
    pub(super) fn claim(number: u32, thread: Thread) -> Option<&'static Self> {
        // Acquire: what the last owner wrote comes before what this one does.
        let is_claimed = |record: &&Self| {
            let claimed = record.number.compare_exchange(0, number, Acquire, Relaxed);
            claimed.is_ok()
        };
        let record = match all().find(is_claimed) {
            Some(record) => record,
            None => Self::map(number)?,
        };
        let thread = Box::into_raw(Box::new(thread));
        record.with_thread(|slot| slot.store(thread, Relaxed));
        Some(record)
    }

    /// A new record, which belongs to the thread with this number.
    fn map(number: u32) -> Option<&'static Self> {
        let length = size_of::<Self>().next_multiple_of(mem::PAGE);
        let memory = mem::map(length)?;
        // SAFETY: whole pages of the mapping just made; all zeros is a record of no thread.
        if unsafe { mem::wipe_on_fork(memory, length) }.is_err() {
            // SAFETY: mapped just above, seen by no other thread.
            unsafe { mem::unmap(memory, length) };
            return None;
        }
        // SAFETY: a page-aligned mapping of this size, of zeros, which every field may hold. It is
        // never unmapped.
        let record = unsafe { memory.cast::<Self>().as_ref() };
        record.number.store(number, Relaxed);
        let mut first = FIRST.load(Relaxed);
        loop {
            record.next.store(first, Relaxed);
            // Release: a thread that finds the record finds its number and the one after it.
            let ours = ptr::from_ref(record).cast_mut();
            match FIRST.compare_exchange_weak(first, ours, Release, Relaxed) {
                Ok(_) => return Some(record),
                Err(now) => first = now,
            }
        }
    }

    /// Gives it back, to be claimed by another thread. The thread holds nothing.
    pub(super) fn let_go(&self) {
        let thread = self.with_thread(|slot| slot.swap(null_mut(), Relaxed));
        if !thread.is_null() {
            // SAFETY: boxed by `claim`, and taken out just now by this thread alone.
            drop(unsafe { Box::from_raw(thread) });
        }
        self.has_ended.store(false, Relaxed);
        // Release: see `claim`.
        self.number.store(0, Release);
    }

    /// Whether it belongs to the thread with this number.
    #[inline]
    pub(super) fn is_of(&self, number: u32) -> bool {
        self.number.load(Relaxed) == number
    }

    /// Says that the thread's destructors run.
    pub(super) fn end(&self) {
        // Release: all that the thread has written here.
        self.has_ended.store(true, Release);
    }

    /// Whether the thread's destructors run and it holds nothing.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.has_ended.load(Relaxed) && self.held_count.load(Relaxed) == 0
    }

    /// Writes down a lock that the thread has taken. If it has it alone, other entries of that lock
    /// are stale: from a guard that was leaked, or an unlock by another thread.
    #[inline]
    pub(super) fn push(&self, lock: Use) {
        if lock.way == Way::Exclusive {
            while self.remove(lock.lock, |_| true) {}
        }
        let count = self.held_count.load(Relaxed);
        if let Some(slot) = self.held.get(count) {
            slot.set(lock);
            // Release: for the check, which reads `held` also while the thread runs.
            self.held_count.store(count + 1, Release);
        }
    }

    /// Strikes out the last entry of this lock that the thread holds so; whether there was one.
    #[inline]
    pub(super) fn remove(&self, lock: usize, so: impl Fn(Way) -> bool) -> bool {
        let Some(found) = self.find(lock, so) else {
            return false;
        };
        let last = self.held_count.load(Relaxed) - 1;
        if let (true, Some(moved)) = (found != last, self.held[last].get()) {
            self.held[found].set(moved);
        }
        self.held_count.store(last, Release);
        true
    }

    /// Writes down that the thread, which held a lock upgradably, has it alone.
    pub(super) fn upgrade(&self, lock: Use) {
        if let Some(found) = self.find(lock.lock, |way| way == Way::Upgradable) {
            let way = Way::Exclusive;
            self.held[found].set(Use { way, ..lock });
        }
    }

    /// Writes down that the thread holds a lock less strongly than before.
    pub(super) fn weaken(&self, lock: usize, from: Way, to: Way) {
        if let Some(found) = self.find(lock, |way| way == from) {
            self.held[found].way.store(to as u32, Relaxed);
        }
    }

    #[inline]
    fn find(&self, lock: usize, so: impl Fn(Way) -> bool) -> Option<usize> {
        let held = &self.held[..self.held_count.load(Relaxed)];
        held.iter().rposition(|slot| {
            slot.lock.load(Relaxed) == lock && so(WAYS[slot.way.load(Relaxed) as usize])
        })
    }

    /// Notes where the thread stands, which is about to wait.
    pub(super) fn set_backtrace(&self, backtrace: Backtrace) {
        if backtrace.status() == BacktraceStatus::Captured {
            // Release: the box, for the check.
            let backtrace = Box::into_raw(Box::new(backtrace));
            self.backtrace.store(backtrace, Release);
        }
    }

    /// The thread is about to wait, until it has the lock.
    pub(super) fn begin_wait(&self, wait: Use) {
        self.wait.set(wait);
        let sequence = self.sequence.load(Relaxed);
        debug_assert!(sequence % 2 == 0, "a thread waits for one lock at a time");
        self.sequence.store(sequence + 1, Release);
    }

    /// It has waited.
    pub(super) fn end_wait(&self) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence + 1, Relaxed);
        fence(Release);
    }
}

/// For any thread.
impl Record {
    /// What the thread holds and waits for, if it waits. `None` also if that has changed meanwhile.
    pub(super) fn look(&'static self) -> Option<Waiting> {
        let sequence = self.sequence.load(Acquire);
        if sequence % 2 == 0 {
            return None;
        }
        let (wait, held) = (self.wait.get()?, self.held());
        fence(Acquire);
        self.is_at(sequence).then_some(Waiting {
            record: self,
            sequence,
            wait,
            held,
        })
    }

    /// Whether the thread is in the wait with this number still.
    pub(super) fn is_at(&self, sequence: u64) -> bool {
        self.sequence.load(Relaxed) == sequence
    }

    /// What it holds: exactly, if it waits or has ended.
    pub(super) fn held(&self) -> Vec<Use> {
        let held = &self.held[..self.held_count.load(Acquire)];
        held.iter().filter_map(Slot::get).collect()
    }

    /// Whether the thread has ended, and left locks behind.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Acquire)
    }

    /// The thread's handle and number, if there is one.
    pub(super) fn thread(&self) -> Option<(Thread, u32)> {
        self.with_thread(|slot| {
            // SAFETY: null, or boxed by `claim`; it is freed only after it was taken out here.
            let thread = unsafe { slot.load(Relaxed).as_ref() }?;
            Some((thread.clone(), self.number.load(Relaxed)))
        })
    }

    /// The backtrace of the thread's wait. The one that takes it owns it, be it the check or the
    /// thread.
    pub(super) fn take_backtrace(&self) -> Option<Backtrace> {
        if self.backtrace.load(Relaxed).is_null() {
            return None;
        }
        // Acquire: the box.
        let backtrace = self.backtrace.swap(null_mut(), Acquire);
        // SAFETY: boxed by `begin_wait`, and taken out just now by this thread alone.
        (!backtrace.is_null()).then(|| *unsafe { Box::from_raw(backtrace) })
    }

    /// Uses `thread` alone. Nothing in there blocks or allocates.
    fn with_thread<R>(&self, use_it: impl FnOnce(&AtomicPtr<Thread>) -> R) -> R {
        while self.is_busy.swap(true, Acquire) {
            std::thread::yield_now();
        }
        let result = use_it(&self.thread);
        self.is_busy.store(false, Release);
        result
    }
}

/// A thread in a wait without a deadline.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) record: &'static Record,
    pub(super) sequence: u64,
    pub(super) wait: Use,
    pub(super) held: Vec<Use>,
}

impl core::fmt::Debug for Record {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let number = self.number.load(Relaxed);
        f.debug_tuple("Record").field(&number).finish()
    }
}
