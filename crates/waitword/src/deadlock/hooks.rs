//! The hooks that the locks call: before and after they are acquired, and before they are released.
//!
//! A lock is recorded after it was acquired and removed before it is released. So a thread that is
//! recorded as a holder is one, and the check relies on that (`graph.rs`).
//!
//! While a hook uses the heap, hooks called by the allocator's own locks do nothing (`is_inside`).
//! If the allocator has such locks, a thread may hold one of them in any hook. Once this is known,
//! a hook no longer uses the heap, except a thread's first one, which comes before its first lock.

use super::kind::{LockKind, Way};
use super::record::{Record, Use};
use crate::sys::tid::tid;
use core::cell::Cell;
use core::panic::Location;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::backtrace::Backtrace;

/// A thread's own state for the hooks. It has no destructor, so it is usable at any moment of the
/// thread's life.
struct Here {
    record: Cell<*const Record>,
    is_inside: Cell<bool>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            record: Cell::new(ptr::null()),
            is_inside: Cell::new(false),
        }
    };
    static END: End = const { End };
}

/// Dropped as the thread ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        if let Some(record) = record() {
            record.end();
            let_go_if_done(record);
        }
    }
}

/// Whether a hook was called inside a hook, that is, by the allocator.
static ALLOCATOR_LOCKS: AtomicBool = AtomicBool::new(false);

/// Whether a hook may use the heap while the thread holds locks. Relaxed: before another thread
/// holds one of the allocator's locks, it has run its own first hook.
fn may_use_heap() -> bool {
    !ALLOCATOR_LOCKS.load(Ordering::Relaxed)
}

/// The calling thread's record. `None` if it has none or is inside a hook.
#[inline]
fn record() -> Option<&'static Record> {
    HERE.with(|here| {
        if here.is_inside.get() {
            ALLOCATOR_LOCKS.store(true, Ordering::Relaxed);
            return None;
        }
        // SAFETY: null, or a record; records are never unmapped.
        let record = unsafe { here.record.get().as_ref() }?;
        // In a forked child, the record was wiped and may belong to another thread by now.
        record.is_of(tid()).then_some(record)
    })
}

/// Gives the calling thread a record, unless it is inside a hook or its thread-local storage is
/// gone.
#[cold]
fn register() -> Option<&'static Record> {
    inside(|here| {
        END.try_with(|_| ()).ok()?;
        let record = Record::claim(tid(), std::thread::current())?;
        here.record.set(record);
        Some(record)
    })?
}

/// Calls `use_heap`, unless the calling thread is inside a hook already.
fn inside<R>(use_heap: impl FnOnce(&Here) -> R) -> Option<R> {
    HERE.with(|here| {
        if here.is_inside.replace(true) {
            return None;
        }
        let result = use_heap(here);
        here.is_inside.set(false);
        Some(result)
    })
}

/// A thread may take locks even in its last destructors. After its end has begun, its record is
/// kept only while it holds a lock.
fn let_go_if_done(record: &Record) {
    if record.is_done() {
        inside(|here| {
            here.record.set(ptr::null());
            record.let_go();
        });
    }
}

fn address_of<L>(lock: &L) -> usize {
    ptr::from_ref(lock).addr()
}

/// The calling thread is about to take a lock.
#[must_use]
pub(crate) struct Taking {
    record: Option<&'static Record>,
    lock: Use,
}

impl Taking {
    /// The caller is about to take this lock in this way.
    #[inline]
    #[track_caller]
    pub(crate) fn of<L>(lock: &L, kind: LockKind, way: Way) -> Self {
        Self {
            record: record().or_else(register),
            lock: Use { lock: address_of(lock), kind, way, at: Location::caller() },
        }
    }

    /// Acquires the lock by `at_once`, or else, recorded as a waiting thread, by `wait_for_it`,
    /// which has no deadline.
    #[inline]
    pub(crate) fn lock<R>(
        &self,
        at_once: impl FnOnce() -> Option<R>,
        wait_for_it: impl FnOnce() -> R,
    ) -> R {
        at_once().unwrap_or_else(|| self.wait(wait_for_it))
    }

    /// Calls `wait_for_it`, which returns only once the lock was acquired or refused.
    #[inline(never)]
    pub(crate) fn wait<R>(&self, wait_for_it: impl FnOnce() -> R) -> R {
        let Some(record) = self.record else {
            return wait_for_it();
        };
        inside(|_| {
            if may_use_heap() {
                record.set_backtrace(Backtrace::capture());
            }
        });
        record.begin_wait(self.lock);
        let result = wait_for_it();
        record.end_wait();
        inside(|_| {
            if may_use_heap() {
                drop(record.take_backtrace());
            }
        });
        result
    }

    /// The lock was acquired.
    #[inline]
    pub(crate) fn taken(self) {
        let Some(record) = self.record else { return };
        if self.lock.way == Way::Upgrade {
            record.upgrade(self.lock);
        } else {
            record.push(self.lock);
        }
    }

    /// Records the lock if it was acquired. Returns `is_taken`.
    #[inline]
    pub(crate) fn taken_if(self, is_taken: bool) -> bool {
        if is_taken {
            self.taken();
        }
        is_taken
    }
}

/// The calling thread is about to release a lock that it holds in this way.
#[inline]
pub(crate) fn give_back<L>(lock: &L, way: Way) {
    if let Some(record) = record() {
        // There may be no entry: another thread took the lock, or this thread held too many.
        record.remove(address_of(lock), |held| held == way);
        let_go_if_done(record);
    }
}

/// The calling thread is about to downgrade its hold of a lock.
pub(crate) fn weaken<L>(lock: &L, from: Way, to: Way) {
    if let Some(record) = record() {
        record.weaken(address_of(lock), from, to);
    }
}
