//! Reader/writer locks of both preferences and scopes, with upgrades, downgrades and fair unlocks.
//!
//! The model contains what is promised. A writer is alone, and only one thread holds the lock
//! upgradably. Under reader preference a reader waits in vain only while another thread writes;
//! under writer preference it does not wait while no writer waits. No thread waits for a free lock.
//! The order of waiters is not promised: their re-check timers send them to another place in the
//! queue.

mod model;

use super::family::{Caller, Family, Model, expect, limits};
use super::mutexes::scopes;
use super::program::{HAND, Limit, THREADS};
use super::run::may_wait;
use libc::{EBUSY, EDEADLK, EPERM, ETIMEDOUT};
use model::Modelled;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use waitword::lock_api::{
    RawRwLock as _, RawRwLockFair as _, RawRwLockUpgrade as _, RawRwLockUpgradeFair as _,
};
use waitword::{Deadline, Preference, RawRwLock, RwLockError, Scope};
use waitword_testkit::Answer;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RwLocks;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) preference: Preference,
    pub(crate) scope: Scope,
    /// Whether the lock should be biased to visible readers, if that can be achieved.
    pub(crate) fast: bool,
}

/// What a thread can hold, or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Read,
    /// The same, by a thread that already reads.
    ReadAgain,
    Write,
    /// The upgradable lock.
    Claim,
    /// To write, by the holder of the upgradable lock.
    Upgrade,
}
use Hold::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Take(Hold, Limit),
    Try(Hold),
    Leave(Hold),
    LeaveFairly(Hold),
    /// `pthread_rwlock_unlock`: releases whatever the thread holds.
    Unlock,
    WriteToRead,
    WriteToClaim,
    ClaimToRead,
}
use Call::*;

impl Family for RwLocks {
    type Made = Sort;
    type Call = Call;
    type Object = RawRwLock;
    type Model = Modelled;

    const NAME: &'static str = "RwLocks";

    /// Re-check timers fire at longer and longer intervals.
    const QUIET: Duration = Duration::from_millis(300);

    fn made() -> BoxedStrategy<Sort> {
        let preference = prop_oneof![Just(Preference::Reader), Just(Preference::Writer)];
        (preference, scopes(), prop_oneof![4 => Just(false), 1 => Just(true)])
            .prop_map(|(preference, scope, fast)| Sort { preference, scope, fast })
            .boxed()
    }

    fn calls() -> BoxedStrategy<Call> {
        let wanted = || {
            prop_oneof![
                4 => Just(Read),
                1 => Just(ReadAgain),
                4 => Just(Write),
                2 => Just(Claim),
                2 => Just(Upgrade),
            ]
        };
        let held = || prop_oneof![2 => Just(Read), 2 => Just(Write), 1 => Just(Claim)];
        prop_oneof![
            10 => (wanted(), limits()).prop_map(|(hold, limit)| Take(hold, limit)),
            4 => wanted().prop_map(Try),
            8 => held().prop_map(Leave),
            3 => held().prop_map(LeaveFairly),
            2 => Just(Unlock),
            1 => Just(WriteToRead),
            1 => Just(WriteToClaim),
            1 => Just(ClaimToRead),
        ]
        .boxed()
    }

    fn make(made: &Sort) -> RawRwLock {
        let lock = RawRwLock::with(made.preference, made.scope);
        if made.fast && made.scope == Scope::Private {
            make_biased(&lock);
        }
        lock
    }

    fn call(lock: &RawRwLock, caller: &Caller, call: &Call) -> Answer {
        let me = caller.thread as u32 + 1;
        // SAFETY, of all below: the model allows a call only to a thread that holds what it
        // releases.
        let done = match *call {
            Take(hold, limit) => take(lock, me, hold, limit.deadline().as_ref()),
            Try(hold) => match hold {
                Read => lock.try_read(),
                ReadAgain => {
                    use waitword::lock_api::RawRwLockRecursive as _;
                    let taken = lock.try_lock_shared_recursive();
                    taken.then_some(()).ok_or(RwLockError::Busy)
                }
                Write => lock.try_write(me),
                Claim => lock.try_read_upgradably(),
                // SAFETY: see above.
                Upgrade => unsafe { lock.try_upgrade_checked(me) },
            },
            Leave(hold) => {
                // SAFETY: see above.
                unsafe {
                    match hold {
                        Read | ReadAgain => lock.unlock_shared(),
                        Write | Upgrade => lock.unlock_exclusive(),
                        Claim => lock.unlock_upgradable(),
                    }
                }
                Ok(())
            }
            LeaveFairly(hold) => {
                // SAFETY: see above.
                unsafe {
                    match hold {
                        Read | ReadAgain => lock.unlock_shared_fair(),
                        Write | Upgrade => lock.unlock_exclusive_fair(),
                        Claim => lock.unlock_upgradable_fair(),
                    }
                }
                Ok(())
            }
            // SAFETY: see above.
            Unlock => unsafe { lock.unlock() },
            // SAFETY: see above.
            WriteToRead => unsafe { lock.downgrade_checked() },
            // SAFETY: see above.
            WriteToClaim => unsafe { lock.downgrade_to_upgradable_checked() },
            // SAFETY: see above.
            ClaimToRead => unsafe { lock.downgrade_upgradable_checked() },
        };
        done.map(|()| 0).map_err(RwLockError::raw_os_error)
    }
}

/// Readers that collide. If two CPUs are free for them, the next readers are visible readers, in
/// slots.
fn make_biased(lock: &RawRwLock) {
    let began = Instant::now();
    let read = || {
        while began.elapsed() < Duration::from_millis(3) && !format!("{lock:?}").contains("BIASED")
        {
            for _ in 0..100 {
                lock.lock_shared();
                // SAFETY: taken just now.
                unsafe { lock.unlock_shared() };
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(read);
        read();
    });
}

fn take(
    lock: &RawRwLock,
    me: u32,
    hold: Hold,
    deadline: Option<&Deadline>,
) -> Result<(), RwLockError> {
    match hold {
        Read => lock.read(me, deadline),
        ReadAgain => lock.read_recursive(me, deadline),
        Write => lock.write(me, deadline),
        Claim => lock.read_upgradably(deadline),
        // SAFETY: allowed only to the holder of the upgradable lock.
        Upgrade => unsafe { lock.upgrade_checked(me, deadline) },
    }
}
