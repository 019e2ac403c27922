//! A thread that watches the program while it runs: in which system calls the holders of locks
//! sleep, and with `--watch`, whether there is a deadlock.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use waitword_profile::remote::wait_for_end;
use waitword_profile::watch::Watch;

/// The least time between two looks at the recording. A holder that sleeps for as long as a wait
/// must last to matter (1 ms) is found at every second time.
const BETWEEN: Duration = Duration::from_millis(2);
/// The time between two looks is this many times what a look takes: 1 % of a CPU.
const TIMES: u32 = 100;
/// But no more than this, as a deadlock is to be found soon. A search for one takes long, and is
/// rare.
const LONGEST: Duration = Duration::from_millis(200);

/// Runs a command that records into this directory, to its end. With a limit, what does not end by
/// itself is printed once a thread has waited that long.
pub(super) fn status(
    command: &mut Command,
    directory: &Path,
    limit: Option<Duration>,
) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        scope.spawn(move || {
            let mut watch = Watch::new(directory, limit);
            let mut pause = BETWEEN;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let begin = Instant::now();
                for found in watch.look() {
                    eprint!("waitword: {found}");
                }
                pause = (begin.elapsed() * TIMES).clamp(BETWEEN, LONGEST);
            }
        });
        wait_for_end(child.id());
        drop(end);
    });
    child.wait()
}
