//! Tortured: things that are done once. Many threads come at once. Routines take their time, call
//! others, are left by unwinding (as by a C++ exception), or, where that is allowed, end their
//! thread.
//!
//! Checked: each is done exactly once, and a thread that returns sees what was done; after an
//! unwinding, another thread does it.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::objects::pthread::bare::Bare;
use crate::objects::traits::Once;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const ITEMS: usize = 200;
const CALLS: usize = 12_000;

/// Something that is done once.
struct Item<O> {
    once: O,
    /// Written by plain loads and stores while it is done, and read plainly by all threads that
    /// return.
    begun: AtomicUsize,
    done: AtomicUsize,
}

/// How a routine ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Returns,
    Unwinds,
    EndsThread,
    CallsAnother,
}

impl<O: Once> Item<O> {
    fn call(&self, actor: &mut Actor, fate: Fate, next: Option<&Self>) {
        self.once.call(&mut || self.routine(actor, fate, next));
    }

    fn routine(&self, actor: &mut Actor, fate: Fate, next: Option<&Self>) {
        let spot = self.once.spot();
        self.begun.store(self.begun.load(Relaxed) + 1, Relaxed);
        actor.holds(spot);
        actor.dawdle();
        if actor.leaves_out() {
            actor.keeps(spot);
        }
        if let (Fate::CallsAnother, Some(next)) = (fate, next) {
            next.call(actor, Fate::Returns, None);
        }
        actor.releases(spot);
        match fate {
            // Without the message of a panic.
            Fate::Unwinds => resume_unwind(Box::new(())),
            // SAFETY: no frame on the way has anything to drop, except that of the once-call
            // itself, which is what is tested.
            Fate::EndsThread => unsafe { libc::pthread_exit(std::ptr::null_mut()) },
            Fate::Returns | Fate::CallsAnother => {}
        }
        let times = if actor.miscounts() { 2 } else { 1 };
        self.done.store(self.done.load(Relaxed) + times, Relaxed);
    }

    /// Calls it until it was done.
    fn settle(&self, actor: &mut Actor, next: Option<&Self>) -> Verdict {
        loop {
            let fate = match actor.dice.u32(0..8) {
                0 | 1 => Fate::Unwinds,
                2 => Fate::CallsAnother,
                _ => Fate::Returns,
            };
            actor.is_at(self.once.spot(), false);
            let came = catch_unwind(AssertUnwindSafe(|| self.call(actor, fate, next)));
            actor.is_elsewhere();
            match came {
                Ok(()) => break,
                Err(_) if fate == Fate::Unwinds => {}
                Err(_) => return Err("left by another thread's unwinding".to_owned()),
            }
        }
        actor.step();
        match self.done.load(Relaxed) {
            1 => Ok(()),
            times => Err(format!("a caller returned, and it was done {times} times")),
        }
    }

    fn over(&self) -> Verdict {
        let (begun, done) = (self.begun.load(Relaxed), self.done.load(Relaxed));
        match done == 1 && begun >= done && self.once.is_done() {
            true => Ok(()),
            false => Err(format!("begun {begun} times, done {done} times")),
        }
    }
}

/// Calls it; if the routine runs in this thread, the thread ends in it.
fn visit<O: Once>(actor: &mut Actor, item: &'static Item<O>) -> Verdict {
    item.call(actor, Fate::EndsThread, None);
    Ok(())
}

pub(crate) fn run<O: Once>(context: &'static Context) -> Verdict {
    let new = |index| Item {
        once: O::new(context, index),
        begun: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
    };
    let items: &'static [Item<O>] = (0..ITEMS).map(new).collect::<Vec<_>>().leak();
    while let Some(round) = context.next_round() {
        for item in items {
            item.once.renew();
            item.begun.store(0, Relaxed);
            item.done.store(0, Relaxed);
        }
        let quota = (CALLS / round.threads).clamp(4, ITEMS);
        context.crew(round, |crew| {
            for index in 0..round.threads {
                crew.spawn("caller", index, move |actor| {
                    for number in 0..quota {
                        let item = &items[number];
                        if O::CAN_END_THREAD && actor.dice.u32(0..32) == 0 {
                            let seed = actor.dice.u64(..);
                            Bare::start(context, "visitor", seed, visit, item)?.join()?;
                        }
                        // Forwards only, so that no routine waits for itself.
                        item.settle(actor, items.get(number + 1))?;
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        items[..quota].iter().try_for_each(Item::over)?;
    }
    Ok(())
}
