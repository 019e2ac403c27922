//! Following a recording while threads write it: every record is found once.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use waitword_profile::live::source::Source;
use waitword_profile::live::{Live, Record};
use waitword_profile::read;
use waitword_record::format::{CELLS, Ended, MAGIC, Object, PAGE, RING_BYTES, VERSION};
use waitword_record::{self as recorder, What};

/// The recorder's number of this process.
const PROCESS: u32 = 1;

fn open(directory: &Path) -> anyhow::Result<Live> {
    Live::open(Source::Directory(directory.to_owned()))
}

/// How often each address was recorded.
type Found = HashMap<u64, u32>;

fn poll(live: &mut Live, found: &mut Found) {
    let polled = live.poll(|_, _, record| {
        if let Record::Wait(wait) = record {
            *found.entry(wait.address).or_default() += 1;
        }
    });
    let polled = polled.unwrap();
    assert!(polled.is_complete);
}

/// Waits of a moment, each at an address of its own.
fn record(thread: u64, waits: core::ops::Range<u64>) {
    for n in waits {
        let address = thread << 32 | n << 4;
        let began = recorder::begin(PROCESS, Object::Semaphore, address, false).unwrap();
        recorder::end(
            PROCESS,
            began,
            &What { object: Object::Semaphore, address, ended: Ended::Got },
        );
        if n % 64 == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

#[test]
fn every_record_is_found_once_while_threads_come_and_go() {
    let _watchdog = waitword_testkit::watch();
    let place = tempfile::tempdir().unwrap();
    let mut live = open(place.path()).unwrap();
    let mut found = Found::new();
    poll(&mut live, &mut found);
    assert!(found.is_empty() && live.processes().next().is_none());
    recorder::start(PROCESS, place.path().as_os_str().as_encoded_bytes(), 0).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            // Rings pass from threads that have ended to new ones.
            for round in 0..6 {
                std::thread::scope(|scope| {
                    for thread in 0..4 {
                        let number = 1 + round * 4 + thread;
                        let waits = if thread == 0 { 9 } else { 4000 };
                        scope.spawn(move || record(number, 0..waits));
                    }
                });
            }
            is_over.store(true, Ordering::Release);
        });
        // Acquire: what was recorded before is found by the last poll, outside.
        while !is_over.load(Ordering::Acquire) {
            poll(&mut live, &mut found);
        }
    });
    poll(&mut live, &mut found);
    let processes = read::read(place.path()).unwrap();
    let mut expected = Found::new();
    for (_, wait) in &processes[0].waits {
        *expected.entry(wait.address).or_default() += 1;
    }
    assert!(expected.len() > 4 * CELLS, "{}", expected.len());
    assert!(expected.values().all(|&count| count == 1));
    assert!(found == expected, "{} of {}", found.len(), expected.len());
    let process = live.processes().next().unwrap();
    assert_eq!((process.recorded.lost, &process.recorded.stacks), (0, &processes[0].stacks));
    assert_eq!(process.recorded.maps, processes[0].maps);
    assert_eq!(process.recorded.threads, processes[0].threads);
    // The sums are those of all records, and the functions have names.
    let total: u64 = processes[0].waits.iter().map(|(_, it)| it.took << it.weight_shift).sum();
    let all = live.rates().sites(None);
    assert_eq!(
        all.values().chain([&live.rates().others()]).map(|it| it.nanoseconds).sum::<u64>(),
        total
    );
    // Not each of them: on a busy machine, a walk may end where another thread has not finished
    // reading the module's table.
    let (id, stacks) = (process.id, process.recorded.stacks.keys().copied().collect::<Vec<_>>());
    let is_named =
        |stack: &u32| live.frames(id, *stack).iter().any(|frame| frame.function.contains("record"));
    assert!(stacks.iter().any(is_named), "{stacks:?}");
    // Another reader, who comes later, finds the same.
    let mut later = Found::new();
    poll(&mut open(place.path()).unwrap(), &mut later);
    assert!(later == expected);
}

/// Whatever the files contain, and however they change, a poll ends.
#[test]
fn a_damaged_recording_is_followed_as_far_as_it_goes() {
    let _watchdog = waitword_testkit::watch();
    let place = tempfile::tempdir().unwrap();
    let name = |ending| place.path().join(format!("1.2.{ending}"));
    assert!(open(&place.path().join("none")).is_err());
    let mut live = open(place.path()).unwrap();
    fs::write(name("rings"), b"short").unwrap();
    let polled = live.poll(|_, _, _| ()).unwrap();
    assert!(polled.is_complete && live.processes().next().is_none() && live.problem().is_none());
    let mut bytes = vec![0; PAGE + 3 * RING_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8] = 99;
    fs::write(name("rings"), &bytes).unwrap();
    live.poll(|_, _, _| ()).unwrap();
    assert!(live.problem().unwrap().contains("another version"), "{:?}", live.problem());
    bytes[8] = VERSION as u8;
    bytes[core::mem::offset_of!(waitword_record::format::Header, rings)] = 3;
    let mut live = open(place.path()).unwrap();
    let mut random = 1_u64;
    for round in 0..200 {
        for byte in &mut bytes[PAGE..] {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            *byte = (random >> 32) as u8 & if round % 2 == 0 { 0xff } else { 0x03 };
        }
        if round % 3 == 0 {
            // Plausible counts.
            bytes[PAGE + 8..PAGE + 24].fill(0);
            bytes[PAGE + 8] = round as u8;
        }
        fs::write(name("rings"), &bytes[..bytes.len() - round]).unwrap();
        fs::write(name("records"), &bytes[PAGE + 13 * round..]).unwrap();
        fs::write(name("maps"), &bytes[PAGE..PAGE + 999]).unwrap();
        live.poll(|_, _, _| ()).unwrap();
        let (rows, _) = live.rates().rows(1_000_000_000, live.processes());
        drop(rows);
        live.pprof(None).unwrap();
    }
    assert!(live.processes().next().unwrap().recorded.lost > 0);
    // A directory, or a pipe that nobody writes, is no records file.
    fs::remove_file(name("records")).unwrap();
    fs::create_dir(name("records")).unwrap();
    // No such process exists, so it is looked at seldom.
    for _ in 0..20 {
        live.poll(|_, _, _| ()).unwrap();
    }
    assert!(live.problem().unwrap().contains("not a regular file"), "{:?}", live.problem());
}
