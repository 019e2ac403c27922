//! Mutexes and spin locks, behind one interface.

use super::abi;
use super::object::{Object, error_name, zero};
use super::sort::{Kind, Made, Protocol, Sort};
use super::until::Until;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits::{Attempt, Lock};
use crate::spot::Spot;
use libc::{EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, c_int, pthread_mutex_t};

/// A lock, made again and again at the same place.
pub(crate) struct Mutex {
    pub(crate) sort: Sort,
    pub(crate) object: Object,
}

impl Mutex {
    pub(crate) fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        let object = Object::new(context, &sort.name(), sort.shared);
        let lock = Self { sort, object };
        lock.make()?;
        Ok(lock)
    }

    pub(crate) fn make(&self) -> Verdict {
        self.object.fill(0xa5);
        // SAFETY: it is not in use.
        unsafe { self.sort.make(self.raw()) }
    }

    pub(crate) fn end(&self) -> Verdict {
        // SAFETY: it was made as this sort, and is not in use.
        let answer = unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_destroy(self.object.at()),
                Made::C11 => {
                    abi::mtx_destroy(self.raw());
                    0
                }
                _ => libc::pthread_mutex_destroy(self.raw()),
            }
        };
        zero("destroy", answer)
            .map_err(|error| format!("{}, which no thread uses: {error}", self.sort.name()))
    }

    pub(crate) fn raw(&self) -> *mut pthread_mutex_t {
        self.object.at()
    }

    /// Locks it, without a deadline.
    pub(crate) fn lock(&self, actor: &Actor) -> Verdict {
        match self.call(actor, Attempt::Patient, None) {
            0 => Ok(()),
            number => Err(self.refused(number)),
        }
    }

    /// Locks it, or gives up at a deadline. Spin locks have no deadlines, and C11's mutexes have
    /// only one clock. Returns pthread's error number.
    pub(super) fn call(&self, actor: &Actor, attempt: Attempt, until: Option<&Until>) -> c_int {
        let realtime = until.is_some_and(|until| until.clock == libc::CLOCK_REALTIME);
        let timed = match self.sort.made {
            Made::Spin => None,
            Made::C11 if !realtime => None,
            _ => until,
        };
        let call = || {
            // SAFETY: it was made as this sort, and `until` outlives the call.
            unsafe {
                match (self.sort.made, timed) {
                    (Made::Spin, _) if attempt == Attempt::Try => {
                        libc::pthread_spin_trylock(self.object.at())
                    }
                    (Made::Spin, _) => libc::pthread_spin_lock(self.object.at()),
                    (Made::C11, _) if attempt == Attempt::Try => abi::mtx_trylock(self.raw()),
                    (Made::C11, Some(until)) => {
                        abi::mtx_timedlock(self.raw(), &raw const until.time)
                    }
                    (Made::C11, None) => abi::mtx_lock(self.raw()),
                    _ if attempt == Attempt::Try => libc::pthread_mutex_trylock(self.raw()),
                    (_, None) => libc::pthread_mutex_lock(self.raw()),
                    (_, Some(until)) if realtime && until.time.tv_nsec % 2 == 0 => {
                        libc::pthread_mutex_timedlock(self.raw(), &raw const until.time)
                    }
                    (_, Some(until)) => {
                        let time = &raw const until.time;
                        abi::pthread_mutex_clocklock(self.raw(), until.clock, time)
                    }
                }
            }
        };
        let answer = match attempt {
            Attempt::Try => call(),
            _ => self.object.wait(actor, until.is_some(), call),
        };
        let answer = match (self.sort.made, answer) {
            (Made::C11, abi::THRD_BUSY) => EBUSY,
            (Made::C11, abi::THRD_TIMEDOUT) => ETIMEDOUT,
            (_, answer) => answer,
        };
        if answer == 0 {
            self.object.held();
        }
        answer
    }

    /// After an attempt that returned this error number: whether it may not have been locked.
    pub(super) fn may_fail(
        &self,
        actor: &Actor,
        attempt: Attempt,
        number: c_int,
        until: Option<&Until>,
    ) -> Verdict {
        match (number, until) {
            (EBUSY, None) if attempt == Attempt::Try => Ok(()),
            (ETIMEDOUT, Some(until)) if !until.has_passed(actor) => {
                Err(format!("{} timed out too early", self.sort.name()))
            }
            (ETIMEDOUT, Some(_)) => {
                actor.count(Count::Timeouts, 1);
                Ok(())
            }
            // Priority-inheriting ones are the C library's. Before Linux 5.14 it supports that
            // clock for them only while they are free.
            (EINVAL, Some(until))
                if until.clock != libc::CLOCK_REALTIME
                    && self.sort.protocol == Protocol::Inherit
                    && is_old() =>
            {
                Ok(())
            }
            _ => Err(self.refused(number)),
        }
    }

    fn refused(&self, number: c_int) -> String {
        format!("{} was not locked: {}", self.sort.name(), error_name(number))
    }

    pub(crate) fn unlock(&self) -> Verdict {
        self.object.given_back();
        zero("unlock", self.unlock_now())
    }

    /// Like [`Mutex::unlock`], for a caller that may not hold it. Returns the error number.
    fn unlock_now(&self) -> c_int {
        // SAFETY: it was made as this sort.
        unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_unlock(self.object.at()),
                Made::C11 => abi::mtx_unlock(self.raw()),
                _ => libc::pthread_mutex_unlock(self.raw()),
            }
        }
    }
}

