//! A program: calls on one lock, by one thread after another.

use super::family::Family;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};
use waitword::{Clock, Deadline};

/// Threads that may wait. One more thread never does, so that it can release the others.
pub(crate) const THREADS: usize = 4;
/// The number of that thread.
pub(crate) const HAND: usize = THREADS;

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Program<F: Family> {
    pub(crate) made: F::Made,
    pub(crate) steps: Vec<Step<F::Call>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step<C> {
    /// One of the threads that may make this call now makes it: the first, starting at this number.
    By(u8, C),
    /// A signal, whose handler does nothing, to one of the waiters.
    Signal(u8),
    /// Triggers a thread's interrupter.
    Interrupt(u8),
}

/// How long a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Forever,
    /// Has already passed.
    Past,
    /// Passes before the next step, but not before the anti-starvation timer of a rwlock's waiter.
    Soon,
    /// Does not pass.
    Far,
}

impl Limit {
    /// Whether a call that must wait returns by itself.
    pub(crate) fn passes(self) -> bool {
        matches!(self, Limit::Past | Limit::Soon)
    }

    pub(crate) fn deadline(self) -> Option<Deadline> {
        match self {
            Limit::Forever => None,
            Limit::Past => Some(Deadline::at(Clock::Monotonic, Duration::ZERO)),
            Limit::Soon => Some(Deadline::after(Duration::from_millis(2))),
            Limit::Far => {
                let hour = Duration::from_secs(3600);
                Some(Deadline::at_system_time(SystemTime::now() + hour))
            }
        }
    }
}

impl<F: Family> Program<F> {
    /// A test that runs this program, to be pasted.
    pub(crate) fn source(&self) -> String {
        let family = F::NAME;
        let mut text = format!("#[test]\nfn NAME() {{\n    as_modelled::<{family}>(\n");
        let _ = writeln!(text, "        {:?},\n        vec![", self.made);
        for step in &self.steps {
            let _ = writeln!(text, "            {step:?},");
        }
        text.push_str("        ],\n    );\n}\n");
        text
    }
}
