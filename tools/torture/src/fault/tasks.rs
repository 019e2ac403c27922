//! The threads of a scenario, in all its processes, except the watchdog and the injectors.

use crate::context::Context;
use std::sync::atomic::Ordering::SeqCst;

/// The prefix of the names of the injectors.
pub(super) const OURS: &str = "fault ";
const WATCHDOG: &str = "watchdog";

/// Calls `act` with the ID of each thread. Threads that start meanwhile are left out. If a thread
/// has ended, the system call made with its ID fails.
///
/// The main thread of the scenario's process is left out: it starts the other threads, which
/// inherit from it.
pub(super) fn for_each(context: &Context, mut act: impl FnMut(i32)) {
    let main = std::process::id() as i32;
    let children = context.children.iter().map(|place| place.load(SeqCst));
    for process in std::iter::once(main).chain(children.filter(|&child| child > 0)) {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let number = task.file_name().to_string_lossy().parse();
            if let Ok(number) = number
                && number != main
                && !name.starts_with(OURS)
                && !name.starts_with(WATCHDOG)
            {
                act(number);
            }
        }
    }
}
