//! Priorities: some threads become nicer, batch, idle, or real-time for some milliseconds, then
//! ordinary again.
//!
//! A real-time thread that spins or yields until an ordinary one makes progress can keep a CPU to
//! itself. So the injectors and the watchdog run above all other threads where that is permitted,
//! and no thread stays real-time for long. Where it is not permitted (no `CAP_SYS_NICE`), only what
//! every thread may do is done.

use super::choice::{noted_choices, pause};
use super::flag::Flag;
use super::kind::Fault;
use super::tasks;
use crate::context::Context;
use crate::count::Count;
use std::time::Duration;

/// The priority of real-time threads under torture. The injectors and the watchdog have a higher
/// one.
const REAL_TIME: i32 = 1;
const ABOVE: i32 = 20;

/// Raises the calling thread above those under torture. Returns whether that is permitted.
pub(crate) fn stay_above() -> bool {
    set_policy(0, libc::SCHED_FIFO, ABOVE)
}

pub(super) fn run(context: &'static Context, over: &Flag) {
    // SAFETY: takes no pointers. This is the value that the process was started with.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, std::process::id()) };
    let ordinary = Ordinary { permitted: stay_above(), nice };
    for number in 0.. {
        let mut dice = noted_choices(context, Fault::Priority, number);
        if !over.sleep(pause(&mut dice, 20)) {
            break;
        }
        let (share, stay) = (dice.u32(1..6), Duration::from_micros(dice.u64(100..6_000)));
        let mut changed = Vec::new();
        tasks::for_each(context, |task| {
            let way = dice.u32(0..5);
            if dice.u32(0..share) == 0 {
                changed.push(task);
                change(task, way, ordinary.permitted, &mut dice);
            }
        });
        std::thread::sleep(stay);
        changed.iter().for_each(|&task| ordinary.again(task));
        context.board.count(Count::Priorities, changed.len());
    }
    tasks::for_each(context, |task| ordinary.again(task));
}

fn change(task: i32, way: u32, permitted: bool, dice: &mut fastrand::Rng) {
    let nice = dice.i32(1..=19);
    match way {
        // Without permission, no thread comes back from idle.
        0 if permitted => drop(set_policy(task, libc::SCHED_IDLE, 0)),
        1 if permitted => drop(set_policy(task, libc::SCHED_FIFO, REAL_TIME)),
        2 if permitted => drop(set_policy(task, libc::SCHED_RR, REAL_TIME)),
        3 if permitted => set_nice(task, nice),
        _ => drop(set_policy(task, libc::SCHED_BATCH, 0)),
    }
}

/// The settings of threads that nothing is done to.
struct Ordinary {
    permitted: bool,
    nice: i32,
}

impl Ordinary {
    fn again(&self, task: i32) {
        set_policy(task, libc::SCHED_OTHER, 0);
        if self.permitted {
            set_nice(task, self.nice);
        }
    }
}

fn set_nice(task: i32, nice: i32) {
    // SAFETY: passes only numbers. A thread that has ended does not need the change.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, task as u32, nice) };
}

/// The thread's children begin as ordinary threads.
fn set_policy(task: i32, policy: i32, priority: i32) -> bool {
    // SAFETY: zeros are valid; reads a whole structure. A thread that has ended does not need the
    // change.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        let policy = policy | libc::SCHED_RESET_ON_FORK;
        libc::sched_setscheduler(task, policy, &raw const parameters) == 0
    }
}
