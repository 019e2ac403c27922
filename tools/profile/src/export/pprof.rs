//! pprof's `profile.proto`, compressed, with the sample types of Go's mutex profile:
//! `contentions/count` and `delay/nanoseconds`. `go tool pprof`, Pyroscope and Parca read it.
//!
//! Each site has two samples, which a label tells apart: `side: waiter` with the stack that waited,
//! and `side: holder` with the stack that released the lock, as in Go. So that nothing counts
//! twice, the holder's delay is in sample types of its own (`holder_contentions/count`,
//! `holder_delay/nanoseconds`). `go tool pprof` drops a type whose name is there twice.
//!
//! Addresses, mappings and build IDs are in it too, so that a server can find the names that are
//! missing here: a mapping says that it has its functions only if its file was there.

use super::{Recording, addresses, object};
use crate::read::{self, Process};
use crate::sites::{Key, Site};
use crate::symbols::{Frame, Symbols, files::hex};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write as _};

// The messages of google/pprof's proto/profile.proto that are used here.

#[derive(Clone, PartialEq, Message)]
struct PprofProfile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    memory_start: u64,
    #[prost(uint64, tag = "3")]
    memory_limit: u64,
    #[prost(uint64, tag = "4")]
    file_offset: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
    #[prost(bool, tag = "8")]
    has_filenames: bool,
    #[prost(bool, tag = "9")]
    has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(uint64, tag = "3")]
    address: u64,
    /// The innermost inlined function first.
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The waits for locks of all processes.
///
/// # Errors
/// The compression fails.
pub fn pprof(recording: &mut Recording<'_>) -> io::Result<Vec<u8>> {
    let parts = &mut recording.processes;
    pprof_of(parts.iter_mut().map(|(it, symbols)| (&it.process, symbols, &*it.sites)))
}

/// The same, of processes whose sites are known otherwise.
///
/// # Errors
/// The compression fails.
pub(crate) fn pprof_of<'a, 's: 'a>(
    parts: impl Iterator<Item = (&'a Process, &'a mut Symbols<'s>, &'a [(Key, Site)])>,
) -> io::Result<Vec<u8>> {
    let mut building = Building::default();
    building.string("");
    for (kind, unit) in [
        ("contentions", "count"),
        ("delay", "nanoseconds"),
        ("holder_contentions", "count"),
        ("holder_delay", "nanoseconds"),
    ] {
        let value = ValueType { kind: building.string(kind), unit: building.string(unit) };
        building.profile.sample_type.push(value);
    }
    building.profile.default_sample_type = building.string("delay");
    for (process, symbols, sites) in parts {
        if building.profile.time_nanos == 0 {
            building.profile.time_nanos = process.began_realtime as i64;
        }
        building.process(process, symbols, sites);
    }
    building.finish()
}

/// A profile in the making: what is in it already, by contents.
#[derive(Default)]
struct Building {
    profile: PprofProfile,
    strings: HashMap<String, i64>,
    /// By the numbers of their names and files.
    functions: HashMap<(i64, i64), u64>,
    /// Locations that are no address.
    kinds: HashMap<String, u64>,
    /// Of the current process: the mappings by their first address, and the locations.
    mappings: HashMap<u64, u64>,
    addresses: HashMap<u64, u64>,
}

impl Building {
    fn process(&mut self, process: &Process, symbols: &mut Symbols<'_>, sites: &[(Key, Site)]) {
        self.mappings.clear();
        self.addresses.clear();
        for (key, site) in sites.iter().filter(|(key, _)| key.object.is_lock()) {
            let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            let values = [number(site.count), number(site.nanoseconds)];
            let mut waiter = vec![self.kind(&object(key))];
            waiter.extend(self.stack(process, symbols, key.stack));
            self.add(waiter, [values[0], values[1], 0, 0], "waiter");
            let holder = self.stack(process, symbols, key.holder_stack);
            if !holder.is_empty() {
                self.add(holder, [0, 0, values[0], values[1]], "holder");
            }
        }
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
        compressed.write_all(&self.profile.encode_to_vec())?;
        compressed.finish()
    }

