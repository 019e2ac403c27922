//! Decodes glibc's attribute objects. glibc's own functions create and change them. The layouts are
//! those of glibc 2.28 to 2.43 (`scripts/glibc` runs tests on what Debian has of them). On AArch64
//! C's types are larger than what glibc keeps in them.

use libc::{pthread_barrierattr_t, pthread_condattr_t, pthread_mutexattr_t, pthread_rwlockattr_t};
use waitword::Preference;

/// The attributes of an object, in glibc's layout. All zeros are the defaults.
pub(crate) trait Attributes: Copy + Default {
    /// C's type, which has a union of bytes and of a number.
    type InC;

    /// Reads the attributes behind the pointer; the defaults if it is NULL.
    ///
    /// # Safety
    /// NULL, or attributes that glibc has initialised.
    unsafe fn read(attributes: *const Self::InC) -> Self {
        const {
            assert!(size_of::<Self>() <= size_of::<Self::InC>());
            assert!(align_of::<Self>() <= align_of::<Self::InC>());
        }
        if attributes.is_null() {
            return Self::default();
        }
        // SAFETY: not NULL, so by this function's contract bytes that glibc has written, at least
        // as many as this type has and aligned for it (asserted above); any bytes are numbers.
        unsafe { attributes.cast::<Self>().read() }
    }
}

/// The attributes of a mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct MutexAttributes(u32);

impl Attributes for MutexAttributes {
    type InC = pthread_mutexattr_t;
}

/// The encoding of the type, the same in attributes and in glibc's mutexes.
pub(crate) mod mutex_type {
    pub(crate) const NORMAL: u32 = 0;
    pub(crate) const RECURSIVE: u32 = 1;
    pub(crate) const ERROR_CHECKING: u32 = 2;
    pub(crate) const ADAPTIVE: u32 = 3;
}

impl MutexAttributes {
    const TYPE: u32 = 3;
    const PROTOCOL: u32 = 3 << 28;
    const INHERIT: u32 = 1 << 28;
    const ROBUST: u32 = 1 << 30;
    const PROCESS_SHARED: u32 = 1 << 31;

    /// One of [`mutex_type`].
    pub(crate) fn mutex_type(self) -> u32 {
        self.0 & Self::TYPE
    }

    pub(crate) fn inherits_priority(self) -> bool {
        self.0 & Self::PROTOCOL == Self::INHERIT
    }

    /// Whether only the C library can serve such a mutex.
    pub(crate) fn is_the_c_librarys(self) -> bool {
        let protects = self.0 & Self::PROTOCOL & !Self::INHERIT != 0;
        protects || self.0 & (Self::ROBUST | Self::PROCESS_SHARED) != 0
    }
}

/// The attributes of a condition variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct CondAttributes(u32);

impl Attributes for CondAttributes {
    type InC = pthread_condattr_t;
}

impl CondAttributes {
    const PROCESS_SHARED: u32 = 1;
    const CLOCK: u32 = 2;

    pub(crate) fn is_process_shared(self) -> bool {
        self.0 & Self::PROCESS_SHARED != 0
    }

    /// Whether its own clock is the monotonic one.
    pub(crate) fn is_monotonic(self) -> bool {
        self.0 & Self::CLOCK != 0
    }
}

/// The attributes of an rwlock: glibc's two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct RwLockAttributes {
    kind: i32,
    process_shared: i32,
}

impl Attributes for RwLockAttributes {
    type InC = pthread_rwlockattr_t;
}

impl RwLockAttributes {
    /// glibc's `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`. Its kind 1, "prefer writer",
    /// nevertheless lets readers pass waiting writers, so that reading again while reading cannot
    /// deadlock: here it is treated as 0.
    const PREFER_WRITER_NONRECURSIVE: i32 = 2;

    pub(crate) fn preference(self) -> Preference {
        preference_of_kind(self.kind)
    }

    /// Whether only the C library can serve such a lock.
    pub(crate) fn is_the_c_librarys(self) -> bool {
        self.process_shared != 0
    }
}

/// The preference that glibc's kind requests. A static initialiser writes it into the lock itself.
pub(crate) fn preference_of_kind(kind: i32) -> Preference {
    match kind {
        RwLockAttributes::PREFER_WRITER_NONRECURSIVE => Preference::Writer,
        _ => Preference::Reader,
    }
}

/// The attributes of a barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct BarrierAttributes(i32);

impl Attributes for BarrierAttributes {
    type InC = pthread_barrierattr_t;
}

impl BarrierAttributes {
    pub(crate) fn is_process_shared(self) -> bool {
        self.0 != 0
    }
}
