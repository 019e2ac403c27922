//! What the scenarios ask of an object.
//!
//! A call that may wait records on the board what the thread waits for, and a lock that the thread
//! holds it. An error of any call is a violation; a call that merely did not get the object returns
//! `false` or `None`.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::spot::Spot;

/// How long a thread tries to get an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It does not wait.
    Try,
    /// It waits until a deadline within the next fraction of a millisecond, or just past.
    Timed,
    /// It waits without a deadline.
    Patient,
}

/// A mutex, or a spin lock.
pub(crate) trait Lock: Send + Sync + Sized {
    /// One of every sort.
    fn all(context: &Context) -> Result<Vec<Self>, String>;

    fn name(&self) -> String;

    fn spot(&self) -> Spot;

    fn take(&self, actor: &mut Actor, attempt: Attempt) -> Result<bool, String>;

    /// Unlocks it, in one way or another.
    fn give_back(&self, actor: &mut Actor) -> Verdict;

    fn is_recursive(&self) -> bool;

    /// Called by the owner of one that is not recursive: checks the answers that it gets.
    fn check_as_owner(&self) -> Verdict;

    /// Called by a thread that does not hold it: checks that it gets an error.
    fn check_as_non_owner(&self) -> Verdict;

    /// Whether other threads may overtake a waiter only for a bounded time.
    fn is_bounded(&self) -> bool {
        false
    }

    fn is_spin_lock(&self) -> bool {
        false
    }

    /// Whether only real-time threads may lock it.
    fn needs_real_time(&self) -> bool {
        false
    }

    /// After all threads have ended: checks that no trace of them is left. Then it is made again.
    fn renew(&self) -> Verdict;
}

/// A condition variable.
pub(crate) trait Condvar: Send + Sync + Sized {
    type Lock: Lock;

    /// Whether waits are interrupted, as cancellation does.
    const IS_INTERRUPTED: bool;

    /// Number `index` of several.
    fn new(context: &Context, name: &str, index: usize) -> Result<Self, String>;

    /// With the lock held: one wait, which may end spuriously. If `in_order`, without a deadline,
    /// and no signal may overtake another.
    fn wait(&self, actor: &mut Actor, lock: &Self::Lock, in_order: bool) -> Verdict;

    fn signal(&self, actor: &mut Actor, lock: &Self::Lock, all: bool) -> Verdict;

    /// Interrupts waits at random, once.
    fn interrupt_some(_actor: &mut Actor) {}

    /// Whether waiters are signalled in the order in which they came.
    fn keeps_order(&self, _lock: &Self::Lock) -> bool {
        false
    }

    /// A wait by a thread that does not hold the lock: checks that it gets an error.
    fn check_as_non_owner(&self, _lock: &Self::Lock) -> Verdict {
        Ok(())
    }

    /// After all threads of a round have ended.
    fn settle(&self, _lock: &Self::Lock) -> Verdict {
        Ok(())
    }

    /// It is not in use: checks that. Then it is made again, maybe as another sort.
    fn renew(&mut self, dice: &mut fastrand::Rng) -> Verdict;
}

/// How a thread holds a reader/writer lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Read,
    Upgradable,
    Written,
}

/// A reader/writer lock.
pub(crate) trait ReadWrite: Send + Sync + Sized {
    /// Whether other threads may overtake a waiter only for a bounded time.
    const IS_BOUNDED: bool;
    /// Whether it can be held upgradably, and changed from one way of holding it to another.
    const CAN_CHANGE: bool;

    /// One of every sort.
    fn all(context: &Context) -> Result<Vec<Self>, String>;

    fn name(&self) -> String;

    fn spot(&self) -> Spot;

    fn take(&self, actor: &mut Actor, held: Held, attempt: Attempt) -> Result<bool, String>;

    /// Whether a reader may read again although a writer waits.
    fn may_read_again(&self) -> bool {
        true
    }

    /// Called by a reader.
    fn read_again(&self, actor: &mut Actor, attempt: Attempt) -> Result<bool, String> {
        self.take(actor, Held::Read, attempt)
    }

    /// Only if it can change: from upgradable to written.
    fn upgrade(&self, _actor: &mut Actor, _attempt: Attempt) -> Result<bool, String> {
        Ok(false)
    }

