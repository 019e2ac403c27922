//! A recording as JSON, for scripts. `docs/profile-json.md` describes it, and
//! `profile.schema.json` is its schema.
//!
//! It is written piece by piece: the frames of all sites together can be large.

use super::{Recording, frames};
use crate::calls;
use crate::locks::{Lock, shortest};
use crate::longest::Listed;
use crate::profile::Profile;
use crate::sites::{Key, Site};
use crate::symbols::{Frame, Symbols, files::hex};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use waitword_record::format::{Causes, Ended, Object};

/// The version of what is written. It changes when a field is removed or gets another meaning.
pub const FORMAT: u32 = 2;
/// The schema, as JSON.
pub const SCHEMA: &str = include_str!("../../profile.schema.json");
/// More threads of an object are not listed.
const THREADS: usize = 100;
/// More waits of those that took longest are not listed.
const WAITS: usize = 100;

/// Writes all processes of a recording.
///
/// # Errors
/// Those of the writer.
pub fn json(recording: &mut Recording<'_>, to: &mut impl Write) -> io::Result<()> {
    write!(to, "{{\"format\":{FORMAT},\"processes\":[")?;
    for (number, (profile, symbols)) in recording.processes.iter_mut().enumerate() {
        to.write_all(if number == 0 { b"" } else { b"," })?;
        process(profile, symbols, to)?;
    }
    to.write_all(b"]}\n")
}

fn process(profile: &Profile, symbols: &mut Symbols<'_>, to: &mut impl Write) -> io::Result<()> {
    let process = &profile.process;
    let (lock_ns, work_ns) = profile.totals();
    let head = json!({
        "pid": process.pid,
        "began_realtime_ns": process.began_realtime,
        "threshold_ns": process.threshold,
        "causes": process.causes.map(|causes| match causes {
            Causes::Switches => "switches",
            Causes::Sums => "sums",
            Causes::Unknown => "unknown",
        }),
        "lost": process.lost,
        "lock_ns": lock_ns,
        "work_ns": work_ns,
        "modules": modules(profile, symbols),
        "longest_left_out": profile.left_out.saturating_add(
            profile.longest.len().saturating_sub(WAITS) as u64,
        ),
        "locks_left_out": {
            "count": profile.rest.count,
            "ns": profile.rest.nanoseconds,
        },
    });
    // An object without its closing brace: the lists follow.
    let head = head.to_string();
    to.write_all(&head.as_bytes()[..head.len() - 1])?;
    list(to, "sites", &profile.sites, |(key, it)| site(profile, symbols, key, it))?;
    list(to, "locks", &profile.objects, |lock| object(profile, symbols, lock))?;
    let longest = &profile.longest[..profile.longest.len().min(WAITS)];
    list(to, "longest", longest, |listed| wait(profile, symbols, listed))?;
    to.write_all(b"}")
}

fn list<T>(
    to: &mut impl Write,
    name: &str,
    all: &[T],
    mut value: impl FnMut(&T) -> Value,
) -> io::Result<()> {
    write!(to, ",\"{name}\":[")?;
    for (number, one) in all.iter().enumerate() {
        to.write_all(if number == 0 { b"" } else { b"," })?;
        serde_json::to_writer(&mut *to, &value(one))?;
    }
    to.write_all(b"]")
}

fn modules(profile: &Profile, symbols: &Symbols<'_>) -> Vec<Value> {
    let maps = profile.process.maps.iter().filter(|mapping| mapping.file.is_absolute());
    maps.map(|mapping| {
        json!({
            "file": mapping.file.to_string_lossy(),
            "start": address(mapping.start),
            "end": address(mapping.end),
            "offset": mapping.offset,
            "build_id": Some(hex(&mapping.build_id)).filter(|id| !id.is_empty()),
            "has_file": symbols.has_file(mapping),
        })
    })
    .collect()
}

