//! Mutexes that keep their owner: recursive, error-checking and priority-inheriting ones.
//!
//! Their word is never 0 or LOCKED alone, so the fast paths leave them to this file. What else they are stands in the
//! bits where others count turns, for good:
//!
//! | bit | name | meaning |
//! |-----|------|---------|
//! | 4 | PI | the kernel's lock, in `data` |
//! | 5 | RECURSIVE | its owner may lock it again; bits 16-31 count how often more |
//! | 6 | CHECKS | its owner is told if it does |
//! | 7 | SHARED | process-shared |
//!
//! RECURSIVE and CHECKS both: destroyed.
//!
//! Where the kernel does not keep the owner, `data` does, beside the flavour: the thread's number in its PID
//! namespace, written by the owner alone while it holds the lock. Others only ask whether it is their own
//! number, which nobody else writes; so every access to it is Relaxed.
//!
//! A child of `fork` has another number than the thread that it is a copy of, and so does not own what that
//! held (glibc has it so, too).

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

/// The word of a free one.
pub(super) const fn word(is_pi: bool, kind: Kind, is_shared: bool) -> u32 {
    let kind = match kind {
        Kind::Normal => 0,
        Kind::Recursive => RECURSIVE,
        Kind::ErrorChecking => CHECKS,
    };
    SPECIAL | kind | if is_pi { PI } else { 0 } | if is_shared { SHARED } else { 0 }
}

/// The bits that never change.
fn traits(mutex: &RawPosixMutex) -> u32 {
    mutex.state().0 & (SPECIAL | PI | RECURSIVE | CHECKS | SHARED)
}

fn scope(mutex: &RawPosixMutex) -> Scope {
    if is_shared(mutex) {
        Scope::Shared
    } else {
        Scope::Private
    }
}

/// The kernel's word and where its waiters stand, of a priority-inheriting mutex.
pub(in crate::lock) fn kernel_word(mutex: &RawPosixMutex) -> Option<(&AtomicU32, Scope)> {
    is_pi(mutex).then(|| (&mutex.data, scope(mutex)))
}

pub(super) fn is_pi(mutex: &RawPosixMutex) -> bool {
    traits(mutex) & (SPECIAL | PI) == SPECIAL | PI
}

/// Of a special one.
pub(super) fn is_shared(mutex: &RawPosixMutex) -> bool {
    traits(mutex) & SHARED != 0
}

/// Of a special one.
pub(super) fn is_locked(mutex: &RawPosixMutex) -> bool {
    if is_pi(mutex) {
        mutex.data.load(Ordering::Relaxed) & pi::TID_MASK != 0
    } else {
        mutex.state().is_locked()
    }
}

pub(super) fn is_mine(mutex: &RawPosixMutex) -> bool {
    if is_pi(mutex) {
        pi::is_mine(&mutex.data)
    } else {
        is_owned(mutex)
    }
}

/// Whether the calling thread holds it, of one that has a word of ours.
fn is_owned(mutex: &RawPosixMutex) -> bool {
    mutex.state().is_locked() && mutex.data.load(Ordering::Relaxed) & OWNER == tid()
}

/// Whether the calling thread holds it, and could once more.
pub(super) fn is_recursively_mine(mutex: &RawPosixMutex) -> bool {
    let traits = traits(mutex);
    traits & SPECIAL != 0
        && traits & DESTROYED != DESTROYED
        && traits & RECURSIVE != 0
        && is_mine(mutex)
}

/// What comes of a lock by its owner; `None` if the caller is not.
pub(super) fn lock_again(mutex: &RawPosixMutex) -> Option<Result<(), LockError>> {
    if traits(mutex) & DESTROYED == DESTROYED {
        return Some(Err(LockError::Invalid));
    }
    is_mine(mutex).then(|| add_level(mutex))
}

/// The owner locks it.
#[inline]
fn add_level(mutex: &RawPosixMutex) -> Result<(), LockError> {
    let state = mutex.state();
    if state.0 & RECURSIVE == 0 {
        return Err(LockError::Deadlock);
    }
    if state.levels() == MOST_LEVELS {
        return Err(LockError::TooMany);
    }
    // Relaxed: only the owner counts, and it holds the lock already.
    mutex.word.fetch_add(ONE_LEVEL, Ordering::Relaxed);
    Ok(())
}

/// The calling thread has taken the word.
fn own(mutex: &RawPosixMutex) {
    let data = mutex.data.load(Ordering::Relaxed);
    mutex.data.store(data & !OWNER | tid(), Ordering::Relaxed);
}

/// The calling thread has taken the word, of one that may keep its owner.
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
    // The kernel sees to it that an owner does not wait for itself, unless it may lock it again.
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

