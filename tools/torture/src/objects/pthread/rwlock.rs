//! Reader/writer locks of all three kinds, private and shared, made with attributes and with static
//! initialisers.

use super::abi;
use super::object::{Object, error_name, zero};
use super::until::Until;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits::{Attempt, Held, ReadWrite};
use crate::spot::Spot;
use libc::{EBUSY, EDEADLK, ETIMEDOUT, c_int, pthread_rwlock_t};
use std::mem::MaybeUninit;

/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`: a reader must not read again.
const WRITERS_FIRST: c_int = 2;
/// The offset of the kind in a static initialiser.
const KIND_AT: usize = 48;

/// What is chosen when one is made.
#[derive(Clone, Copy, Debug)]
struct Sort {
    kind: c_int,
    shared: bool,
    by_initialiser: bool,
}

impl Sort {
    fn all() -> impl Iterator<Item = Self> {
        (0..=WRITERS_FIRST).flat_map(|kind| {
            [(false, false), (false, true), (true, false)].map(|(shared, by_initialiser)| Self {
                kind,
                shared,
                by_initialiser,
            })
        })
    }

    fn name(self) -> String {
        let first = if self.kind == WRITERS_FIRST { "writers" } else { "readers" };
        let shared = if self.shared { ", shared" } else { "" };
        let made = if self.by_initialiser { ", by initialiser" } else { "" };
        format!("rwlock of kind {}, {first} first{shared}{made}", self.kind)
    }
}

/// A lock, made again for each round at the same place.
pub(crate) struct RwLock {
    sort: Sort,
    object: Object,
}

impl RwLock {
    /// One with default attributes, at a place; it must be made.
    pub(crate) fn plain(object: Object) -> Self {
        let sort = Sort { kind: 0, shared: false, by_initialiser: false };
        Self { sort, object }
    }

    fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        let object = Object::new(context, &sort.name(), sort.shared);
        let lock = Self { sort, object };
        lock.make()?;
        Ok(lock)
    }

    fn lock(&self) -> *mut pthread_rwlock_t {
        self.object.at()
    }

    pub(crate) fn make(&self) -> Verdict {
        self.object.fill(0xa5);
        // SAFETY: unused memory for a lock; attributes are initialised, used and destroyed.
        unsafe {
            if self.sort.by_initialiser {
                self.lock().write_bytes(0, 1);
                let kind = self.lock().byte_add(KIND_AT).cast::<c_int>();
                kind.write(self.sort.kind);
                return Ok(());
            }
            if self.sort.kind == 0 && !self.sort.shared {
                let made = libc::pthread_rwlock_init(self.lock(), std::ptr::null());
                return zero("pthread_rwlock_init", made);
            }
            let mut attributes = MaybeUninit::uninit();
            libc::pthread_rwlockattr_init(attributes.as_mut_ptr());
            libc::pthread_rwlockattr_setkind_np(attributes.as_mut_ptr(), self.sort.kind);
            if self.sort.shared {
                let shared = libc::PTHREAD_PROCESS_SHARED;
                libc::pthread_rwlockattr_setpshared(attributes.as_mut_ptr(), shared);
            }
            let made = libc::pthread_rwlock_init(self.lock(), attributes.as_ptr());
            libc::pthread_rwlockattr_destroy(attributes.as_mut_ptr());
            zero("pthread_rwlock_init", made)
        }
    }

    pub(crate) fn end(&self) -> Verdict {
        // SAFETY: it is not in use.
        zero("destroy, though it is not in use", unsafe {
            libc::pthread_rwlock_destroy(self.lock())
        })
    }

    /// Calls one of the functions that take it.
    fn call(&self, to_write: bool, attempt: Attempt, until: Option<&Until>) -> c_int {
        let lock = self.lock();
        // SAFETY: it was made, and `until` outlives the call.
        unsafe {
            match (until, to_write) {
                (None, true) if attempt == Attempt::Try => libc::pthread_rwlock_trywrlock(lock),
                (None, false) if attempt == Attempt::Try => libc::pthread_rwlock_tryrdlock(lock),
                (None, true) => libc::pthread_rwlock_wrlock(lock),
                (None, false) => libc::pthread_rwlock_rdlock(lock),
                (Some(until), _) => {
                    let time = &raw const until.time;
                    let realtime = until.clock == libc::CLOCK_REALTIME;
                    let by_name = realtime && until.time.tv_nsec % 2 == 0;
                    match (to_write, by_name) {
                        (true, true) => abi::pthread_rwlock_timedwrlock(lock, time),
                        (false, true) => abi::pthread_rwlock_timedrdlock(lock, time),
                        (true, false) => abi::pthread_rwlock_clockwrlock(lock, until.clock, time),
                        (false, false) => abi::pthread_rwlock_clockrdlock(lock, until.clock, time),
                    }
                }
            }
        }
    }
}

impl ReadWrite for RwLock {
    /// glibc's readers may keep a writer waiting.
    const IS_BOUNDED: bool = false;
    const CAN_CHANGE: bool = false;

    fn all(context: &Context) -> Result<Vec<Self>, String> {
        Sort::all().map(|sort| Self::new(context, sort)).collect()
    }

    fn name(&self) -> String {
        self.sort.name()
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn take(&self, actor: &mut Actor, held: Held, attempt: Attempt) -> Result<bool, String> {
        let to_write = held == Held::Written;
        let until = (attempt == Attempt::Timed).then(|| Until::soon(actor));
        let answer = self
            .object
            .wait(actor, until.is_some(), || self.call(to_write, attempt, until.as_ref()));
        match (answer, until) {
            (0, _) => {
                self.object.held();
                Ok(true)
            }
            (EBUSY, None) if attempt == Attempt::Try => Ok(false),
            (ETIMEDOUT, Some(until)) if until.has_passed(actor) => {
                actor.count(Count::Timeouts, 1);
                Ok(false)
            }
            (ETIMEDOUT, Some(_)) => Err("it timed out too early".to_owned()),
            (number, _) => Err(format!("it was not taken: {}", error_name(number))),
        }
    }

    /// One that prefers writers may refuse to let any thread read again.
    fn may_read_again(&self) -> bool {
        self.sort.kind != WRITERS_FIRST
    }

    fn give_back(&self, _actor: &mut Actor, _held: Held) -> Verdict {
        self.object.given_back();
        // SAFETY: held.
        zero("unlock", unsafe { libc::pthread_rwlock_unlock(self.lock()) })
    }

    fn check_as_writer(&self) -> Verdict {
        let answers = [Attempt::Patient, Attempt::Try]
            .map(|attempt| [true, false].map(|to_write| self.call(to_write, attempt, None)));
        match answers == [[EDEADLK; 2], [EBUSY; 2]] {
            true => Ok(()),
            false => Err(format!("it answers its writer {answers:?}")),
        }
    }

    fn renew(&self) -> Verdict {
        self.end()?;
        self.make()
    }
}
