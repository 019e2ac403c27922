//! Mutexes of every sort that pthread and C11 offer, and spin locks, behind one interface.

use super::abi;
use super::object::{Object, error_name, zero};
use super::until::Until;
use crate::actor::Actor;
use crate::context::Context;
use crate::count::Count;
use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t};
use std::mem::MaybeUninit;

/// How a lock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// By `pthread_mutex_init`.
    ByInit,
    /// By a static initialiser.
    Static,
    /// By `mtx_init`.
    C11,
    /// It is a spin lock.
    Spin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Recursive,
    ErrorChecking,
    Adaptive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    None,
    Inherit,
    /// Only real-time threads can lock such a mutex.
    Protect,
}

/// All that is chosen when a lock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) made: Made,
    pub(super) kind: Kind,
    pub(super) protocol: Protocol,
    pub(super) robust: bool,
    pub(super) shared: bool,
}

const KINDS: [Kind; 4] = [
    Kind::Normal,
    Kind::Recursive,
    Kind::ErrorChecking,
    Kind::Adaptive,
];
const PROTOCOLS: [Protocol; 3] = [Protocol::None, Protocol::Inherit, Protocol::Protect];

impl Sort {
    const PLAIN: Self = Self {
        made: Made::ByInit,
        kind: Kind::Normal,
        protocol: Protocol::None,
        robust: false,
        shared: false,
    };

    /// Every mutex that attributes can ask for. (glibc has no robust mutexes with a priority
    /// ceiling.)
    pub(super) fn by_init() -> impl Iterator<Item = Self> {
        let all = KINDS.into_iter().flat_map(|kind| {
            PROTOCOLS.into_iter().flat_map(move |protocol| {
                [(false, false), (false, true), (true, false), (true, true)].map(
                    |(robust, shared)| Self {
                        made: Made::ByInit,
                        kind,
                        protocol,
                        robust,
                        shared,
                    },
                )
            })
        });
        all.filter(|sort| !sort.robust || sort.protocol != Protocol::Protect)
    }

    /// Every mutex.
    pub(super) fn mutexes() -> impl Iterator<Item = Self> {
        let statics = KINDS.map(|kind| Self {
            made: Made::Static,
            kind,
            ..Self::PLAIN
        });
        let c11 = [Kind::Normal, Kind::Recursive].map(|kind| Self {
            made: Made::C11,
            kind,
            ..Self::PLAIN
        });
        // As often as all other sorts together: the sorts that the drop-in itself serves, not the C
        // library.
        let plain = Self::by_init()
            .filter(|sort| !sort.shared && !sort.robust && sort.protocol != Protocol::Protect);
        Self::by_init().chain(plain).chain(statics).chain(c11)
    }