/// Takes one that has a word of ours, and that the caller does not hold.
fn take(mutex: &RawPosixMutex, deadline: Option<&Deadline>) -> Result<(), LockError> {
    let state = mutex.state();
    if state.0 & DESTROYED == DESTROYED {
        return Err(LockError::Invalid);
    }
    let free = State(state.0 & !LOCKED);
    let taken = free.0 == traits(mutex)
        && mutex
            .word
            .compare_exchange(
                free.0,
                free.0 | LOCKED,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok();
    if !taken {
        mutex.lock_word(deadline)?;
    }
    own(mutex);
    Ok(())
}

pub(super) fn try_lock(mutex: &RawPosixMutex) -> Result<(), LockError> {
    match lock_again(mutex) {
        // POSIX: what is locked is busy, also for its owner.
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
    mutex.unlock_word(then);
    Ok(())
}

/// One of our words that keeps an owner, free, and nobody waits.
fn is_free_and_ours(state: u32) -> bool {
    const RECURSIVE_AND_FREE: u32 = SPECIAL | RECURSIVE;
    const CHECKING_AND_FREE: u32 = SPECIAL | CHECKS;
    matches!(state, RECURSIVE_AND_FREE | CHECKING_AND_FREE)
}

/// Private, and not destroyed.
fn keeps_an_owner_in_our_word(state: u32) -> bool {
    state & (SPECIAL | PI | SHARED) == SPECIAL && state & DESTROYED != DESTROYED
}

#[inline(never)]
fn wait_for_kernel_word(
    word: &AtomicU32,
    scope: Scope,
    deadline: Option<&Deadline>,
) -> Result<(), LockError> {
    // Robust mutexes tell that an owner died. For this one it is as if that owner had unlocked it.
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
        // The owner's number is that of a thread of the kernel by now: the owner has ended.
        PiError::NotOwner => LockError::OwnerDied,
        error => error.into(),
    }
}

/// Of a priority-inheriting one that the caller does not hold more than once.
impl RawPosixMutex {
    /// Takes it, waiting until `deadline` at the latest; says whether an owner died.
    #[inline]
    pub(in crate::lock) fn lock_pi(
        &self,
        deadline: Option<&Deadline>,
    ) -> Result<Acquired, LockError> {
        debug_assert!(is_pi(self));
        lock_kernel_word(&self.data, scope(self), deadline)
    }

    /// Takes it if that needs no waiting; says whether an owner died.
    #[inline]
    pub(in crate::lock) fn try_lock_pi(&self) -> Result<Acquired, LockError> {
        debug_assert!(is_pi(self));
        Ok(pi::try_lock(&self.data, scope(self))?)
    }
}

impl RawPosixMutex {
    /// Takes it if it is recursive, error-checking or priority-inheriting, private and free, whoever
    /// waits, or the caller's to be locked once more: the part of
    /// [`lock_checked`](Self::lock_checked) that is most often enough for these. False: nothing has
    /// been done; it takes the whole call to know more.
    ///
    /// For callers, as a `pthread_mutex_lock`, that keep the rest out of line.
    #[inline]
    pub(crate) fn lock_owned_at_once(&self) -> bool {
        let state = self.state().0;
        if is_free_and_ours(state) {
            let taken = state | LOCKED;
            let is_taken =
                self.word
                    .compare_exchange(state, taken, Ordering::Acquire, Ordering::Relaxed);
            if is_taken.is_ok() {
                own(self);
            }
            return is_taken.is_ok();
        }
        if state & (SPECIAL | PI | SHARED) == SPECIAL | PI && pi::lock_at_once(&self.data) {
            return true;
        }
        self.lock_owned_otherwise(State(state))
    }

    /// Gives it back if it is such a one and no thread has to be woken, or one level of it: the part
    /// of [`unlock_checked`](Self::unlock_checked) that is most often enough for these.
    ///
    /// # Safety
    /// The caller holds it, or it has an owner and can tell.
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
                self.word
                    .compare_exchange(state, free, Ordering::Release, Ordering::Relaxed);
            return match is_free {
                Ok(_) => GivenBack::Yes,
                Err(_) => GivenBack::Unless(LateWaiter(self)),
            };
        }
        let is_pi_once =
            State(state).levels() == 0 && state & (SPECIAL | PI | SHARED) == SPECIAL | PI;
        match is_pi_once && pi::unlock_at_once(&self.data) {
            true => GivenBack::Yes,
            false => self.unlock_owned_otherwise(State(state)),
        }
    }

    /// Takes it past those who wait, or once more.
    #[inline(never)]
    fn lock_owned_otherwise(&self, state: State) -> bool {
        self.barge_owned(state) || is_recursively_mine(self) && lock_again(self) == Some(Ok(()))
    }

    /// Gives it back past those who wait, or one level of it.
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

    /// Takes it past those who wait, if it keeps an owner in our word and is free. Returns whether it
    /// did.
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

    /// Gives back what the caller holds once, if no waiter has to be woken.
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

    /// Makes every later use of it fail with [`LockError::Invalid`], where that can be seen: nothing needs to be done to
    /// free a mutex. (POSIX: `pthread_mutex_destroy`.)
    ///
    /// # Errors
    /// [`LockError::Busy`] if somebody holds it or waits for it, [`LockError::Invalid`] if it is destroyed already.
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
        // One that is free and that nobody waits for has nothing but its traits.
        let free = if state.is_special() { traits(self) } else { 0 };
        let free_to_destroyed = || {
            self.word
                .compare_exchange(free, DESTROYED, Ordering::Relaxed, Ordering::Relaxed)
                .map(drop)
                .map_err(|_| LockError::Busy)
        };
        free_to_destroyed().or_else(|busy| {
            // Or it has a sign of somebody who is gone (given up, killed, left in the parent of this process), which
            // the next unlock clears.
            self.try_lock_checked().map_err(|_| busy)?;
            self.unlock_slow()?;
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

    /// Else nothing is done.
    fn is_given_back(mutex: &RawPosixMutex) -> bool {
        // SAFETY: it keeps its owner, and can tell whether that is the caller.
        match unsafe { mutex.unlock_owned_at_once() } {
            GivenBack::Yes => true,
            GivenBack::No => false,
            GivenBack::Unless(_) => panic!("somebody came to wait"),
        }
    }

    /// Past a successor that is awake, and others that are parked.
    #[test]
    fn an_owner_comes_and_goes_past_those_who_wait() {
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
    fn whoever_must_wake_another_or_is_not_the_owner_gives_nothing_back() {
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
