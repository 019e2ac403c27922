//! A record of what each thread holds and waits for. The thread writes it and the check reads it.
//!
//! A thread has a record from its first lock until it ends. Only the thread itself writes there, so
//! an uncontended lock costs loads and stores, and no atomic read-modify-write.
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
//! An allocator may be built on these locks, so the hooks must not allocate while the thread holds
//! one. Each record is a mapping of its own, which later threads reuse and which is never unmapped.
//! The part that comes from the heap, the thread's handle, is allocated before the thread's first
//! lock.
//!
//! # Fork
//!
//! The kernel wipes the records in a child: all zeros is a record of no thread. The thread that
//! forked still has the address of its old record, where it finds a thread number that is not its
//! own.

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
    /// The call that acquired it or waits for it.
    pub(super) at: &'static Location<'static>,
}

/// The storage of a [`Use`].
struct Slot {
    lock: AtomicUsize,
    at: AtomicPtr<Location<'static>>,
    kind: AtomicU32,
    way: AtomicU32,
}

const KINDS: [LockKind; 4] =
    [LockKind::Mutex, LockKind::CheckedMutex, LockKind::PiMutex, LockKind::RwLock];
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
            // SAFETY: null in a wiped slot, or stored by `set` from a `'static` reference.
            at: unsafe { at.as_ref() }?,
        })
    }
}

/// If one thread holds more locks than this at once, the rest are not recorded.
const MOST_HELD: usize = 1024;

/// What one thread holds and waits for.
#[repr(C)]
pub(super) struct Record {
    /// The number of the thread that owns it, or 0.
    number: AtomicU32,
    has_ended: AtomicBool,
    /// A spin lock around `thread`. A spin lock, because the kernel wipes it in a child.
    is_busy: AtomicBool,
    /// The thread's handle, boxed.
    thread: AtomicPtr<Thread>,
    sequence: AtomicU64,
    wait: Slot,
    /// The thread's boxed backtrace; null if backtraces are off.
    backtrace: AtomicPtr<Backtrace>,
    /// The `sequence` of the last wait that was reported. Only the check uses it.
    pub(super) reported: AtomicU64,
    next: AtomicPtr<Record>,
    held_count: AtomicUsize,
    held: [Slot; MOST_HELD],
}

/// All records. In a forked child the list ends after the first.
static FIRST: AtomicPtr<Record> = AtomicPtr::new(null_mut());

/// All records: of all threads, and some that belong to no thread.
pub(super) fn all() -> impl Iterator<Item = &'static Record> {
    // SAFETY: null, or a record that `map` has published. Records are never unmapped.
    let get = |record: &AtomicPtr<Record>| unsafe { record.load(Acquire).as_ref() };
    core::iter::successors(get(&FIRST), move |record| get(&record.next))
}

/// Methods for the owning thread.
impl Record {
    /// Gives the calling thread, which has this number and no record, a record. `None` if memory is
    /// short.
    pub(super) fn claim(number: u32, thread: Thread) -> Option<&'static Self> {
        // Acquire: the previous owner's writes come before this thread's.
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

