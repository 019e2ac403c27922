//! Mutexes of every flavour, kind and scope, each with a condition variable.
//!
//! The model contains what is promised: one holder; an unlock lets one of the waiters in, and a
//! fair unlock the oldest; signals go in order of arrival, to threads that waited before; the error
//! of each misuse.

mod model;

use super::family::{Caller, Family, Model, expect, limits};
use super::program::{HAND, Limit, THREADS};
use super::run::may_wait;
use libc::{EBUSY, EDEADLK, EINTR, EPERM, ETIMEDOUT};
use model::Modelled;
use proptest::prelude::*;
use std::collections::BTreeMap;
use waitword::abi_support::{CondvarHooks as _, Wakeup};
use waitword::{
    Kind, LockError, PosixFlavour, PosixMutexOptions, RawCondvar, RawPosixMutex, Scope,
};
use waitword_testkit::Answer;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutexes;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) flavour: PosixFlavour,
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
    /// The condition variable's scope.
    pub(crate) signals: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Lock(Limit),
    TryLock,
    Unlock,
    UnlockFair,
    Bump,
    Wait(Limit),
    NotifyOne,
    NotifyAll,
}
use Call::*;

pub(crate) struct Pair {
    mutex: RawPosixMutex,
    condvar: RawCondvar,
}

impl Family for Mutexes {
    type Made = Sort;
    type Call = Call;
    type Object = Pair;
    type Model = Modelled;

    const NAME: &'static str = "Mutexes";

    fn made() -> BoxedStrategy<Sort> {
        let flavour = prop_oneof![
            3 => Just(PosixFlavour::Adaptive),
            2 => Just(PosixFlavour::Throughput),
            2 => Just(PosixFlavour::WaitWake),
            2 => Just(PosixFlavour::PriorityInheriting),
        ];
        let kind = prop_oneof![
            4 => Just(Kind::Normal),
            1 => Just(Kind::Recursive),
            1 => Just(Kind::ErrorChecking),
        ];
        (flavour, kind, scopes(), scopes())
            .prop_map(|(flavour, kind, scope, signals)| Sort { flavour, kind, scope, signals })
            .boxed()
    }

    fn calls() -> BoxedStrategy<Call> {
        prop_oneof![
            8 => limits().prop_map(Lock),
            2 => Just(TryLock),
            8 => Just(Unlock),
            2 => Just(UnlockFair),
            1 => Just(Bump),
            6 => limits().prop_map(Wait),
            3 => Just(NotifyOne),
            2 => Just(NotifyAll),
        ]
        .boxed()
    }

    fn make(made: &Sort) -> Pair {
        let options = PosixMutexOptions::new().flavour(made.flavour).kind(made.kind);
        Pair {
            mutex: options.scope(made.scope).build_raw(),
            condvar: RawCondvar::with_scope(made.signals),
        }
    }

    fn call(pair: &Pair, caller: &Caller, call: &Call) -> Answer {
        let Pair { mutex, condvar } = pair;
        // SAFETY, of all below: the model allows a call only to a thread that may make it.
        let done = match call {
            Lock(limit) => match limit.deadline() {
                None => mutex.lock_checked(),
                Some(deadline) => mutex.lock_until(deadline),
            },
            TryLock => mutex.try_lock_checked(),
            // SAFETY: see above.
            Unlock => unsafe { mutex.unlock_checked() },
            // SAFETY: see above.
            UnlockFair => unsafe { mutex.unlock_fair_checked() },
            Bump => {
                // SAFETY: see above.
                unsafe { mutex.bump() };
                Ok(())
            }
            Wait(limit) => {
                let (deadline, by) = (limit.deadline(), caller.interrupter);
                // SAFETY: see above.
                match unsafe { condvar.wait_interruptible(mutex, deadline.as_ref(), by) } {
                    Ok(Wakeup::Interrupted) => {
                        by.clear();
                        return Err(EINTR);
                    }
                    waited => waited.map(drop),
                }
            }
            NotifyOne => return Ok(usize::from(condvar.notify_one())),
            NotifyAll => return Ok(condvar.notify_all()),
        };
        done.map(|()| 0).map_err(LockError::raw_os_error)
    }
}

pub(crate) fn scopes() -> impl Strategy<Value = Scope> {
    prop_oneof![3 => Just(Scope::Private), 1 => Just(Scope::Shared)]
}