    /// Only if it can change: from one way of holding it to a weaker one.
    fn downgrade(&self, _from: Held, _to: Held) -> Verdict {
        Ok(())
    }

    fn give_back(&self, actor: &mut Actor, held: Held) -> Verdict;

    /// Called by a writer: checks the answers that it gets.
    fn check_as_writer(&self) -> Verdict;

    /// After all threads have ended: checks that no trace of them is left. Then it is made again.
    fn renew(&self) -> Verdict;
}

/// A semaphore.
pub(crate) trait Semaphore: Send + Sync + Sized + 'static {
    type Barrier: Barrier;

    /// Whether waits are interrupted, as cancellation does.
    const IS_INTERRUPTED: bool;

    /// One or more of every sort.
    fn all(context: &Context) -> Result<Vec<Self>, String>;

    /// It is not in use: makes it, with this value.
    fn make(&self, value: u32) -> Verdict;

    /// Posts it once. Returns whether that was possible. Async-signal-safe.
    fn post(&self) -> bool;

    fn post_many(&self, count: u32) -> bool {
        (0..count).all(|_| self.post())
    }

    /// Waits until it has taken one, in one way or another. If signals are `restarting`, their
    /// handlers end no wait without a deadline.
    fn take(&self, actor: &mut Actor, restarting: bool) -> Verdict;

    /// Interrupts waits at random, once.
    fn interrupt_some(_actor: &mut Actor) {}

    fn try_take(&self) -> bool;

    fn value(&self) -> u32;

    /// After all threads have ended.
    fn end(&self) -> Verdict {
        Ok(())
    }
}

/// A barrier.
pub(crate) trait Barrier: Send + Sync + Sized {
    /// Whether it may be destroyed as soon as one thread has passed it.
    const CAN_END_AT_ONCE: bool;

    /// A place for one; it must be made.
    fn new(context: &Context, name: &str, shared: bool) -> Self;

    fn spot(&self) -> Spot;

    /// It is not in use: makes it, for this many threads.
    fn make(&self, members: usize) -> Verdict;

    /// Waits for the others, with or without giving up and coming again. Returns whether the
    /// thread leads.
    fn wait(&self, actor: &mut Actor) -> Result<bool, String>;

    fn end(&self) -> Verdict;
}

/// Something that is done once.
pub(crate) trait Once: Send + Sync + Sized + 'static {
    /// Whether the routine may end its thread.
    const CAN_END_THREAD: bool;

    /// Number `index` of several.
    fn new(context: &Context, index: usize) -> Self;

    fn spot(&self) -> Spot;

    /// It is not in use: makes it again.
    fn renew(&self);

    /// Calls `routine`, unless that was done before. May unwind or end the thread where `routine`
    /// does.
    fn call(&self, routine: &mut dyn FnMut());

    /// Whether it looks as if it was done.
    fn is_done(&self) -> bool;
}

/// What a locker of a robust mutex finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Clean,
    OwnerDied,
}

/// A robust mutex, perhaps with a condition variable.
pub(crate) trait Robust: Send + Sync + Sized + 'static {
    /// One of every sort.
    fn all(context: &Context) -> Result<Vec<Self>, String>;

    fn name(&self) -> String;

    fn spot(&self) -> Spot;

    fn is_shared(&self) -> bool;

    fn is_recursive(&self) -> bool;

    /// `None`: it was not locked.
    fn lock(&self, actor: &mut Actor, attempt: Attempt) -> Result<Option<Found>, String>;

    fn make_consistent(&self) -> Verdict;

    fn unlock(&self, actor: &mut Actor) -> Verdict;

    /// With the mutex held: waits for the condition variable, until a deadline.
    fn wait(&self, _actor: &mut Actor) -> Result<Found, String> {
        Ok(Found::Clean)
    }

    /// Signals the condition variable now and then.
    fn signal(&self, _actor: &mut Actor) -> Verdict {
        Ok(())
    }

    /// What a process that kills another one owes to the waiters.
    fn after_kill(&self) {}

    /// After all threads have ended.
    fn renew(&self) -> Verdict;
}
