//! What the waits of a process add up to. The exports and the summary are made from this, so their
//! memory does not depend on the number of waits.

use crate::locks::{Lock, Locks, Rest};
use crate::longest::{Listed, Longest};
use crate::read::{self, Fold, Process};
use crate::sites::{self, Site, Sites};
use anyhow::Result;
use std::path::Path;
use waitword_record::format::Wait;

/// How many of the longest waits are kept, if nobody wants more.
pub const USUAL_LISTED: usize = 100;

/// The waits of a process, summed.
#[derive(Debug, Default)]
pub struct Profile {
    /// Its stacks, threads and mappings. It has no single waits.
    pub process: Process,
    /// The sites, those that lost the most time first.
    pub sites: Vec<(sites::Key, Site)>,
    /// The objects, those that lost the most time first.
    pub objects: Vec<Lock>,
    /// What is not in `objects`.
    pub rest: Rest,
    /// The longest waits for locks, the longest first, ...
    pub longest: Vec<Listed>,
    /// ... and how many are not among them.
    pub left_out: u64,
    /// The longest of the other waits, ...
    pub longest_idle: Vec<Listed>,
    /// ... and how many are not among them.
    pub left_out_idle: u64,
}

/// A profile in the making.
struct Gathering {
    sites: Sites,
    locks: Locks,
    longest: Longest,
    longest_idle: Longest,
}

impl Gathering {
    fn new(listed: usize) -> Self {
        Self {
            sites: Sites::default(),
            locks: Locks::default(),
            longest: Longest::new(listed, true),
            longest_idle: Longest::new(listed, false),
        }
    }

    fn finish(self, process: Process) -> Profile {
        let (objects, rest) = self.locks.finish();
        let (longest, left_out) = self.longest.finish();
        let (longest_idle, left_out_idle) = self.longest_idle.finish();
        let sites = self.sites.finish();
        Profile { process, sites, objects, rest, longest, left_out, longest_idle, left_out_idle }
    }
}

impl Fold for Gathering {
    fn add(&mut self, thread: u32, wait: &Wait) {
        self.sites.add(thread, wait);
        self.locks.add(thread, wait);
        self.longest.add(thread, wait);
        self.longest_idle.add(thread, wait);
    }
}

impl Profile {
    /// The processes of a recording, in the order in which they began. Keeps `listed` of the
    /// longest waits for locks, and as many others. `progress` is called as in [`read::scan_with`].
    ///
    /// # Errors
    /// The directory or a file in it cannot be read, or is no recording.
    pub fn read(
        directory: &Path,
        listed: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Self>> {
        let processes = read::scan_with(directory, |_| Gathering::new(listed), progress)?;
        Ok(processes.into_iter().map(|(process, fold)| fold.finish(process)).collect())
    }

    /// Of a process that was read with its waits.
    pub fn of(mut process: Process) -> Self {
        let mut gathering = Gathering::new(USUAL_LISTED);
        for (thread, wait) in core::mem::take(&mut process.waits) {
            gathering.add(thread, &wait);
        }
        gathering.finish(process)
    }

    /// The nanoseconds that were lost waiting for locks, and those spent waiting for work.
    pub fn totals(&self) -> (u64, u64) {
        let total = |locks: bool| {
            let sites = self.sites.iter().filter(|(key, _)| key.object.is_lock() == locks);
            sites.fold(0_u64, |sum, (_, site)| sum.saturating_add(site.nanoseconds))
        };
        (total(true), total(false))
    }
}
