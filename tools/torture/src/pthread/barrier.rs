//! Tortured: barriers, private and shared, two for each group of threads, used in turns. The serial
//! thread destroys the barrier that all have just passed and makes it again, while other threads
//! are still leaving it.
//!
//! Checked: no thread passes before all have come, exactly one is the serial thread, and all
//! threads end.

use super::abi;
use super::object::{Object, zero};
use crate::actor::{Actor, Verdict};
use crate::context::Context;
use libc::{PTHREAD_BARRIER_SERIAL_THREAD, pthread_barrier_t, pthread_barrierattr_t};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Threads that pass, counted over all turns of a round.
const PASSES: usize = 4_000;
const GROUPS: usize = 4;

/// Two barriers, and counts that show whether they work.
struct Group {
    barriers: [Object; 2],
    shared: bool,
    /// How many threads have come so far.
    come: [AtomicUsize; 2],
    serial: AtomicUsize,
    members: usize,
}

impl Group {
    fn make(&self, which: usize) -> Verdict {
        let barrier = self.barriers[which];
        let mut attributes = MaybeUninit::<pthread_barrierattr_t>::uninit();
        barrier.fill(0xa5);
        // SAFETY: unused memory for a barrier; attributes are initialised, used and destroyed.
        unsafe {
            libc::pthread_barrierattr_init(attributes.as_mut_ptr());
            if self.shared {
                let shared = libc::PTHREAD_PROCESS_SHARED;
                libc::pthread_barrierattr_setpshared(attributes.as_mut_ptr(), shared);
            }
            let members = self.members as u32;
            let made = abi::pthread_barrier_init(barrier.at(), attributes.as_ptr(), members);
            libc::pthread_barrierattr_destroy(attributes.as_mut_ptr());
            zero("pthread_barrier_init", made)
        }
    }

    fn end(&self, which: usize) -> Verdict {
        // SAFETY: all threads have passed it.
        zero("pthread_barrier_destroy", unsafe {
            libc::pthread_barrier_destroy(self.barriers[which].at())
        })
    }

    fn pass(&self, actor: &mut Actor, turn: usize) -> Verdict {
        let which = turn % 2;
        self.come[which].fetch_add(1, Relaxed);
        if actor.leaves_out() {
            actor.keeps(self.barriers[which].spot);
        }
        // SAFETY: it was made for all members.
        let answer = self.barriers[which].wait(actor, false, || unsafe {
            libc::pthread_barrier_wait(self.barriers[which].at::<pthread_barrier_t>())
        });
        let come = self.come[which].load(Relaxed);
        match answer {
            0 => {}
            PTHREAD_BARRIER_SERIAL_THREAD => {
                let counted = if actor.miscounts() { 2 } else { 1 };
                self.serial.fetch_add(counted, Relaxed);
                if actor.dice.bool() {
                    self.end(which)?;
                    self.make(which)?;
                }
            }
            number => return Err(format!("a barrier returned {number}")),
        }
        // No thread comes to this barrier for the turn after next before all have passed the next.
        if come != self.members * (turn / 2 + 1) {
            return Err(format!("{come} had come when a thread passed"));
        }
        actor.step();
        Ok(())
    }
}

pub(super) fn run(context: &'static Context) -> Verdict {
    let objects: Vec<_> = (0..GROUPS)
        .map(|group| {
            let shared = group % 4 == 3;
            let name = format!("barrier of group {group}");
            (
                shared,
                [(); 2].map(|()| Object::new(context, &name, shared)),
            )
        })
        .collect();
    while let Some(round) = context.next_round() {
        let mut dice = round.dice();
        let groups = dice.usize(1..=GROUPS.min(round.threads / 2));
        let turns = (PASSES / round.threads).max(4);
        let groups: Vec<_> = objects
            .iter()
            .cycle()
            .skip(dice.usize(0..GROUPS))
            .take(groups)
            .enumerate()
            .map(|(index, &(shared, barriers))| Group {
                barriers,
                shared,
                come: Default::default(),
                serial: AtomicUsize::new(0),
                members: round.threads / groups + usize::from(index < round.threads % groups),
            })
            .collect();
        let groups = &groups;
        for group in groups {
            group.make(0)?;
            group.make(1)?;
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
            group.end(0)?;
            group.end(1)?;
            let serial = group.serial.load(Relaxed);
            if serial != turns {
                return Err(format!("{turns} turns had {serial} serial threads"));
            }
        }
    }
    Ok(())
}
