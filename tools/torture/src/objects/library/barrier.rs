//! Barriers of both scopes.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits;
use crate::spot::Spot;
use waitword::Scope;

/// See the module documentation.
pub(crate) struct Barrier(Object<waitword::Barrier>);

impl traits::Barrier for Barrier {
    /// Not with a wait that may give up: it looks at the barrier once more.
    const CAN_END_AT_ONCE: bool = false;

    fn new(context: &Context, name: &str, shared: bool) -> Self {
        let scope = [Scope::Private, Scope::Shared][usize::from(shared)];
        let barrier = waitword::Barrier::with_scope(1, scope);
        Self(Object::new(context, name, 64, scope, barrier))
    }

    fn spot(&self) -> Spot {
        self.0.spot
    }

    fn make(&self, members: usize) -> Verdict {
        let barrier = waitword::Barrier::with_scope(members as u32, self.0.scope);
        self.0.renew(barrier);
        Ok(())
    }

    /// Some waiters give up at a deadline, and come again.
    fn wait(&self, actor: &mut Actor) -> Result<bool, String> {
        let (barrier, spot) = (self.0.get(), self.0.spot);
        while actor.dice.u32(0..8) == 0 {
            let soon = actor.tiny_deadline();
            match actor.wait_at(spot, true, || barrier.wait_until(soon)) {
                Some(result) => return Ok(result.is_leader()),
                None => actor.count(Count::Timeouts, 1),
            }
        }
        Ok(actor.wait_at(spot, false, || barrier.wait()).is_leader())
    }

    fn end(&self) -> Verdict {
        match self.0.get().destroy() {
            true => Ok(()),
            false => Err("a barrier that no thread uses is in use".to_owned()),
        }
    }
}
