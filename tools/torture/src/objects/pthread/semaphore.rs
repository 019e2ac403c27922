//! Semaphores: private, shared, and named.

use super::abi;
use super::barrier::Barrier;
use super::object::{Object, zero};
use super::until::Until;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits;
use libc::{EAGAIN, EINTR, ETIMEDOUT, sem_t};
use std::ffi::CString;

const SEMAPHORES: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Private,
    Shared,
    Named,
}

/// See the module documentation.
pub(crate) struct Semaphore {
    object: Object,
    /// Its address: for a named one, where the C library has put it.
    at: *mut sem_t,
    sort: Sort,
}

// SAFETY: semaphores are for all threads.
unsafe impl Sync for Semaphore {}
// SAFETY: as above.
unsafe impl Send for Semaphore {}

impl Semaphore {
    fn new(context: &Context, index: usize) -> Result<Self, String> {
        let sort = [Sort::Private, Sort::Private, Sort::Shared, Sort::Named][index % 4];
        let name = match sort {
            Sort::Private => "private semaphore",
            Sort::Shared => "shared semaphore",
            Sort::Named => "named semaphore (lies elsewhere)",
        };
        let object = Object::new(context, name, sort == Sort::Shared);
        let at = match sort {
            Sort::Named => open(index)?,
            _ => object.at(),
        };
        Ok(Self { object, at, sort })
    }

    /// One in private memory; it must be made. A process-shared one may lie there too, if only one
    /// process uses it.
    pub(crate) fn any(context: &Context, shared: bool) -> Self {
        let sort = [Sort::Private, Sort::Shared][usize::from(shared)];
        Self { sort, ..Self::private(Object::new(context, "semaphore", false)) }
    }

    /// A private one, at a place; it must be made.
    pub(crate) fn private(object: Object) -> Self {
        let (at, sort) = (object.at(), Sort::Private);
        Self { object, at, sort }
    }

    /// Waits, through all interruptions.
    pub(crate) fn wait(&self) -> Verdict {
        // SAFETY: it was made.
        while unsafe { abi::sem_wait(self.at) } != 0 {
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(EINTR) {
                return Err(format!("sem_wait: {error}"));
            }
        }
        Ok(())
    }

    /// Waits until a time. Returns whether it has taken one.
    pub(crate) fn wait_until(&self, actor: &Actor, until: &Until) -> bool {
        // SAFETY: it was made, and `until` outlives the call.
        let call = || unsafe { abi::sem_clockwait(self.at, until.clock, &raw const until.time) };
        self.object.wait(actor, true, call) == 0
    }
}

/// A named semaphore, whose name is removed at once.
fn open(index: usize) -> Result<*mut sem_t, String> {
    let name = format!("/waitword-torture-{}-{index}", std::process::id());
    let name = CString::new(name).map_err(|error| error.to_string())?;
    let flags = libc::O_CREAT | libc::O_EXCL;
    // SAFETY: a NUL-terminated name, and the arguments that O_CREAT needs.
    unsafe {
        let at = abi::sem_open(name.as_ptr(), flags, 0o600, 0);
        if at == libc::SEM_FAILED {
            return Err(format!("sem_open: {}", std::io::Error::last_os_error()));
        }
        libc::sem_unlink(name.as_ptr());
        Ok(at)
    }
}

impl traits::Semaphore for Semaphore {
    type Barrier = Barrier;

    /// A scenario of its own cancels waiters.
    const IS_INTERRUPTED: bool = false;

    fn all(context: &Context) -> Result<Vec<Self>, String> {
        (0..SEMAPHORES).map(|index| Self::new(context, index)).collect()
    }

    fn make(&self, value: u32) -> Verdict {
        if self.sort == Sort::Named {
            return match self.post_many(value) {
                true => Ok(()),
                false => Err("sem_post failed".to_owned()),
            };
        }
        self.object.fill(0xa5);
        let shared = i32::from(self.sort == Sort::Shared);
        // SAFETY: it is not in use.
        zero("sem_init", unsafe { libc::sem_init(self.at, shared, value) })
    }

    fn post(&self) -> bool {
        // SAFETY: it was made.
        unsafe { libc::sem_post(self.at) == 0 }
    }

    fn take(&self, actor: &mut Actor, restarting: bool) -> Verdict {
        loop {
            let way = actor.dice.u32(0..8);
            let until = (way >= 5).then(|| Until::soon(actor));
            let call = || {
                // SAFETY: it was made, and `until` outlives the call.
                unsafe {
                    match &until {
                        None if way == 0 => libc::sem_trywait(self.at),
                        None => abi::sem_wait(self.at),
                        Some(until) if way == 5 && until.clock == libc::CLOCK_REALTIME => {
                            abi::sem_timedwait(self.at, &raw const until.time)
                        }
                        Some(until) => {
                            abi::sem_clockwait(self.at, until.clock, &raw const until.time)
                        }
                    }
                }
            };
            if self.object.wait(actor, until.is_some(), call) == 0 {
                return Ok(());
            }
            let error = std::io::Error::last_os_error();
            match (error.raw_os_error(), until) {
                (Some(EAGAIN), None) if way == 0 => std::thread::yield_now(),
                (Some(ETIMEDOUT), Some(until)) if until.has_passed(actor) => {
                    actor.count(Count::Timeouts, 1);
                }
                (Some(EINTR), _) if !actor.was_interrupted() => {
                    return Err("a wait was interrupted though no handler has run".to_owned());
                }
                (Some(EINTR), None) if restarting => {
                    let error = "a wait without a deadline was interrupted in spite of SA_RESTART";
                    return Err(error.to_owned());
                }
                (Some(EINTR), _) => actor.count(Count::Interrupted, 1),
                (_, until) => {
                    let kind = if until.is_some() { "timed " } else { "" };
                    return Err(format!("a {kind}wait for a semaphore: {error}"));
                }
            }
        }
    }

    fn try_take(&self) -> bool {
        // SAFETY: it was made.
        unsafe { libc::sem_trywait(self.at) == 0 }
    }

    fn value(&self) -> u32 {
        let mut value = 0;
        // SAFETY: it was made; room for the value.
        unsafe { abi::sem_getvalue(self.at, &raw mut value) };
        value as u32
    }

    fn end(&self) -> Verdict {
        if self.sort == Sort::Named {
            return Ok(());
        }
        // SAFETY: it is not in use.
        zero("sem_destroy", unsafe { libc::sem_destroy(self.at) })
    }
}
