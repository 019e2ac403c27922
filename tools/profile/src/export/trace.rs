//! A trace for Perfetto (<https://ui.perfetto.dev>): threads are tracks, waits are slices, and an
//! arrow leads from the thread that ended a wait to the waiter.
//!
//! The messages are those of Perfetto's `perfetto_trace.proto`; names and stacks that occur often
//! are written once and then referred to. An arrow is a flow between two instants, which lie at the
//! end of the wait: one on the waker's track, one inside the waiter's slice.
//!
//! Times are those of the waits' clock. A trace has a limited number of waits: those that took
//! longest.

use super::{Recording, frames, json::ended, object};
use crate::calls;
use crate::longest::Listed;
use crate::profile::Profile;
use crate::sites::{self, Key};
use crate::symbols::Symbols;
use crate::text;
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

// The messages that are used here, and of these the fields.

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    trusted_packet_sequence_id: u32,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(uint64, repeated, tag = "3")]
    category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(fixed64, repeated, tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(double, optional, tag = "5")]
    double_value: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    pointer_value: Option<u64>,
    #[prost(uint64, optional, tag = "17")]
    string_value_iid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "1")]
    event_categories: Vec<Named>,
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<Named>,
    #[prost(message, repeated, tag = "3")]
    debug_annotation_names: Vec<Named>,
    #[prost(message, repeated, tag = "29")]
    debug_annotation_string_values: Vec<Named>,
}

/// `EventCategory`, `EventName`, `DebugAnnotationName`, `InternedString`.
#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;
/// All packets are of one sequence.
const SEQUENCE: u32 = 1;

/// Writes a trace of the longest waits of all processes: those for locks, and others. Returns how
/// many are left out.
///
/// # Errors
/// Those of the writer.
pub fn trace(recording: &mut Recording<'_>, to: &mut impl Write) -> io::Result<u64> {
    let mut writer = Writer { to, known: HashMap::new(), new: InternedData::default(), flows: 0 };
    writer.put(TracePacket { sequence_flags: Some(STATE_CLEARED), ..TracePacket::default() })?;
    let mut left_out = 0_u64;
    for (number, (profile, symbols)) in recording.processes.iter_mut().enumerate() {
        left_out = left_out.saturating_add(profile.left_out).saturating_add(profile.left_out_idle);
        let tracks = writer.tracks(number as u64, profile)?;
        for listed in profile.longest.iter().chain(&profile.longest_idle) {
            writer.wait(&tracks, profile, symbols, listed)?;
        }
    }
    Ok(left_out)
}

/// What has been written, and what the next packet refers to for the first time.
struct Writer<'a, W> {
    to: &'a mut W,
    known: HashMap<(Table, String), u64>,
    new: InternedData,
    flows: u64,
}

/// A table of names in [`InternedData`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Table {
    Categories,
    Events,
    Arguments,
    Values,
}

/// The tracks of a process's threads.
struct Tracks(u64);

impl Tracks {
    fn of(&self, thread: u32) -> u64 {
        self.0 | u64::from(thread)
    }
}

