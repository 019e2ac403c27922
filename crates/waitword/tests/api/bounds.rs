//! Which traits each type has, compared with its counterparts in std and in parking_lot. Everything
//! is checked at compile time.
//!
//! With `send_guard` the guards differ from std's on purpose; `tests/send_guard.rs` then states
//! how.
#![cfg(not(feature = "send_guard"))]

use impls::impls;
use std::cell::Cell;
use std::fmt::{Debug, Display};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync as theirs;
use waitword as ours;

/// What a lock may protect: each combination of `Send` and `Sync`, and a value that a panic may
/// leave half changed.
type Both = u32;
type SendOnly = Cell<u32>;
type SyncOnly = theirs::MutexGuard<'static, u32>;
type Neither = Rc<u32>;

/// Whether both types have, or both lack, each of these traits.
macro_rules! alike {
    ($ours:ty, $theirs:ty: $($Trait:ident)*) => {
        $(const _: () = assert!(
            impls!($ours: $Trait) == impls!($theirs: $Trait),
            concat!(stringify!($ours), " and ", stringify!($theirs), ": ", stringify!($Trait)),
        );)*
    };
}

/// The same for each value that a type may protect.
macro_rules! alike_around_each {
    ($($ours:ident)::+, $($theirs:ident)::+: $($Trait:ident)*) => {
        alike!($($ours)::+<Both>, $($theirs)::+<Both>: $($Trait)*);
        alike!($($ours)::+<SendOnly>, $($theirs)::+<SendOnly>: $($Trait)*);
        alike!($($ours)::+<SyncOnly>, $($theirs)::+<SyncOnly>: $($Trait)*);
        alike!($($ours)::+<Neither>, $($theirs)::+<Neither>: $($Trait)*);
    };
}

/// The same for each value that a guard may give access to.
macro_rules! alike_for_each {
    ($($ours:ident)::+, $($theirs:ident)::+: $($Trait:ident)*) => {
        alike!($($ours)::+<'static, Both>, $($theirs)::+<'static, Both>: $($Trait)*);
        alike!($($ours)::+<'static, SendOnly>, $($theirs)::+<'static, SendOnly>: $($Trait)*);
        alike!($($ours)::+<'static, SyncOnly>, $($theirs)::+<'static, SyncOnly>: $($Trait)*);
        alike!($($ours)::+<'static, Neither>, $($theirs)::+<'static, Neither>: $($Trait)*);
    };
}

mod mutexes {
    use super::*;

    // A panic in a section poisons std's mutex, so half-changed data is not seen by accident. In
    // this respect ours follow parking_lot's.
    alike_around_each!(ours::Mutex, theirs::Mutex: Send Sync Unpin Debug Default);
    alike_around_each!(ours::Mutex, parking_lot::Mutex: UnwindSafe RefUnwindSafe);
    alike_for_each!(ours::MutexGuard, theirs::MutexGuard: Send Sync Debug Display);
    alike_for_each!(ours::MutexGuard, parking_lot::MutexGuard: Send UnwindSafe RefUnwindSafe);
    alike_for_each!(ours::MappedMutexGuard, parking_lot::MappedMutexGuard: Send Sync Debug Display);

    alike_around_each!(ours::FairMutex, theirs::Mutex: Send Sync Unpin Debug Default);
    alike_around_each!(ours::FairMutex, parking_lot::FairMutex: UnwindSafe RefUnwindSafe);
    alike_for_each!(ours::FairMutexGuard, theirs::MutexGuard: Send Sync Debug Display);
    alike_for_each!(ours::MappedFairMutexGuard, parking_lot::MappedFairMutexGuard: Send Sync);

    alike_around_each!(ours::ReentrantMutex, parking_lot::ReentrantMutex: Send Sync Debug Default);
    alike_for_each!(ours::ReentrantMutexGuard, parking_lot::ReentrantMutexGuard: Send Sync Display);
    alike_for_each!(
        ours::MappedReentrantMutexGuard,
        parking_lot::MappedReentrantMutexGuard: Send Sync Display
    );

    alike_around_each!(ours::CheckedMutex, theirs::Mutex: Send Sync Unpin Debug Default);
    alike_around_each!(ours::CheckedMutex, parking_lot::Mutex: UnwindSafe RefUnwindSafe);
    // Sync only if the value is also Send: the guard gives access to its mutex.
    alike_for_each!(ours::CheckedMutexGuard, theirs::MutexGuard: Send Debug Display);
    alike_for_each!(ours::CheckedMutexGuard, parking_lot::MutexGuard: UnwindSafe RefUnwindSafe);
    alike_around_each!(ours::PiMutex, theirs::Mutex: Send Sync Unpin Debug Default);
    alike_around_each!(ours::PiMutex, parking_lot::Mutex: UnwindSafe RefUnwindSafe);
    alike_for_each!(ours::PiMutexGuard, theirs::MutexGuard: Send Debug Display);
    alike_for_each!(ours::PiMutexGuard, parking_lot::MutexGuard: UnwindSafe RefUnwindSafe);