    /// Every mutex, and spin locks.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let spin = [false, true].map(|shared| Self {
            made: Made::Spin,
            shared,
            ..Self::PLAIN
        });
        Self::mutexes().chain(spin)
    }

    pub(super) fn is_spin(self) -> bool {
        self.made == Made::Spin
    }

    /// Whether it returns an error to a thread that unlocks it without holding it.
    pub(super) fn knows_strangers(self) -> bool {
        matches!(self.kind, Kind::Recursive | Kind::ErrorChecking)
            || self.robust
            || self.protocol == Protocol::Inherit
    }

    pub(super) fn name(self) -> String {
        let robust = if self.robust { " robust" } else { "" };
        let shared = if self.shared { " shared" } else { "" };
        match self.made {
            Made::Spin => format!("spin lock{shared}"),
            Made::C11 => format!("{:?} mtx_t", self.kind),
            Made::Static => format!("{:?} mutex by initialiser", self.kind),
            Made::ByInit => format!(
                "{:?} mutex, protocol {:?}{robust}{shared}",
                self.kind, self.protocol
            ),
        }
    }

    fn number_of_kind(self) -> c_int {
        match self.kind {
            Kind::Normal => libc::PTHREAD_MUTEX_NORMAL,
            Kind::Recursive => libc::PTHREAD_MUTEX_RECURSIVE,
            Kind::ErrorChecking => libc::PTHREAD_MUTEX_ERRORCHECK,
            // `PTHREAD_MUTEX_ADAPTIVE_NP`.
            Kind::Adaptive => 3,
        }
    }

    /// Makes one at `mutex`, where nothing is in use.
    ///
    /// # Safety
    /// `mutex` is memory for one.
    pub(super) unsafe fn make(self, mutex: *mut pthread_mutex_t) -> Result<(), String> {
        /// The offset of the kind in a static initialiser.
        const KIND_AT: usize = 16;
        // SAFETY: the caller's promise; attributes are initialised, used and destroyed.
        unsafe {
            match self.made {
                Made::Spin => zero(
                    "pthread_spin_init",
                    libc::pthread_spin_init(mutex.cast(), self.shared.into()),
                ),
                Made::C11 => {
                    let recursive = match self.kind {
                        Kind::Recursive => abi::MTX_RECURSIVE,
                        _ => 0,
                    };
                    zero("mtx_init", abi::mtx_init(mutex, recursive | abi::MTX_TIMED))
                }
                Made::Static => {
                    mutex.write_bytes(0, 1);
                    mutex
                        .byte_add(KIND_AT)
                        .cast::<c_int>()
                        .write(self.number_of_kind());
                    Ok(())
                }
                Made::ByInit => {
                    let mut attributes = MaybeUninit::uninit();
                    libc::pthread_mutexattr_init(attributes.as_mut_ptr());
                    let made = self.set(attributes.as_mut_ptr()).and_then(|()| {
                        let answer = libc::pthread_mutex_init(mutex, attributes.as_ptr());
                        zero("pthread_mutex_init", answer)
                    });
                    libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
                    made
                }
            }
        }
    }

    unsafe fn set(self, attributes: *mut pthread_mutexattr_t) -> Result<(), String> {
        let protocol = match self.protocol {
            Protocol::None => libc::PTHREAD_PRIO_NONE,
            Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Protocol::Protect => abi::PRIO_PROTECT,
        };
        let robust =
            [libc::PTHREAD_MUTEX_STALLED, libc::PTHREAD_MUTEX_ROBUST][usize::from(self.robust)];
        let shared =
            [libc::PTHREAD_PROCESS_PRIVATE, libc::PTHREAD_PROCESS_SHARED][usize::from(self.shared)];
        // SAFETY: initialised attributes.
        unsafe {
            let kind = self.number_of_kind();
            zero("settype", libc::pthread_mutexattr_settype(attributes, kind))?;
            zero(
                "setprotocol",
                libc::pthread_mutexattr_setprotocol(attributes, protocol),
            )?;
            if self.protocol == Protocol::Protect {
                zero(
                    "setprioceiling",
                    abi::pthread_mutexattr_setprioceiling(attributes, CEILING),
                )?;
            }
            zero(
                "setrobust",
                libc::pthread_mutexattr_setrobust(attributes, robust),
            )?;
            zero(
                "setpshared",
                libc::pthread_mutexattr_setpshared(attributes, shared),
            )
        }
    }
}

/// The priority ceiling: the lowest priority of real-time threads, which is the one that ours have.
pub(super) const CEILING: c_int = 1;

/// A lock, made again and again at the same place.
pub(super) struct Lock {
    pub(super) sort: Sort,
    pub(super) object: Object,
}

impl Lock {
    pub(super) fn new(context: &Context, sort: Sort) -> Result<Self, String> {
        let object = Object::new(context, &sort.name(), sort.shared);
        let lock = Self { sort, object };
        lock.make()?;
        Ok(lock)
    }

    fn make(&self) -> Result<(), String> {
        self.object.fill(0xa5);
        // SAFETY: it is not in use.
        unsafe { self.sort.make(self.mutex()) }
    }

    pub(super) fn mutex(&self) -> *mut pthread_mutex_t {
        self.object.at()
    }

    /// Locks it, without a deadline.
    pub(super) fn lock(&self, actor: &Actor) -> Result<(), String> {
        let answer = self.object.wait(actor, false, || self.lock_now());
        self.taken(answer).map_err(|number| self.refused(number))
    }

