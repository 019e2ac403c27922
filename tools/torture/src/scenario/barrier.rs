//! Tortured: barriers of both scopes, round after round. Some waiters give up at a deadline and
//! come again.
//!
//! Checked: no thread passes before all have arrived, no thread is a round ahead, each round has
//! one leader.

use super::object::Object;
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use waitword::{Barrier, Scope};

const ARRIVALS: usize = 6_000;
/// With more threads, waiting for each other takes too long.
const MOST: usize = 64;

/// A barrier, and what its threads count.
struct Group {
    barrier: Object<Barrier>,
    arrived: AtomicUsize,
    leaders: AtomicUsize,
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let groups = [Scope::Private, Scope::Shared].map(|scope| Group {
        barrier: Object::new(context, "barrier", 64, scope, Barrier::with_scope(1, scope)),
        arrived: AtomicUsize::new(0),
        leaders: AtomicUsize::new(0),
    });
    let groups = &groups;
    while let Some(round) = context.next_round() {
        let members = (round.threads.min(MOST) / groups.len()).max(2);
        let times = (ARRIVALS / members).min(400);
        for Group { barrier, .. } in groups {
            barrier.renew(Barrier::with_scope(members as u32, barrier.scope));
        }
        context.crew(round, |crew| {
            for (number, group) in groups.iter().enumerate() {
                for index in 0..members {
                    crew.spawn("member", number * members + index, move |actor| {
                        (0..times).try_for_each(|time| arrive(actor, group, time, members))
                    });
                }
            }
            Ok(())
        })?;
        for group in groups {
            let leaders = group.leaders.swap(0, SeqCst);
            group.arrived.store(0, SeqCst);
            if leaders != times {
                return Err(format!("{times} rounds had {leaders} leaders"));
            }
            if !group.barrier.get().destroy() {
                return Err("a barrier that no thread uses is in use".to_owned());
            }
        }
    }
    Ok(())
}

/// One member's part in round number `time`.
fn arrive(actor: &mut Actor, group: &Group, time: usize, members: usize) -> Verdict {
    actor.dawdle();
    if actor.leaves_out() {
        return Ok(());
    }
    group.arrived.fetch_add(1, SeqCst);
    let (barrier, spot) = (group.barrier.get(), group.barrier.spot);
    let result = loop {
        if actor.dice.u32(0..8) > 0 {
            break actor.wait_at(spot, false, || barrier.wait());
        }
        let soon = actor.tiny_deadline();
        match actor.wait_at(spot, true, || barrier.wait_until(soon)) {
            Some(result) => break result,
            None => actor.count(Count::Timeouts, 1),
        }
    };
    let arrived = group.arrived.load(SeqCst);
    let (least, most) = ((time + 1) * members, (time + 2) * members - 1);
    if !(least..=most).contains(&arrived) {
        return Err(format!(
            "passed round {time} after {arrived} arrivals, not {least} to {most}"
        ));
    }
    let leads = result.is_leader() || actor.miscounts();
    group.leaders.fetch_add(usize::from(leads), SeqCst);
    actor.count(Count::Woken, 1);
    actor.step();
    Ok(())
}