fn site(profile: &Profile, symbols: &mut Symbols<'_>, key: &Key, site: &Site) -> Value {
    let mut value = sums(site);
    value.insert("object".to_owned(), name(key.object));
    value.insert("is_lock".to_owned(), key.object.is_lock().into());
    value.insert("objects".to_owned(), site.objects.into());
    value.insert("threads".to_owned(), site.threads.into());
    value.insert("waiter".to_owned(), stack(profile, symbols, key.stack));
    value.insert("releaser".to_owned(), stack(profile, symbols, key.holder_stack));
    value.into()
}

fn object(profile: &Profile, symbols: &mut Symbols<'_>, lock: &Lock) -> Value {
    let (waiter, releaser) = lock.stacks.first().map_or((0, 0), |(stacks, _)| stacks);
    let buckets = lock.histogram.iter().enumerate().filter(|(_, count)| **count > 0);
    let buckets: Vec<Value> = buckets
        .map(|(bucket, count)| {
            json!({
                "from_ns": shortest(bucket),
                "to_ns": shortest(bucket + 1),
                "count": count,
            })
        })
        .collect();
    let shares = lock.threads.iter().take(THREADS).map(|(number, share)| {
        let mut value = thread(profile, *number);
        value["count"] = share.count.into();
        value["ns"] = share.nanoseconds.into();
        value
    });
    let mut value = sums(&lock.sum);
    let more = json!({
        "object": name(lock.key.object),
        "is_lock": lock.key.object.is_lock(),
        "address": address(lock.key.address),
        "p50_ns": lock.quantile(0.5),
        "p90_ns": lock.quantile(0.9),
        "p99_ns": lock.quantile(0.99),
        "histogram": buckets,
        "fairness": lock.fairness(),
        "threads": lock.threads.len(),
        "waiters": shares.collect::<Vec<_>>(),
        "holder": lock.holders.first().map(|(holder, _)| thread(profile, holder)),
        "waiter": stack(profile, symbols, waiter),
        "releaser": stack(profile, symbols, releaser),
    });
    if let Value::Object(more) = more {
        value.extend(more);
    }
    value.into()
}

/// What the waits of a site and those for a lock have in common.
fn sums(site: &Site) -> Map<String, Value> {
    let value = json!({
        "count": site.count,
        "ns": site.nanoseconds,
        "longest_ns": site.longest,
        "timed_out": site.timed_out,
        "broken": site.broken,
        "handed_over": site.handed_over,
        "in_vain": site.in_vain,
        "passed": site.passed,
        "holder_running_ns": site.running,
        "holder_preempted_ns": site.preempted,
        "holder_asleep_ns": site.asleep,
        "holder_call": site.calls.first().and_then(|(call, _)| calls::name(call)),
        "next": site.next.first().map(|(next, _)| address(next)),
    });
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn wait(profile: &Profile, symbols: &mut Symbols<'_>, listed: &Listed) -> Value {
    let wait = &listed.wait;
    let known = |number: u32| (number != 0).then(|| thread(profile, number));
    json!({
        "object": wait.object().map(name),
        "address": address(wait.address),
        "thread": thread(profile, listed.thread),
        "began_ns": wait.began.saturating_sub(profile.process.began),
        "ns": wait.took,
        "ended": ended(wait.ended),
        "stands_for": crate::sites::weight(wait),
        "holder": known(wait.holder),
        "waker": known(wait.waker),
        "in_vain": wait.in_vain,
        "passed": wait.passed,
        "holder_running_permille": wait.running.min(1000),
        "holder_preempted_permille": wait.preempted.min(1000),
        "holder_asleep_permille": wait.asleep.min(1000),
        "holder_call": calls::name(wait.call),
        "next": (wait.next != 0).then(|| address(wait.next)),
        "waiter": stack(profile, symbols, wait.stack),
        "releaser": stack(profile, symbols, wait.holder_stack),
    })
}

/// How a wait ended, in words.
pub(crate) fn ended(number: u8) -> &'static str {
    match number {
        ended if ended == Ended::Got as u8 => "got",
        ended if ended == Ended::TimedOut as u8 => "timed out",
        ended if ended == Ended::HandedOver as u8 => "handed over",
        _ => "broken",
    }
}

