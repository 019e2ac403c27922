//! Programs that hang: each thread's ring says what it waits for and what it holds, also once the
//! program has been killed.

use crate::programs::Hanging;
use crate::run::{Run, Way, explained, hung};
use core::mem::offset_of;
use std::collections::BTreeMap;
use waitword_profile::explain::Kind;
use waitword_record::format::{HELD_TO_READ, MOST_HELD, PAGE, RING_BYTES, Ring};

/// What a thread waits for (0: nothing), and what it holds.
#[derive(Debug, Default)]
struct Present {
    waiting: u64,
    held: Vec<u64>,
}

pub(crate) fn check(hanging: &Hanging, way: Way) {
    let (first, _) = hanging.waits_for[0];
    let run = hung(hanging.source, first, way);
    let processes = waitword_profile::read::read(&run.recording()).unwrap();
    assert_eq!((processes.len(), processes[0].lost), (1, 0), "{}", run.shown);
    let threads = present(&run);
    for (waiter, holder) in hanging.waits_for {
        let thread = |key| {
            let number = run.answer(key).expect(key) as u32;
            threads.get(&number).unwrap_or_else(|| panic!("{key}: no ring\n{}", run.shown))
        };
        let (waiter, holder) = (thread(waiter), thread(holder));
        let waits = waiter.waiting != 0 && holder.held.contains(&waiter.waiting);
        assert!(waits, "{waiter:x?} {holder:x?}\n{}", run.shown);
    }
    // A wait without an end is no record, and nothing is said of what has not been seen. (While the
    // hundred threads start, they do meet at a lock.)
    let said = explained(&run, way);
    assert!(!said.contains(&format!(" {}: ", Kind::Order)), "{said}\n{}", run.shown);
}

/// By thread, from the rings.
fn present(run: &Run) -> BTreeMap<u32, Present> {
    let files = std::fs::read_dir(run.recording()).unwrap();
    let rings = files
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "rings"))
        .expect("rings");
    let bytes = std::fs::read(rings).unwrap();
    let rings = bytes[PAGE..].chunks_exact(RING_BYTES).map(|ring| {
        let half = |at: usize| u32::from_ne_bytes(ring[at..at + 4].try_into().unwrap());
        let number = |at: usize| u64::from_ne_bytes(ring[at..at + 8].try_into().unwrap());
        let count = half(offset_of!(Ring, held_count)) as usize;
        let held = (0..count.min(MOST_HELD))
            .map(|n| number(offset_of!(Ring, held) + 8 * n) & !HELD_TO_READ)
            .collect();
        let waiting = number(offset_of!(Ring, waiting));
        (half(offset_of!(Ring, thread)), Present { waiting, held })
    });
    rings.collect()
}
