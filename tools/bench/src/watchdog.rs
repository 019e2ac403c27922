//! What the watchdog of a run watches: the progress that a [`Context`] counts.

use crate::harness::Context;
use std::time::Duration;
use waitword_testkit::watchdog::Watched;

#[cfg(test)]
pub(crate) use waitword_testkit::watchdog::HUNG;
pub use waitword_testkit::{Watchdog, watchdog::who_waits};

/// How long there may be no progress.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run of the workload with this name.
struct Run(String, Context);

impl Watched for Run {
    fn progress(&mut self, _ran: Duration) -> u64 {
        self.1.progress()
    }

    fn hangs(&mut self, patience: Duration) -> String {
        let (Self(name, context), patience) = (self, patience.as_secs());
        let measured = match context.measured() {
            nothing if nothing.is_empty() => String::new(),
            measured => format!(" in \"{measured}\""),
        };
        format!("`{name}` hangs{measured}: no progress for {patience} s.")
    }
}

/// Watches `context`'s progress, in the workload called `name`. If there is none for a minute, it
/// prints the contender under test and which thread waits on what, and ends the process.
///
/// # Errors
/// No thread can be started.
pub fn start(name: &str, context: &Context) -> std::io::Result<Watchdog> {
    with_patience(PATIENCE, name, context)
}

/// The same with another time limit.
pub(crate) fn with_patience(
    patience: Duration,
    name: &str,
    context: &Context,
) -> std::io::Result<Watchdog> {
    Watchdog::start(patience, Run(name.to_owned(), context.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_contender() {
        let context = Context::new(crate::settings::Settings::default(), std::sync::Arc::default());
        let mut run = Run("signal".to_owned(), context.clone());
        let before = run.hangs(PATIENCE);
        assert!(before.starts_with("`signal` hangs: no progress"), "{before}");
        context.measures("one CPU: some lock".to_owned());
        let message = run.hangs(PATIENCE);
        assert!(message.contains("in \"one CPU: some lock\""), "{message}");
    }
}
