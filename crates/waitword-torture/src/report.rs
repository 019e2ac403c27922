//! Who waits on what, as text: threads by role, words by name, what they hold and what is expected of them, who has the
//! lock that is waited for, and what the kernel says that each thread does.

use crate::board::{Doing, Entry};
use crate::child::VARIABLE;
use crate::context::{Context, NamedObject};
use crate::spot::Spot;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use waitword::table::{self, Waiter};

/// So many lines of each kind; of the rest only the number is given.
const LINES: usize = 40;

/// The report of the watchdog, headed by what has happened.
pub(crate) fn who_waits_on_what(context: &Context, head: &str) -> String {
    let mut text = format!(
        "\n=== torture: {head} in scenario `{}`, round {}, seed {} ===\n",
        context.scenario,
        context.round.load(SeqCst).saturating_sub(1),
        context.seed,
    );
    let entries: Vec<_> = context.board.entries().collect();
    // A thread may have panicked with the names; they are still good.
    let words = match context.words.try_lock() {
        Ok(words) => words.clone(),
        Err(_) => Vec::new(),
    };
    write_table(&mut text, &words, &entries);
    write_threads(&mut text, &words, &entries);
    write_words(&mut text, &words, &entries);
    if let Ok(objects) = context.objects.try_lock() {
        write_objects(&mut text, &words, &objects, &entries);
    }
    write_settings(&mut text);
    let _ = writeln!(text, "counts: {}", context.totals());
    text
}

fn name_of(words: &[(String, Spot)], number: u32) -> &str {
    let index = (number as usize).wrapping_sub(1);
    words.get(index).map_or("an unnamed word", |(name, _)| name)
}

/// A word by name, with its address and what it holds.
fn described(words: &[(String, Spot)], number: u32) -> String {
    let index = (number as usize).wrapping_sub(1);
    words
        .get(index)
        .map_or("an unnamed word".to_owned(), |(name, spot)| {
            let (address, value) = (spot.word.address(), spot.word.load());
            format!("{name} at {address:#x}, which holds {value:#x}")
        })
}

/// The library's own table: where each waiter of this process stands.
fn write_table(text: &mut String, words: &[(String, Spot)], entries: &[Entry]) {
    let mut waiters = vec![Waiter::default(); 4096];
    let snapshot = table::snapshot(&mut waiters);
    waiters.truncate(snapshot.waiters);
    let _ = writeln!(
        text,
        "the table: {} waiters, {} locked buckets, {} buckets in all",
        snapshot.waiters,
        snapshot.locked_buckets,
        table::buckets()
    );
    let names: BTreeMap<usize, &str> = words
        .iter()
        .map(|(name, spot)| (spot.word.address(), name.as_str()))
        .collect();
    let here = std::process::id();
    let threads: BTreeMap<usize, &str> = entries
        .iter()
        .filter(|entry| entry.process == here)
        .map(|entry| (entry.handle, entry.name.as_str()))
        .collect();
    let lines = waiters.iter().map(|waiter| {
        format!(
            "{} ({:#x}) stands at {} ({:#x}), mask {:#x}",
            threads.get(&waiter.thread).unwrap_or(&"an unknown thread"),
            waiter.thread,
            names.get(&waiter.address).unwrap_or(&"an unnamed word"),
            waiter.address,
            waiter.mask,
        )
    });
    write_lines(text, lines);
}

/// The board: what each thread is about.
fn write_threads(text: &mut String, words: &[(String, Spot)], entries: &[Entry]) {
    let _ = writeln!(text, "threads: {}", entries.len());
    let lines = entries.iter().map(|entry| {
        let word = described(words, entry.word);
        let about = match entry.doing {
            Doing::Other => "does something else".to_owned(),
            Doing::Waiting => format!("waits on {word}, expecting {:#x}", entry.expected),
            Doing::WaitingUntil => {
                format!(
                    "waits, with a deadline, on {word}, expecting {:#x}",
                    entry.expected
                )
            }
            Doing::WaitingAny => format!("waits on several words, the first being {word}"),
            Doing::Waking => format!("is in a wake of {word}"),
            Doing::Requeueing => format!("is in a requeue from {word}"),
        };
        let held: Vec<_> = (entry.held.iter())
            .map(|&number| name_of(words, number))
            .collect();
        let holding = match &held[..] {
            [] => String::new(),
            _ => format!(", holding {}", held.join(" and ")),
        };
        let holder = match entry.doing {
            Doing::Waiting | Doing::WaitingUntil => holder_of(entry.word, entries),
            _ => String::new(),
        };
        format!(
            "{} (process {}, thread {}, {}) {about}{holder}{holding}",
            entry.name,
            entry.process,
            entry.thread,
            in_kernel(entry),
        )
    });
    write_lines(text, lines);
}

