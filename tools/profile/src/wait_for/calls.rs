//! What a thread waits for, by the functions on its stack.

use crate::symbols::Symbols;
use waitword_record::format::Object;

/// How far from the innermost function a function of a lock may be.
const NEAR: usize = 16;

/// A function that waits for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) object: Object,
    /// Whether the function is glibc's, so that its argument is in glibc's layout.
    pub(super) is_glibc: bool,
}

/// The innermost function on the stack that is known to wait.
pub(super) fn place(symbols: &mut Symbols<'_>, stack: &[u64]) -> Option<Place> {
    stack.iter().take(NEAR).find_map(|&address| {
        symbols.frames(address).iter().find_map(|frame| {
            let (object, is_c) = object(&frame.function)?;
            let is_ours = frame.module.contains("waitword_pthread");
            Some(Place { object, is_glibc: is_c && !is_ours })
        })
    })
}

/// What a function waits for, and whether it is a function of the C library.
fn object(function: &str) -> Option<(Object, bool)> {
    /// The C library's, without underscores in front.
    const C: [(&str, Object); 28] = [
        ("pthread_mutex_lock", Object::Mutex),
        ("pthread_mutex_lock_full", Object::Mutex),
        ("pthread_mutex_timedlock", Object::Mutex),
        ("pthread_mutex_clocklock", Object::Mutex),
        ("pthread_mutex_clocklock_common", Object::Mutex),
        ("mtx_lock", Object::Mutex),
        ("mtx_timedlock", Object::Mutex),
        ("pthread_mutex_cond_lock", Object::Mutex),
        ("pthread_rwlock_rdlock", Object::Read),
        ("pthread_rwlock_timedrdlock", Object::Read),
        ("pthread_rwlock_clockrdlock", Object::Read),
        ("pthread_rwlock_wrlock", Object::Write),
        ("pthread_rwlock_timedwrlock", Object::Write),
        ("pthread_rwlock_clockwrlock", Object::Write),
        ("pthread_cond_wait", Object::Condvar),
        ("pthread_cond_timedwait", Object::Condvar),
        ("pthread_cond_clockwait", Object::Condvar),
        ("cnd_wait", Object::Condvar),
        ("cnd_timedwait", Object::Condvar),
        ("sem_wait", Object::Semaphore),
        ("sem_timedwait", Object::Semaphore),
        ("sem_clockwait", Object::Semaphore),
        ("pthread_barrier_wait", Object::Barrier),
        ("pthread_join", Object::Join),
        ("pthread_timedjoin_np", Object::Join),
        ("pthread_clockjoin_np", Object::Join),
        ("thrd_join", Object::Join),
        ("pthread_once", Object::Once),
    ];
    /// Those of Rust's std and of parking_lot end in these.
    const RUST: [(&str, Object); 9] = [
        ("futex::Mutex::lock_contended", Object::Mutex),
        ("RawMutex::lock_slow", Object::Mutex),
        ("futex::RwLock::read_contended", Object::Read),
        ("RawRwLock::lock_shared_slow", Object::Read),
        ("futex::RwLock::write_contended", Object::Write),
        ("RawRwLock::lock_exclusive_slow", Object::Write),
        ("futex::Condvar::wait_optional_timeout", Object::Condvar),
        ("Condvar::wait_until_internal", Object::Condvar),
        ("futex::Once::call", Object::Once),
    ];
    // A versioned name: `pthread_cond_wait@@GLIBC_2.3.2`.
    let name = function.split('@').next().unwrap_or(function).trim_start_matches('_');
    let in_c = C.iter().find(|(known, _)| *known == name).map(|(_, object)| (*object, true));
    let in_rust = || RUST.iter().find(|(known, _)| function.ends_with(known));
    in_c.or_else(|| in_rust().map(|(_, object)| (*object, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_under_all_their_names() {
        assert_eq!(object("__pthread_mutex_lock"), Some((Object::Mutex, true)));
        assert_eq!(object("pthread_cond_wait@@GLIBC_2.3.2"), Some((Object::Condvar, true)));
        let std = "std::sys::sync::mutex::futex::Mutex::lock_contended";
        assert_eq!(object(std), Some((Object::Mutex, false)));
        let other = "parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow";
        assert_eq!(object(other), Some((Object::Write, false)));
        assert_eq!(object("my_pthread_mutex_lock"), None);
        assert_eq!(object("pthread_mutex_lock_of_mine"), None);
    }
}
