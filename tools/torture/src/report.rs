//! Which thread waits for what, as text: each thread, what the kernel says that it is doing, the
//! word or object that it waits for, what that holds, and which threads hold it.

use crate::board::{Doing, Entry};
use crate::context::{Context, NamedObject};
use crate::protocol::VARIABLE;
use crate::spot::Spot;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
};
use waitword::table::{self, Waiter};

/// The report of the watchdog. Its first line is `head`: what has happened.
pub(crate) fn waits(context: &Context, head: &str) -> String {
    let mut report = Report::new(context, head);
    report.write_threads();
    report.write_words();
    match context.slice.drop_in {
        None => report.write_table(),
        Some(_) => report.line("the drop-in's table cannot be inspected from here"),
    }
    report.write_settings();
    report.line(&format!("counts: {}", context.totals()));
    report.text
}

struct Report {
    text: String,
    /// Waiting threads come first.
    entries: Vec<Entry>,
    words: Vec<(String, Spot)>,
    objects: Vec<NamedObject>,
}

impl Report {
    fn new(context: &Context, head: &str) -> Self {
        let text = format!(
            "\n=== torture: {head} in scenario `{}`, round {}, seed {} ===\n",
            context.slice.scenario,
            context.round.load(SeqCst).saturating_sub(1),
            context.seed,
        );
        let mut entries: Vec<_> = context.board.entries().collect();
        // By role and number.
        entries.sort_by_key(|entry| {
            let name = &entry.name;
            (entry.doing == Doing::Other, name.len(), name.clone())
        });
        // A thread may be naming one right now, and never finish.
        let words = context.words.try_lock().map(|words| words.clone());
        let objects = context.objects.try_lock().map(|objects| objects.clone());
        Self {
            text,
            entries,
            words: words.unwrap_or_default(),
            objects: objects.unwrap_or_default(),
        }
    }

