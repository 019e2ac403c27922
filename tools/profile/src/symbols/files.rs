//! The ELF files of mappings, and separate files with their debug information.
//!
//! A recording may be read on another machine, or after a program was built again. So a file is
//! used only if it has the build ID that was recorded. Otherwise one that has it is looked for in
//! the directories of symbols, and if there is none, the addresses keep no names: a wrong name is
//! worse.

use crate::read::Mapping;
use object::read::ReadCache;
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SegmentFlags,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// Where distributions put debug information.
const USUAL: &str = "/usr/lib/debug";

/// A mapping's file and the build ID that was recorded.
type Wanted = (PathBuf, Vec<u8>);

/// The files that have been opened, and where to look for others.
#[derive(Debug, Default)]
pub struct Files {
    directories: Vec<PathBuf>,
    /// Where the files are that the process sees, if not where they are for this one.
    root: Option<PathBuf>,
    known: RefCell<HashMap<Wanted, Option<Rc<File>>>>,
    complaints: RefCell<Vec<String>>,
}

impl Files {
    /// Looks for files with debug information in these directories too: by build ID as in
    /// `/usr/lib/debug/.build-id/ab/cdef.debug`, by the name of the file, or by its path.
    pub fn new(directories: &[PathBuf]) -> Self {
        Self { directories: directories.to_vec(), ..Self::default() }
    }

    /// Looks for files below this directory first: the root of a process that may see other files
    /// than this one.
    pub fn below(root: PathBuf) -> Self {
        Self { root: Some(root), ..Self::default() }
    }

    /// Which files are missing or are not those that were recorded: a line for each.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.borrow().clone()
    }

    /// The file of a mapping in a recording that began then (nanoseconds since 1970), if there is
    /// one to be trusted.
    pub(super) fn get(&self, mapping: &Mapping, began: u64) -> Option<Rc<File>> {
        let key = (mapping.file.clone(), mapping.build_id.clone());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let file = self.find(mapping, began).map(Rc::new);
        self.known.borrow_mut().insert(key, file.clone());
        file
    }

    fn find(&self, mapping: &Mapping, began: u64) -> Option<File> {
        let (path, build_id) = (&mapping.file, &mapping.build_id);
        if !path.is_absolute() {
            // Code made at run time, or the kernel's.
            return None;
        }
        let open = |path: &Path| {
            let is_it = |file: &File| match build_id.is_empty() {
                true => !is_younger(path, began),
                false => file.build_id == *build_id,
            };
            File::open(path).filter(is_it)
        };
        let below = path.strip_prefix("/").unwrap_or(path);
        let there = self.root.as_ref().and_then(|root| open(&root.join(below)));
        let mut own = there.or_else(|| open(path));
        if own.as_ref().is_some_and(|file| file.has_lines) {
            return own;
        }
        let debug = if build_id.is_empty() { None } else { self.debug_file(path, build_id) };
        match (own.as_mut(), debug) {
            (Some(own), Some(debug)) => own.add(debug),
            (None, Some(debug)) => return Some(debug),
            (Some(_), None) => {}
            (None, None) => self.complain(path, build_id),
        }
        own
    }

    fn complain(&self, path: &Path, build_id: &[u8]) {
        let why = match (path.exists(), build_id.is_empty()) {
            (true, true) => "has changed since the recording".to_owned(),
            (true, false) => format!("is not the one recorded, with build ID {}", hex(build_id)),
            (false, true) => "is not here".to_owned(),
            (false, false) => format!("is not here (build ID {})", hex(build_id)),
        };
        self.complaints.borrow_mut().push(format!("{} {why}", path.display()));
    }

    /// A file with this build ID, from the directories.
    fn debug_file(&self, path: &Path, build_id: &[u8]) -> Option<File> {
        let id = hex(build_id);
        let (first, rest) = id.split_at(2);
        let name = path.file_name()?;
        let mut with_ending = name.to_owned();
        with_ending.push(".debug");
        let relative = path.strip_prefix("/").unwrap_or(path);
        let usual = Path::new(USUAL);
        let directories = self.directories.iter().map(PathBuf::as_path).chain([usual]);
        let candidates = directories.flat_map(|directory| {
            [
                directory.join(".build-id").join(first).join(format!("{rest}.debug")),
                directory.join(first).join(format!("{rest}.debug")),
                directory.join(format!("{id}.debug")),
                directory.join(&id),
                directory.join(relative).with_file_name(&with_ending),
                directory.join(relative),
                directory.join(&with_ending),
                directory.join(name),
            ]
        });
        let mut seen = HashSet::new();
        candidates
            .filter(|file| file != path && seen.insert(file.clone()))
            .filter_map(|file| File::open(&file))
            .find(|file| file.build_id == build_id)
    }
}

