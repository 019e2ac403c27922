//! Condition variables of every sort: private and shared, with either clock, made with attributes
//! and with the static initialiser.

use super::abi;
use super::mutex::Mutex;
use super::object::{Object, error_name, zero};
use super::sort::Made;
use super::until::{Until, some_clock};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits;
use libc::{clockid_t, pthread_cond_t};
use std::mem::MaybeUninit;

/// What is chosen when one is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CondvarSort {
    pub(crate) shared: bool,
    pub(crate) clock: clockid_t,
    pub(crate) by_initialiser: bool,
}

impl CondvarSort {
    pub(crate) const PLAIN: Self =
        Self { shared: false, clock: libc::CLOCK_REALTIME, by_initialiser: true };

    /// A random sort; the static initialiser's most often, as in programs.
    pub(crate) fn some(dice: &mut fastrand::Rng) -> Self {
        match dice.u32(0..3) {
            0 => Self::PLAIN,
            _ => Self { shared: dice.bool(), clock: some_clock(dice), by_initialiser: false },
        }
    }

    /// Makes one.
    ///
    /// # Safety
    /// `cond` is memory for one, and not in use.
    pub(crate) unsafe fn make(self, cond: *mut pthread_cond_t) -> Result<(), String> {
        // SAFETY: the caller's promise; attributes are initialised, used and destroyed.
        unsafe {
            if self.by_initialiser {
                cond.write(libc::PTHREAD_COND_INITIALIZER);
                return Ok(());
            }
            let mut attributes = MaybeUninit::uninit();
            libc::pthread_condattr_init(attributes.as_mut_ptr());
            libc::pthread_condattr_setclock(attributes.as_mut_ptr(), self.clock);
            if self.shared {
                let shared = libc::PTHREAD_PROCESS_SHARED;
                libc::pthread_condattr_setpshared(attributes.as_mut_ptr(), shared);
            }
            let made = libc::pthread_cond_init(cond, attributes.as_ptr());
            libc::pthread_condattr_destroy(attributes.as_mut_ptr());
            zero("pthread_cond_init", made)
        }
    }
}

/// A condition variable, made again now and then at the same place.
pub(crate) struct Condvar {
    pub(crate) sort: CondvarSort,
    pub(crate) object: Object,
}

impl Condvar {
    pub(crate) fn new(context: &Context, name: &str, sort: CondvarSort) -> Result<Self, String> {
        let object = Object::new(context, &format!("condvar `{name}`"), sort.shared);
        let condvar = Self { sort, object };
        condvar.make()?;
        Ok(condvar)
    }

    pub(crate) fn make(&self) -> Result<(), String> {
        self.object.fill(0xa5);
        // SAFETY: it is not in use.
        unsafe { self.sort.make(self.object.at()) }
    }

    pub(crate) fn end(&self) -> Verdict {
        // SAFETY: it is not in use.
        zero("destroy of an unused condvar", unsafe {
            libc::pthread_cond_destroy(self.object.at())
        })
    }

    /// With the lock held: one wait, with or without a deadline.
    pub(crate) fn wait(&self, actor: &mut Actor, lock: &Mutex, timed: bool) -> Result<(), String> {
        let until = timed.then(|| Until::soon(actor));
        lock.object.given_back();
        let until = until.as_ref();
        let answer = self.object.wait(actor, timed, || self.wait_now(lock, until));
        if answer != 0 && answer != libc::ETIMEDOUT {
            return Err(format!("a wait with a {}: {}", lock.sort.name(), error_name(answer)));
        }
        lock.object.held();
        match (answer, until) {
            (0, _) => actor.count(Count::Woken, 1),
            (_, Some(until)) if until.has_passed(actor) => {
                actor.count(Count::Timeouts, 1);
            }
            _ => return Err("a wait timed out too early".to_owned()),
        }
        Ok(())
    }

    /// The call alone. It is a cancellation point, so nothing here may need to be dropped.
    pub(crate) fn wait_now(&self, lock: &Mutex, until: Option<&Until>) -> i32 {
        let (cond, mutex) = (self.object.at(), lock.raw());
        let c11 = lock.sort.made == Made::C11;
        // SAFETY: both were made, the mutex is held, and all threads that wait here do so with it.
        unsafe {
            match until {
                None if c11 => abi::cnd_wait(cond, mutex),
                None => abi::pthread_cond_wait(cond, mutex),
                Some(until) => {
                    let time = &raw const until.time;
                    let own_clock = until.clock == self.sort.clock;
                    match own_clock && until.time.tv_nsec % 2 == 0 {
                        true if c11 => match abi::cnd_timedwait(cond, mutex, time) {
                            abi::THRD_TIMEDOUT => libc::ETIMEDOUT,
                            answer => answer,
                        },
                        true => abi::pthread_cond_timedwait(cond, mutex, time),
                        false => abi::pthread_cond_clockwait(cond, mutex, until.clock, time),
                    }
                }
            }
        }
    }

    pub(crate) fn signal(&self, c11: bool) -> Result<(), String> {
        // SAFETY: it was made.
        zero("signal", unsafe {
            match c11 {
                true => abi::cnd_signal(self.object.at()),
                false => libc::pthread_cond_signal(self.object.at()),
            }
        })
    }

    pub(crate) fn broadcast(&self, c11: bool) -> Result<(), String> {
        // SAFETY: it was made.
        zero("broadcast", unsafe {
            match c11 {
                true => abi::cnd_broadcast(self.object.at()),
                false => libc::pthread_cond_broadcast(self.object.at()),
            }
        })
    }
}

impl traits::Condvar for Condvar {
    type Lock = Mutex;

    /// A scenario of its own cancels waiters.
    const IS_INTERRUPTED: bool = false;

    fn new(context: &Context, name: &str, _index: usize) -> Result<Self, String> {
        Self::new(context, name, CondvarSort::PLAIN)
    }

    fn wait(&self, actor: &mut Actor, lock: &Mutex, _in_order: bool) -> Verdict {
        let timed = actor.dice.u32(0..6) == 0;
        self.wait(actor, lock, timed)
    }

    fn signal(&self, actor: &mut Actor, lock: &Mutex, all: bool) -> Verdict {
        actor.count(Count::Wakes, 1);
        let c11 = lock.sort.made == Made::C11;
        match all {
            true => self.broadcast(c11),
            false => self.signal(c11),
        }
    }

    fn renew(&mut self, dice: &mut fastrand::Rng) -> Verdict {
        self.end()?;
        // A shared one may lie in private memory: only this process uses it.
        self.sort = CondvarSort::some(dice);
        self.make()
    }
}
