//! The interface that a lock must offer to be measured.

/// A mutual-exclusion lock. An all-zero value need not be valid; an unlocked one may be moved.
///
/// # Safety
/// Between a `lock` (or a `try_lock` that returns true) and the same thread's `unlock`, no other
/// thread's `lock` returns.
pub unsafe trait BenchMutex: Send + Sync + Sized + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Creates an unlocked mutex.
    fn new() -> Self;
    /// Locks it, waiting as long as needed.
    fn lock(&self);
    /// Locks it if that needs no waiting, and returns whether it did.
    fn try_lock(&self) -> bool;
    /// Unlocks it.
    ///
    /// # Safety
    /// The calling thread holds it, and it has not been moved since it was locked.
    unsafe fn unlock(&self);
}

/// A condition variable and the mutex that it works with.
///
/// # Safety
/// As for [`BenchMutex`], concerning the mutex; `wait` unlocks and relocks it.
pub unsafe trait BenchCondvar: Send + Sync + Sized + 'static {
    /// The mutex type that it works with.
    type Mutex: BenchMutex;
    /// Its name in the report; by default that of its mutex.
    const NAME: &'static str = <Self::Mutex as BenchMutex>::NAME;
    /// Creates one without waiters.
    fn new() -> Self;
    /// Waits for a signal. Spurious wake-ups are allowed.
    ///
    /// # Safety
    /// As for [`BenchMutex::unlock`]; all threads that wait at the same time use the same mutex.
    unsafe fn wait(&self, mutex: &Self::Mutex);
    /// Wakes one waiter.
    fn signal(&self);
    /// Wakes all waiters.
    fn broadcast(&self);
}

/// A lock for many readers or one writer.
///
/// # Safety
/// While a writer holds it, no other thread does.
pub unsafe trait BenchRwLock: Send + Sync + Sized + 'static {
    /// Its name in the report.
    const NAME: &'static str;
    /// Creates an unlocked one.
    fn new() -> Self;
    /// Locks it for reading.
    fn read_lock(&self);
    /// Unlocks it for a reader.
    ///
    /// # Safety
    /// The calling thread holds it for reading, it has not been moved since, and the thread holds
    /// no other lock of this type for reading: one at a time.
    unsafe fn read_unlock(&self);
    /// Locks it for writing.
    fn write_lock(&self);
    /// Unlocks it for a writer.
    ///
    /// # Safety
    /// The calling thread holds it for writing, and it has not been moved since.
    unsafe fn write_unlock(&self);
}

/// Implements [`BenchMutex`] for a type whose operations are one expression each, a call of a
/// library's function; `$inline` is the attribute of the operations. The invocation argues that it
/// is a lock.
macro_rules! bench_mutex {
    (
        #[$inline:meta] impl [$($generics:tt)*] $mutex:ty = $name:expr;
        new: $new:expr;
        |$this:ident| lock: $lock:expr; try_lock: $try_lock:expr; unlock: $unlock:expr;
    ) => {
        // SAFETY: the invocation's argument.
        #[allow(unused_unsafe, reason = "the functions of some libraries are safe")]
        unsafe impl<$($generics)*> $crate::locks::traits::BenchMutex for $mutex {
            const NAME: &'static str = $name;

            fn new() -> Self {
                $new
            }

            #[$inline]
            fn lock(&self) {
                let $this = self;
                // SAFETY: the lock was made by `new`.
                unsafe { $lock }
            }

            #[$inline]
            fn try_lock(&self) -> bool {
                let $this = self;
                // SAFETY: as above.
                unsafe { $try_lock }
            }

            #[$inline]
            unsafe fn unlock(&self) {
                let $this = self;
                // SAFETY: as above; the caller holds it, per this method's contract.
                unsafe { $unlock }
            }
        }
    };
}

/// The same for [`BenchCondvar`].
macro_rules! bench_condvar {
    (
        #[$inline:meta] impl [$($generics:tt)*] $condvar:ty, $mutex:ty;
        new: $new:expr;
        |$this:ident, $with:ident| wait: $wait:expr;
        signal: $signal:expr; broadcast: $broadcast:expr;
    ) => {
        // SAFETY: the invocation's argument.
        #[allow(unused_unsafe, reason = "the functions of some libraries are safe")]
        unsafe impl<$($generics)*> $crate::locks::traits::BenchCondvar for $condvar {
            type Mutex = $mutex;

            fn new() -> Self {
                $new
            }

            #[$inline]
            unsafe fn wait(&self, mutex: &$mutex) {
                let ($this, $with) = (self, mutex);
                // SAFETY: both were made by `new`; the caller holds the mutex, and all waiters use
                // the same one, per this method's contract.
                unsafe { $wait }
            }

            #[$inline]
            fn signal(&self) {
                let $this = self;
                // SAFETY: it was made by `new`.
                unsafe { $signal }
            }

            #[$inline]
            fn broadcast(&self) {
                let $this = self;
                // SAFETY: as above.
                unsafe { $broadcast }
            }
        }
    };
}

/// The same for [`BenchRwLock`].
macro_rules! bench_rwlock {
    (
        #[$inline:meta] impl [$($generics:tt)*] $lock:ty = $name:expr;
        new: $new:expr;
        |$this:ident| read_lock: $read_lock:expr; read_unlock: $read_unlock:expr;
        write_lock: $write_lock:expr; write_unlock: $write_unlock:expr;
    ) => {
        // SAFETY: the invocation's argument.
        #[allow(unused_unsafe, reason = "the functions of some libraries are safe")]
        unsafe impl<$($generics)*> $crate::locks::traits::BenchRwLock for $lock {
            const NAME: &'static str = $name;

            fn new() -> Self {
                $new
            }

            #[$inline]
            fn read_lock(&self) {
                let $this = self;
                // SAFETY: the lock was made by `new`.
                unsafe { $read_lock }
            }

            #[$inline]
            unsafe fn read_unlock(&self) {
                let $this = self;
                // SAFETY: as above; the caller holds it for reading, per this method's contract.
                unsafe { $read_unlock }
            }

            #[$inline]
            fn write_lock(&self) {
                let $this = self;
                // SAFETY: as above.
                unsafe { $write_lock }
            }

            #[$inline]
            unsafe fn write_unlock(&self) {
                let $this = self;
                // SAFETY: as above; the caller holds it for writing, per this method's contract.
                unsafe { $write_unlock }
            }
        }
    };
}

pub(super) use {bench_condvar, bench_mutex, bench_rwlock};
