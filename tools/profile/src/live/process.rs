//! One process of a recording that grows.

use super::bytes::{half, number};
use super::records::{Records, read_at};
use super::rings::{Found, Rings};
use super::{ProcessId, Record};
use crate::read::{Mapping, Process, build_id, mapping};
use anyhow::{Result, bail};
use core::mem::offset_of;
use std::fs::File;
use std::path::{Path, PathBuf};
use waitword_record::format::{
    Causes, Cell, Header, Hold, MAGIC, PAGE, Turns, VERSION, Wait, cells_of_stack, stack_frames,
    stack_head,
};

pub use super::rings::{Thread, Waiting};

/// The most stacks that are kept. The recorder has room for no more either.
const MOST_STACKS: usize = 1 << 16;
/// The most names of threads that are kept; if there are more, only those of present threads stay.
const MOST_NAMES: usize = 1 << 13;
/// The most mappings that are kept.
const MOST_MAPPINGS: usize = 1 << 14;
/// The longest mapping without a file: room for all that a compiler at run time makes.
const MOST_WITHOUT_A_FILE: u64 = 1 << 34;
/// How much is read of a records or maps file in one poll.
const MOST_BYTES: u64 = 64 << 20;
const MOST_TEXT: u64 = 16 << 20;

/// A process that is followed.
#[derive(Debug)]
pub struct Followed {
    /// Its number in the follower.
    pub id: ProcessId,
    /// What is known of it, without its waits and holds: those are passed on and not kept.
    pub recorded: Process,
    /// Changes whenever `recorded.maps` does.
    pub maps_version: u64,
    /// What its threads do now. Empty if the process has ended.
    pub threads: Vec<Thread>,
    /// It has ended, as far as can be seen from here.
    pub has_ended: bool,
    rings_file: PathBuf,
    rings: Rings,
    records: Records,
    maps_offset: u64,
    /// Cells that were no records, and stacks beyond the limit.
    lost_here: u64,
}

/// What a poll of a process came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) has_changed: bool,
    /// There is nothing left to read.
    pub(super) is_complete: bool,
}

impl Followed {
    /// Begins to follow. `None`: the file is not a recording yet.
    pub(super) fn open(id: ProcessId, rings_file: &Path) -> Result<Option<Self>> {
        let file = File::open(rings_file)?;
        let Some(header) = header(&file)? else {
            return Ok(None);
        };
        let recorded = Process {
            pid: half(&header, offset_of!(Header, pid)),
            began: number(&header, offset_of!(Header, began)),
            began_realtime: number(&header, offset_of!(Header, began_realtime)),
            threshold: number(&header, offset_of!(Header, threshold)),
            ..Process::default()
        };
        Ok(Some(Self {
            id,
            recorded,
            maps_version: 0,
            threads: Vec::new(),
            has_ended: false,
            rings_file: rings_file.to_owned(),
            rings: Rings::default(),
            records: Records::default(),
            maps_offset: 0,
            lost_here: 0,
        }))
    }

    /// The file by which it was found.
    pub(super) fn rings_file(&self) -> &Path {
        &self.rings_file
    }

    /// A thread's name, without control characters.
    pub fn thread_name(&self, thread: u32) -> Option<&str> {
        self.recorded.threads.get(&thread).map(|name| &**name).filter(|name| !name.is_empty())
    }

    /// The process's name: that of its first thread, or else of its program.
    pub fn process_name(&self) -> String {
        let of_program = || {
            let program = self.recorded.maps.first()?.file.file_name()?;
            Some(super::printable(&program.to_string_lossy()))
        };
        let of_thread = self.thread_name(self.recorded.pid).map(str::to_owned);
        of_thread.or_else(of_program).unwrap_or_else(|| "process".to_owned())
    }

