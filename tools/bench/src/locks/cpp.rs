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

use super::traits::{bench_condvar, bench_mutex, bench_rwlock};
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
bench_mutex! {
    #[inline] impl [] Mutex = NAME;
    new: {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_mutex_new) })
    };
    |lock| lock: waitword_cpp_mutex_lock(&lock.0);
    try_lock: waitword_cpp_mutex_try_lock(&lock.0);
    unlock: waitword_cpp_mutex_unlock(&lock.0);
}

/// `std::condition_variable`.
#[derive(Debug)]
pub struct Condvar(CondvarPlace);

// SAFETY: the C++ library's own condition variable, used with its own mutex.
bench_condvar! {
    #[inline] impl [] Condvar, Mutex;
    new: {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_condvar_new) })
    };
    |condvar, mutex| wait: waitword_cpp_condvar_wait(&condvar.0, &mutex.0);
    signal: waitword_cpp_condvar_notify_one(&condvar.0);
    broadcast: waitword_cpp_condvar_notify_all(&condvar.0);
}

/// `std::shared_mutex`.
#[derive(Debug)]
pub struct SharedMutex(SharedMutexPlace);

// SAFETY: the C++ library's own lock.
bench_rwlock! {
    #[inline] impl [] SharedMutex = NAME;
    new: {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_shared_mutex_new) })
    };
    |lock| read_lock: waitword_cpp_shared_mutex_lock_shared(&lock.0);
    read_unlock: waitword_cpp_shared_mutex_unlock_shared(&lock.0);
    write_lock: waitword_cpp_shared_mutex_lock(&lock.0);
    write_unlock: waitword_cpp_shared_mutex_unlock(&lock.0);
}

/// A mutex built on `std::atomic<int>`, defined in `cpp.cc`.
#[derive(Debug)]
pub struct AtomicMutex(AtomicPlace);

// SAFETY: the thread that changed the word from free holds the lock, and only it sets the word to
// free.
bench_mutex! {
    #[inline] impl [] AtomicMutex = "C++ atomic wait";
    new: {
        // SAFETY: its constructor; `cpp.cc` asserts that the sizes match.
        Self(unsafe { Place::new(waitword_cpp_atomic_new) })
    };
    |lock| lock: waitword_cpp_atomic_lock(&lock.0);
    try_lock: waitword_cpp_atomic_try_lock(&lock.0);
    unlock: waitword_cpp_atomic_unlock(&lock.0);
}
