//! Reads the files of a recording.
//!
//! A file may be cut off anywhere, because its process was killed or the disk was full, and it may
//! be anything else: a user names it. What cannot be read is an error that names the file and the
//! place, or is counted as lost. Nothing in a file is believed that would make this allocate more
//! than the file is long.

use anyhow::{Context as _, Result, bail};
use core::mem::offset_of;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use waitword_record::format::{
    Block, CELLS, Causes, Cell, Header, Hold, MAGIC, PAGE, RING_BYTES, Ring, VERSION, Wait,
    cells_of_stack, stack_frames, stack_head,
};

/// What one process has recorded.
#[derive(Debug, Default)]
pub struct Process {
    /// Its ID.
    pub pid: u32,
    /// When the recording began, in nanoseconds since 1970.
    pub began_realtime: u64,
    /// The same moment in nanoseconds of the clock of the waits.
    pub began: u64,
    /// Shorter waits are not in it, in nanoseconds.
    pub threshold: u64,
    /// Where the holders' causes come from.
    pub causes: Option<Causes>,
    /// The waits, with the number of the thread that waited.
    pub waits: Vec<(u32, Wait)>,
    /// The times for which locks were kept while other threads waited, with the holder's number.
    pub holds: Vec<(u32, Hold)>,
    /// The return addresses of each stack, the innermost first.
    pub stacks: HashMap<u32, Vec<u64>>,
    /// The names of threads.
    pub threads: HashMap<u32, String>,
    /// The executable mappings.
    pub maps: Vec<Mapping>,
    /// Cells that could not be written or read, waits of threads without a ring, stacks without a
    /// number.
    pub lost: u64,
}

/// A part of a file that the process had mapped to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Where in the file the mapping begins.
    pub offset: u64,
    /// The file.
    pub file: PathBuf,
}

/// All processes of a recording, in the order in which they began.
///
/// # Errors
/// The directory or a file in it cannot be read, or is no recording.
pub fn read(directory: &Path) -> Result<Vec<Process>> {
    let shown = || directory.display().to_string();
    let mut processes = Vec::new();
    for entry in fs::read_dir(directory).with_context(shown)? {
        let path = entry.with_context(shown)?.path();
        if path.extension().is_some_and(|ending| ending == "rings") {
            processes.push(process(&path).with_context(|| path.display().to_string())?);
        }
    }
    if processes.is_empty() {
        bail!("{}: no recording (a file that ends in .rings)", directory.display());
    }
    processes.sort_by_key(|process| (process.began_realtime, process.pid));
    Ok(processes)
}

fn process(rings: &Path) -> Result<Process> {
    let bytes = fs::read(rings)?;
    let mut process = header(&bytes)?;
    for ring in bytes[PAGE..].chunks_exact(RING_BYTES) {
        process.add_ring(ring);
    }
    let records = rings.with_extension("records");
    if records.exists() {
        let bytes = fs::read(&records).with_context(|| records.display().to_string())?;
        process.add_blocks(&bytes);
    }
    let maps = rings.with_extension("maps");
    if let Ok(bytes) = fs::read(&maps) {
        process.maps = mappings(&String::from_utf8_lossy(&bytes));
    }
    Ok(process)
}

fn header(bytes: &[u8]) -> Result<Process> {
    if bytes.len() < PAGE || bytes[..8] != MAGIC {
        bail!("not a recording");
    }
    let version = half(bytes, 8);
    if version != VERSION {
        bail!(
            "recorded by another version of waitword (format {version}; this one reads {VERSION})"
        );
    }
    Ok(Process {
        pid: half(bytes, 12),
        began: number(bytes, 16),
        began_realtime: number(bytes, 24),
        threshold: number(bytes, 32),
        causes: match half(bytes, offset_of!(Header, causes)) {
            causes if causes == Causes::Switches as u32 => Some(Causes::Switches),
            causes if causes == Causes::Sums as u32 => Some(Causes::Sums),
            _ => None,
        },
        lost: number(bytes, 40).saturating_add(number(bytes, 48)).saturating_add(number(bytes, 56)),
        ..Process::default()
    })
}

impl Process {
    /// The cells that are in a ring only.
    fn add_ring(&mut self, ring: &[u8]) {
        let (thread, written, flushed) = (half(ring, 0), number(ring, 8), number(ring, 16));
        let count = written.wrapping_sub(flushed);
        if count > CELLS as u64 {
            // Garbage.
            self.lost += 1;
            return;
        }
        self.name(thread, &ring[24..40]);
        let cells = &ring[size_of::<Ring>()..];
        let all: Vec<Cell> = (flushed..flushed.wrapping_add(count))
            .map(|n| cell(&cells[(n % CELLS as u64) as usize * size_of::<Cell>()..]))
            .collect();
        self.add_cells(thread, &all);
    }

