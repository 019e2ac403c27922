//! Helpers that do part of the work: a thread that comes for a moment, and several processes that
//! do the same work, some of which are killed.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::crew::STACK;
use crate::process::{self, Ended};
use std::time::Duration;

/// Runs `work` on another thread, and waits for that thread to end.
pub(crate) fn visit(actor: &mut Actor, work: impl FnOnce(&mut Actor) -> Verdict + Send) -> Verdict {
    let (context, seed) = (actor.context(), actor.dice.u64(..));
    std::thread::scope(|scope| {
        let visitor = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || work(&mut Actor::new(context, "visitor", seed)));
        let Ok(visitor) = visitor else {
            process::cannot(context, "start a thread");
        };
        let ended = visitor.join();
        ended.unwrap_or_else(|_| Err("a visitor panicked".to_owned()))
    })
}

/// Forks a process that does `work`, and prints its complaint.
pub(crate) fn start(
    context: &'static Context,
    process: usize,
    work: &dyn Fn(usize) -> Verdict,
) -> i32 {
    process::fork(context, || match work(process) {
        Ok(()) => 0,
        Err(complaint) => {
            process::complain(&format!("process {process}: {complaint}\n"));
            1
        }
    })
}

/// Does `work` in several processes, and waits for them to end.
pub(crate) fn run(
    context: &'static Context,
    processes: usize,
    work: &dyn Fn(usize) -> Verdict,
) -> Verdict {
    let children = (0..processes).map(|process| start(context, process, work));
    end(context, children.collect())
}

/// Waits for processes that must end by themselves and without a complaint.
pub(crate) fn end(context: &Context, children: Vec<i32>) -> Verdict {
    let mut verdict = Ok(());
    for child in children {
        let ended = process::reap(context, child)?;
        if ended != Ended::Exited(0) {
            verdict = verdict.and(Err(format!("process {child} ended with {ended:?}")));
        }
    }
    verdict
}

/// Kills one process.
pub(crate) fn kill(context: &Context, killer: &Actor, victim: i32) -> Verdict {
    process::kill(victim);
    match process::reap(context, victim)? {
        Ended::Killed(libc::SIGKILL) => {
            killer.count(Count::Kills, 1);
            Ok(())
        }
        other => Err(format!("process {victim} ended by itself: {other:?}")),
    }
}

/// How a team is killed.
pub(crate) struct Killing {
    pub(crate) processes: usize,
    pub(crate) kills: usize,
    /// The longest time between two kills, in microseconds.
    pub(crate) pause: u64,
    /// How many steps the other processes must make after a kill before the next.
    pub(crate) steps: u64,
}

impl Killing {
    /// Kills one process after another, each at a random moment, and starts another in its place.
    /// Returns the processes that are left. After each kill, `after` does what the process that
    /// sees it owes to the others.
    pub(crate) fn run(
        &self,
        context: &'static Context,
        killer: &mut Actor,
        work: &dyn Fn(usize) -> Verdict,
        after: &mut dyn FnMut(&mut Actor) -> Verdict,
    ) -> Result<Vec<i32>, String> {
        let start = |process| start(context, process, work);
        let mut children: Vec<i32> = (0..self.processes).map(start).collect();
        for number in 0..self.kills {
            std::thread::sleep(Duration::from_micros(killer.dice.u64(0..self.pause)));
            let victim = children.swap_remove(killer.dice.usize(0..children.len()));
            kill(context, killer, victim)?;
            after(killer)?;
            wait_for_progress(context, self.steps);
            children.push(start(self.processes + number));
        }
        Ok(children)
    }
}

/// Waits until this many more steps were done. If they never are, the watchdog ends the run.
pub(crate) fn wait_for_progress(context: &Context, steps: u64) {
    let done = || context.totals().of(Count::Operations);
    let before = done();
    while done() < before + steps {
        std::thread::sleep(Duration::from_micros(100));
    }
}
