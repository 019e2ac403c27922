//! Reads the files of a recording.
//!
//! A file may be cut off anywhere, because its process was killed or the disk was full, and it may
//! be anything else: a user names it. What cannot be read is an error that names the file and the
//! place, or is counted as lost. Nothing in a file is believed that would make this allocate more
//! than the file is long.
//!
//! [`scan`] passes each wait to a [`Fold`] and keeps none, so its memory does not grow with the
//! number of waits. [`read`] keeps them all: for tests, and for recordings known to be small.

mod blocks;
mod cells;
mod maps;
mod rings;

pub use maps::Mapping;
use maps::Mappings;
#[cfg(test)]
pub(crate) use maps::mappings;
pub(crate) use maps::{any_mapping, build_id, mapping};

use anyhow::{Context as _, Result, bail};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use waitword_record::format::{Causes, Hold, Priority, Turns, Wait};

/// More names of threads, or stacks, are not kept. (A recorder numbers 65,536 stacks at most; a
/// damaged file could contain more.)
const MOST_NAMES: usize = 1 << 18;
const MOST_STACKS: usize = 1 << 16;
const MOST_TURNS: usize = 1 << 18;
/// How many return addresses all stacks together have, and how many different ones: each has a name
/// in every format.
const MOST_FRAMES: usize = 1 << 20;
const MOST_ADDRESSES: usize = 1 << 16;
/// No more of a process's maps is read, in bytes.
const MOST_MAPS: u64 = 64 << 20;

/// What one process has recorded.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its ID.
    pub pid: u32,
    /// When the recording began, in nanoseconds of the clock that the waits use.
    pub began: u64,
    /// The same moment in nanoseconds since 1970.
    pub began_realtime: u64,
    /// Shorter waits are not in it, in nanoseconds.
    pub threshold: u64,
    /// Where the holders' causes come from; `None`: they are not known.
    pub causes: Option<Causes>,
    /// The waits, with the number of the thread that waited. Only [`read`] fills this in.
    pub waits: Vec<(u32, Wait)>,
    /// The times for which locks were kept while other threads waited, with the holder's number.
    /// Only [`read`] fills this in.
    pub holds: Vec<(u32, Hold)>,
    /// The return addresses of each stack, the innermost first.
    pub stacks: HashMap<u32, Vec<u64>>,
    /// The names of threads.
    pub threads: HashMap<u32, String>,
    /// The last known priorities of threads.
    pub priorities: HashMap<u32, Priority>,
    /// How often each thread, by its number, has taken locks that threads waited for.
    pub turns: Vec<(u32, Turns)>,
    /// The executable mappings.
    pub maps: Vec<Mapping>,
    /// Cells that could not be written or read, waits of threads without a ring, stacks without a
    /// number.
    pub lost: u64,
}

/// A process that is being read.
#[derive(Debug, Default)]
struct Reading {
    process: Process,
    /// How many return addresses its stacks have, and which.
    frames: usize,
    addresses: HashSet<u64>,
}

/// Something that waits are added to, one after the other. Those of a thread are in the order in
/// which they ended, except that the last ones of each thread come first.
pub trait Fold {
    /// Adds a wait of the thread with this number.
    fn add(&mut self, thread: u32, wait: &Wait);

    /// Adds the time for which the thread with this number kept a lock that others waited for.
    fn add_hold(&mut self, _thread: u32, _hold: &Hold) {}
}

impl Fold for Vec<(u32, Wait)> {
    fn add(&mut self, thread: u32, wait: &Wait) {
        self.push((thread, *wait));
    }
}

/// All that is in a recording.
#[derive(Default)]
struct Everything {
    waits: Vec<(u32, Wait)>,
    holds: Vec<(u32, Hold)>,
}

impl Fold for Everything {
    fn add(&mut self, thread: u32, wait: &Wait) {
        self.waits.push((thread, *wait));
    }

    fn add_hold(&mut self, thread: u32, hold: &Hold) {
        self.holds.push((thread, *hold));
    }
}

impl<A: Fold, B: Fold> Fold for (A, B) {
    fn add(&mut self, thread: u32, wait: &Wait) {
        self.0.add(thread, wait);
        self.1.add(thread, wait);
    }

    fn add_hold(&mut self, thread: u32, hold: &Hold) {
        self.0.add_hold(thread, hold);
        self.1.add_hold(thread, hold);
    }
}

/// All processes of a recording, in the order in which they began, with their waits and holds.
///
/// # Errors
/// The directory or a file in it cannot be read, or is no recording.
pub fn read(directory: &Path) -> Result<Vec<Process>> {
    let processes = scan(directory, |_| Everything::default())?;
    let all = |(process, Everything { waits, holds })| Process { waits, holds, ..process };
    Ok(processes.into_iter().map(all).collect())
}