    /// A new record that belongs to the thread with this number.
    fn map(number: u32) -> Option<&'static Self> {
        let length = size_of::<Self>().next_multiple_of(mem::PAGE);
        let memory = mem::map(length)?;
        // SAFETY: these are whole pages of the mapping just made. All zeros is a record of no
        // thread.
        if unsafe { mem::wipe_on_fork(memory, length) }.is_err() {
            // SAFETY: mapped just above and not visible to any other thread.
            unsafe { mem::unmap(memory, length) };
            return None;
        }
        // SAFETY: a page-aligned mapping of this size, filled with zeros, which are valid for every
        // field. It is never unmapped.
        let record = unsafe { memory.cast::<Self>().as_ref() };
        record.number.store(number, Relaxed);
        let mut first = FIRST.load(Relaxed);
        loop {
            record.next.store(first, Relaxed);
            // Release: a thread that finds the record finds its number and its `next`.
            let ours = ptr::from_ref(record).cast_mut();
            match FIRST.compare_exchange_weak(first, ours, Release, Relaxed) {
                Ok(_) => return Some(record),
                Err(now) => first = now,
            }
        }
    }

    /// Gives the record back, for another thread to claim. The thread holds no locks.
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

    /// Whether the record belongs to the thread with this number.
    #[inline]
    pub(super) fn is_of(&self, number: u32) -> bool {
        self.number.load(Relaxed) == number
    }

    /// Records that the thread's destructors have begun to run.
    pub(super) fn end(&self) {
        // Release: publishes everything that the thread has written here.
        self.has_ended.store(true, Release);
    }

    /// Whether the thread's destructors have begun to run and it holds no locks.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.has_ended.load(Relaxed) && self.held_count.load(Relaxed) == 0
    }

    /// Records a lock that the thread has acquired. If it holds the lock exclusively, other entries
    /// of that lock are stale: from a leaked guard, or an unlock by another thread.
    #[inline]
    pub(super) fn push(&self, lock: Use) {
        if lock.way == Way::Exclusive {
            while self.remove(lock.lock, |_| true) {}
        }
        let count = self.held_count.load(Relaxed);
        if let Some(slot) = self.held.get(count) {
            slot.set(lock);
            // Release: for the check, which also reads `held` while the thread runs.
            self.held_count.store(count + 1, Release);
        }
    }

    /// Removes the last entry of this lock whose way satisfies `so`. Returns whether there was one.
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

    /// Records that the thread now holds a lock exclusively that it held upgradably.
    pub(super) fn upgrade(&self, lock: Use) {
        if let Some(found) = self.find(lock.lock, |way| way == Way::Upgradable) {
            let way = Way::Exclusive;
            self.held[found].set(Use { way, ..lock });
        }
    }

    /// Records that the thread now holds a lock less strongly than before.
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

    /// Records the backtrace of the thread, which is about to wait.
    pub(super) fn set_backtrace(&self, backtrace: Backtrace) {
        if backtrace.status() == BacktraceStatus::Captured {
            // Release: publishes the box to the check.
            let backtrace = Box::into_raw(Box::new(backtrace));
            self.backtrace.store(backtrace, Release);
        }
    }

    /// The thread is about to wait until it has the lock.
    pub(super) fn begin_wait(&self, wait: Use) {
        self.wait.set(wait);
        let sequence = self.sequence.load(Relaxed);
        debug_assert!(sequence % 2 == 0, "a thread waits for one lock at a time");
        self.sequence.store(sequence + 1, Release);
    }

    /// The wait is over.
    pub(super) fn end_wait(&self) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence + 1, Relaxed);
        fence(Release);
    }
}

/// Methods for any thread.
impl Record {
    /// What the thread holds and waits for, if it waits. Also `None` if that changed while it was
    /// read.
    pub(super) fn look(&'static self) -> Option<Waiting> {
        let sequence = self.sequence.load(Acquire);
        if sequence % 2 == 0 {
            return None;
        }
        let (wait, held) = (self.wait.get()?, self.held());
        fence(Acquire);
        self.is_at(sequence).then_some(Waiting { record: self, sequence, wait, held })
    }

    /// Whether the thread is still in the wait with this number.
    pub(super) fn is_at(&self, sequence: u64) -> bool {
        self.sequence.load(Relaxed) == sequence
    }

    /// The locks that the thread holds. Exact if it waits or has ended.
    pub(super) fn held(&self) -> Vec<Use> {
        let held = &self.held[..self.held_count.load(Acquire)];
        held.iter().filter_map(Slot::get).collect()
    }

    /// Whether the thread has ended, leaving locks behind.
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

    /// Takes the backtrace of the thread's wait. Whichever takes it, the check or the thread, owns
    /// it.
    pub(super) fn take_backtrace(&self) -> Option<Backtrace> {
        if self.backtrace.load(Relaxed).is_null() {
            return None;
        }
        // Acquire: receives the box.
        let backtrace = self.backtrace.swap(null_mut(), Acquire);
        // SAFETY: boxed by `set_backtrace`, and taken out just now by this thread alone.
        (!backtrace.is_null()).then(|| *unsafe { Box::from_raw(backtrace) })
    }

    /// Calls `use_it` with exclusive access to `thread`. `use_it` must not block or allocate.
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
