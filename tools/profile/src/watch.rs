//! Watches the processes of a recording, and looks for a deadlock once a thread has waited for
//! long.
//!
//! The recording says how long each thread has waited. Reading that is cheap, and takes nothing
//! from the program. Only when a wait for a lock has become too long is the process looked at, and
//! again as long as there is such a wait: what others wait for may change.

use crate::now;
use crate::remote::Remote;
use crate::wait_for::{Finding, Recorded, Recording, examine, text::text};
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;
use waitword_record::format::Object;

/// The processes whose files are in a directory.
#[derive(Debug)]
pub struct Watch {
    directory: PathBuf,
    limit: Duration,
    processes: HashMap<PathBuf, Watched>,
}

/// A process.
#[derive(Debug)]
struct Watched {
    recording: Recording,
    /// When it was looked at.
    looked: Option<Instant>,
    /// The waits that were too long then: the thread, and when it began to wait.
    overdue: HashSet<(u32, u64)>,
    said: HashSet<Finding>,
}

impl Watch {
    /// Watches for waits that last this long.
    pub fn new(directory: &Path, limit: Duration) -> Self {
        Self { directory: directory.to_owned(), limit, processes: HashMap::new() }
    }

    /// Looks once. Returns what to tell the user: each finding once.
    pub fn look(&mut self) -> Vec<String> {
        self.find_processes();
        let limit = self.limit;
        self.processes.values_mut().flat_map(|process| process.look(limit)).collect()
    }

    fn find_processes(&mut self) {
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_known = self.processes.contains_key(&path);
            if is_known || path.extension().is_none_or(|ending| ending != "rings") {
                continue;
            }
            // An error: the process has only just made the file. It is tried again.
            if let Ok(recording) = Recording::open(&path) {
                let (overdue, said) = (HashSet::new(), HashSet::new());
                self.processes.insert(path, Watched { recording, looked: None, overdue, said });
            }
        }
    }
}

impl Watched {
    fn look(&mut self, limit: Duration) -> Vec<String> {
        let threads = self.recording.threads().unwrap_or_default();
        let overdue = overdue(&threads, now().saturating_sub(limit.as_nanos() as u64));
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
        // Another process may have its number by now.
        let name = self.recording.path().file_name();
        if !remote.files().any(|file| file.file_name() == name) {
            return Vec::new();
        }
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
        let mut watch = Watch::new(place.path(), Duration::ZERO);
        assert_eq!(watch.look(), Vec::<String>::new());
        let waiting =
            Waiting { object: Object::Mutex, address: 0x40, since: 1, has_deadline: false };
        // The test's own process does not have the file mapped.
        let bytes = rings(&[(1, Some(waiting), &[0x40])]);
        std::fs::write(place.path().join("1.2.rings"), bytes).unwrap();
        std::fs::write(place.path().join("3.4.rings"), "garbage").unwrap();
        std::fs::write(place.path().join("1.2.maps"), "garbage").unwrap();
        assert_eq!(watch.look(), Vec::<String>::new());
        assert_eq!(watch.processes.len(), 1);
    }
}
