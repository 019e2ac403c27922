//! Watches the processes of a recording: notes in which system calls the holders of locks sleep
//! (`holder_calls.rs`), and looks for a deadlock once a thread has waited for long.
//!
//! The recording says how long each thread has waited. Reading that is cheap, and takes nothing
//! from the program. Only when a wait for a lock has become too long is the process looked at, and
//! again as long as there is such a wait: what others wait for may change.

mod holder_calls;

use crate::now;
use crate::remote::Remote;
use crate::wait_for::{Finding, Recorded, Recording, examine, text::text};
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use waitword_record::format::Object;

/// The processes whose files are in a directory.
#[derive(Debug)]
pub struct Watch {
    directory: PathBuf,
    limit: Option<Duration>,
    /// When processes were looked for.
    searched: Option<Instant>,
    /// By their rings files. `None`: it has ended.
    processes: HashMap<PathBuf, Option<Watched>>,
}

/// The time between two looks for new processes. A process that ends sooner has no deadlock to
/// find, and no sleeping holder that matters much.
const BETWEEN_SEARCHES: Duration = Duration::from_millis(100);

/// A process.
#[derive(Debug)]
struct Watched {
    recording: Recording,
    /// Its rings file, to write to; `None` if calls cannot be noted.
    rings: Option<File>,
    /// When it was looked at.
    looked: Option<Instant>,
    /// The waits that were too long then: the thread, and when it began to wait.
    overdue: HashSet<(u32, u64)>,
    said: HashSet<Finding>,
}

impl Watch {
    /// Watches the processes that record into this directory. With a limit, looks for a deadlock
    /// when a wait lasts that long.
    pub fn new(directory: &Path, limit: Option<Duration>) -> Self {
        let directory = directory.to_owned();
        Self { directory, limit, searched: None, processes: HashMap::new() }
    }

    /// Looks once. Returns what to tell the user: each finding once.
    pub fn look(&mut self) -> Vec<String> {
        if self.searched.is_none_or(|searched| searched.elapsed() >= BETWEEN_SEARCHES) {
            self.find_processes();
            self.searched = Some(Instant::now());
        }
        let limit = self.limit;
        self.processes.values_mut().flatten().flat_map(|process| process.look(limit)).collect()
    }

    fn find_processes(&mut self) {
        for process in self.processes.values_mut() {
            process.take_if(|process| !exists(process.recording.pid()));
        }
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_known = self.processes.contains_key(&path);
            if is_known || path.extension().is_none_or(|ending| ending != "rings") {
                continue;
            }
            // An error: the process has only just made the file. It is tried again.
            let Ok(recording) = Recording::open(&path) else {
                continue;
            };
            match Remote::open(recording.pid()) {
                Ok(remote) if is_of(&recording, &remote) => {
                    self.processes.insert(path, Some(Watched::new(recording)));
                }
                // It has not mapped the file yet.
                Ok(_) => {}
                Err(_) => {
                    self.processes.insert(path, None);
                }
            }
        }
    }
}

impl Watched {
    fn new(recording: Recording) -> Self {
        let rings = File::options().write(true).open(recording.path()).ok();
        let (overdue, said) = (HashSet::new(), HashSet::new());
        Self { recording, rings, looked: None, overdue, said }
    }

    fn look(&mut self, limit: Option<Duration>) -> Vec<String> {
        let threads = self.recording.threads().unwrap_or_default();
        if let Some(rings) = &self.rings {
            holder_calls::note(self.recording.pid(), &threads, rings);
        }
        limit.map_or_else(Vec::new, |limit| self.look_for_deadlock(&threads, limit))
    }

    fn look_for_deadlock(&mut self, threads: &[Recorded], limit: Duration) -> Vec<String> {
        let overdue = overdue(threads, now().saturating_sub(limit.as_nanos() as u64));
        let is_due = !overdue.is_subset(&self.overdue)
            || self.looked.is_none_or(|looked| looked.elapsed() >= limit);
        if overdue.is_empty() || !is_due {
            return Vec::new();
        }
        self.overdue = overdue;
        let said = self.examine();
        self.looked = Some(Instant::now());
        said
    }