impl<W: Write> Writer<'_, W> {
    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet };
        self.to.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }

    /// Writes an event, and the names that are new in it.
    fn event(&mut self, at: u64, kind: i32, track: u64, event: TrackEvent) -> io::Result<()> {
        let new = core::mem::take(&mut self.new);
        self.put(TracePacket {
            timestamp: Some(at),
            interned_data: (new != InternedData::default()).then_some(new),
            sequence_flags: Some(NEEDS_STATE),
            track_event: Some(TrackEvent { kind: Some(kind), track_uuid: Some(track), ..event }),
            ..TracePacket::default()
        })
    }

    fn iid(&mut self, table: Table, name: &str) -> Option<u64> {
        let next = self.known.len() as u64 + 1;
        let iid = *self.known.entry((table, name.to_owned())).or_insert(next);
        if iid == next {
            let named = Named { iid: Some(iid), name: Some(name.to_owned()) };
            let names = match table {
                Table::Categories => &mut self.new.event_categories,
                Table::Events => &mut self.new.event_names,
                Table::Arguments => &mut self.new.debug_annotation_names,
                Table::Values => &mut self.new.debug_annotation_string_values,
            };
            names.push(named);
        }
        Some(iid)
    }

    /// Describes the process and each of its threads that waited or ended a wait.
    fn tracks(&mut self, number: u64, profile: &Profile) -> io::Result<Tracks> {
        // Above the threads' numbers.
        let tracks = Tracks((number + 1) << 32);
        let pid = Some(profile.process.pid as i32);
        let process = ProcessDescriptor {
            pid,
            process_name: Some(format!("process {}", profile.process.pid)),
        };
        let own = Some(tracks.of(0));
        let descriptor =
            TrackDescriptor { uuid: own, process: Some(process), ..TrackDescriptor::default() };
        self.put(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        let mut seen = HashSet::from([0]);
        for listed in profile.longest.iter().chain(&profile.longest_idle) {
            for thread in [listed.thread, listed.wait.waker] {
                if !seen.insert(thread) {
                    continue;
                }
                let descriptor = ThreadDescriptor {
                    pid,
                    tid: Some(thread as i32),
                    thread_name: profile.process.threads.get(&thread).cloned(),
                };
                let descriptor = TrackDescriptor {
                    uuid: Some(tracks.of(thread)),
                    parent_uuid: own,
                    thread: Some(descriptor),
                    ..TrackDescriptor::default()
                };
                let track_descriptor = Some(descriptor);
                self.put(TracePacket { track_descriptor, ..TracePacket::default() })?;
            }
        }
        Ok(tracks)
    }

    fn wait(
        &mut self,
        tracks: &Tracks,
        profile: &Profile,
        symbols: &mut Symbols<'_>,
        listed: &Listed,
    ) -> io::Result<()> {
        let wait = &listed.wait;
        let Some(kind) = wait.object() else {
            return Ok(());
        };
        let track = tracks.of(listed.thread);
        let end = wait.began.saturating_add(wait.took);
        let key = Key { object: kind, stack: wait.stack, holder_stack: wait.holder_stack };
        let stack = frames(&profile.process, symbols, wait.stack);
        let name = match stack.first() {
            Some(frame) => format!("{} {}", object(&key), frame.function),
            None => object(&key),
        };
        let category = if kind.is_lock() { "lock" } else { "work" };
        let event = TrackEvent {
            name_iid: self.iid(Table::Events, &name),
            category_iids: self.iid(Table::Categories, category).into_iter().collect(),
            debug_annotations: self.arguments(profile, symbols, listed),
            ..TrackEvent::default()
        };
        self.event(wait.began, SLICE_BEGIN, track, event)?;
        if wait.waker != 0 && wait.waker != listed.thread {
            self.flows += 1;
            let flow = vec![self.flows];
            let event = TrackEvent {
                name_iid: self.iid(Table::Events, "ends a wait"),
                flow_ids: flow.clone(),
                ..TrackEvent::default()
            };
            self.event(end, INSTANT, tracks.of(wait.waker), event)?;
            let event = TrackEvent {
                name_iid: self.iid(Table::Events, "goes on"),
                terminating_flow_ids: flow,
                ..TrackEvent::default()
            };
            self.event(end, INSTANT, track, event)?;
        }
        self.event(end, SLICE_END, track, TrackEvent::default())
    }

    fn arguments(
        &mut self,
        profile: &Profile,
        symbols: &mut Symbols<'_>,
        listed: &Listed,
    ) -> Vec<DebugAnnotation> {
        let wait = &listed.wait;
        let mut all = Vec::new();
        let mut add = |this: &mut Self, name: &str, value: DebugAnnotation| {
            all.push(DebugAnnotation { name_iid: this.iid(Table::Arguments, name), ..value });
        };
        let pointer = |value| DebugAnnotation { pointer_value: Some(value), ..Default::default() };
        let count = |value| DebugAnnotation { uint_value: Some(value), ..Default::default() };
        let percent = |thousandths: u16| DebugAnnotation {
            double_value: Some(f64::from(thousandths.min(1000)) / 10.0),
            ..Default::default()
        };
        add(self, "address", pointer(wait.address));
        let mut texts = vec![("ended", ended(wait.ended).to_owned())];
        let thread = |number: u32| {
            let name = profile.process.threads.get(&number).map_or("", String::as_str);
            format!("{name} {number}").trim_start().to_owned()
        };
        for (name, number) in [("holder", wait.holder), ("waker", wait.waker)] {
            if number != 0 {
                texts.push((name, thread(number)));
            }
        }
        texts.extend(calls::name(wait.call).map(|call| ("holder slept in", call)));
        let process = &profile.process;
        for (name, stack) in [("stack", wait.stack), ("holder's stack", wait.holder_stack)] {
            let frames = frames(process, symbols, stack);
            if !frames.is_empty() {
                let lines: Vec<String> = frames.iter().map(text::shown).collect();
                texts.push((name, lines.join("\n")));
            }
        }
        for (name, text) in texts {
            let string_value_iid = self.iid(Table::Values, &text);
            add(self, name, DebugAnnotation { string_value_iid, ..Default::default() });
        }
        for (name, part) in [
            ("holder ran %", wait.running),
            ("holder without a CPU %", wait.preempted),
            ("holder slept %", wait.asleep),
        ] {
            add(self, name, percent(part));
        }
        if wait.next != 0 {
            add(self, "holder waited for", pointer(wait.next));
        }
        for (name, number) in [
            ("woken in vain", u64::from(wait.in_vain)),
            ("others came first", wait.passed.into()),
            ("stands for waits", sites::weight(wait)),
        ] {
            add(self, name, count(number));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn written(profiles: &[Profile]) -> (Vec<TracePacket>, u64) {
        let mut bytes = Vec::new();
        let left_out = trace(&mut Recording::new(profiles, &Rc::default()), &mut bytes).unwrap();
        (Trace::decode(&bytes[..]).unwrap().packet, left_out)
    }

    #[test]
    fn a_wait_is_a_slice_and_an_arrow_comes_from_the_waker() {
        let mut process = crate::sites::tests::process();
        process.pid = 9;
        process.threads.insert(2, "two".to_owned());
        process.waits.truncate(2);
        process.waits[1].1.waker = 5;
        let mut profile = Profile::of(process);
        profile.left_out = 3;
        let (packets, left_out) = written(&[profile]);
        assert_eq!(left_out, 3);
        assert!(packets.iter().all(|packet| packet.trusted_packet_sequence_id == SEQUENCE));
        assert_eq!(packets[0].sequence_flags, Some(STATE_CLEARED));
        let tracks: Vec<_> = packets.iter().filter_map(|it| it.track_descriptor.clone()).collect();
        let threads: HashMap<u64, (i32, Option<String>)> = tracks
            .iter()
            .filter_map(|track| {
                let thread = track.thread.clone()?;
                assert_eq!((track.parent_uuid, thread.pid), (tracks[0].uuid, Some(9)));
                Some((track.uuid?, (thread.tid?, thread.thread_name)))
            })
            .collect();
        let mut named: Vec<_> = threads.values().cloned().collect();
        named.sort();
        assert_eq!(named, [(1, None), (2, Some("two".to_owned())), (5, None)]);

        let mut names = HashMap::new();
        let mut shown = Vec::new();
        let mut flows = Vec::new();
        for packet in &packets {
            for named in packet.interned_data.iter().flat_map(|new| &new.event_names) {
                assert!(names.insert(named.iid, named.name.clone().unwrap()).is_none());
            }
            let Some(event) = &packet.track_event else { continue };
            let name = event.name_iid.map(|iid| names[&Some(iid)].clone());
            let (tid, _) = threads[&event.track_uuid.unwrap()];
            shown.push((packet.timestamp.unwrap(), tid, event.kind.unwrap(), name));
            flows.push((event.flow_ids.clone(), event.terminating_flow_ids.clone()));
        }
        let name = |name: &str| Some(name.to_owned());
        // The longer wait first.
        assert_eq!(
            shown,
            [
                (1000, 2, SLICE_BEGIN, name("[Mutex] 0x10")),
                (1300, 5, INSTANT, name("ends a wait")),
                (1300, 2, INSTANT, name("goes on")),
                (1300, 2, SLICE_END, None),
                (1000, 1, SLICE_BEGIN, name("[Mutex] 0x10")),
                (1200, 1, SLICE_END, None),
            ]
        );
        assert_eq!(flows[1], (vec![1], vec![]));
        assert_eq!(flows[2], (vec![], vec![1]));
        assert!([0, 3, 4, 5].iter().all(|event| flows[*event] == (vec![], vec![])));
    }

    /// Each name is written before it is referred to, or in the same packet.
    #[test]
    fn every_argument_has_its_name_and_its_text() {
        let (packets, _) = written(&[Profile::of(crate::sites::tests::process())]);
        let (mut names, mut values) = (HashMap::new(), HashMap::new());
        let mut stacks = 0;
        for packet in &packets {
            for new in packet.interned_data.iter() {
                names.extend(new.debug_annotation_names.iter().map(|it| (it.iid, it.name.clone())));
                let new = new.debug_annotation_string_values.iter();
                values.extend(new.map(|it| (it.iid, it.name.clone())));
            }
            for argument in packet.track_event.iter().flat_map(|event| &event.debug_annotations) {
                let name = names[&argument.name_iid].clone().unwrap();
                if argument.string_value_iid.is_some() {
                    let text = values[&argument.string_value_iid].clone().unwrap();
                    if name == "stack" {
                        assert_eq!(text, "0x10 (?)\n0x20 (?)");
                        stacks += 1;
                    }
                }
            }
        }
        assert_eq!(stacks, 4);
        assert_eq!(written(&[]).0.len(), 1);
    }
}
