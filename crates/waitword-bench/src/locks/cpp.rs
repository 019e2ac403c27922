//! The C++ standard library's: `std::mutex`, `std::condition_variable`, `std::shared_mutex`; and a mutex made of
//! `std::atomic<int>::wait` and `notify_one`.
//!
//! In libstdc++ (Debian 12: 12.2) the first three are glibc's `pthread_mutex_t`, `pthread_cond_t` and `pthread_rwlock_t` (readers
//! first) beneath a class: they show what the class costs, and should be glibc's figures otherwise. The fourth shows
//! libstdc++'s own waiting: it is the [textbook's three-state mutex](super::futex), whose waiter looks 12 times with
//! a pause in between, yields 4 times, and only then sleeps, on futex(2); who wakes looks first whether anybody waits, at one of 16
//! counts that all addresses share.
//!
//! Used as cppreference.com says: `unique_lock` to wait on a condition variable, `wait(old)` in a loop that looks again. The
//! functions of `cpp.cc` beside this file, compiled by the build script with `-O2` as C++20, are one call each. The objects are plain data
//! while nobody holds them or waits on them (see `glibc.rs`), and have no destructor that gives anything back.

use super::{BenchCondvar, BenchMutex, BenchRwLock};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

/// Memory of the size and alignment of `T`, with a C++ object in it.
#[derive(Debug)]
#[repr(transparent)]
struct Place<T>(UnsafeCell<MaybeUninit<T>>);

impl<T> Place<T> {
    /// # Safety
    /// `construct` makes an object in memory of the size and alignment of `T`, which may be moved until it is used.
    unsafe fn new(construct: unsafe extern "C" fn(&Self)) -> Self {
        let place = Self(UnsafeCell::new(MaybeUninit::uninit()));
        // SAFETY: as the caller says.
        unsafe { construct(&place) };
        place
    }
}

// SAFETY: what is in it is made to be used by many threads.
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
        // SAFETY: its constructor; the sizes are compared in `cpp.cc`.
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
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_cpp_mutex_unlock(&self.0) }
    }
}

/// `std::condition_variable`.
#[derive(Debug)]
pub struct Condvar(CondvarPlace);

// SAFETY: the C++ library's own, with its own mutex.
unsafe impl BenchCondvar for Condvar {
    type Mutex = Mutex;

    fn new() -> Self {
        // SAFETY: its constructor; the sizes are compared in `cpp.cc`.
        Self(unsafe { Place::new(waitword_cpp_condvar_new) })
    }

    #[inline]
    unsafe fn wait(&self, mutex: &Mutex) {
        // SAFETY: both made by `new`; the caller holds the mutex, as it says.
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
        // SAFETY: its constructor; the sizes are compared in `cpp.cc`.
        Self(unsafe { Place::new(waitword_cpp_shared_mutex_new) })
    }

    #[inline]
    fn read_lock(&self) {
        // SAFETY: made by `new`.
        unsafe { waitword_cpp_shared_mutex_lock_shared(&self.0) }
    }

    #[inline]
    unsafe fn read_unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_cpp_shared_mutex_unlock_shared(&self.0) }
    }

    #[inline]
    fn write_lock(&self) {
        // SAFETY: as above.
        unsafe { waitword_cpp_shared_mutex_lock(&self.0) }
    }

    #[inline]
    unsafe fn write_unlock(&self) {
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_cpp_shared_mutex_unlock(&self.0) }
    }
}

/// A mutex made of `std::atomic<int>`: `cpp.cc` has it.
#[derive(Debug)]
pub struct AtomicMutex(AtomicPlace);

// SAFETY: who has changed the word from free holds it, and nobody else changes it to free.
unsafe impl BenchMutex for AtomicMutex {
    const NAME: &'static str = "C++ atomic wait";

    fn new() -> Self {
        // SAFETY: its constructor; the sizes are compared in `cpp.cc`.
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
        // SAFETY: as above; held by the caller, as it says.
        unsafe { waitword_cpp_atomic_unlock(&self.0) }
    }
}
