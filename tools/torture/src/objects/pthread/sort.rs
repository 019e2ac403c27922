//! The sorts of mutexes that pthread and C11 offer, and of spin locks: what is chosen when one is
//! made.

use super::abi;
use super::object::zero;
use libc::{c_int, pthread_mutex_t, pthread_mutexattr_t};
use std::mem::MaybeUninit;

/// The priority ceiling: the lowest priority of real-time threads, which is the one that ours have.
pub(crate) const CEILING: c_int = 1;

/// How a lock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
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
pub(crate) enum Kind {
    Normal,
    Recursive,
    ErrorChecking,
    Adaptive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    None,
    Inherit,
    /// Only real-time threads can lock such a mutex.
    Protect,
}

/// All that is chosen when a lock is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) made: Made,
    pub(crate) kind: Kind,
    pub(crate) protocol: Protocol,
    pub(crate) robust: bool,
    pub(crate) shared: bool,
}

const KINDS: [Kind; 4] = [Kind::Normal, Kind::Recursive, Kind::ErrorChecking, Kind::Adaptive];
const PROTOCOLS: [Protocol; 3] = [Protocol::None, Protocol::Inherit, Protocol::Protect];

impl Sort {
    pub(crate) const PLAIN: Self = Self {
        made: Made::ByInit,
        kind: Kind::Normal,
        protocol: Protocol::None,
        robust: false,
        shared: false,
    };

    /// Every mutex that attributes can ask for. (glibc has no robust mutexes with a priority
    /// ceiling.)
    pub(crate) fn by_init() -> impl Iterator<Item = Self> {
        let all = KINDS.into_iter().flat_map(|kind| {
            PROTOCOLS.into_iter().flat_map(move |protocol| {
                [(false, false), (false, true), (true, false), (true, true)].map(
                    |(robust, shared)| Self { made: Made::ByInit, kind, protocol, robust, shared },
                )
            })
        });
        all.filter(|sort| !sort.robust || sort.protocol != Protocol::Protect)
    }

    /// Every mutex.
    pub(crate) fn mutexes() -> impl Iterator<Item = Self> {
        let statics = KINDS.map(|kind| Self { made: Made::Static, kind, ..Self::PLAIN });
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
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let spin = [false, true].map(|shared| Self { made: Made::Spin, shared, ..Self::PLAIN });
        Self::mutexes().chain(spin)
    }

    /// Whether it returns an error to a thread that unlocks it without holding it.
    pub(crate) fn detects_non_owners(self) -> bool {
        matches!(self.kind, Kind::Recursive | Kind::ErrorChecking)
            || self.robust
            || self.protocol == Protocol::Inherit
    }

    pub(crate) fn name(self) -> String {
        let robust = if self.robust { " robust" } else { "" };
        let shared = if self.shared { " shared" } else { "" };
        match self.made {
            Made::Spin => format!("spin lock{shared}"),
            Made::C11 => format!("{:?} mtx_t", self.kind),
            Made::Static => format!("{:?} mutex by initialiser", self.kind),
            Made::ByInit => {
                format!("{:?} mutex, protocol {:?}{robust}{shared}", self.kind, self.protocol)
            }
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
    pub(crate) unsafe fn make(self, mutex: *mut pthread_mutex_t) -> Result<(), String> {
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
                    mutex.byte_add(KIND_AT).cast::<c_int>().write(self.number_of_kind());
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
            let answers = [
                ("settype", libc::pthread_mutexattr_settype(attributes, kind)),
                ("setprotocol", libc::pthread_mutexattr_setprotocol(attributes, protocol)),
                ("setrobust", libc::pthread_mutexattr_setrobust(attributes, robust)),
                ("setpshared", libc::pthread_mutexattr_setpshared(attributes, shared)),
            ];
            (answers.into_iter()).try_for_each(|(what, answer)| zero(what, answer))?;
            if self.protocol != Protocol::Protect {
                return Ok(());
            }
            let set = abi::pthread_mutexattr_setprioceiling(attributes, CEILING);
            zero("setprioceiling", set)
        }
    }
}