    fn lock_now(&self) -> c_int {
        // SAFETY: it was made as this sort.
        unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_lock(self.object.at()),
                Made::C11 => abi::mtx_lock(self.mutex()),
                _ => libc::pthread_mutex_lock(self.mutex()),
            }
        }
    }

    /// Locks it if that needs no waiting. Returns whether it could be locked.
    pub(super) fn try_lock(&self) -> Result<bool, String> {
        // SAFETY: it was made as this sort.
        let answer = unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_trylock(self.object.at()),
                Made::C11 => match abi::mtx_trylock(self.mutex()) {
                    abi::THRD_BUSY => libc::EBUSY,
                    answer => answer,
                },
                _ => libc::pthread_mutex_trylock(self.mutex()),
            }
        };
        match self.taken(answer) {
            Ok(()) => Ok(true),
            Err(libc::EBUSY) => Ok(false),
            Err(number) => Err(self.refused(number)),
        }
    }

    /// Locks it, or gives up at a deadline. Returns whether it could be locked. Spin locks have no
    /// deadlines, and C11's mutexes have only one clock.
    pub(super) fn lock_until(&self, actor: &Actor, until: &Until) -> Result<bool, String> {
        let time = &raw const until.time;
        let realtime = until.clock == libc::CLOCK_REALTIME;
        // SAFETY: it was made as this sort, and `until` outlives the call.
        let answer = self.object.wait(actor, true, || unsafe {
            match self.sort.made {
                Made::Spin => self.lock_now(),
                Made::C11 if !realtime => self.lock_now(),
                Made::C11 => match abi::mtx_timedlock(self.mutex(), time) {
                    abi::THRD_TIMEDOUT => libc::ETIMEDOUT,
                    answer => answer,
                },
                _ if realtime && until.time.tv_nsec % 2 == 0 => {
                    libc::pthread_mutex_timedlock(self.mutex(), time)
                }
                _ => abi::pthread_mutex_clocklock(self.mutex(), until.clock, time),
            }
        });
        match self.taken(answer) {
            Ok(()) => Ok(true),
            Err(libc::ETIMEDOUT) if !until.has_passed(actor) => {
                Err(format!("{} timed out too early", self.sort.name()))
            }
            Err(libc::ETIMEDOUT) => {
                actor.count(Count::Timeouts, 1);
                Ok(false)
            }
            // Priority-inheriting ones are the C library's. Before Linux 5.14 it supports that
            // clock for them only while they are free.
            Err(libc::EINVAL)
                if !realtime && self.sort.protocol == Protocol::Inherit && is_old() =>
            {
                Ok(false)
            }
            Err(number) => Err(self.refused(number)),
        }
    }

    fn taken(&self, answer: c_int) -> Result<(), c_int> {
        match answer {
            0 => {
                self.object.held();
                Ok(())
            }
            number => Err(number),
        }
    }

    fn refused(&self, number: c_int) -> String {
        format!(
            "{} was not locked: {}",
            self.sort.name(),
            error_name(number)
        )
    }

    pub(super) fn unlock(&self) -> Result<(), String> {
        self.object.given_back();
        zero("unlock", self.unlock_now())
    }

    /// Like [`Lock::unlock`], for a caller that may not hold it. Returns the error number.
    pub(super) fn unlock_now(&self) -> c_int {
        // SAFETY: it was made as this sort.
        unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_unlock(self.object.at()),
                Made::C11 => abi::mtx_unlock(self.mutex()),
                _ => libc::pthread_mutex_unlock(self.mutex()),
            }
        }
    }

    /// After all threads have ended no thread holds it. Then it is made again.
    pub(super) fn renew(&self) -> Result<(), String> {
        // SAFETY: it was made as this sort, and is not in use.
        let answer = unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_destroy(self.object.at()),
                Made::C11 => {
                    abi::mtx_destroy(self.mutex());
                    0
                }
                _ => libc::pthread_mutex_destroy(self.mutex()),
            }
        };
        zero("destroy", answer)
            .map_err(|error| format!("{}, which no thread uses: {error}", self.sort.name()))?;
        self.make()
    }
}

/// Whether this kernel lacks FUTEX_LOCK_PI2, as far as a call that was added later can tell.
fn is_old() -> bool {
    !waitword::probe::futex_waitv().is_there()
}
