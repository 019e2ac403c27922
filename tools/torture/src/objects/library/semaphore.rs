//! Semaphores of both scopes.

use super::barrier::Barrier;
use super::interrupters::{self, lend};
use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::fault::kind::Fault;
use crate::objects::traits;
use waitword::abi_support::SemaphoreHooks as _;
use waitword::{Error, Scope};

/// See the module documentation.
pub(crate) struct Semaphore(Object<waitword::Semaphore>);

impl traits::Semaphore for Semaphore {
    type Barrier = Barrier;

    const IS_INTERRUPTED: bool = true;

    fn all(context: &Context) -> Result<Vec<Self>, String> {
        let scopes = [Scope::Private, Scope::Private, Scope::Shared].into_iter();
        let new = |scope| {
            let semaphore = waitword::Semaphore::with_scope(0, scope);
            Self(Object::new(context, "semaphore", 64, scope, semaphore))
        };
        Ok(scopes.map(new).collect())
    }

    fn make(&self, value: u32) -> Verdict {
        let semaphore = waitword::Semaphore::with_scope(value, self.0.scope);
        self.0.renew(semaphore);
        Ok(())
    }

    fn post(&self) -> bool {
        self.0.get().post().is_ok()
    }

    fn post_many(&self, count: u32) -> bool {
        self.0.get().post_many(count).is_ok()
    }

    fn take(&self, actor: &mut Actor, restarting: bool) -> Verdict {
        let (semaphore, spot) = (self.0.get(), self.0.spot);
        loop {
            let deadline = (actor.dice.u32(0..3) == 0).then(|| actor.tiny_deadline());
            let until = deadline.is_some();
            let way = actor.dice.u32(0..6);
            let by = match way {
                2..4 if self.0.scope == Scope::Private => lend(actor),
                _ => None,
            };
            let ended = match (way, &by, deadline) {
                (_, Some(by), _) => {
                    let by = by.interrupter();
                    actor.wait_at(spot, until, || semaphore.wait_interruptible_by(deadline, by))
                }
                (0, ..) if !semaphore.try_wait() => {
                    std::thread::yield_now();
                    continue;
                }
                (0, ..) => Ok(()),
                (1, ..) => actor.wait_at(spot, until, || semaphore.wait_interruptible(deadline)),
                (.., Some(deadline)) => {
                    let taken = actor.wait_at(spot, true, || semaphore.wait_until(deadline));
                    taken.then_some(()).ok_or(Error::TimedOut)
                }
                (.., None) => {
                    actor.wait_at(spot, false, || semaphore.wait());
                    Ok(())
                }
            };
            let has_passed =
                || deadline.is_some_and(|it| it.has_passed() || actor.has(Fault::Clock));
            match ended {
                Ok(()) => return Ok(()),
                Err(Error::TimedOut) if has_passed() => actor.count(Count::Timeouts, 1),
                Err(Error::Interrupted) if by.is_some_and(|by| by.has_interrupted(actor)) => {}
                Err(Error::Interrupted) if actor.was_interrupted() && (until || !restarting) => {
                    actor.count(Count::Interrupted, 1);
                }
                Err(error) => return Err(format!("a wait ended with: {error}")),
            }
        }
    }

    fn interrupt_some(actor: &mut Actor) {
        interrupters::interrupt_some(actor);
    }

    fn try_take(&self) -> bool {
        self.0.get().try_wait()
    }

    fn value(&self) -> u32 {
        self.0.get().value()
    }
}