/// Whether this kernel lacks FUTEX_LOCK_PI2, as far as a call that was added later can tell.
fn is_old() -> bool {
    !waitword::probe::futex_waitv().is_there()
}

/// Checks an answer.
fn answers(caller: &str, what: &str, answer: c_int, expected: c_int) -> Verdict {
    if answer == expected {
        return Ok(());
    }
    Err(format!("it answers {caller} that asks to {what}: {answer}, not {expected}"))
}

impl Lock for Mutex {
    fn all(context: &Context) -> Result<Vec<Self>, String> {
        Sort::all().map(|sort| Self::new(context, sort)).collect()
    }

    fn name(&self) -> String {
        self.sort.name()
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn take(&self, actor: &mut Actor, attempt: Attempt) -> Result<bool, String> {
        let until = (attempt == Attempt::Timed).then(|| Until::soon(actor));
        match self.call(actor, attempt, until.as_ref()) {
            0 => Ok(true),
            number => (self.may_fail(actor, attempt, number, until.as_ref())).map(|()| false),
        }
    }

    fn give_back(&self, _actor: &mut Actor) -> Verdict {
        self.unlock()
    }

    fn is_recursive(&self) -> bool {
        self.sort.kind == Kind::Recursive
    }

    fn check_as_owner(&self) -> Verdict {
        let (error_checking, robust) = (self.sort.kind == Kind::ErrorChecking, self.sort.robust);
        // SAFETY: it was made as this sort; an error-checking mutex answers at once.
        unsafe {
            match self.sort.made {
                Made::Spin => {
                    let tried = libc::pthread_spin_trylock(self.object.at());
                    return answers("its owner", "try", tried, EBUSY);
                }
                Made::C11 => {
                    let tried = abi::mtx_trylock(self.raw());
                    return answers("its owner", "try", tried, abi::THRD_BUSY);
                }
                _ => {}
            }
            let tried = libc::pthread_mutex_trylock(self.raw());
            // Both answers are right for an error-checking mutex; glibc chooses by protocol and
            // robustness.
            if !error_checking || tried != EDEADLK {
                answers("its owner", "try", tried, EBUSY)?;
            }
            if error_checking {
                let locked = libc::pthread_mutex_lock(self.raw());
                answers("its owner", "lock", locked, EDEADLK)?;
            }
            if !robust {
                let destroyed = libc::pthread_mutex_destroy(self.raw());
                answers("its owner", "destroy", destroyed, EBUSY)?;
            }
        }
        Ok(())
    }

    fn check_as_non_owner(&self) -> Verdict {
        match self.sort.made {
            Made::ByInit | Made::Static if self.sort.detects_non_owners() => {
                answers("a non-owner", "unlock", self.unlock_now(), EPERM)
            }
            _ => Ok(()),
        }
    }

    fn is_spin_lock(&self) -> bool {
        self.sort.made == Made::Spin
    }

    fn needs_real_time(&self) -> bool {
        self.sort.protocol == Protocol::Protect
    }

    fn renew(&self) -> Verdict {
        self.end()?;
        self.make()
    }
}