    fn line(&mut self, line: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn word(&self, number: u32) -> Option<&(String, Spot)> {
        self.words.get((number as usize).wrapping_sub(1))
    }

    fn name(&self, number: u32) -> &str {
        self.word(number).map_or("an unnamed word", |(name, _)| name)
    }

    /// A word or object by name, with its address and what it holds.
    fn described(&self, number: u32) -> String {
        self.word(number).map_or("an unnamed word".to_owned(), |(name, spot)| {
            let (address, value) = (spot.word.address(), spot.word.load());
            format!("{name}, at {address:#x}, which holds {value:#x}")
        })
    }

    /// The threads that hold it.
    fn holders(&self, word: u32) -> Option<String> {
        let holders = self.entries.iter().filter(|entry| entry.held.contains(&word));
        let names: Vec<_> =
            holders.map(|entry| format!("{} (thread {})", entry.name, entry.thread)).collect();
        (!names.is_empty()).then(|| format!("held by {}", names.join(" and ")))
    }

    /// Each thread, what it is doing, and what it holds.
    fn write_threads(&mut self) {
        let lines: Vec<_> = self.entries.iter().map(|entry| self.thread(entry)).collect();
        self.line(&format!("threads: {}", lines.len()));
        lines.iter().for_each(|line| self.line(&format!("  {line}")));
    }

    fn thread(&self, entry: &Entry) -> String {
        let word = self.described(entry.word);
        let seen = entry.seen;
        let about = match entry.doing {
            Doing::Other => "is doing something else".to_owned(),
            Doing::Waiting => format!("waits on {word}, expecting {seen:#x}"),
            Doing::WaitingUntil => {
                format!("waits, with a deadline, on {word}, expecting {seen:#x}")
            }
            Doing::WaitingAny => {
                let others = entry.others.iter().map(|&other| self.described(other));
                let all: Vec<_> = std::iter::once(word).chain(others).collect();
                format!("waits on any of {}, expecting {seen:#x}", all.join("; "))
            }
            Doing::Waking => format!("is in a wake of {word}"),
            Doing::Requeueing => format!("is in a requeue from {word}"),
            Doing::Entering => format!("waits for {word} ({seen:#x} when called)"),
            Doing::EnteringUntil => {
                format!("waits, with a deadline, for {word} ({seen:#x} when called)")
            }
            Doing::Keeping => "keeps what it holds, forever (sabotage)".to_owned(),
        };
        let waits_for_holder = matches!(entry.doing, Doing::Entering | Doing::EnteringUntil);
        let holders = self.holders(entry.word).filter(|_| waits_for_holder);
        let mut held: Vec<_> = entry.held.iter().map(|&word| self.name(word)).collect();
        held.dedup();
        let holding = (!held.is_empty()).then(|| format!("it holds {}", held.join(" and ")));
        let rest: String =
            [holders, holding].into_iter().flatten().map(|part| format!("; {part}")).collect();
        format!(
            "{} (process {}, thread {}, {}) {about}{rest}",
            entry.name,
            entry.process,
            entry.thread,
            in_kernel(entry),
        )
    }

    /// The words and objects that threads use or hold. For an object of the C library, also its
    /// bytes.
    fn write_words(&mut self) {
        self.line("words and objects:");
        let mut lines = Vec::new();
        for (name, spot) in &self.words {
            let is_about = |entry: &&Entry| match entry.doing {
                Doing::Other | Doing::Keeping => false,
                Doing::WaitingAny if entry.others.contains(&spot.number) => true,
                _ => entry.word == spot.number,
            };
            let threads = self.entries.iter().filter(is_about).count();
            let holders = self.holders(spot.number);
            if threads == 0 && holders.is_none() {
                continue;
            }
            let holders = holders.map_or(String::new(), |holders| format!("; {holders}"));
            let object = (self.objects.iter()).find(|object| object.number == spot.number);
            let bytes = object.map_or(String::new(), |object| format!("; {}", hex(object)));
            let (address, value) = (spot.word.address(), spot.word.load());
            let line = format!(
                "  {name}, at {address:#x}, holds {value:#x}; threads that use it: \
                 {threads}{holders}{bytes}"
            );
            lines.push((threads, line));
        }
        lines.sort_by_key(|(threads, _)| std::cmp::Reverse(*threads));
        lines.iter().for_each(|(_, line)| self.line(line));
        let rest = self.words.len() - lines.len();
        self.line(&format!("  (and {rest} that no thread uses)"));
    }

    /// The library's own table: where each waiter of this process is queued. Waiters for
    /// process-shared objects are queued in the kernel.
    fn write_table(&mut self) {
        let mut waiters = vec![Waiter::default(); 1 << 14];
        let snapshot = table::snapshot(&mut waiters);
        waiters.truncate(snapshot.waiters);
        let here = std::process::id();
        self.line(&format!(
            "the library's table in process {here}: {} waiters, {} locked buckets, {} buckets in \
             all",
            snapshot.waiters,
            snapshot.locked_buckets,
            table::buckets()
        ));
        let names: BTreeMap<usize, &str> =
            self.words.iter().map(|(name, spot)| (spot.word.address(), name.as_str())).collect();
        let threads: BTreeMap<usize, &str> = self
            .entries
            .iter()
            .filter(|entry| entry.process == here)
            .map(|entry| (entry.handle, entry.name.as_str()))
            .collect();
        let line = |waiter: &Waiter| {
            format!(
                "  {} is queued at {} ({:#x}), mask {:#x}",
                threads.get(&waiter.thread).unwrap_or(&"an unknown thread"),
                names.get(&waiter.address).unwrap_or(&"an unnamed word"),
                waiter.address,
                waiter.mask,
            )
        };
        let lines: Vec<_> = waiters.iter().map(line).collect();
        lines.iter().for_each(|line| self.line(line));
    }

    /// The environment variables of this process that concern waitword.
    fn write_settings(&mut self) {
        let settings = std::env::vars().filter(|(name, _)| {
            name == crate::drop_in::PRELOAD || name.starts_with("WAITWORD") && name != VARIABLE
        });
        for (name, value) in settings {
            self.line(&format!("environment: {name}={value}"));
        }
    }
}

/// What the kernel says that a thread is doing, and where in the kernel, if that can be read.
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

/// An object's first bytes.
fn hex(object: &NamedObject) -> String {
    let words = object.bytes.min(48) / size_of::<u32>();
    let first = std::ptr::with_exposed_provenance::<AtomicU32>(object.address);
    // SAFETY: objects are never freed. Whatever is in one, it may be read by atomics.
    let words = unsafe { std::slice::from_raw_parts(first, words) };
    let words: Vec<_> = words.iter().map(|word| format!("{:08x}", word.load(Relaxed))).collect();
    format!("bytes {}", words.join(" "))
}
