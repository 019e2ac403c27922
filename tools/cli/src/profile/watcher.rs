//! A thread that watches the program while it runs: in which system calls the holders of locks
//! sleep, and with `--watch`, whether there is a deadlock.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
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

/// Watches the recording in a directory until it is dropped.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Dropped first, which ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// With a limit, what does not end by itself is printed once a thread has waited that long.
    pub(super) fn begin(directory: &Path, limit: Option<Duration>) -> Self {
        let directory = directory.to_owned();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut watch = Watch::new(&directory, limit);
            let mut pause = BETWEEN;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let begin = Instant::now();
                for found in watch.look() {
                    eprint!("waitword: {found}");
                }
                pause = (begin.elapsed() * TIMES).clamp(BETWEEN, LONGEST);
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end = None;
        // A panic there has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs a command that records into this directory, to its end, and watches it.
pub(super) fn status(
    command: &mut Command,
    directory: &Path,
    limit: Option<Duration>,
) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    let watcher = Watcher::begin(directory, limit);
    wait_for_end(child.id());
    drop(watcher);
    child.wait()
}