/// Whether the file was written after the recording began. If that cannot be said, it was not.
fn is_younger(path: &Path, began: u64) -> bool {
    let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(began);
    let written = fs::metadata(path).and_then(|found| found.modified());
    began > SystemTime::UNIX_EPOCH && written.is_ok_and(|written| written > began)
}

/// In hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An ELF file.
pub(super) struct File {
    pub(super) lines: addr2line::Loader,
    build_id: Vec<u8>,
    has_lines: bool,
    /// The parts that are loaded: where they are in the file, how long, and at which address.
    segments: Vec<(u64, u64, u64)>,
    /// The page where the code begins: the only thing that a file of debug information says of
    /// where the parts are.
    code: Option<u64>,
    /// The functions, in order of address, with their lengths.
    symbols: Vec<(u64, u64, String)>,
}

impl core::fmt::Debug for File {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("File").field("build_id", &self.build_id).finish_non_exhaustive()
    }
}

impl File {
    fn open(path: &Path) -> Option<Self> {
        // A pipe would keep this waiting.
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let cache = ReadCache::new(fs::File::open(path).ok()?);
        let elf = object::File::parse(&cache).ok()?;
        let lines = addr2line::Loader::new(path).ok()?;
        let segments = elf.segments().map(|segment| {
            let (offset, len) = segment.file_range();
            (offset, len, segment.address())
        });
        let code = elf.segments().find(|segment| {
            let SegmentFlags::Elf { p_flags } = segment.flags() else { return false };
            p_flags & object::elf::PF_X != 0
        });
        let functions = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0);
        let mut symbols: Vec<(u64, u64, String)> = functions
            .filter_map(|it| Some((it.address(), it.size(), it.name().ok()?.to_owned())))
            .collect();
        symbols.sort();
        let debug = [".debug_info", ".zdebug_info"];
        let has_lines = debug
            .iter()
            .any(|name| elf.section_by_name(name).is_some_and(|section| section.size() > 0));
        Some(Self {
            lines,
            build_id: elf.build_id().ok().flatten().unwrap_or_default().to_vec(),
            has_lines,
            segments: segments.collect(),
            code: code.map(|segment| segment.address() & !0xfff),
            symbols,
        })
    }

    /// Takes the names and lines of another file, and keeps its own parts.
    fn add(&mut self, debug: Self) {
        self.lines = debug.lines;
        self.symbols.extend(debug.symbols);
        self.symbols.sort();
        self.symbols.dedup();
    }

    /// The address in the file of a byte of a mapping.
    pub(super) fn address(&self, mapping: &Mapping, place: u64) -> Option<u64> {
        let inside = place.checked_sub(mapping.start)?;
        let offset = inside.checked_add(mapping.offset)?;
        let by_segment = self.segments.iter().find_map(|&(from, len, address)| {
            let inside = offset.checked_sub(from).filter(|inside| *inside < len)?;
            address.checked_add(inside)
        });
        // The mapping begins with the page where the code begins.
        by_segment.or_else(|| self.code?.checked_add(inside))
    }

    /// The function that contains this address. (Libraries without symbols have some functions
    /// only; the nearest one in front is often another.)
    pub(super) fn symbol(&self, address: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|(at, ..)| *at <= address);
        let near = self.symbols[..after].iter().rev().take(8);
        near.into_iter().find(|(at, len, _)| address - at < *len).map(|(.., name)| &**name)
    }
}
