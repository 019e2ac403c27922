//! Begins a recording in a process that runs already, and ends it: `waitword_record::control`.
//!
//! The process has to run the pthread drop-in, or to be linked with the library so that it records.
//! Nothing of it stops. It notices that the next lock takes some milliseconds.
//!
//! | file | contents |
//! |---|---|
//! | `block.rs` | the control block in the memory of the process |
//! | `place.rs` | a directory that the process can write to |
//! | `beats.rs` | a thread that keeps the recording going, in forked children too |

mod beats;
mod block;
mod place;

use crate::remote::Remote;
use beats::Beats;
use block::{Block, Found};
use core::fmt;
use core::time::Duration;
use place::Place;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use waitword_record::control::{FAILED, ON};

/// The time between two looks at the block.
const BETWEEN: Duration = Duration::from_millis(10);

/// What is asked of a process.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Shorter waits are not recorded, in nanoseconds.
    pub threshold: u64,
    /// For how long to wait for a thread of the process that begins the recording: one that locks
    /// or unlocks something.
    pub patience: Duration,
    /// Also if the process has a system call filter that this one has not. Such a filter may kill
    /// the process when it makes a file.
    pub despite_filter: bool,
}

/// Why no recording began.
#[derive(Debug)]
pub enum Refusal {
    /// The process does not exist, or may not be looked into. Says why.
    Denied(String),
    /// It has nothing that could record.
    Unserved,
    /// It records by itself, into this directory as it sees it.
    RecordsAlready(PathBuf),
    /// Another process has begun a recording there.
    Busy,
    /// It has a system call filter that may kill it.
    Filtered,
    /// There is no directory that both processes can use.
    Place(io::Error),
    /// No thread of it has locked or unlocked anything. The request is taken back.
    NobodyFollowed(Duration),
    /// It could not begin; says why. It goes on without.
    Failed(String),
    /// The caller wants to stop.
    Stopped,
    /// It has ended, or runs another program now.
    Ended,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(why) => write!(f, "{why}"),
            Self::Unserved => write!(f, "it does not run on waitword"),
            Self::RecordsAlready(directory) => {
                write!(f, "it records already, into {}", directory.display())
            }
            Self::Busy => write!(f, "another process has begun a recording there"),
            Self::Filtered => write!(
                f,
                "it has a system call filter, which may kill it when it makes a file \
                 (--force: begin all the same)"
            ),
            Self::Place(error) => write!(f, "no directory for its recording: {error}"),
            Self::NobodyFollowed(time) => {
                write!(f, "no thread of it has locked or unlocked anything for {time:?}")
            }
            Self::Failed(why) => write!(f, "it could not begin to record: {why}"),
            Self::Stopped => write!(f, "stopped"),
            Self::Ended => write!(f, "it has ended"),
        }
    }
}

impl core::error::Error for Refusal {}

/// A recording in another process. It ends when this is dropped, and its files are removed.
///
/// If this process is killed, the recording ends by itself after ten seconds, and the directory
/// stays.
#[derive(Debug)]
pub struct Attached {
    place: Arc<Place>,
    blocks: Vec<Block>,
    /// None: ended.
    beats: Option<Beats>,
}

impl Attached {
    /// Begins a recording in this process. Blocks for as long as [`Request::patience`] says, or
    /// until `stop` is set.
    ///
    /// # Errors
    /// See [`Refusal`]. The process goes on as before.
    pub fn begin(pid: u32, request: Request, stop: &AtomicBool) -> Result<Self, Refusal> {
        let remote = Remote::open(pid).map_err(|error| Refusal::Denied(format!("{error:#}")))?;
        if let Some(why) = remote.denied() {
            return Err(Refusal::Denied(why.to_owned()));
        }
        let blocks = match Block::find(pid).map_err(|error| Refusal::Denied(error.to_string()))? {
            Found::Free(blocks) => blocks,
            Found::None => return Err(Refusal::Unserved),
            Found::InUse => return Err(Refusal::Busy),
        };
        if let Some(directory) = blocks.iter().find_map(Block::own_directory) {
            return Err(Refusal::RecordsAlready(directory));
        }
        if !request.despite_filter && has_own_filter(pid) {
            return Err(Refusal::Filtered);
        }
        let place = Arc::new(Place::new(pid).map_err(Refusal::Place)?);
        let beat = crate::now() | 1;
        for block in &blocks {
            let asked = block.ask_to_begin(place.inside(), request.threshold, beat);
            asked.map_err(|_| Refusal::Ended)?;
        }
        await_beginning(&blocks, request.patience, stop)?;
        let beats = Beats::begin(pid, blocks.clone(), Arc::clone(&place), beat);
        Ok(Self { place, blocks, beats: Some(beats) })
    }

    /// Where its files are, as this process sees them. They are removed when this is dropped. The
    /// name is valid in this process only.
    pub fn directory(&self) -> &Path {
        self.place.path()
    }

    /// The root directory of the process, below which its programs and libraries are. Like
    /// [`Attached::directory`], the name is valid in this process only; also when the other one has
    /// ended.
    pub fn root(&self) -> PathBuf {
        self.place.root()
    }

    /// Copies its files into a directory, with mode 0600.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn copy_to(&self, directory: &Path) -> io::Result<()> {
        self.place.copy_to(directory)
    }

    /// Whether the process has ended, or executed another program.
    pub fn has_ended(&self) -> bool {
        self.blocks.iter().any(|block| block.state().is_err())
    }

    /// Ends the recording: the process goes on without, from the next time that one of its threads
    /// locks or unlocks something. Waits for that for a second at most. The files are as they stay.
    pub fn end(&mut self) {
        if let Some(beats) = self.beats.take() {
            beats.end();
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns when a recording has begun. Others begin when their locks are used.
fn await_beginning(blocks: &[Block], patience: Duration, stop: &AtomicBool) -> Result<(), Refusal> {
    let began = Instant::now();
    loop {
        let mut failed = None;
        let mut is_asked = false;
        for block in blocks {
            match block.state() {
                Err(_) => return Err(Refusal::Ended),
                Ok(ON) => return Ok(()),
                Ok(FAILED) => failed = Some(block),
                Ok(_) => {
                    is_asked = true;
                    // Once more: the process may have set a switch at the same moment.
                    _ = block.turn_switches();
                }
            }
        }
        let refusal = match failed {
            Some(block) if !is_asked => Refusal::Failed(block.failure()),
            // Relaxed: the flag stands alone.
            _ if stop.load(Relaxed) => Refusal::Stopped,
            Some(block) if began.elapsed() >= patience => Refusal::Failed(block.failure()),
            None if began.elapsed() >= patience => Refusal::NobodyFollowed(patience),
            _ => {
                std::thread::sleep(BETWEEN);
                continue;
            }
        };
        // Errors: it has ended.
        blocks.iter().for_each(|block| _ = block.ask_to_end());
        return Err(refusal);
    }
}

/// Whether the process has a system call filter that the calling one has not. (In a container all
/// processes have the container's.)
fn has_own_filter(pid: u32) -> bool {
    let [its, ours] = [pid.to_string(), "self".to_owned()].map(|pid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name| {
            let value = text.lines().find_map(|line| line.strip_prefix(name))?;
            value.trim().parse::<u64>().ok()
        };
        // Before Linux 5.9 there is only the mode.
        (number("Seccomp:").unwrap_or(0), number("Seccomp_filters:").unwrap_or(0))
    });
    its > ours
}