    /// Nothing if the process has ended.
    fn examine(&mut self) -> Vec<String> {
        let Ok(remote) = Remote::open(self.recording.pid()) else {
            return Vec::new();
        };
        let mut symbols = remote.symbols();
        let Ok(mut report) = examine(&remote, Some(&self.recording), &mut symbols) else {
            return Vec::new();
        };
        report.findings.retain(|finding| self.said.insert(without_waiters(finding)));
        if report.findings.is_empty() {
            return Vec::new();
        }
        vec![format!("process {}: {}", remote.pid(), text(&report, &mut symbols, false))]
    }
}

/// Whether there is a process with this number. (Reading its mappings takes milliseconds if there
/// are many.)
fn exists(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether a recording is this process's. Another one may have its number by now, or has it outside
/// of the PID namespace that recorded.
fn is_of(recording: &Recording, remote: &Remote) -> bool {
    remote.files().any(|file| file.file_name() == recording.path().file_name())
}

/// The waits for locks and for ends of threads that began before this time.
fn overdue(threads: &[Recorded], before: u64) -> HashSet<(u32, u64)> {
    let long = threads.iter().filter_map(|thread| {
        let wait = thread.waiting?;
        let has_holder = wait.object.is_lock() || wait.object == Object::Join;
        (has_holder && wait.since <= before).then_some((thread.thread, wait.since))
    });
    long.collect()
}

/// The finding, without what changes while it stays the same.
fn without_waiters(finding: &Finding) -> Finding {
    match finding {
        Finding::Ended { holder, .. } => Finding::Ended { holder: *holder, waiters: Vec::new() },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_for::{Waiting, tests::rings};

    #[test]
    fn only_long_waits_for_what_a_thread_may_withhold_are_overdue() {
        let thread = |thread, object, since| Recorded {
            ring: 0,
            thread,
            waiting: Some(Waiting { object, address: 0x40, since, has_deadline: false }),
            held: Vec::new(),
            held_count: 0,
        };
        let threads = [
            thread(1, Object::Mutex, 100),
            thread(2, Object::Mutex, 101),
            thread(3, Object::Condvar, 1),
            thread(4, Object::Join, 1),
            Recorded { waiting: None, ..thread(5, Object::Mutex, 1) },
        ];
        assert_eq!(overdue(&threads, 100), HashSet::from([(1, 100), (4, 1)]));
    }

    #[test]
    fn files_of_ended_processes_and_others_say_nothing() {
        let place = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(place.path(), Some(Duration::ZERO));
        assert_eq!(watch.look(), Vec::<String>::new());
        let waiting =
            Waiting { object: Object::Mutex, address: 0x40, since: 1, has_deadline: false };
        let bytes = rings(&[(1, Some(waiting), &[0x40])]);
        // The test's own process does not have the file mapped.
        std::fs::write(place.path().join("1.2.rings"), &bytes).unwrap();
        std::fs::write(place.path().join("3.4.rings"), "garbage").unwrap();
        std::fs::write(place.path().join("1.2.maps"), "garbage").unwrap();
        watch.find_processes();
        assert!(watch.processes.is_empty());
        // There is no such process.
        let mut bytes = bytes;
        let pid = core::mem::offset_of!(waitword_record::format::Header, pid);
        bytes[pid..pid + 4].copy_from_slice(&i32::MAX.to_ne_bytes());
        std::fs::write(place.path().join("5.6.rings"), bytes).unwrap();
        watch.find_processes();
        assert_eq!(watch.look(), Vec::<String>::new());
        let known: Vec<_> = watch.processes.values().map(Option::is_some).collect();
        assert_eq!(known, [false]);
    }
}