fn thread(profile: &Profile, number: u32) -> Value {
    json!({ "tid": number, "name": profile.process.threads.get(&number) })
}

fn name(object: Object) -> Value {
    format!("{object:?}").into()
}

fn address(address: u64) -> String {
    format!("{address:#x}")
}

fn stack(profile: &Profile, symbols: &mut Symbols<'_>, stack: u32) -> Value {
    frames(&profile.process, symbols, stack).iter().map(frame).collect()
}

/// A function of a stack.
pub(crate) fn frame(frame: &Frame) -> Value {
    let (file, line) = frame.line.clone().unzip();
    json!({
        "function": frame.function,
        "file": file,
        "line": line,
        "module": frame.module,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    /// What is written for the process of the other tests.
    fn written() -> Value {
        let mut process = crate::sites::tests::process();
        process.causes = Some(Causes::Switches);
        process.threads.insert(1, "a \"name\"".to_owned());
        process.waits[0].1.call = 1;
        (process.waits[1].1.holder, process.waits[1].1.next) = (1, 0x9000);
        let maps =
            "10-30 r-xp 0 0:0 1 /no/such\n# build-id ab /no/such\n40-50 r-xp 0 0:0 0 [vdso]\n";
        process.maps = crate::read::mappings(maps);
        let profiles = [Profile::of(process), Profile::default()];
        let mut bytes = Vec::new();
        json(&mut Recording::new(&profiles, &Rc::default()), &mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    fn validate(value: &Value) -> Result<(), String> {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler.add_resource("profile.schema.json", schema).unwrap();
        let index = compiler.compile("profile.schema.json", &mut schemas).unwrap();
        schemas.validate(value, index).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_as_the_schema_says() {
        let value = written();
        validate(&value).unwrap_or_else(|error| panic!("{error}\n{value:#}"));
        let process = &value["processes"][0];
        let mutex = &process["locks"][1];
        assert_eq!((&mutex["ns"], &mutex["address"]), (&json!(500), &json!("0x7000")));
        assert_eq!(mutex["holder"], json!({ "tid": 1, "name": "a \"name\"" }));
        assert_eq!(mutex["waiters"][0], json!({ "tid": 2, "name": null, "count": 1, "ns": 300 }));
        assert_eq!((&mutex["holder_call"], &mutex["next"]), (&json!("read"), &json!("0x9000")));
        assert_eq!(
            mutex["histogram"],
            json!([
                { "from_ns": 192, "to_ns": 224, "count": 1 },
                { "from_ns": 256, "to_ns": 320, "count": 1 },
            ])
        );
        assert_eq!(process["longest"].as_array().unwrap().len(), 3, "locks only");
        assert_eq!(process["modules"][0]["build_id"], "ab");
        assert_eq!(process["modules"].as_array().unwrap().len(), 1);
        assert_eq!(process["sites"][1]["waiter"][1]["function"], "such+0x10");
    }

    /// So that the schema is not one that everything satisfies.
    #[test]
    fn a_field_more_or_less_or_of_another_type_is_not() {
        let whole = written();
        let places = [
            "",
            "/processes/0",
            "/processes/0/sites/0",
            "/processes/0/locks/1",
            "/processes/0/locks/1/waiters/0",
            "/processes/0/longest/0",
            "/processes/0/modules/0",
            "/processes/0/sites/1/waiter/0",
        ];
        for place in places {
            let fields = whole.pointer(place).unwrap().as_object().unwrap();
            for name in fields.keys() {
                let mut other = whole.clone();
                other.pointer_mut(place).unwrap()[name] = json!({ "no": "such" });
                assert!(validate(&other).is_err(), "{place}/{name}");
                let mut less = whole.clone();
                less.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name);
                assert!(validate(&less).is_err(), "{place} without {name}");
            }
            let mut more = whole.clone();
            more.pointer_mut(place).unwrap()["more"] = json!(1);
            assert!(validate(&more).is_err(), "{place} with more");
        }
    }
}
