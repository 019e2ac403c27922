//! The threads of a round: how they are started and joined, and how they report a violation.

use crate::actor::Actor;
use crate::context::{Context, Round, Verdict};
use crate::process;
use std::thread::{Builder, Scope as ThreadScope, ScopedJoinHandle};

/// The stack size of a thread under torture, in bytes.
pub(crate) const STACK: usize = 192 << 10;

impl Context {
    /// Runs a crew of threads until all have ended. Returns the first complaint of any.
    pub(crate) fn crew<'env>(
        &'static self,
        round: Round,
        hire: impl for<'scope> FnOnce(&mut Crew<'scope, 'env>) -> Verdict,
    ) -> Verdict {
        std::thread::scope(|scope| {
            let mut crew = Crew { context: self, round, scope, handles: Vec::new() };
            let mut verdict = hire(&mut crew);
            for handle in crew.handles {
                let said = handle.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()));
                verdict = verdict.and(said);
            }
            verdict
        })
    }

    /// Reports a violation, and makes the watchdog end the process.
    pub(crate) fn complain(&self, complaint: &str) {
        process::complain(&format!("torture: {}: {complaint}\n", self.slice.scenario));
        self.board.violate();
    }
}

/// The threads of a round.
pub(crate) struct Crew<'scope, 'env> {
    context: &'static Context,
    round: Round,
    scope: &'scope ThreadScope<'scope, 'env>,
    handles: Vec<ScopedJoinHandle<'scope, Verdict>>,
}

impl<'scope> Crew<'scope, '_> {
    /// Starts a thread, named by its role and number.
    pub(crate) fn spawn(
        &mut self,
        role: &'static str,
        index: usize,
        work: impl FnOnce(&mut Actor) -> Verdict + Send + 'scope,
    ) {
        let (context, round) = (self.context, self.round);
        let name = format!("{role} {index}");
        let seed = round.seed_of(role, index);
        context.choices.note(format_args!("round {}: {name} has {seed}", round.number));
        let started = Builder::new().stack_size(STACK).name(name.clone()).spawn_scoped(
            self.scope,
            move || {
                let mut actor = Actor::new(context, &name, seed);
                let verdict = work(&mut actor);
                if let Err(complaint) = &verdict {
                    context.complain(&format!("{name}: {complaint}"));
                }
                verdict
            },
        );
        match started {
            Ok(handle) => self.handles.push(handle),
            Err(_) => process::cannot(context, "start a thread"),
        }
    }
}
