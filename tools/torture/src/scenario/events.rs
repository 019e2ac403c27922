//! Tortured: manual-reset events, auto events and latches, of both scopes.
//!
//! * Gate: an event is set, all threads pass, it is reset for the next time. Now and then it is set
//!   and reset at once, again and again until all have passed.
//! * Ring: each member waits for its own auto event and then sets the next member's. A single lost
//!   set stops the ring.
//! * Latch: each thread counts down and waits for the others.
//!
//! Checked: all threads pass each time, none passes twice, none passes before the set or the last
//! count.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::library::object::Object;
use crate::spot::Spot;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::{AutoEvent, Deadline, Event, Latch, Scope};

const PASSES: usize = 5_000;
const MEMBERS: usize = 4;
/// More threads at one gate take too long.
const MOST: usize = 128;

/// A gate for a number of threads, and how many have passed it.
struct Gate {
    event: Object<Event>,
    /// How often it was opened, and how often a thread passed it, since the beginning of the round.
    opened: AtomicUsize,
    passed: AtomicUsize,
    /// Used alternately, because a latch can be used only once.
    latches: [Object<Latch>; 2],
}

/// Auto events, in a circle, and whose turn it is.
struct Ring {
    events: [Object<AutoEvent>; MEMBERS],
    turn: AtomicUsize,
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let scopes = [Scope::Private, Scope::Shared];
    let gates = scopes.map(|scope| Gate {
        event: Object::new(context, "event", 64, scope, Event::with_scope(false, scope)),
        opened: AtomicUsize::new(0),
        passed: AtomicUsize::new(0),
        latches: [(); 2]
            .map(|()| Object::new(context, "latch", 32, scope, Latch::with_scope(0, scope))),
    });
    let rings = scopes.map(|scope| Ring {
        events: [(); MEMBERS].map(|()| {
            let event = AutoEvent::with_scope(false, scope);
            Object::new(context, "auto event", 64, scope, event)
        }),
        turn: AtomicUsize::new(0),
    });
    let (gates, rings) = (&gates, &rings);
    while let Some(round) = context.next_round() {
        let passers = (round.threads.min(MOST) / 4).max(2);
        let times = (PASSES / passers).min(200);
        for gate in gates {
            gate.renew(passers);
        }
        context.crew(round, |crew| {
            for (number, gate) in gates.iter().enumerate() {
                for index in 0..passers {
                    crew.spawn("passer", number * passers + index, move |actor| {
                        (0..times).try_for_each(|time| gate.pass(actor, time, passers))
                    });
                }
                crew.spawn("porter", number, move |actor| {
                    (0..times).try_for_each(|time| gate.open(actor, time, passers))
                });
            }
            for (number, ring) in rings.iter().enumerate() {
                for index in 0..MEMBERS {
                    crew.spawn("member", number * MEMBERS + index, move |actor| {
                        (0..PASSES / 20).try_for_each(|time| ring.pass(actor, index, time))
                    });
                }
            }
            Ok(())
        })?;
        for ring in rings {
            // The last member has set the first one's event.
            ring.events[0].get().reset();
            ring.turn.store(0, SeqCst);
        }
    }
    Ok(())
}

impl Gate {
    fn renew(&self, passers: usize) {
        self.event.renew(Event::with_scope(false, self.event.scope));
        self.opened.store(0, SeqCst);
        self.passed.store(0, SeqCst);
        for latch in &self.latches {
            self.renew_latch(latch, passers);
        }
    }

    /// For all threads that pass, and for the porter.
    fn renew_latch(&self, latch: &Object<Latch>, passers: usize) {
        latch.renew(Latch::with_scope(passers as u32 + 1, latch.scope));
    }

    fn pass(&self, actor: &mut Actor, time: usize, passers: usize) -> Verdict {
        let (event, spot) = (self.event.get(), self.event.spot);
        actor.dawdle();
        wait(actor, spot, 4, || event.wait(), |soon| event.wait_until(soon));
        if self.opened.load(SeqCst) != time + 1 {
            return Err("passed an event before it was set".to_owned());
        }
        self.passed.fetch_add(1, SeqCst);
        self.meet(actor, time, passers)
    }

    /// All threads wait for each other and for the porter, which has closed the gate. Only then may
    /// any of them come to it again.
    fn meet(&self, actor: &mut Actor, time: usize, passers: usize) -> Verdict {
        let latch = &self.latches[time % 2];
        let met = actor.wait_at(latch.spot, false, || latch.get().arrive_and_wait());
        met.map_err(|error| format!("one too many at a latch: {error}"))?;
        let (passed, least) = (self.passed.load(SeqCst), (time + 1) * passers);
        if passed < least {
            return Err(format!("passed a latch after {passed} counts, not {least}"));
        }
        actor.count(Count::Woken, 1);
        actor.step();
        Ok(())
    }

    fn open(&self, actor: &mut Actor, time: usize, passers: usize) -> Verdict {
        let event = self.event.get();
        if time > 0 && self.passed.load(SeqCst) != time * passers {
            return Err("a thread passed an event twice".to_owned());
        }
        self.opened.fetch_add(1, SeqCst);
        actor.dawdle();
        let all = (time + 1) * passers;
        if actor.leaves_out() {
            // No thread passes.
        } else if actor.dice.u32(0..3) == 0 {
            while self.passed.load(SeqCst) < all {
                event.set();
                event.reset();
                crate::nap::let_others_run();
            }
        } else {
            event.set();
            while self.passed.load(SeqCst) < all {
                crate::nap::nap(20);
            }
            event.reset();
        }
        // All have passed, and so have left the latch of the previous time.
        self.renew_latch(&self.latches[(time + 1) % 2], passers);
        self.meet(actor, time, passers)?;
        if self.passed.load(SeqCst) != all {
            return Err("a thread passed an event twice".to_owned());
        }
        Ok(())
    }
}

impl Ring {
    fn pass(&self, actor: &mut Actor, index: usize, time: usize) -> Verdict {
        let (own, next) = (&self.events[index], &self.events[(index + 1) % MEMBERS]);
        if (index, time) != (0, 0) {
            let (spot, own) = (own.spot, own.get());
            wait(actor, spot, 8, || own.wait(), |soon| own.wait_until(soon));
        }
        // (Not at the gate: the porter would believe the count, and close the gate before all have
        // passed.)
        let turns = if actor.miscounts() { 2 } else { 1 };
        let turn = self.turn.fetch_add(turns, SeqCst);
        if turn != time * MEMBERS + index {
            return Err(format!("passed an auto event out of turn, at turn {turn}"));
        }
        if !actor.leaves_out() {
            next.get().set();
        }
        actor.step();
        Ok(())
    }
}

/// Waits, one time in `one_in` with a deadline, until it has passed.
fn wait(
    actor: &mut Actor,
    spot: Spot,
    one_in: u32,
    wait: impl FnOnce(),
    wait_until: impl Fn(Deadline) -> bool,
) {
    while actor.dice.u32(0..one_in) == 0 {
        let soon = actor.tiny_deadline();
        if actor.wait_at(spot, true, || wait_until(soon)) {
            return;
        }
        actor.count(Count::Timeouts, 1);
    }
    actor.wait_at(spot, false, wait);
}
