//! Faults: what a machine, a scheduler or an administrator may do to threads while they wait and
//! wake.
//!
//! ```text
//!   seed, scenario, slice ──► which faults this slice has                      (chosen)
//!   seed, fault, number   ──► how long until the next one, and what it does    (choices)
//!
//!   in the scenario's own process            outside, in the supervisor
//!     Injector: a thread for each fault        Outside: stops the whole process; steps the clock
//!     Actor::dawdle: holds                     (the process that does this must not be stopped)
//!     SIGSYS handler: memory refused
//! ```
//!
//! So the same seed injects the same faults in the same order. When they strike is up to the
//! scheduler. Each is counted on the board. No fault may break what the library promises: all
//! invariants hold under all faults.

mod clock;
pub(crate) mod hold;
pub(crate) mod memory;
mod priority;
mod shuffle;
mod stop;
pub(crate) mod stutter;
mod tasks;

pub(crate) use clock::Clock;
pub(crate) use priority::stay_above;
pub(crate) use shuffle::Cpus;
pub(crate) use stop::Outside;

use crate::context::{Context, mix, mix_with};
use crate::count::Count;
use crate::slice::name_of;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Each kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Fault {
    /// Locks are held, and threads dawdle, for anything from a nanosecond to milliseconds, awake or
    /// asleep
    Hold,
    /// All threads are moved to one CPU, each to some CPU, or back to all CPUs, in random order
    Shuffle,
    /// Some threads get another priority or policy for a while: nice, batch, idle, FIFO, round
    /// robin
    Priority,
    /// All threads pause for some milliseconds and go on at the same moment
    Stutter,
    /// The process, or one of a scenario's processes, is stopped by SIGSTOP for a while
    Stop,
    /// The library's calls for memory (mmap, mremap, madvise) fail: the n-th, every n-th, all
    Memory,
    /// The system clock is set some seconds forwards and back (needs --clock-steps)
    Clock,
}

impl Fault {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    pub(crate) fn name(self) -> String {
        name_of(&self)
    }

    /// Its description in the list.
    pub(crate) fn about(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map_or(String::new(), ToString::to_string)
    }

    /// The count in which it is counted.
    pub(crate) fn count(self) -> Count {
        match self {
            Self::Hold => Count::Holds,
            Self::Shuffle => Count::Shuffles,
            Self::Priority => Count::Priorities,
            Self::Stutter => Count::Stutters,
            Self::Stop => Count::Stops,
            Self::Memory => Count::Refusals,
            Self::Clock => Count::ClockSteps,
        }
    }
}

/// Which faults may be injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// In each slice, those that the seed chooses.
    BySeed,
    /// In each slice, these.
    These(Vec<Fault>),
}

/// The faults of one slice of a scenario: a function of its arguments alone.
pub(crate) fn chosen(
    wanted: &Wanted,
    clock: bool,
    seed: u64,
    name: &str,
    slice: u64,
) -> Vec<Fault> {
    let by_name = mix_with(seed, name);
    let mut dice = fastrand::Rng::with_seed(mix(by_name ^ slice.rotate_left(17)));
    let mut faults: Vec<Fault> = match wanted {
        // Some slices have no fault. That also finds what goes wrong only on an undisturbed
        // machine.
        Wanted::BySeed => (Fault::all().iter().copied())
            .filter(|_| dice.u32(0..3) == 0)
            .collect(),
        Wanted::These(these) => these.clone(),
    };
    faults.retain(|&fault| fault != Fault::Clock || clock);
    faults
}

/// The choices of the `number`-th fault of a kind, in a scenario's own process.
fn noted_choices(context: &Context, fault: Fault, number: u64) -> fastrand::Rng {
    let dice = choices(context.seed, fault, number);
    let first = dice.clone().u64(..);
    (context.choices).note(format_args!("fault {} {number}: {first}", fault.name()));
    dice
}

/// The choices of the `number`-th fault of a kind, independent of those before.
pub(crate) fn choices(seed: u64, fault: Fault, number: u64) -> fastrand::Rng {
    fastrand::Rng::with_seed(mix(mix(seed ^ ((fault as u64 + 1) << 48)) ^ number))
}

/// A pause until the next fault: from 200 µs to `most` milliseconds.
fn pause(dice: &mut fastrand::Rng, most: u64) -> Duration {
    Duration::from_micros(dice.u64(200..most * 1000))
}

/// Raised to stop a thread that injects faults.
#[derive(Clone, Default)]
pub(crate) struct Flag(Arc<AtomicBool>);

impl Flag {
    pub(crate) fn raise(&self) {
        self.0.store(true, SeqCst);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(SeqCst)
    }

    /// Sleeps, but not much longer once the flag is raised. Returns whether it is still down.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        const STEP: Duration = Duration::from_millis(10);
        let until = std::time::Instant::now() + time;
        while !self.is_raised() {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(STEP));
        }
        false
    }
}

/// The threads that inject faults in a scenario's own process, one for each kind.
pub(crate) struct Injector {
    over: Flag,
    threads: Vec<JoinHandle<()>>,
}

/// What a thread that injects faults does until its flag is raised.
type Work = fn(&'static Context, &Flag);

impl Injector {
    pub(crate) fn start(context: &'static Context) -> Self {
        let over = Flag::default();
        let works = context.slice.faults.iter().filter_map(|fault| {
            let work: Work = match fault {
                Fault::Shuffle => shuffle::run,
                Fault::Priority => priority::run,
                Fault::Stutter => stutter::run,
                Fault::Stop => stop::run,
                Fault::Memory => memory::run,
                Fault::Hold | Fault::Clock => return None,
            };
            Some((fault.name(), work))
        });
        let start = |(name, work): (String, Work)| {
            let flag = over.clone();
            std::thread::Builder::new()
                .name(format!("{}{name}", tasks::OURS))
                .spawn(move || {
                    crate::watchdog::block_signals();
                    work(context, &flag);
                })
                .expect("a thread for faults")
        };
        let threads = works.map(start).collect();
        Self { over, threads }
    }

    /// Stops the threads. They undo what can be undone.
    pub(crate) fn stop(self) {
        self.over.raise();
        for thread in self.threads {
            // An error means that it panicked. That was reported, and nothing is left to undo.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_a_function_of_the_seed() {
        let of = |seed, name, slice| chosen(&Wanted::BySeed, true, seed, name, slice);
        let some: Vec<_> = (0..64).map(|slice| of(7, "ring", slice)).collect();
        let again: Vec<_> = (0..64).map(|slice| of(7, "ring", slice)).collect();
        assert_eq!(some, again);
        assert!(
            Fault::all()
                .iter()
                .all(|fault| some.iter().any(|set| set.contains(fault)))
        );
        assert!(some.iter().any(Vec::is_empty));
        let others: Vec<_> = (0..64).map(|slice| of(8, "ring", slice)).collect();
        assert_ne!(some, others);
        let no_clock = chosen(&Wanted::These(Fault::all().to_vec()), false, 7, "ring", 0);
        assert!(!no_clock.contains(&Fault::Clock) && no_clock.len() == Fault::all().len() - 1);
    }

    #[test]
    fn each_fault_has_its_own_choices() {
        let draw = |seed, fault, number| choices(seed, fault, number).u64(..);
        assert_eq!(draw(1, Fault::Stop, 5), draw(1, Fault::Stop, 5));
        assert_ne!(draw(1, Fault::Stop, 5), draw(1, Fault::Stutter, 5));
        assert_ne!(draw(1, Fault::Stop, 5), draw(1, Fault::Stop, 6));
    }
}
