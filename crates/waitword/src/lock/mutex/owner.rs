//! Mutexes that keep their owner: recursive, error-checking and priority-inheriting ones.
//!
//! Their word is never 0 or LOCKED alone, so the fast paths leave them to this file. Their
//! permanent traits are in the bits in which other mutexes count turns:
//!
//! | bit | name | meaning |
//! |-----|------|---------|
//! | 4 | PI | the lock is the kernel's, in `data` |
//! | 5 | RECURSIVE | the owner may lock again; bits 16-31 count the additional levels |
//! | 6 | CHECKS | a second lock by the owner returns an error |
//! | 7 | SHARED | process-shared |
//!
//! RECURSIVE and CHECKS together mean destroyed.
//!
//! Where the kernel does not keep the owner, `data` does, beside the flavour. The owner is the
//! number of the thread in its PID namespace, which only the owner writes, while it holds the lock.
//! Other threads only check whether it is their own number, which no other thread writes. So every
//! access to it is Relaxed.
//!
//! A child of `fork` has another number than the thread that it is a copy of, so it does not own
//! what that thread held (as in glibc).

use super::word::{LOCKED, MOST_LEVELS, ONE_LEVEL, SPECIAL, State};
use super::{FLAVOUR_SHIFT, GivenBack, Kind, LateWaiter, LockError, RawPosixMutex, Then};
use crate::atomic::{AtomicU32, Ordering};
use crate::futex::Scope;
use crate::lock::pi::{self, Acquired, PiError};
use crate::sys::clock::Deadline;
use crate::sys::tid::tid;

const PI: u32 = 1 << 4;
const RECURSIVE: u32 = 1 << 5;
const CHECKS: u32 = 1 << 6;
const SHARED: u32 = 1 << 7;
const DESTROYED: u32 = SPECIAL | RECURSIVE | CHECKS;

const OWNER: u32 = (1 << FLAVOUR_SHIFT) - 1;

/// The word of a free mutex.
pub(super) const fn word(is_pi: bool, kind: Kind, is_shared: bool) -> u32 {
    let kind = match kind {
        Kind::Normal => 0,
        Kind::Recursive => RECURSIVE,
        Kind::ErrorChecking => CHECKS,
    };
    SPECIAL | kind | if is_pi { PI } else { 0 } | if is_shared { SHARED } else { 0 }
}

/// The bits of the word that never change.
fn traits(mutex: &RawPosixMutex) -> u32 {
    mutex.state().0 & (SPECIAL | PI | RECURSIVE | CHECKS | SHARED)
}

fn scope(mutex: &RawPosixMutex) -> Scope {
    if is_shared(mutex.state()) { Scope::Shared } else { Scope::Private }
}

/// For a priority-inheriting mutex: the kernel's word, and the scope of its waiters.
pub(in crate::lock) fn kernel_word(mutex: &RawPosixMutex) -> Option<(&AtomicU32, Scope)> {
    is_pi(mutex).then(|| (mutex.kernel_data(), scope(mutex)))
}

pub(super) fn is_pi(mutex: &RawPosixMutex) -> bool {
    traits(mutex) & (SPECIAL | PI) == SPECIAL | PI
}

/// Whether a special mutex is process-shared.
pub(super) fn is_shared(state: State) -> bool {
    state.0 & SHARED != 0
}

/// Whether a special mutex is locked.
pub(super) fn is_locked(mutex: &RawPosixMutex) -> bool {
    if is_pi(mutex) {
        mutex.data.load(Ordering::Relaxed) & pi::TID_MASK != 0
    } else {
        mutex.state().is_locked()
    }
}

pub(super) fn is_mine(mutex: &RawPosixMutex) -> bool {
    if is_pi(mutex) { pi::is_mine(mutex.kernel_data()) } else { is_owned(mutex) }
}

/// Whether the calling thread holds the mutex, which is not a priority-inheriting one.
fn is_owned(mutex: &RawPosixMutex) -> bool {
    mutex.state().is_locked() && mutex.data.load(Ordering::Relaxed) & OWNER == tid()
}

/// Whether the calling thread holds the mutex and may lock it again.
pub(super) fn is_recursively_mine(mutex: &RawPosixMutex) -> bool {
    let traits = traits(mutex);
    traits & SPECIAL != 0
        && traits & DESTROYED != DESTROYED
        && traits & RECURSIVE != 0
        && is_mine(mutex)
}

/// The result of another lock by the owner; `None` if the caller is not the owner.
pub(super) fn lock_again(mutex: &RawPosixMutex) -> Option<Result<(), LockError>> {
    if traits(mutex) & DESTROYED == DESTROYED {
        return Some(Err(LockError::Invalid));
    }
    is_mine(mutex).then(|| add_level(mutex))
}

