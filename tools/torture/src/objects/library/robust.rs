//! Robust mutexes of every kind, with and without priority inheritance.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits::{Attempt, Found, Robust};
use crate::spot::Spot;
use waitword::{RawRobustMutex, RobustError, RobustKind, RobustLocked, RobustProtocol, Scope};

/// See the module documentation.
pub(crate) struct RobustMutex {
    object: Object<RawRobustMutex>,
    kind: RobustKind,
    protocol: RobustProtocol,
}

impl RobustMutex {
    fn new(context: &Context, kind: RobustKind, protocol: RobustProtocol) -> Self {
        let name = format!("robust mutex {kind:?} {protocol:?}");
        let mutex = RawRobustMutex::new(kind, protocol);
        Self { object: Object::new(context, &name, 32, Scope::Shared, mutex), kind, protocol }
    }
}

impl Robust for RobustMutex {
    fn all(context: &Context) -> Result<Vec<Self>, String> {
        let protocols = [RobustProtocol::None, RobustProtocol::Inherit];
        let kinds = [RobustKind::Normal, RobustKind::Recursive, RobustKind::ErrorChecking];
        Ok((protocols.into_iter())
            .flat_map(|protocol| kinds.map(|kind| Self::new(context, kind, protocol)))
            .collect())
    }

    fn name(&self) -> String {
        format!("robust mutex {:?} {:?}", self.kind, self.protocol)
    }

    fn spot(&self) -> Spot {
        self.object.spot
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn is_recursive(&self) -> bool {
        self.kind == RobustKind::Recursive
    }

    fn lock(&self, actor: &mut Actor, attempt: Attempt) -> Result<Option<Found>, String> {
        let (mutex, spot) = (self.object.get(), self.object.spot);
        let soon = actor.tiny_deadline();
        let until = attempt == Attempt::Timed;
        // SAFETY: the mutex is never moved or freed.
        let locked = actor.wait_at(spot, until, || unsafe {
            match attempt {
                Attempt::Try => mutex.try_lock(),
                Attempt::Timed => mutex.lock_until(soon),
                Attempt::Patient => mutex.lock(),
            }
        });
        let found = match locked {
            Ok(RobustLocked::Clean) => Found::Clean,
            Ok(RobustLocked::OwnerDied) => Found::OwnerDied,
            Err(RobustError::Busy) if attempt == Attempt::Try => return Ok(None),
            Err(RobustError::TimedOut) if until => {
                actor.count(Count::Timeouts, 1);
                return Ok(None);
            }
            Err(error) => return Err(format!("not locked: {error}")),
        };
        actor.holds(spot);
        Ok(Some(found))
    }

    fn make_consistent(&self) -> Verdict {
        let marked = self.object.get().mark_consistent();
        marked.map_err(|error| format!("not marked: {error}"))
    }

    fn unlock(&self, actor: &mut Actor) -> Verdict {
        actor.releases(self.object.spot);
        // SAFETY: no thread here holds 2048 robust mutexes, and they lie in shared memory.
        let unlocked = unsafe { self.object.get().unlock() };
        unlocked.map_err(|error| format!("not unlocked: {error}"))
    }

    fn renew(&self) -> Verdict {
        self.object.renew(RawRobustMutex::new(self.kind, self.protocol));
        Ok(())
    }
}