    fn add_blocks(&mut self, mut bytes: &[u8]) {
        while let Some((head, rest)) = bytes.split_at_checked(size_of::<Block>()) {
            if head[..8] != MAGIC {
                self.lost += (bytes.len() / size_of::<Cell>()) as u64;
                return;
            }
            let (thread, count) = (half(head, 8), half(head, 12) as usize);
            let there = rest.len() / size_of::<Cell>();
            self.name(thread, &head[16..32]);
            let (cells, next) = rest.split_at(count.min(there) * size_of::<Cell>());
            self.lost += count.saturating_sub(there) as u64;
            let cells: Vec<Cell> = cells.chunks_exact(size_of::<Cell>()).map(cell).collect();
            self.add_cells(thread, &cells);
            bytes = next;
        }
    }

    fn add_cells(&mut self, thread: u32, mut cells: &[Cell]) {
        while let Some((&first, rest)) = cells.split_first() {
            if let Some(wait) = Wait::of_cell(first) {
                self.waits.push((thread, wait));
                cells = rest;
                continue;
            }
            if let Some(hold) = Hold::of_cell(first) {
                self.holds.push((thread, hold));
                cells = rest;
                continue;
            }
            let stack = stack_head(first);
            let len = stack.map_or(1, |(_, frames)| cells_of_stack(frames));
            let Some((these, rest)) = cells.split_at_checked(len) else {
                self.lost += cells.len() as u64;
                return;
            };
            match stack {
                Some((number, _)) => _ = self.stacks.insert(number, stack_frames(these).collect()),
                None => self.lost += 1,
            }
            cells = rest;
        }
    }

    fn name(&mut self, thread: u32, name: &[u8]) {
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        if thread != 0 {
            self.threads.insert(thread, String::from_utf8_lossy(name).into_owned());
        }
    }
}

fn cell(bytes: &[u8]) -> Cell {
    Cell(core::array::from_fn(|n| number(bytes, 8 * n)))
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

/// The executable mappings in copies of `/proc/PID/maps`. Of two for the same addresses, the later
/// one counts.
pub(crate) fn mappings(text: &str) -> Vec<Mapping> {
    let mut all: Vec<Mapping> = Vec::new();
    for mapping in text.lines().filter_map(mapping) {
        if all.last() != Some(&mapping) && !all.contains(&mapping) {
            all.retain(|other| other.end <= mapping.start || mapping.end <= other.start);
            all.push(mapping);
        }
    }
    all.sort_by_key(|mapping| mapping.start);
    all
}

fn mapping(line: &str) -> Option<Mapping> {
    any_mapping(line).filter(|(_, is_executable)| *is_executable).map(|(mapping, _)| mapping)
}

/// A line of `/proc/PID/maps`, and whether it is a mapping to execute.
pub(crate) fn any_mapping(line: &str) -> Option<(Mapping, bool)> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_executable = fields.next()?.contains('x');
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let offset = hex(fields.next()?)?;
    let name = fields.nth(2)?.trim_start();
    let file = PathBuf::from(name.strip_suffix(" (deleted)").unwrap_or(name));
    let mapping = Mapping { start: hex(start)?, end: hex(end)?, offset, file };
    (mapping.start < mapping.end).then_some((mapping, is_executable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_mapping_takes_the_place_of_an_earlier_one() {
        let text = "# at 1 ns\n\
                    1000-3000 r-xp 00000000 fd:00 1   /a\n\
                    5000-6000 rw-p 00000000 fd:00 1   /a\n\
                    # at 2 ns\n\
                    1000-3000 r-xp 00000000 fd:00 1   /a\n\
                    2000-4000 r-xp 00001000 fd:00 2   /b c (deleted)\n\
                    garbage\n";
        let b = Mapping { start: 0x2000, end: 0x4000, offset: 0x1000, file: "/b c".into() };
        assert_eq!(mappings(text), [b]);
    }

    /// Whatever a file contains, reading it ends, with an error or with what was understood.
    #[test]
    fn a_damaged_recording_is_read_as_far_as_it_goes() {
        let place = tempfile::tempdir().unwrap();
        let rings = place.path().join("1.2.rings");
        assert!(read(place.path()).unwrap_err().to_string().contains("no recording"));
        fs::write(&rings, b"short").unwrap();
        assert!(format!("{:#}", read(place.path()).unwrap_err()).contains("not a recording"));
        let mut bytes = vec![0; PAGE + RING_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = 99;
        fs::write(&rings, &bytes).unwrap();
        assert!(format!("{:#}", read(place.path()).unwrap_err()).contains("another version"));
        bytes[8] = VERSION as u8;
        let mut random = 1_u64;
        for round in 0..200 {
            for byte in &mut bytes[PAGE..] {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                *byte = (random >> 32) as u8 & if round % 2 == 0 { 0xff } else { 0x03 };
            }
            if round % 3 == 0 {
                // A plausible count.
                bytes[PAGE + 8..PAGE + 24].fill(0);
                bytes[PAGE + 8] = 200;
            }
            fs::write(&rings, &bytes[..PAGE + RING_BYTES - round]).unwrap();
            fs::write(place.path().join("1.2.records"), &bytes[PAGE + 13 * round..]).unwrap();
            fs::write(place.path().join("1.2.maps"), &bytes[PAGE..PAGE + 999]).unwrap();
            read(place.path()).unwrap();
        }
    }
}