    fn string(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let number = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    fn add(&mut self, location_id: Vec<u64>, values: [i64; 4], side: &str) {
        let label = Label { key: self.string("side"), str: self.string(side) };
        self.profile.sample.push(Sample {
            location_id,
            value: values.to_vec(),
            label: vec![label],
        });
    }

    /// The locations of a stack, the innermost first.
    fn stack(&mut self, process: &Process, symbols: &mut Symbols<'_>, stack: u32) -> Vec<u64> {
        let addresses = addresses(process, symbols, stack);
        addresses.iter().map(|&address| self.location(symbols, address)).collect()
    }

    fn location(&mut self, symbols: &mut Symbols<'_>, address: u64) -> u64 {
        if let Some(&known) = self.addresses.get(&address) {
            return known;
        }
        let mapping = symbols.mapping(address);
        let mapping_id = mapping.map_or(0, |it| self.mapping(it, symbols.has_file(it)));
        let frames = symbols.frames(address).to_vec();
        let line = frames.iter().map(|frame| self.line(frame)).collect();
        let id = self.push(Location { id: 0, mapping_id, address, line });
        self.addresses.insert(address, id);
        id
    }

    /// A frame that is no place in the code.
    fn kind(&mut self, name: &str) -> u64 {
        if let Some(&known) = self.kinds.get(name) {
            return known;
        }
        let line = vec![Line { function_id: self.function(name, ""), line: 0 }];
        let id = self.push(Location { line, ..Location::default() });
        self.kinds.insert(name.to_owned(), id);
        id
    }

    fn push(&mut self, location: Location) -> u64 {
        let id = self.profile.location.len() as u64 + 1;
        self.profile.location.push(Location { id, ..location });
        id
    }

    fn line(&mut self, frame: &Frame) -> Line {
        let (file, line) = frame.line.clone().unwrap_or_else(|| (frame.module.clone(), 0));
        Line { function_id: self.function(&frame.function, &file), line: line.into() }
    }

    fn mapping(&mut self, mapping: &read::Mapping, has_file: bool) -> u64 {
        if let Some(&known) = self.mappings.get(&mapping.start) {
            return known;
        }
        let id = self.profile.mapping.len() as u64 + 1;
        let filename = self.string(&mapping.file.to_string_lossy());
        let build_id = self.string(&hex(&mapping.build_id));
        self.profile.mapping.push(Mapping {
            id,
            memory_start: mapping.start,
            memory_limit: mapping.end,
            file_offset: mapping.offset,
            filename,
            build_id,
            has_functions: has_file,
            has_filenames: has_file,
            has_line_numbers: has_file,
            has_inline_frames: has_file,
        });
        self.mappings.insert(mapping.start, id);
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let (name, filename) = (self.string(name), self.string(file));
        if let Some(&known) = self.functions.get(&(name, filename)) {
            return known;
        }
        let id = self.profile.function.len() as u64 + 1;
        self.profile.function.push(Function { id, name, system_name: name, filename });
        self.functions.insert((name, filename), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use std::io::Read as _;
    use std::rc::Rc;

    #[test]
    fn what_is_written_can_be_read_and_nothing_is_in_it_twice() {
        let mut process = crate::sites::tests::process();
        process.began_realtime = 77;
        process.maps = vec![read::Mapping {
            start: 0x10,
            end: 0x28,
            offset: 0,
            file: "/no/such".into(),
            build_id: vec![0xab, 1],
        }];
        let profiles = [Profile::of(process)];
        let bytes = pprof(&mut Recording::new(&profiles, &Rc::default())).unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        let profile = PprofProfile::decode(&plain[..]).unwrap();
        assert_eq!(profile.time_nanos, 77);
        let name = |number: i64| &profile.string_table[number as usize];
        let types: Vec<String> = profile
            .sample_type
            .iter()
            .map(|it| format!("{}/{}", name(it.kind), name(it.unit)))
            .collect();
        assert_eq!(
            types,
            [
                "contentions/count",
                "delay/nanoseconds",
                "holder_contentions/count",
                "holder_delay/nanoseconds"
            ]
        );
        let mut strings = profile.string_table.clone();
        strings.sort();
        strings.dedup();
        assert_eq!(strings.len(), profile.string_table.len());
        let sums: Vec<i64> =
            (0..4).map(|n| profile.sample.iter().map(|sample| sample.value[n]).sum()).collect();
        assert_eq!(sums, [3, 600, 2, 500]);
        // The address 0x10 is a return address, so its call is in front of the mapping.
        let [mapping] = &profile.mapping[..] else { panic!("{:?}", profile.mapping) };
        assert_eq!((mapping.id, mapping.memory_start, mapping.has_functions), (1, 0x10, false));
        assert_eq!(
            (name(mapping.filename).as_str(), name(mapping.build_id).as_str()),
            ("/no/such", "ab01")
        );
        let inside: Vec<u64> =
            profile.location.iter().filter(|it| it.mapping_id == 1).map(|it| it.address).collect();
        assert_eq!(inside, [0x20]);
        for sample in &profile.sample {
            for id in &sample.location_id {
                let location = &profile.location[*id as usize - 1];
                assert_eq!(location.id, *id);
                let function = &profile.function[location.line[0].function_id as usize - 1];
                assert!(!name(function.name).is_empty());
            }
        }
    }
}
