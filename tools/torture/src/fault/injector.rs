//! The threads that inject faults in a scenario's own process.

use super::flag::Flag;
use super::kind::Fault;
use super::{memory, priority, shuffle, stop, stutter, tasks};
use crate::context::Context;
use std::thread::JoinHandle;

/// See the module documentation; one thread for each kind of fault.
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
