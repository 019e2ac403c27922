//! The C++ standard library: `std::mutex`, `std::condition_variable`, `std::shared_mutex`, and a
//! mutex built on `std::atomic<int>::wait` and `notify_one`.
//!
//! In libstdc++ (Debian 12: 12.2) the first three are thin classes over glibc's `pthread_mutex_t`,
//! `pthread_cond_t` and `pthread_rwlock_t` (readers first). They show the cost of the class and
//! should otherwise match glibc's figures. The fourth shows libstdc++'s own waiting. It is the
//! [textbook three-state mutex](super::futex); a waiter checks 12 times with a pause in between,
//! yields 4 times, and only then sleeps on futex(2). A waker first checks for waiters in one of 16
//! counters that all addresses share.
//!
//! Used as cppreference.com describes: `unique_lock` to wait on a condition variable, and
//! `wait(old)` in a loop that checks again. The functions in `cpp.cc`, compiled by the build script
//! with `-O2` as C++20, are one call each. The objects are plain data while no thread holds them or
//! waits on them (see `glibc.rs`), and their destructors release nothing.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Memory with the size and alignment of `T`, holding a C++ object.
#[derive(Debug)]
#[repr(transparent)]
struct Place<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Place<T> {
    /// # Safety
    /// `construct` must construct an object in memory of the size and alignment of `T`, and the
    /// object must be movable until it is first used.
    unsafe fn new(construct: unsafe extern "C" fn(&Self)) -> Self {
        let place = Self(UnsafeCell::new(MaybeUninit::uninit()));
        // SAFETY: the caller guarantees it.
        unsafe { construct(&place) };
        place
    }
}

// SAFETY: the object inside is made to be used by many threads.
unsafe impl<T> Send for Place<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Place<T> {}

type MutexPlace = Place<libc::pthread_mutex_t>;
type CondvarPlace = Place<libc::pthread_cond_t>;
type SharedMutexPlace = Place<libc::pthread_rwlock_t>;
type AtomicPlace = Place<core::ffi::c_int>;

unsafe extern "C" {
    fn waitword_cpp_mutex_new(place: &MutexPlace);
    fn waitword_cpp_mutex_lock(mutex: &MutexPlace);
    fn waitword_cpp_mutex_try_lock(mutex: &MutexPlace) -> bool;
    fn waitword_cpp_mutex_unlock(mutex: &MutexPlace);
    fn waitword_cpp_condvar_new(place: &CondvarPlace);
    fn waitword_cpp_condvar_wait(condvar: &CondvarPlace, mutex: &MutexPlace);
    fn waitword_cpp_condvar_notify_one(condvar: &CondvarPlace);
    fn waitword_cpp_condvar_notify_all(condvar: &CondvarPlace);
    fn waitword_cpp_shared_mutex_new(place: &SharedMutexPlace);
    fn waitword_cpp_shared_mutex_lock(mutex: &SharedMutexPlace);
    fn waitword_cpp_shared_mutex_unlock(mutex: &SharedMutexPlace);
    fn waitword_cpp_shared_mutex_lock_shared(mutex: &SharedMutexPlace);
    fn waitword_cpp_shared_mutex_unlock_shared(mutex: &SharedMutexPlace);
    fn waitword_cpp_atomic_new(place: &AtomicPlace);
    fn waitword_cpp_atomic_lock(mutex: &AtomicPlace);
    fn waitword_cpp_atomic_try_lock(mutex: &AtomicPlace) -> bool;
    fn waitword_cpp_atomic_unlock(mutex: &AtomicPlace);
}

const NAME: &str = "C++ std";

/// `std::mutex`.
#[derive(Debug)]
pub struct Mutex(MutexPlace);

// SAFETY: the C++ library's own lock.
unsafe impl BenchMutex for Mutex {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_mutex_new) })
    }

    #[inline]
    fn lock(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_cpp_mutex_lock(&self.0) }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { waitword_cpp_mutex_try_lock(&self.0) }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { waitword_cpp_mutex_unlock(&self.0) }
    }
}

/// `std::condition_variable`.
#[derive(Debug)]
pub struct Condvar(CondvarPlace);

// SAFETY: the C++ library's own condition variable, used with its own mutex.
unsafe impl BenchCondvar for Condvar {
    type Mutex = Mutex;

    fn new() -> Self {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_condvar_new) })
    }

    #[inline]
    unsafe fn wait(&self, mutex: &Mutex) {
        // SAFETY: both were made by `new`; the caller holds the mutex, per this method's contract.
        unsafe { waitword_cpp_condvar_wait(&self.0, &mutex.0) }
    }

    #[inline]
    fn signal(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_cpp_condvar_notify_one(&self.0) }
    }

    #[inline]
    fn broadcast(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_cpp_condvar_notify_all(&self.0) }
    }
}

/// `std::shared_mutex`.
#[derive(Debug)]
pub struct SharedMutex(SharedMutexPlace);

// SAFETY: the C++ library's own lock.
unsafe impl BenchRwLock for SharedMutex {
    const NAME: &'static str = NAME;

    fn new() -> Self {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_shared_mutex_new) })
    }

    #[inline]
    fn read_lock(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_cpp_shared_mutex_lock_shared(&self.0) }
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { waitword_cpp_shared_mutex_unlock_shared(&self.0) }
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: as above.
        unsafe { waitword_cpp_shared_mutex_lock(&self.0) }
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { waitword_cpp_shared_mutex_unlock(&self.0) }
    }
}

/// A mutex built on `std::atomic<int>`, defined in `cpp.cc`.
#[derive(Debug)]
pub struct AtomicMutex(AtomicPlace);

// SAFETY: the thread that changed the word from free holds the lock, and only it sets the word to
// free.
unsafe impl BenchMutex for AtomicMutex {
    const NAME: &'static str = "C++ atomic wait";

    fn new() -> Self {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_atomic_new) })
    }

    #[inline]
    fn lock(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_cpp_atomic_lock(&self.0) }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { waitword_cpp_atomic_try_lock(&self.0) }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above; the caller holds the lock, per this method's contract.
        unsafe { waitword_cpp_atomic_unlock(&self.0) }
    }
}