/// Locks it once more, by the owner.
#[inline]
fn add_level(mutex: &RawPosixMutex) -> Result<(), LockError> {
    let state = mutex.state();
    if state.0 & RECURSIVE == 0 {
        return Err(LockError::Deadlock);
    }
    if state.levels() == MOST_LEVELS {
        return Err(LockError::TooMany);
    }
    // Relaxed: only the owner counts levels, and it already holds the lock.
    mutex.word.fetch_add(ONE_LEVEL, Ordering::Relaxed);
    Ok(())
}

/// Records the calling thread, which has taken the word, as the owner.
fn own(mutex: &RawPosixMutex) {
    let data = mutex.data.load(Ordering::Relaxed);
    mutex.data.store(data & !OWNER | tid(), Ordering::Relaxed);
}

/// Records the calling thread, which has taken the word, as the owner if the mutex keeps one.
pub(super) fn own_if_special(mutex: &RawPosixMutex) {
    if mutex.state().is_special() && !is_pi(mutex) {
        own(mutex);
    }
}

pub(super) fn lock(mutex: &RawPosixMutex, deadline: Option<&Deadline>) -> Result<(), LockError> {
    let Some((word, scope)) = kernel_word(mutex) else {
        return match is_owned(mutex) {
            true => add_level(mutex),
            false => take(mutex, deadline),
        };
    };
    // The kernel keeps an owner from waiting for itself. A recursive mutex is handled here, since
    // its owner may lock it again.
    if traits(mutex) & RECURSIVE != 0 {
        if let Some(result) = lock_again(mutex) {
            return result;
        }
    }
    match pi::lock_at_once(word) {
        true => Ok(()),
        false => wait_for_kernel_word(word, scope, deadline),
    }
}

