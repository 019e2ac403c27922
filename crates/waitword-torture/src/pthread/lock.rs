//! Mutexes of every sort that pthread and C11 know, and spin locks, all locked alike.

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
    /// Only real-time threads can lock such a one.
    Protect,
}

/// All that is chosen as a lock is made.
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

    /// Every mutex that attributes can ask for. (glibc has no robust ones with a priority ceiling.)
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
        // As often as the others together: what is served by the drop-in itself, and not the C library.
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

    /// Whether it tells a stranger who unlocks it that it is one.
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
    /// Memory for one.
    pub(super) unsafe fn make(self, mutex: *mut pthread_mutex_t) -> Result<(), String> {
        /// Where a static initialiser has the kind.
        const KIND_AT: usize = 16;
        // SAFETY: the caller's promise; attributes are made, used and ended.
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
        // SAFETY: attributes that were made.
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

/// The priority ceiling: the least of real-time threads, which have that themselves.
pub(super) const CEILING: c_int = 1;

/// A lock, made anew again and again at the same place.
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
        // SAFETY: nobody uses it.
        unsafe { self.sort.make(self.mutex()) }
    }

    pub(super) fn mutex(&self) -> *mut pthread_mutex_t {
        self.object.at()
    }

    /// Locks it, whatever the time.
    pub(super) fn lock(&self, actor: &Actor) -> Result<(), String> {
        let answer = self.object.wait(actor, false, || self.lock_now());
        self.taken(answer).map_err(|number| self.refused(number))
    }

    fn lock_now(&self) -> c_int {
        // SAFETY: it was made so.
        unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_lock(self.object.at()),
                Made::C11 => abi::mtx_lock(self.mutex()),
                _ => libc::pthread_mutex_lock(self.mutex()),
            }
        }
    }

    /// Locks it if that needs no waiting; whether it could be had.
    pub(super) fn try_lock(&self) -> Result<bool, String> {
        // SAFETY: it was made so.
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

    /// Locks it, or gives up at a time; whether it could be had. Spin locks have no such thing, and C11's only one clock.
    pub(super) fn lock_until(&self, actor: &Actor, until: &Until) -> Result<bool, String> {
        let time = &raw const until.time;
        let realtime = until.clock == libc::CLOCK_REALTIME;
        // SAFETY: it was made so, and the time is there.
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
                Err(format!("{} has timed out too early", self.sort.name()))
            }
            Err(libc::ETIMEDOUT) => {
                actor.count(Count::Timeouts, 1);
                Ok(false)
            }
            // Inheriting ones are the C library's, which before Linux 5.14 knows that clock for them only as long as they are free.
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

    /// As [`Lock::unlock`], by whoever is called.
    pub(super) fn unlock_now(&self) -> c_int {
        // SAFETY: it was made so.
        unsafe {
            match self.sort.made {
                Made::Spin => libc::pthread_spin_unlock(self.object.at()),
                Made::C11 => abi::mtx_unlock(self.mutex()),
                _ => libc::pthread_mutex_unlock(self.mutex()),
            }
        }
    }

    /// When all are gone, nobody holds it. Then it is made anew.
    pub(super) fn renew(&self) -> Result<(), String> {
        // SAFETY: it was made so, and nobody uses it.
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
            .map_err(|error| format!("{}, which nobody uses: {error}", self.sort.name()))?;
        self.make()
    }
}

/// Whether this kernel has no FUTEX_LOCK_PI2, as far as can be told by what came after.
fn is_old() -> bool {
    !waitword::probe::futex_waitv().is_there()
}