/// All processes of a recording, in the order in which they began, each with the fold of its waits.
/// `begin` makes a fold for a process, of which only the numbers are known by then.
///
/// # Errors
/// The directory or a file in it cannot be read, or is no recording.
pub fn scan<F: Fold>(
    directory: &Path,
    begin: impl FnMut(&Process) -> F,
) -> Result<Vec<(Process, F)>> {
    scan_with(directory, begin, &mut |_| {})
}

/// As [`scan`]. Calls `progress` now and then with a number of bytes that have been read: together
/// as many as [`size`] says.
///
/// # Errors
/// The directory or a file in it cannot be read, or is no recording.
pub fn scan_with<F: Fold>(
    directory: &Path,
    mut begin: impl FnMut(&Process) -> F,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<(Process, F)>> {
    let mut processes = Vec::new();
    for path in rings_of(directory)? {
        let read = process(&path, &mut begin, progress);
        processes.push(read.with_context(|| path.display().to_string())?);
    }
    if processes.is_empty() {
        bail!("{}: no recording (a file that ends in .rings)", directory.display());
    }
    processes.sort_by_key(|(process, _)| (process.began_realtime, process.pid));
    Ok(processes)
}

/// The length of the files with waits, in bytes.
///
/// # Errors
/// The directory cannot be read.
pub fn size(directory: &Path) -> Result<u64> {
    let files = rings_of(directory)?.into_iter().flat_map(|rings| [records_of(&rings), rings]);
    Ok(files.filter_map(|file| fs::metadata(file).ok()).map(|found| found.len()).sum())
}

fn rings_of(directory: &Path) -> Result<Vec<PathBuf>> {
    let shown = || directory.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(shown)? {
        let path = entry.with_context(shown)?.path();
        if path.extension().is_some_and(|ending| ending == "rings") {
            found.push(path);
        }
    }
    Ok(found)
}

fn records_of(rings: &Path) -> PathBuf {
    rings.with_extension("records")
}

fn process<F: Fold>(
    path: &Path,
    begin: &mut impl FnMut(&Process) -> F,
    progress: &mut dyn FnMut(u64),
) -> Result<(Process, F)> {
    let mut file = fs::File::open(path)?;
    let process = rings::header(&mut file)?;
    let mut fold = begin(&process);
    let mut reading = Reading { process, ..Reading::default() };
    // First the rings: what a thread appends to the records afterwards is in its ring by then.
    let flushed = rings::read(&mut file, &mut reading, &mut fold, progress)?;
    let records = records_of(path);
    if records.exists() {
        let shown = || records.display().to_string();
        let file = fs::File::open(&records).with_context(shown)?;
        blocks::read(file, &flushed, &mut reading, &mut fold, progress).with_context(shown)?;
    }
    if let Ok(file) = fs::File::open(path.with_extension("maps")) {
        let mut all = Mappings::default();
        let mut lines = BufReader::new(file.take(MOST_MAPS));
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            all.add(String::from_utf8_lossy(&line).trim_end_matches('\n'));
            line.clear();
        }
        reading.process.maps = all.finish();
    }
    Ok((reading.process, fold))
}

impl Reading {
    /// Counts cells, or what may have been some, as lost.
    fn lose(&mut self, cells: usize) {
        self.process.lost = self.process.lost.saturating_add(cells as u64);
    }

    fn name(&mut self, thread: u32, name: &[u8]) {
        let threads = &mut self.process.threads;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let is_kept = threads.len() < MOST_NAMES || threads.contains_key(&thread);
        if thread != 0 && is_kept {
            let name = String::from_utf8_lossy(name);
            let known = threads.entry(thread).or_default();
            if *known != name {
                *known = name.into_owned();
            }
        }
    }

    fn priority(&mut self, thread: u32, priority: u32) {
        let priorities = &mut self.process.priorities;
        let is_kept = priorities.len() < MOST_NAMES || priorities.contains_key(&thread);
        if thread != 0 && priority != Priority::UNKNOWN.0 && is_kept {
            priorities.insert(thread, Priority(priority));
        }
    }

    fn turns(&mut self, thread: u32, turns: Turns) {
        if self.process.turns.len() < MOST_TURNS {
            self.process.turns.push((thread, turns));
        } else {
            self.lose(1);
        }
    }

    fn stack(&mut self, number: u32, frames: Vec<u64>) {
        let stacks = &mut self.process.stacks;
        let is_one_more = !stacks.contains_key(&number);
        if is_one_more && stacks.len() >= MOST_STACKS
            || self.frames + frames.len() > MOST_FRAMES
            || self.addresses.len() + frames.len() > MOST_ADDRESSES
        {
            self.lose(1);
            return;
        }
        self.addresses.extend(&frames);
        self.frames += frames.len();
        let before = stacks.insert(number, frames);
        self.frames -= before.map_or(0, |before| before.len());
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
}

#[cfg(test)]
pub(crate) mod tests;
