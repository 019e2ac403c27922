//! pprof's `profile.proto`, compressed, with the sample types of Go's mutex profile:
//! `contentions/count` and `delay/nanoseconds`. `go tool pprof`, Pyroscope and Parca read it.
//!
//! Each site has two samples, which a label tells apart: `side: waiter` with the stack that waited,
//! and `side: releaser` with the stack that released the lock, as in Go. So that nothing counts
//! twice, the releaser's delay is in sample types of its own (`released/count`,
//! `released/nanoseconds`).

use super::{frames, object};
use crate::read::Process;
use crate::sites::{Key, Site, sites};
use crate::symbols::{Frame, Symbols};
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use std::collections::HashMap;
use std::io::{self, Write as _};

// The messages of google/pprof's proto/profile.proto that are used here.

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
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
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
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

/// What one process contributes to a profile.
#[derive(Debug)]
pub struct Part<'a, 'b> {
    /// The process, with its stacks.
    pub process: &'a Process,
    /// Its symbols.
    pub symbols: &'a mut Symbols<'b>,
    /// Its sites. Those that are no locks are left out.
    pub sites: Vec<(Key, Site)>,
}

/// The waits for locks of all processes.
///
/// # Errors
/// The compression fails.
pub fn pprof(processes: &[Process]) -> io::Result<Vec<u8>> {
    let mut symbols: Vec<Symbols<'_>> = processes.iter().map(Symbols::of).collect();
    pprof_of(processes.iter().zip(&mut symbols).map(|(process, symbols)| Part {
        process,
        symbols,
        sites: sites(process),
    }))
}

/// The same, of sites that are known already.
///
/// # Errors
/// The compression fails.
pub fn pprof_of<'a, 'b: 'a>(parts: impl Iterator<Item = Part<'a, 'b>>) -> io::Result<Vec<u8>> {
    let mut building = Building::default();
    building.string("");
    for (kind, unit) in [
        ("contentions", "count"),
        ("delay", "nanoseconds"),
        ("released", "count"),
        ("released", "nanoseconds"),
    ] {
        let value = ValueType { kind: building.string(kind), unit: building.string(unit) };
        building.profile.sample_type.push(value);
    }
    building.profile.default_sample_type = building.string("delay");
    for Part { process, symbols, sites } in parts {
        if building.profile.time_nanos == 0 {
            building.profile.time_nanos = process.began_realtime as i64;
        }
        for (key, site) in sites.into_iter().filter(|(key, _)| key.object.is_lock()) {
            let values = [site.count as i64, site.nanoseconds as i64];
            let mut waiter = frames(process, symbols, key.stack);
            let kind = Frame { function: object(&key), line: None, module: String::new() };
            waiter.insert(0, kind);
            building.add(&waiter, [values[0], values[1], 0, 0], "waiter");
            let releaser = frames(process, symbols, key.holder_stack);
            if !releaser.is_empty() {
                building.add(&releaser, [0, 0, values[0], values[1]], "releaser");
            }
        }
    }
    let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
    compressed.write_all(&building.profile.encode_to_vec())?;
    compressed.finish()
}

/// A profile in the making: what is in it already, by contents.
#[derive(Default)]
struct Building {
    profile: Profile,
    strings: HashMap<String, i64>,
    functions: HashMap<(String, String), u64>,
    locations: HashMap<Frame, u64>,
}

impl Building {
    fn string(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let number = self.profile.string_table.len() as i64;
        self.profile.string_table.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    fn add(&mut self, frames: &[Frame], values: [i64; 4], side: &str) {
        let location_id = frames.iter().map(|frame| self.location(frame)).collect();
        let label = Label { key: self.string("side"), str: self.string(side) };
        self.profile.sample.push(Sample {
            location_id,
            value: values.to_vec(),
            label: vec![label],
        });
    }

    fn location(&mut self, frame: &Frame) -> u64 {
        if let Some(&known) = self.locations.get(frame) {
            return known;
        }
        let (file, line) = frame.line.clone().unwrap_or_else(|| (frame.module.clone(), 0));
        let function_id = self.function(&frame.function, &file);
        let id = self.profile.location.len() as u64 + 1;
        let line = vec![Line { function_id, line: line.into() }];
        self.profile.location.push(Location { id, line });
        self.locations.insert(frame.clone(), id);
        id
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (name.to_owned(), file.to_owned());
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let id = self.profile.function.len() as u64 + 1;
        let name = self.string(name);
        let filename = self.string(file);
        self.profile.function.push(Function { id, name, system_name: name, filename });
        self.functions.insert(key, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn what_is_written_can_be_read_and_nothing_is_in_it_twice() {
        let mut process = crate::sites::tests::process();
        process.began_realtime = 77;
        let bytes = pprof(&[process]).unwrap();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
        let profile = Profile::decode(&plain[..]).unwrap();
        assert_eq!(profile.time_nanos, 77);
        let name = |number: i64| &profile.string_table[number as usize];
        let types: Vec<String> = profile
            .sample_type
            .iter()
            .map(|it| format!("{}/{}", name(it.kind), name(it.unit)))
            .collect();
        assert_eq!(types[..2], ["contentions/count", "delay/nanoseconds"]);
        let mut strings = profile.string_table.clone();
        strings.sort();
        strings.dedup();
        assert_eq!(strings.len(), profile.string_table.len());
        let sums: Vec<i64> =
            (0..4).map(|n| profile.sample.iter().map(|sample| sample.value[n]).sum()).collect();
        assert_eq!(sums, [3, 600, 2, 500]);
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
