//! Robust mutexes, each with a condition variable that waits with it.

use super::condvar::{Condvar, CondvarSort};
use super::mutex::Mutex;
use super::object::zero;
use super::sort::{Kind, Protocol, Sort};
use super::until::Until;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::objects::traits::{Attempt, Found, Lock as _, Robust};
use crate::spot::Spot;
use libc::{EOWNERDEAD, ETIMEDOUT};

/// See the module documentation.
pub(crate) struct RobustMutex {
    mutex: Mutex,
    condvar: Condvar,
}

impl RobustMutex {
    fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        let condvar = CondvarSort {
            shared: sort.shared,
            clock: libc::CLOCK_MONOTONIC,
            by_initialiser: false,
        };
        Ok(Self {
            mutex: Mutex::new(context, sort)?,
            condvar: Condvar::new(context, "of a robust mutex", condvar)?,
        })
    }
}

impl Robust for RobustMutex {
    fn all(context: &Context) -> Result<Vec<Self>, String> {
        Sort::by_init()
            .filter(|sort| sort.robust)
            .filter(|sort| sort.kind != Kind::Adaptive || sort.protocol == Protocol::None)
            .map(|sort| Self::new(context, sort))
            .collect()
    }

    fn name(&self) -> String {
        self.mutex.sort.name()
    }

    fn spot(&self) -> Spot {
        self.mutex.object.spot
    }

    fn is_shared(&self) -> bool {
        self.mutex.sort.shared
    }

    fn is_recursive(&self) -> bool {
        self.mutex.is_recursive()
    }

    fn lock(&self, actor: &mut Actor, attempt: Attempt) -> Result<Option<Found>, String> {
        let until = (attempt == Attempt::Timed).then(|| Until::soon(actor));
        match self.mutex.call(actor, attempt, until.as_ref()) {
            0 => Ok(Some(Found::Clean)),
            EOWNERDEAD => {
                self.mutex.object.held();
                Ok(Some(Found::OwnerDied))
            }
            number => {
                let failed = self.mutex.may_fail(actor, attempt, number, until.as_ref());
                failed.map(|()| None)
            }
        }
    }

    fn make_consistent(&self) -> Verdict {
        // SAFETY: held, and not consistent.
        zero("pthread_mutex_consistent", unsafe {
            libc::pthread_mutex_consistent(self.mutex.raw())
        })
    }

    fn unlock(&self, _actor: &mut Actor) -> Verdict {
        self.mutex.unlock()
    }

    fn wait(&self, actor: &mut Actor) -> Result<Found, String> {
        self.mutex.object.given_back();
        let until = Until::tiny(&mut actor.dice, self.condvar.sort.clock);
        let answer = self
            .condvar
            .object
            .wait(actor, true, || self.condvar.wait_now(&self.mutex, Some(&until)));
        let found = match answer {
            0 | ETIMEDOUT => Found::Clean,
            EOWNERDEAD => Found::OwnerDied,
            number => return Err(format!("a wait: error {number}")),
        };
        self.mutex.object.held();
        Ok(found)
    }

    fn signal(&self, actor: &mut Actor) -> Verdict {
        match actor.dice.u32(0..16) {
            0 => self.condvar.broadcast(false),
            1..4 => self.condvar.signal(false),
            _ => Ok(()),
        }
    }

    /// Suppose the kernel has woken a waiter, and the waiter is killed before it has the mutex. It
    /// takes that wake-up with it if a third thread has locked meanwhile. (This is so with glibc's
    /// robust mutexes and Linux 6.18.)
    fn after_kill(&self) {
        let word = self.mutex.object.at::<u32>();
        // SAFETY: the mutex's futex; its waiters look again.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, i32::MAX) };
    }

    fn renew(&self) -> Verdict {
        self.mutex.renew()
    }
}