    alike_around_each!(ours::RobustMutex, theirs::Mutex: Send Sync Debug Default);
    alike_around_each!(ours::RobustMutex, parking_lot::Mutex: UnwindSafe RefUnwindSafe);
    alike_for_each!(ours::RobustAccess, theirs::MutexGuard: Send Sync Debug Display);
}

mod rwlocks {
    use super::*;

    alike_around_each!(ours::RwLock, theirs::RwLock: Send Sync Unpin Debug Default);
    alike_around_each!(ours::RwLock, parking_lot::RwLock: UnwindSafe RefUnwindSafe);
    alike_for_each!(ours::RwLockReadGuard, theirs::RwLockReadGuard: Send Sync Debug Display);
    alike_for_each!(ours::RwLockWriteGuard, theirs::RwLockWriteGuard: Send Sync Debug Display);
    alike_for_each!(
        ours::RwLockUpgradableReadGuard,
        parking_lot::RwLockUpgradableReadGuard: Send Sync Debug Display
    );
    alike_for_each!(
        ours::MappedRwLockReadGuard,
        parking_lot::MappedRwLockReadGuard: Send Sync Debug Display
    );
    alike_for_each!(
        ours::MappedRwLockWriteGuard,
        parking_lot::MappedRwLockWriteGuard: Send Sync Debug Display
    );
}

mod made_once {
    use super::*;

    alike_around_each!(
        ours::OnceLock,
        theirs::OnceLock: Send Sync Unpin UnwindSafe RefUnwindSafe Debug Default Clone PartialEq Eq
    );
    alike_around_each!(
        ours::LazyLock,
        theirs::LazyLock: Send Sync Unpin UnwindSafe RefUnwindSafe Debug Default
    );

    /// What the initialiser may own.
    macro_rules! alike_with_each_initialiser {
        ($($Initialiser:ident)*) => {
            $(alike!(
                ours::LazyLock<u32, $Initialiser>,
                theirs::LazyLock<u32, $Initialiser>: Send Sync Unpin UnwindSafe RefUnwindSafe
            );)*
        };
    }
    alike_with_each_initialiser!(Both SendOnly SyncOnly Neither);

    alike!(ours::Once, theirs::Once: Send Sync Unpin UnwindSafe RefUnwindSafe Debug);
    alike!(ours::Once, parking_lot::Once: Default);
    alike!(ours::OnceState, parking_lot::OnceState: Send Sync Copy Clone PartialEq Eq Debug);
}

mod others {
    use super::*;

    alike!(ours::Condvar, theirs::Condvar: Send Sync Unpin UnwindSafe RefUnwindSafe Debug Default);
    alike!(ours::CheckedCondvar, theirs::Condvar: Send Sync UnwindSafe RefUnwindSafe Debug Default);
    alike!(ours::PiCondvar, theirs::Condvar: Send Sync UnwindSafe RefUnwindSafe Debug Default);
    alike!(
        ours::WaitTimeoutResult,
        theirs::WaitTimeoutResult: Send Sync Copy Clone PartialEq Eq Debug
    );
    alike!(ours::Barrier, theirs::Barrier: Send Sync Unpin UnwindSafe RefUnwindSafe Debug Default);
    alike!(ours::BarrierWaitResult, theirs::BarrierWaitResult: Send Sync Debug);

    /// Types without a counterpart there: any thread may use them and drop them.
    macro_rules! shared_freely {
        ($($Type:ty)*) => {
            $(const _: () = assert!(
                impls!($Type: Send & Sync & UnwindSafe & RefUnwindSafe & Debug)
            );)*
        };
    }
    shared_freely!(
        ours::Semaphore
        ours::SemaphorePermit<'static>
        ours::Event
        ours::AutoEvent
        ours::Latch
        ours::RawMutex
        ours::RawFairMutex
        ours::RawPosixMutex
        ours::RawRobustMutex
        ours::RawRwLock
        ours::RawCondvar
        ours::MutexOptions
        ours::PosixMutexOptions
        ours::RwLockOptions
    );
}

/// A value can be converted into the type that holds it.
mod from {
    use super::*;

    macro_rules! from {
        ($($Type:ty)*) => { $(const _: () = assert!(impls!($Type: From<u32>));)* };
    }
    from!(
        ours::Mutex<u32>
        ours::FairMutex<u32>
        ours::ReentrantMutex<u32>
        ours::CheckedMutex<u32>
        ours::PiMutex<u32>
        ours::RobustMutex<u32>
        ours::RwLock<u32>
        ours::OnceLock<u32>
    );
    const _: () = assert!(!impls!(ours::LazyLock<u32>: From<u32>));
}
