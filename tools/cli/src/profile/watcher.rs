//! `waitword profile --watch`: a thread that looks for deadlocks while the program runs.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use waitword_profile::remote::wait_for_end;
use waitword_profile::watch::Watch;

/// The time between two looks at the recording, if waits are to be found that are long enough.
const BETWEEN: Duration = Duration::from_millis(200);

/// Runs a command that records into this directory, to its end. With a limit, what does not end by
/// itself is printed once a thread has waited that long.
pub(super) fn status(
    command: &mut Command,
    directory: &Path,
    limit: Option<Duration>,
) -> io::Result<ExitStatus> {
    let Some(limit) = limit else {
        return command.status();
    };
    let mut child = command.spawn()?;
    std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        scope.spawn(move || {
            let mut watch = Watch::new(directory, limit);
            while ended.recv_timeout(BETWEEN) == Err(RecvTimeoutError::Timeout) {
                for found in watch.look() {
                    eprint!("waitword: {found}");
                }
            }
        });
        wait_for_end(child.id());
        drop(end);
    });
    child.wait()
}