/// Takes a mutex that is not priority-inheriting and that the caller does not hold.
fn take(mutex: &RawPosixMutex, deadline: Option<&Deadline>) -> Result<(), LockError> {
    let state = mutex.state();
    if state.0 & DESTROYED == DESTROYED {
        return Err(LockError::Invalid);
    }
    let free = State(state.0 & !LOCKED);
    let taken = free.0 == traits(mutex)
        && mutex
            .word
            .compare_exchange(free.0, free.0 | LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
    if !taken {
        mutex.lock_word(state, deadline)?;
    }
    own(mutex);
    Ok(())
}

pub(super) fn try_lock(mutex: &RawPosixMutex) -> Result<(), LockError> {
    match lock_again(mutex) {
        // POSIX: a locked mutex is busy, also for its owner.
        Some(Err(LockError::Deadlock)) => return Err(LockError::Busy),
        Some(result) => return result,
        None => {}
    }
    if let Some((word, scope)) = kernel_word(mutex) {
        let _acquired = pi::try_lock(word, scope)?;
        return Ok(());
    }
    if !mutex.try_word(mutex.state()) {
        return Err(LockError::Busy);
    }
    own(mutex);
    Ok(())
}

pub(super) fn unlock(mutex: &RawPosixMutex, then: Then) -> Result<(), LockError> {
    if mutex.state().levels() == 0 {
        if let Some((word, scope)) = kernel_word(mutex) {
            return Ok(pi::unlock(word, scope)?);
        }
    }
    if traits(mutex) & DESTROYED == DESTROYED {
        return Err(LockError::Invalid);
    }
    if !is_mine(mutex) {
        return Err(LockError::NotOwner);
    }
    if mutex.state().levels() > 0 {
        // Relaxed: the lock stays with its owner.
        mutex.word.fetch_sub(ONE_LEVEL, Ordering::Relaxed);
        return Ok(());
    }
    let data = mutex.data.load(Ordering::Relaxed);
    mutex.data.store(data & !OWNER, Ordering::Relaxed);
    mutex.unlock_word(mutex.state(), then);
    Ok(())
}

/// Whether this is the word of a free private mutex without waiters that keeps an owner in `data`.
fn is_free_and_ours(state: u32) -> bool {
    const RECURSIVE_AND_FREE: u32 = SPECIAL | RECURSIVE;
    const CHECKING_AND_FREE: u32 = SPECIAL | CHECKS;
    matches!(state, RECURSIVE_AND_FREE | CHECKING_AND_FREE)
}

/// Whether this is the word of a private mutex that keeps an owner in `data` and is not destroyed.
fn keeps_an_owner_in_our_word(state: u32) -> bool {
    state & (SPECIAL | PI | SHARED) == SPECIAL && state & DESTROYED != DESTROYED
}

#[inline(never)]
fn wait_for_kernel_word(
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<(), LockError> {
    // A robust mutex reports that an owner died. For this one it is as if that owner had unlocked
    // it.
    let _acquired = pi::lock_contended(word, scope, deadline).map_err(why_not_locked)?;
    Ok(())
}

#[inline]
fn lock_kernel_word(
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<Acquired, LockError> {
    let locked = match deadline {
        None => pi::lock(word, scope),
        Some(deadline) => pi::lock_until(word, scope, deadline),
    };
    locked.map_err(why_not_locked)
}

#[cold]
#[inline(never)]
fn why_not_locked(error: PiError) -> LockError {
    match error {
        // The owner's number now belongs to a kernel thread: the owner has ended.
        PiError::NotOwner => LockError::OwnerDied,
        error => error.into(),
    }
}

/// For a priority-inheriting mutex that the caller does not hold more than once.
impl RawPosixMutex {
    /// Takes the mutex, waiting until `deadline` at the latest. Returns whether an owner died.
    #[inline]
    pub(in crate::lock) fn lock_pi(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<Acquired, LockError> {
        debug_assert!(is_pi(self));
        lock_kernel_word(self.kernel_data(), scope(self), deadline)
    }

    /// Takes the mutex if that needs no waiting. Returns whether an owner died.
    #[inline]
    pub(in crate::lock) fn try_lock_pi(&self) -> Result<Acquired, LockError> {
        debug_assert!(is_pi(self));
        Ok(pi::try_lock(self.kernel_data(), scope(self))?)
    }
}

impl RawPosixMutex {
    /// Takes a private recursive, error-checking or priority-inheriting mutex if it is free,
    /// whether or not threads wait. Also takes a mutex that the caller holds and may lock again.
    /// This is the part of [`lock_checked`](Self::lock_checked) that is most often enough for these
    /// mutexes. Returns false if nothing has been done; only the whole call can tell why.
    ///
    /// For callers, such as `pthread_mutex_lock`, that keep the rest out of line.
    #[inline]
    pub(crate) fn lock_owned_at_once(&self) -> bool {
        let state = self.state().0;
        if is_free_and_ours(state) {
            let taken = state | LOCKED;
            let is_taken =
                self.word.compare_exchange(state, taken, Ordering::Acquire, Ordering::Relaxed);
            if is_taken.is_ok() {
                own(self);
            }
            return is_taken.is_ok();
        }
        if state & (SPECIAL | PI | SHARED) == SPECIAL | PI && pi::lock_at_once(self.kernel_data()) {
            return true;
        }
        self.lock_owned_otherwise(State(state))
    }

    /// Unlocks such a mutex if no thread has to be woken, or gives one level of it back: the part
    /// of [`unlock_checked`](Self::unlock_checked) that is most often enough for these mutexes.
    ///
    /// # Safety
    /// The caller holds the mutex, or the mutex keeps an owner and can check it.
    #[inline]
    pub(crate) unsafe fn unlock_owned_at_once(&self) -> GivenBack<'_> {
        let state = self.state().0;
        if is_free_and_ours(state & !LOCKED) {
            let data = self.data.load(Ordering::Relaxed);
            if state & LOCKED == 0 || data & OWNER != tid() {
                return GivenBack::No;
            }
            self.data.store(data & !OWNER, Ordering::Relaxed);
            let free = state & !LOCKED;
            let is_free =
                self.word.compare_exchange(state, free, Ordering::Release, Ordering::Relaxed);
            return match is_free {
                Ok(_) => GivenBack::Yes,
                Err(_) => GivenBack::Unless(LateWaiter(self)),
            };
        }
        let is_pi_once =
            State(state).levels() == 0 && state & (SPECIAL | PI | SHARED) == SPECIAL | PI;
        match is_pi_once && pi::unlock_at_once(self.kernel_data()) {
            true => GivenBack::Yes,
            false => self.unlock_owned_otherwise(State(state)),
        }
    }

    /// Takes the mutex past its waiters, or once more.
    #[inline(never)]
    fn lock_owned_otherwise(&self, state: State) -> bool {
        self.barge_owned(state) || is_recursively_mine(self) && lock_again(self) == Some(Ok(()))
    }

    /// Unlocks the mutex past its waiters, or gives one level of it back.
    #[inline(never)]
    fn unlock_owned_otherwise(&self, state: State) -> GivenBack<'_> {
        if state.levels() == 0 && keeps_an_owner_in_our_word(state.0) {
            return self.release_owned_to_the_awake(state);
        }
        let has_one_less =
            state.levels() > 0 && is_recursively_mine(self) && unlock(self, Then::GoOn).is_ok();
        match has_one_less {
            true => GivenBack::Yes,
            false => GivenBack::No,
        }
    }

    /// Takes the mutex past its waiters if it keeps an owner in `data` and is free. Returns whether
    /// it did.
    fn barge_owned(&self, mut state: State) -> bool {
        while keeps_an_owner_in_our_word(state.0) && state.may_barge() {
            match self.change(state, state.taken(), Ordering::Acquire) {
                Ok(()) => {
                    own(self);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Unlocks a mutex that the caller holds once, if no waiter has to be woken.
    fn release_owned_to_the_awake(&self, state: State) -> GivenBack<'_> {
        let must_wake = state.has_parked() && !state.has_successor();
        if must_wake || !is_owned(self) {
            return GivenBack::No;
        }
        let data = self.data.load(Ordering::Relaxed);
        self.data.store(data & !OWNER, Ordering::Relaxed);
        match self.release_to_the_awake(state) {
            true => GivenBack::Yes,
            false => GivenBack::Unless(LateWaiter(self)),
        }
    }

    /// Destroys the mutex: later uses return [`LockError::Invalid`], where that can be detected. A
    /// mutex may be freed without this call. (POSIX: `pthread_mutex_destroy`.)
    ///
    /// # Errors
    /// [`LockError::Busy`] if a thread holds the mutex or waits for it, [`LockError::Invalid`] if
    /// it is already destroyed.
    pub fn destroy(&self) -> Result<(), LockError> {
        let state = self.state();
        if state.is_special() {
            if traits(self) & DESTROYED == DESTROYED {
                return Err(LockError::Invalid);
            }
            if is_locked(self) {
                return Err(LockError::Busy);
            }
        }
        // The word of a free mutex without waiters has only the traits set.
        let free = if state.is_special() { traits(self) } else { 0 };
        let free_to_destroyed = || {
            self.word
                .compare_exchange(free, DESTROYED, Ordering::Relaxed, Ordering::Relaxed)
                .map(drop)
                .map_err(|_| LockError::Busy)
        };
        free_to_destroyed().or_else(|busy| {
            // Or the word still shows a waiter that is gone: it gave up, was killed, or stayed in
            // the parent of this process. The next unlock clears that.
            self.try_lock_checked().map_err(|_| busy)?;
            self.unlock_slow(Then::GoOn)?;
            free_to_destroyed()
        })
    }
}

impl From<PiError> for LockError {
    fn from(error: PiError) -> Self {
        match error {
            PiError::Busy => Self::Busy,
            PiError::Deadlock => Self::Deadlock,
            PiError::OwnerGone => Self::OwnerDied,
            PiError::TimedOut => Self::TimedOut,
            PiError::NotOwner => Self::NotOwner,
            PiError::OutOfMemory => Self::OutOfMemory,
            PiError::Unsupported => Self::Unsupported,
            PiError::Kernel(code) => Self::Kernel(code),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::PosixMutexOptions;

    fn recursive() -> RawPosixMutex {
        PosixMutexOptions::new().kind(Kind::Recursive).build_raw()
    }

    /// Returns whether the mutex was given back; if not, nothing has been done.
    fn is_given_back(mutex: &RawPosixMutex) -> bool {
        // SAFETY: the mutex keeps its owner, and can check whether that is the caller.
        match unsafe { mutex.unlock_owned_at_once() } {
            GivenBack::Yes => true,
            GivenBack::No => false,
            GivenBack::Unless(_) => panic!("a waiter arrived"),
        }
    }

    /// Past a successor that is awake, and other threads that are parked.
    #[test]
    fn an_owner_locks_and_unlocks_past_the_waiters() {
        let mutex = recursive();
        mutex.set(|state| state.with_parked(true).with_successor());
        let waiting = mutex.state();
        assert!(mutex.lock_owned_at_once());
        assert!(is_mine(&mutex));
        assert!(mutex.lock_owned_at_once(), "once more");
        for _ in 0..2 {
            assert!(is_given_back(&mutex));
        }
        assert!(!is_mine(&mutex));
        assert_eq!(mutex.state(), waiting);
        mutex.set(State::with_handoff);
        assert!(!mutex.lock_owned_at_once(), "it is reserved");
        assert_eq!(mutex.state(), waiting.with_handoff());
    }

    #[test]
    fn an_unlock_that_must_wake_or_is_not_by_the_owner_does_nothing() {
        let mutex = recursive();
        assert!(mutex.lock_owned_at_once());
        mutex.set(|state| state.with_parked(true));
        let held = mutex.state();
        assert!(!is_given_back(&mutex));
        mutex.set(State::with_successor);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert!(!mutex.lock_owned_at_once());
                assert!(!is_given_back(&mutex));
            });
        });
        assert!(is_mine(&mutex));
        assert_eq!(mutex.state(), held.with_successor());
    }

    #[test]
    fn a_destroyed_one_is_not_taken() {
        let mutex = recursive();
        mutex.destroy().unwrap();
        assert!(!mutex.lock_owned_at_once());
        assert_eq!(mutex.lock_checked(), Err(LockError::Invalid));
    }
}
