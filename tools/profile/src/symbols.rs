//! The functions of addresses.

pub(crate) mod files;

pub use files::Files;

use crate::read::{Mapping, Process};
use cpp_demangle::{DemangleOptions, Symbol};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

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
    maps: &'a [Mapping],
    /// When the recording began, in nanoseconds since 1970; 0: there is none.
    began: u64,
    files: Rc<Files>,
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
        Self::with(process, Rc::default())
    }

    /// For the addresses of this process, from files that others may have opened.
    pub fn with(process: &'a Process, files: Rc<Files>) -> Self {
        let began = process.began_realtime;
        Self { maps: &process.maps, began, files, known: HashMap::new() }
    }

    /// For the addresses in these mappings. Files are looked for below `root` first.
    pub fn of_maps(maps: &'a [Mapping], root: Option<PathBuf>) -> Self {
        let files = Rc::new(root.map(Files::below).unwrap_or_default());
        Self { maps, began: 0, files, known: HashMap::new() }
    }

    /// The frames of a return address: the innermost inlined function first.
    pub fn frames(&mut self, address: u64) -> &[Frame] {
        if !self.known.contains_key(&address) {
            let frames = self.find(address);
            self.known.insert(address, frames);
        }
        &self.known[&address]
    }

    /// The mapping that contains the call in front of a return address.
    pub fn mapping(&self, address: u64) -> Option<&'a Mapping> {
        let place = address.wrapping_sub(1);
        let maps = self.maps;
        let before = maps.partition_point(|mapping| mapping.start <= place).checked_sub(1)?;
        maps.get(before).filter(|mapping| place < mapping.end)
    }

    /// Whether there is a file of this mapping that can be trusted.
    pub fn has_file(&self, mapping: &Mapping) -> bool {
        self.files.get(mapping, self.began).is_some()
    }

    fn find(&mut self, address: u64) -> Vec<Frame> {
        // The call is in front of its return address.
        let place = address.wrapping_sub(1);
        let Some(mapping) = self.mapping(address) else {
            let function = format!("{address:#x}");
            return vec![Frame { function, line: None, module: "?".to_owned() }];
        };
        let module = mapping.file.file_name().map_or_else(
            || mapping.file.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let offset = (place - mapping.start).wrapping_add(mapping.offset);
        let unknown = || Frame {
            function: format!("{module}+{:#x}", offset.wrapping_add(1)),
            line: None,
            module: module.clone(),
        };
        let Some(file) = self.files.get(mapping, self.began) else {
            return vec![unknown()];
        };
        let in_file = file.address(mapping, place).unwrap_or(offset);
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

/// A name as a programmer writes it.
/// The name as it is in the source. Without a C++ function's parameters, which may be longer than a
/// line: the place has a line number, if it has debug information.
fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // A C function may be called `f`, which is C++'s short name of a type.
    let is_mangled = name.starts_with("_Z") || name.starts_with("__Z");
    let options = DemangleOptions::new().no_params().no_return_type();
    let cpp = || Symbol::new(name).ok()?.demangle_with_options(&options).ok();
    is_mangled.then(cpp).flatten().unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests;