    pub(super) fn poll(
        &mut self,
        discards: bool,
        root: &Path,
        each: &mut dyn FnMut(&Self, u32, Record<'_>),
    ) -> Result<Progress> {
        let file = File::open(&self.rings_file)?;
        let Some(header) = header(&file)? else {
            bail!("not a recording any more");
        };
        let mut found = News { threads: Vec::new(), cells: Vec::new(), names: Vec::new() };
        let count = half(&header, offset_of!(Header, rings));
        let has_changed = self.rings.poll(&file, count, &mut found)?;
        self.threads = found.threads;
        self.threads.sort_by_key(|thread| thread.thread);
        for (thread, name) in found.names {
            self.name(thread, &name);
        }
        // After the rings, and before their cells: see there.
        let (is_complete, has_grown) = self.poll_records(discards, each)?;
        for (thread, ring, first, cells) in found.cells.into_iter().filter(|_| is_complete) {
            self.pass(thread, ring, first, &cells, each);
        }
        self.poll_maps(root)?;
        self.recorded.causes = match half(&header, offset_of!(Header, causes)) {
            1 => Some(Causes::Switches),
            2 => Some(Causes::Sums),
            _ => None,
        };
        self.recorded.lost = number(&header, offset_of!(Header, lost))
            .saturating_add(number(&header, offset_of!(Header, unheard)))
            .saturating_add(number(&header, offset_of!(Header, stacks_lost)))
            .saturating_add(self.lost_here)
            .saturating_add(self.rings.damaged)
            .saturating_add(self.records.damaged);
        Ok(Progress { has_changed: has_changed || has_grown, is_complete })
    }

    /// Whether there are no more blocks, and whether there were any.
    fn poll_records(
        &mut self,
        discards: bool,
        each: &mut dyn FnMut(&Self, u32, Record<'_>),
    ) -> Result<(bool, bool)> {
        let path = self.rings_file.with_extension("records");
        let Some(file) = open_file(&path)? else {
            return Ok((true, false));
        };
        let mut has_grown = false;
        let mut records = core::mem::take(&mut self.records);
        let result = records.poll(&file, MOST_BYTES, &mut |block| {
            has_grown = true;
            self.name(block.thread, block.name);
            self.pass(block.thread, block.ring, block.first, &block.cells, each);
        });
        self.records = records;
        let is_complete = result?;
        if discards {
            self.records.discard(&path);
        }
        Ok((is_complete, has_grown))
    }

    /// Reads the whole lines that were added to the maps file.
    fn poll_maps(&mut self, root: &Path) -> Result<()> {
        let Some(file) = open_file(&self.rings_file.with_extension("maps"))? else {
            return Ok(());
        };
        let there = file.metadata()?.len().saturating_sub(self.maps_offset).min(MOST_TEXT);
        let mut text = vec![0; there as usize];
        let len = read_at(&file, &mut text, self.maps_offset)?;
        let end = text[..len].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if end == 0 {
            return Ok(());
        }
        self.maps_offset += end as u64;
        for line in String::from_utf8_lossy(&text[..end]).lines() {
            if let Some((id, file)) = build_id(line) {
                self.build_id(&id, Path::new(file));
            } else if let Some(new) = mapping(line) {
                self.map(new, root);
            }
        }
        Ok(())
    }

    fn build_id(&mut self, id: &[u8], file: &Path) {
        let without = |it: &&mut Mapping| it.build_id.is_empty() && it.file == file;
        for mapping in self.recorded.maps.iter_mut().filter(without) {
            mapping.build_id = id.to_vec();
            self.maps_version += 1;
        }
    }

    fn map(&mut self, new: Mapping, root: &Path) {
        let all = &mut self.recorded.maps;
        if all.iter().any(|it| it.is_same(&new)) || !is_plausible(&new, root) {
            return;
        }
        all.retain(|other| other.end <= new.start || new.end <= other.start);
        if all.len() < MOST_MAPPINGS {
            let at = all.partition_point(|other| other.start < new.start);
            all.insert(at, new);
        } else {
            self.lost_here += 1;
        }
        self.maps_version += 1;
    }

    /// Passes on those of these cells that are new: of a ring, from the cell with this number.
    fn pass(
        &mut self,
        thread: u32,
        ring: u64,
        first: u64,
        cells: &[Cell],
        each: &mut dyn FnMut(&Self, u32, Record<'_>),
    ) {
        let old = self.rings.pass(ring, first, cells.len());
        self.add(thread, &cells[old..], each);
    }

    fn add(
        &mut self,
        thread: u32,
        mut cells: &[Cell],
        each: &mut dyn FnMut(&Self, u32, Record<'_>),
    ) {
        while let Some((&first, rest)) = cells.split_first() {
            if let Some(wait) = Wait::of_cell(first) {
                each(self, thread, Record::Wait(&wait));
                cells = rest;
                continue;
            }
            if let Some(hold) = Hold::of_cell(first) {
                each(self, thread, Record::Hold(&hold));
                cells = rest;
                continue;
            }
            if Turns::of_cell(first).is_some() {
                // Of no use here: it is known only once a thread has ended.
                cells = rest;
                continue;
            }
            let Some((number, frames)) = stack_head(first) else {
                self.lost_here += 1;
                cells = rest;
                continue;
            };
            let Some((these, rest)) = cells.split_at_checked(cells_of_stack(frames)) else {
                self.lost_here += cells.len() as u64;
                return;
            };
            let stacks = &mut self.recorded.stacks;
            if stacks.len() < MOST_STACKS || stacks.contains_key(&number) {
                stacks.insert(number, stack_frames(these).collect());
            } else {
                self.lost_here += 1;
            }
            cells = rest;
        }
    }

    fn name(&mut self, thread: u32, name: &[u8]) {
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let names = &mut self.recorded.threads;
        if names.len() >= MOST_NAMES && !names.contains_key(&thread) {
            let is_there = |thread| self.threads.iter().any(|it| it.thread == thread);
            names.retain(|thread, _| is_there(*thread));
        }
        if thread != 0 && names.len() < MOST_NAMES {
            names.insert(thread, super::printable(&String::from_utf8_lossy(name)));
        }
    }
}

/// What the rings contained, to be added when they have been read.
struct News {
    threads: Vec<Thread>,
    /// Thread, ring, the number of the first cell.
    cells: Vec<(u32, u64, u64, Vec<Cell>)>,
    names: Vec<(u32, Vec<u8>)>,
}

impl Found for News {
    fn cells(&mut self, thread: u32, ring: u64, first: u64, cells: &[Cell]) {
        self.cells.push((thread, ring, first, cells.to_vec()));
    }

    fn name(&mut self, thread: u32, name: &[u8]) {
        self.names.push((thread, name.to_vec()));
    }

    fn present(&mut self, thread: Thread) {
        self.threads.push(thread);
    }
}

/// Whether a mapping can be what it says. Two threads that write the maps at the same time mix up
/// their lines, and what remains of an address (such as `0-7f3e5c021000`) would take the place of
/// all other mappings.
fn is_plausible(mapping: &Mapping, root: &Path) -> bool {
    let len = mapping.end - mapping.start;
    let is_aligned = [mapping.start, mapping.end, mapping.offset].iter().all(|it| it % 4096 == 0);
    let file = root.join(mapping.file.strip_prefix("/").unwrap_or(&mapping.file));
    let most = match file.metadata() {
        Ok(of) if of.is_file() => of.len().next_multiple_of(4096),
        // No file, or none that can be looked at.
        _ => MOST_WITHOUT_A_FILE,
    };
    is_aligned && mapping.start > 0 && mapping.offset.saturating_add(len) <= most
}

/// The first page; `None` if the process has not completed it yet.
fn header(file: &File) -> Result<Option<[u8; PAGE]>> {
    let mut page = [0; PAGE];
    let len = read_at(file, &mut page, 0)?;
    if len < PAGE || page[..8] == [0; 8] {
        return Ok(None);
    }
    if page[..8] != MAGIC {
        bail!("not a recording");
    }
    let version = half(&page, 8);
    if version != VERSION {
        bail!(
            "recorded by another version of waitword (format {version}; this one reads {VERSION})"
        );
    }
    Ok(Some(page))
}

/// Opens a file, if it is there and is a file: opening a pipe could wait forever.
fn open_file(path: &Path) -> Result<Option<File>> {
    match path.symlink_metadata() {
        Ok(of) if of.is_file() => Ok(Some(File::open(path)?)),
        Ok(_) => bail!("{}: not a regular file", path.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains_of_a_line_is_no_mapping() {
        let root = Path::new("/");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let all: Vec<Mapping> = maps.lines().filter_map(mapping).collect();
        assert!(all.len() > 2 && all.iter().all(|it| is_plausible(it, root)), "{all:?}");
        let of_file = all.iter().find(|mapping| mapping.file.is_file()).unwrap();
        let cut = |start| Mapping { start, ..of_file.clone() };
        for start in [0, of_file.start & 0xffff_f000, of_file.start & 0xff_f000] {
            assert!(!is_plausible(&cut(start), root), "{:?}", cut(start));
        }
        assert!(!is_plausible(&cut(of_file.start + 1), root));
        // The process sees a longer file by this name.
        let place = tempfile::tempdir().unwrap();
        let there = place.path().join(of_file.file.strip_prefix("/").unwrap());
        std::fs::create_dir_all(there.parent().unwrap()).unwrap();
        let len = of_file.file.metadata().unwrap().len().next_multiple_of(4096) + 4096;
        std::fs::File::create(there).unwrap().set_len(len).unwrap();
        let long = Mapping { end: of_file.start + len, offset: 0, ..of_file.clone() };
        assert!(is_plausible(&long, place.path()) && !is_plausible(&long, root));
    }
}
