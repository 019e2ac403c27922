//! The functions of addresses.

use crate::read::{Mapping, Process};
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A function, and the line in it, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's name, or `file+0x123` if there is none.
    pub function: String,
    /// The source file and line.
    pub line: Option<(String, u32)>,
    /// The name of the program or library.
    pub module: String,
}

/// Finds the functions of a process's addresses.
pub struct Symbols<'a> {
    maps: Cow<'a, [Mapping]>,
    /// Where the files are that the process sees, if not where they are for this one.
    root: Option<PathBuf>,
    files: HashMap<PathBuf, Option<File>>,
    known: HashMap<u64, Vec<Frame>>,
}

impl core::fmt::Debug for Symbols<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Symbols").field("maps", &self.maps.len()).finish_non_exhaustive()
    }
}

impl<'a> Symbols<'a> {
    /// For the addresses of this process.
    pub fn of(process: &'a Process) -> Self {
        Self::of_maps(&process.maps, None)
    }

    /// For the addresses in these mappings. Files are looked for below `root` first.
    pub fn of_maps(maps: &'a [Mapping], root: Option<PathBuf>) -> Self {
        let maps = Cow::Borrowed(maps);
        Self { maps, root, files: HashMap::new(), known: HashMap::new() }
    }

    /// The process has other mappings now. Files that have been read are not read again.
    pub fn set_maps(&mut self, maps: Vec<Mapping>) {
        self.maps = Cow::Owned(maps);
        self.known.clear();
    }

    /// The frames of a return address: the innermost inlined function first.
    pub fn frames(&mut self, address: u64) -> &[Frame] {
        if !self.known.contains_key(&address) {
            let frames = self.find(address);
            self.known.insert(address, frames);
        }
        &self.known[&address]
    }

    fn find(&mut self, address: u64) -> Vec<Frame> {
        // The call is in front of its return address.
        let place = address.wrapping_sub(1);
        let mapping = self.maps.iter().find(|it| (it.start..it.end).contains(&place));
        let Some(mapping) = mapping else {
            let function = format!("{address:#x}");
            return vec![Frame { function, line: None, module: "?".to_owned() }];
        };
        let module = mapping.file.file_name().map_or_else(
            || mapping.file.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let offset = place - mapping.start + mapping.offset;
        let unknown = || Frame {
            function: format!("{module}+{:#x}", offset + 1),
            line: None,
            module: module.clone(),
        };
        let file = self.files.entry(mapping.file.clone());
        let open = || {
            let path = mapping.file.strip_prefix("/").unwrap_or(&mapping.file);
            let there = self.root.as_ref().and_then(|root| File::open(&root.join(path)));
            there.or_else(|| File::open(&mapping.file))
        };
        let Some(file) = file.or_insert_with(open) else {
            return vec![unknown()];
        };
        let in_file = file.address(offset).unwrap_or(offset);
        let mut frames = Vec::new();
        if let Ok(mut found) = file.lines.find_frames(in_file) {
            while let Ok(Some(frame)) = found.next() {
                let name = frame.function.as_ref().and_then(|it| it.raw_name().ok());
                let line =
                    frame.location.as_ref().and_then(|at| Some((at.file?.to_owned(), at.line?)));
                if let Some(name) = name {
                    let function = demangle(&name);
                    frames.push(Frame { function, line, module: module.clone() });
                }
            }
        }
        if frames.is_empty() {
            let symbol = file.symbol(in_file).map(demangle);
            frames.push(symbol.map_or_else(unknown, |function| Frame {
                function,
                line: None,
                module: module.clone(),
            }));
        }
        frames
    }
}

/// An ELF file.
struct File {
    lines: addr2line::Loader,
    /// The parts that are loaded: where they are in the file, how long, and at which address.
    segments: Vec<(u64, u64, u64)>,
    /// The functions, in order of address, with their lengths.
    symbols: Vec<(u64, u64, String)>,
}

impl File {
    fn open(path: &Path) -> Option<Self> {
        let lines = addr2line::Loader::new(path).ok()?;
        let data = std::fs::read(path).ok()?;
        let elf = object::File::parse(&*data).ok()?;
        let segments = elf.segments().map(|segment| {
            let (offset, len) = segment.file_range();
            (offset, len, segment.address())
        });
        let functions = elf
            .symbols()
            .chain(elf.dynamic_symbols())
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0);
        let mut symbols: Vec<(u64, u64, String)> = functions
            .filter_map(|it| Some((it.address(), it.size(), it.name().ok()?.to_owned())))
            .collect();
        symbols.sort();
        Some(Self { lines, segments: segments.collect(), symbols })
    }

    /// The address in the file of a byte of it.
    fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|&(from, len, address)| {
            let inside = offset.checked_sub(from).filter(|inside| *inside < len)?;
            address.checked_add(inside)
        })
    }

    /// The function that contains this address. (Libraries without symbols have some functions
    /// only; the nearest one in front is often another.)
    fn symbol(&self, address: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|(at, ..)| *at <= address);
        let near = self.symbols[..after].iter().rev().take(8);
        near.into_iter().find(|(at, len, _)| address - at < *len).map(|(.., name)| &**name)
    }
}

/// A name as a programmer writes it.
fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // A C function may be called `f`, which is C++'s short name of a type.
    let is_mangled = name.starts_with("_Z") || name.starts_with("__Z");
    let cpp = || cpp_demangle::Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok());
    is_mangled.then(cpp).flatten().unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_demangled() {
        assert_eq!([demangle("main"), demangle("f"), demangle("w")], ["main", "f", "w"]);
        assert_eq!(demangle("_ZN3std4sync5mutex17h0123456789abcdefE"), "std::sync::mutex");
        assert_eq!(demangle("_ZNSt5mutex4lockEv"), "std::mutex::lock()");
    }

    #[test]
    fn this_test_is_found_by_its_address() {
        let mut process = Process::default();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        process.maps = crate::read::mappings(&maps);
        let here = this_test_is_found_by_its_address as fn() as usize as u64 + 4;
        let mut symbols = Symbols::of(&process);
        let frames = symbols.frames(here).to_vec();
        let frame = frames.last().unwrap();
        assert!(frame.function.ends_with("this_test_is_found_by_its_address"), "{frames:?}");
        assert_eq!(symbols.frames(0x10)[0].function, "0x10");
    }
}