/// Who has the lock that is waited for, and what he is about.
fn holder_of(word: u32, entries: &[Entry]) -> String {
    let holders = entries.iter().filter(|entry| entry.held.contains(&word));
    let holders: Vec<_> = holders
        .map(|holder| format!("{} (thread {})", holder.name, holder.thread))
        .collect();
    match &holders[..] {
        [] => String::new(),
        _ => format!(", held by {}", holders.join(" and ")),
    }
}

/// The kernel's word for what a thread is doing, and where in the kernel it does that, if it may be read.
fn in_kernel(entry: &Entry) -> String {
    let read = |name| {
        let path = format!("/proc/{}/task/{}/{name}", entry.process, entry.thread);
        std::fs::read_to_string(path)
    };
    let Ok(status) = read("status") else {
        return "gone".to_owned();
    };
    let state = (status.lines().find_map(|line| line.strip_prefix("State:"))).unwrap_or_default();
    let place = read("wchan").unwrap_or_default();
    match place.trim() {
        "" | "0" => state.trim().to_owned(),
        place => format!("{} in {place}", state.trim()),
    }
}

fn write_words(text: &mut String, words: &[(String, Spot)], entries: &[Entry]) {
    let _ = writeln!(text, "words:");
    let mut lines: Vec<_> = words
        .iter()
        .map(|(name, spot)| {
            let about = |entry: &&Entry| entry.word == spot.number && entry.doing != Doing::Other;
            let threads = entries.iter().filter(about).count();
            (
                threads,
                format!(
                    "{name} holds {:#x}; {threads} threads are about it",
                    spot.word.load()
                ),
            )
        })
        .collect();
    lines.sort_by_key(|(threads, _)| std::cmp::Reverse(*threads));
    write_lines(text, lines.into_iter().map(|(_, line)| line));
}

/// The objects that threads are about or hold: where they lie, what lies there, who holds them.
fn write_objects(
    text: &mut String,
    words: &[(String, Spot)],
    objects: &[NamedObject],
    entries: &[Entry],
) {
    let lines: Vec<_> = objects
        .iter()
        .filter_map(|object| {
            let about = |entry: &&Entry| entry.word == object.number && entry.doing != Doing::Other;
            let threads = entries.iter().filter(about).count();
            let holder = object.holder.load(Relaxed);
            if threads == 0 && holder == 0 {
                return None;
            }
            let held = match entries.iter().find(|entry| entry.handle == holder) {
                _ if holder == 0 => "held by nobody".to_owned(),
                Some(entry) => format!("held by {} ({holder:#x})", entry.name),
                None => format!("held by a thread that is gone ({holder:#x})"),
            };
            let name = name_of(words, object.number);
            let bytes = hex(object);
            let address = object.address;
            Some(format!(
                "{name} at {address:#x}: {held}; {threads} threads are about it; {bytes}"
            ))
        })
        .collect();
    if !objects.is_empty() {
        let _ = writeln!(text, "objects:");
        write_lines(text, lines.into_iter());
    }
}

/// An object's first words.
fn hex(object: &NamedObject) -> String {
    let words = object.bytes.min(48) / size_of::<u32>();
    let first = std::ptr::with_exposed_provenance::<AtomicU32>(object.address);
    // SAFETY: objects are never freed; whatever lies there, it may be looked at by atomics.
    let words = unsafe { std::slice::from_raw_parts(first, words) };
    let words = words
        .iter()
        .map(|word| format!("{:08x}", word.load(Relaxed)));
    words.collect::<Vec<_>>().join(" ")
}

/// What this process was told about waitword in its environment.
fn write_settings(text: &mut String) {
    let settings = std::env::vars().filter(|(name, _)| {
        name == crate::drop_in::PRELOAD || name.starts_with("WAITWORD") && name != VARIABLE
    });
    for (name, value) in settings {
        let _ = writeln!(text, "environment: {name}={value}");
    }
}

fn write_lines(text: &mut String, lines: impl ExactSizeIterator<Item = String>) {
    let beyond = lines.len().saturating_sub(LINES);
    for line in lines.take(LINES) {
        let _ = writeln!(text, "  {line}");
    }
    if beyond > 0 {
        let _ = writeln!(text, "  ... and {beyond} more");
    }
}
