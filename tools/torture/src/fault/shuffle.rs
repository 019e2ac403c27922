//! CPU affinity, shuffled as in the kernel's locktorture: all threads to one CPU, to another, each
//! to some CPU, anywhere. Never outside the set that the process was started with.

use super::choice::{noted_choices, pause};
use super::flag::Flag;
use super::kind::Fault;
use super::tasks;
use crate::context::Context;
use crate::count::Count;

pub(super) fn run(context: &'static Context, over: &Flag) {
    let Some(allowed) = Cpus::of(0) else {
        return;
    };
    for number in 0.. {
        let mut dice = noted_choices(context, Fault::Shuffle, number);
        if !over.sleep(pause(&mut dice, 15)) {
            break;
        }
        let together = allowed.pick(&mut dice);
        let way = dice.u32(0..3);
        tasks::for_each(context, |task| match way {
            0 => together.set_for(task),
            1 => allowed.pick(&mut dice).set_for(task),
            _ => allowed.set_for(task),
        });
        context.board.count(Count::Shuffles, 1);
    }
    tasks::for_each(context, |task| allowed.set_for(task));
}

/// A set of CPUs.
#[derive(Clone, Copy)]
pub(crate) struct Cpus(libc::cpu_set_t);

impl Cpus {
    /// The CPUs on which a thread may run; 0 is the caller.
    pub(crate) fn of(task: i32) -> Option<Self> {
        // SAFETY: zeros are an empty set; the kernel writes a whole one.
        unsafe {
            let mut set = std::mem::zeroed();
            let got = libc::sched_getaffinity(task, size_of_val(&set), &raw mut set);
            (got == 0).then_some(Self(set))
        }
    }

    /// One of them, at random.
    pub(crate) fn pick(&self, dice: &mut fastrand::Rng) -> Self {
        // SAFETY: reads one whole set and writes another, within its size.
        unsafe {
            let count = libc::CPU_COUNT(&self.0) as usize;
            let wanted = dice.usize(0..count.max(1));
            let mut mine =
                (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &self.0));
            let mut set = std::mem::zeroed();
            if let Some(cpu) = mine.nth(wanted) {
                libc::CPU_SET(cpu, &mut set);
            }
            Self(set)
        }
    }

    /// Makes a thread run on these CPUs only. A thread that has ended does not need the change.
    pub(crate) fn set_for(&self, task: i32) {
        // SAFETY: reads a whole set.
        unsafe { libc::sched_setaffinity(task, size_of_val(&self.0), &raw const self.0) };
    }
}
