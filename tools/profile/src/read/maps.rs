//! The executable mappings of a process, and the build IDs of their files.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// More mappings are not kept. (The kernel allows a process about as many, unless it was told to
/// allow more.)
const MOST: usize = 1 << 16;
/// The kernel has no longer paths, nor names in them.
const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 255;

/// A part of a file that the process had mapped to execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Where in the file the mapping begins.
    pub offset: u64,
    /// The file.
    pub file: PathBuf,
    /// The file's GNU build ID; empty if it is not known.
    pub build_id: Vec<u8>,
}

impl Mapping {
    /// Whether it is the same part of the same file at the same place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.start, self.end, self.offset, &self.file)
            == (other.start, other.end, other.offset, &other.file)
    }
}

/// The executable mappings in copies of `/proc/PID/maps`, with the build IDs in the lines after
/// each. Of two for the same addresses, the later one counts.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// By their first addresses. None overlaps another one.
    all: BTreeMap<u64, Mapping>,
    /// Of each file, the first addresses of mappings whose build ID is not known yet, among others.
    without_id: HashMap<PathBuf, Vec<u64>>,
}

impl Mappings {
    /// Adds a line.
    pub(super) fn add(&mut self, line: &str) {
        if let Some((build_id, file)) = build_id(line) {
            for start in self.without_id.remove(Path::new(file)).unwrap_or_default() {
                if let Some(mapping) = self.all.get_mut(&start)
                    && mapping.file.as_os_str() == file
                    && mapping.build_id.is_empty()
                {
                    mapping.build_id.clone_from(&build_id);
                }
            }
        } else if let Some(mapping) = mapping(line) {
            self.map(mapping);
        }
    }

    fn map(&mut self, mapping: Mapping) {
        if self.all.get(&mapping.start).is_some_and(|known| known.is_same(&mapping)) {
            return;
        }
        // Those that begin inside it, and the one that begins in front and ends inside.
        while let Some((&start, other)) = self.all.range(..mapping.end).next_back()
            && other.end > mapping.start
        {
            self.all.remove(&start);
        }
        if self.all.len() < MOST {
            self.without_id.entry(mapping.file.clone()).or_default().push(mapping.start);
            self.all.insert(mapping.start, mapping);
        }
    }

    /// The mappings, in the order of their addresses.
    pub(super) fn finish(self) -> Vec<Mapping> {
        self.all.into_values().collect()
    }
}

/// The same, of a text.
#[cfg(test)]
pub(crate) fn mappings(text: &str) -> Vec<Mapping> {
    let mut all = Mappings::default();
    text.lines().for_each(|line| all.add(line));
    all.finish()
}

/// `# build-id HEX FILE`
pub(crate) fn build_id(line: &str) -> Option<(Vec<u8>, &str)> {
    let (digits, file) = line.strip_prefix("# build-id ")?.split_once(' ')?;
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = core::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    Some((pairs.collect::<Option<Vec<u8>>>().filter(|id| !id.is_empty())?, file_of(file)))
}

/// An executable mapping in a line of a maps file.
pub(crate) fn mapping(line: &str) -> Option<Mapping> {
    let (mapping, is_executable) = any_mapping(line)?;
    let is_short = |name: &OsStr, longest| name.len() <= longest;
    let file = &mapping.file;
    let is_possible = is_short(file.as_os_str(), LONGEST_PATH)
        && file.iter().all(|name| is_short(name, LONGEST_NAME));
    (is_executable && is_possible).then_some(mapping)
}

/// A line of `/proc/PID/maps`, and whether it is a mapping to execute.
pub(crate) fn any_mapping(line: &str) -> Option<(Mapping, bool)> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_executable = fields.next()?.contains('x');
    let hex = |digits| u64::from_str_radix(digits, 16).ok();
    let offset = hex(fields.next()?)?;
    let file = PathBuf::from(file_of(fields.nth(2)?.trim_start()));
    let mapping =
        Mapping { start: hex(start)?, end: hex(end)?, offset, file, ..Mapping::default() };
    (mapping.start < mapping.end).then_some((mapping, is_executable))
}

/// The name, if the file is still there.
fn file_of(name: &str) -> &str {
    name.strip_suffix(" (deleted)").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_mapping_takes_the_place_of_an_earlier_one() {
        let text = "# at 1 ns\n\
                    1000-3000 r-xp 00000000 fd:00 1   /a\n\
                    5000-6000 rw-p 00000000 fd:00 1   /a\n\
                    # build-id 0aff /a\n\
                    # at 2 ns\n\
                    1000-3000 r-xp 00000000 fd:00 1   /a\n\
                    2000-4000 r-xp 00001000 fd:00 2   /b c (deleted)\n\
                    garbage\n";
        let build_id = Vec::new();
        let b =
            Mapping { start: 0x2000, end: 0x4000, offset: 0x1000, file: "/b c".into(), build_id };
        let without = core::slice::from_ref(&b);
        assert_eq!(mappings(text), without);
        let with_id = format!("{text}# build-id 01F0 /b c\n# build-id 02 /b c\n");
        assert_eq!(mappings(&with_id), [Mapping { build_id: vec![1, 0xf0], ..b.clone() }]);
        for bad in ["# build-id /b c", "# build-id 0 /b c", "# build-id  /b c", "# build-id é /b c"]
        {
            assert_eq!(mappings(&format!("{text}{bad}\n")), without, "{bad}");
        }
    }
}
