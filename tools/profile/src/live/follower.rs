//! All processes of a source of recordings.
//!
//! Children that fork or exec add files to a directory. A process has ended if it is not in
//! `/proc` and its files do not change; its process ID may also belong to a container, so it is
//! looked at again from time to time.

use super::process::Followed;
use super::source::{Finder, Source};
use super::{ProcessId, Record};
use anyhow::Result;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The most processes that are followed. For one more, the first that has ended is forgotten.
const MOST_PROCESSES: usize = 512;
/// The most files whose names are remembered.
const MOST_FILES: usize = 1 << 16;
/// A process that seems to have ended is read in one of so many polls.
const SELDOM: u64 = 16;

/// Follows the recordings of a source.
#[derive(Debug)]
pub struct Follower {
    finder: Finder,
    processes: Vec<Followed>,
    /// The files that are followed, were forgotten, or are no recordings.
    known: HashSet<PathBuf>,
    next: ProcessId,
    polls: u64,
    problem: Option<String>,
    discards: bool,
    root: Option<PathBuf>,
}

/// What a poll came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// The number of records that were passed on.
    pub records: u64,
    /// Whether everything that was there has been read. If not, poll again at once.
    pub is_complete: bool,
    /// Processes that are not followed any more.
    pub forgotten: Vec<ProcessId>,
}

impl Follower {
    /// Follows the recordings of this source, of which there may be none yet.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn open(source: Source) -> Result<Self> {
        Ok(Self {
            finder: Finder::new(source)?,
            processes: Vec::new(),
            known: HashSet::new(),
            next: 0,
            polls: 0,
            problem: None,
            discards: false,
            root: None,
        })
    }

    /// From now on, the disk space of records that have been read is given back: nobody else reads
    /// this recording.
    pub fn discard(&mut self) {
        self.discards = true;
    }

    /// From now on, the files of mappings are looked at below this directory.
    pub(super) fn look_below(&mut self, root: PathBuf) {
        self.root = Some(root);
    }

    /// The processes, in the order in which they were found.
    pub fn processes(&self) -> impl Iterator<Item = &Followed> {
        self.processes.iter()
    }

    /// One of them.
    pub fn process(&self, id: ProcessId) -> Option<&Followed> {
        self.processes.iter().find(|process| process.id == id)
    }

    /// Why a file in the directory is not followed, if there is one.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Reads what is new in all processes, and calls `each` for every new record, with the thread
    /// that waited or held. What is wrong with one process's files becomes the
    /// [`problem`](Self::problem).
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn poll(&mut self, each: &mut dyn FnMut(&Followed, u32, Record<'_>)) -> Result<Polled> {
        let mut polled = Polled { is_complete: true, ..Polled::default() };
        self.find_new(&mut polled)?;
        let seldom = self.polls.is_multiple_of(SELDOM);
        self.polls += 1;
        let (records, problem) = (&mut polled.records, &mut self.problem);
        for process in &mut self.processes {
            if process.has_ended && !seldom {
                continue;
            }
            // Before the files: what a process wrote before it ended is then read.
            let exists = Path::new("/proc").join(process.recorded.pid.to_string()).exists();
            let root = self.root.as_deref().unwrap_or(Path::new("/"));
            let progress = process.poll(self.discards, root, &mut |process, thread, record| {
                *records += 1;
                each(process, thread, record);
            });
            match progress {
                Ok(progress) => {
                    polled.is_complete &= progress.is_complete;
                    process.has_ended = !exists && !progress.has_changed && progress.is_complete;
                }
                Err(error) => {
                    process.has_ended = true;
                    *problem = Some(format!("process {}: {error:#}", process.recorded.pid));
                }
            }
            if process.has_ended {
                process.threads.clear();
            }
        }
        self.mark_replaced();
        Ok(polled)
    }

    fn find_new(&mut self, polled: &mut Polled) -> Result<()> {
        for path in self.finder.new_files(&self.known)? {
            if self.known.len() >= MOST_FILES {
                break;
            }
            let is_file = path.symlink_metadata().is_ok_and(|it| it.is_file());
            let opened = if is_file { Followed::open(self.next, &path) } else { Ok(None) };
            match opened {
                // Not complete yet, or gone.
                Ok(None) => {}
                Ok(Some(process)) => {
                    if self.processes.len() >= MOST_PROCESSES {
                        let Some(ended) = self.processes.iter().position(|it| it.has_ended) else {
                            self.problem =
                                Some(format!("more than {MOST_PROCESSES} processes record"));
                            return Ok(());
                        };
                        polled.forgotten.push(self.processes.remove(ended).id);
                    }
                    self.known.insert(path);
                    self.processes.push(process);
                    self.next += 1;
                }
                Err(error) => {
                    self.problem = Some(format!("{}: {error:#}", path.display()));
                    self.known.insert(path);
                }
            }
        }
        Ok(())
    }

    /// A process that execs begins another recording under the same ID, and ends the one before.
    fn mark_replaced(&mut self) {
        let newest = |pid, began| {
            self.processes.iter().all(|it| it.recorded.pid != pid || it.recorded.began <= began)
        };
        let replaced: Vec<bool> =
            self.processes.iter().map(|it| !newest(it.recorded.pid, it.recorded.began)).collect();
        for (process, is_replaced) in self.processes.iter_mut().zip(replaced) {
            if is_replaced {
                process.has_ended = true;
                process.threads.clear();
            }
        }
    }
}
