//! Tortured: barriers, private and shared, two for each group of threads, used in turns. Some
//! waiters give up at a deadline and come again, where that is possible. Where it is allowed, the
//! leader destroys the barrier that all have just passed and makes it again, while other threads
//! are still leaving it.
//!
//! Checked: no thread passes before all have come, exactly one leads each time, and all threads
//! end.

use crate::actor::{Actor, Verdict};
use crate::context::Context;
use crate::count::Count;
use crate::objects::traits::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Threads that pass, counted over all turns of a round.
const PASSES: usize = 4_000;
const GROUPS: usize = 4;

/// Two barriers, and counts that show whether they work.
struct Group<'a, B> {
    barriers: &'a [B; 2],
    /// How many threads have come so far.
    come: [AtomicUsize; 2],
    leaders: AtomicUsize,
    members: usize,
}

impl<B: Barrier> Group<'_, B> {
    fn pass(&self, actor: &mut Actor, turn: usize) -> Verdict {
        let which = turn % 2;
        let barrier = &self.barriers[which];
        self.come[which].fetch_add(1, Relaxed);
        if actor.leaves_out() {
            actor.keeps(barrier.spot());
        }
        let leads = barrier.wait(actor)?;
        let come = self.come[which].load(Relaxed);
        self.leaders.fetch_add(usize::from(leads) + usize::from(actor.miscounts()), Relaxed);
        if leads && B::CAN_END_AT_ONCE && actor.dice.bool() {
            barrier.end()?;
            barrier.make(self.members)?;
        }
        // No thread comes to this barrier for the turn after next before all have passed the next.
        if come != self.members * (turn / 2 + 1) {
            return Err(format!("{come} had come when a thread passed"));
        }
        actor.count(Count::Woken, 1);
        actor.step();
        Ok(())
    }
}

pub(crate) fn run<B: Barrier>(context: &'static Context) -> Verdict {
    let places: [[B; 2]; GROUPS] = std::array::from_fn(|group| {
        let name = format!("barrier of group {group}");
        [(); 2].map(|()| B::new(context, &name, group % 2 == 1))
    });
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let groups = dice.usize(1..=GROUPS.min(round.threads / 2));
        let turns = (PASSES / round.threads).max(4);
        let places = places.iter().cycle().skip(dice.usize(0..GROUPS));
        let groups: Vec<_> = (places.take(groups).enumerate())
            .map(|(index, barriers)| Group {
                barriers,
                come: Default::default(),
                leaders: AtomicUsize::new(0),
                members: round.threads / groups + usize::from(index < round.threads % groups),
            })
            .collect();
        let groups = &groups;
        for group in groups {
            (group.barriers.iter()).try_for_each(|barrier| barrier.make(group.members))?;
        }
        context.crew(round, |crew| {
            for index in 0..round.threads {
                let group = &groups[index % groups.len()];
                crew.spawn("member", index, move |actor| {
                    for turn in 0..turns {
                        group.pass(actor, turn)?;
                        if actor.dice.u32(0..8) == 0 {
                            actor.dawdle();
                        }
                    }
                    Ok(())
                });
            }
            Ok(())
        })?;
        for group in groups {
            group.barriers.iter().try_for_each(B::end)?;
            let leaders = group.leaders.load(Relaxed);
            if leaders != turns {
                return Err(format!("{turns} turns had {leaders} leaders"));
            }
        }
    }
    Ok(())
}
