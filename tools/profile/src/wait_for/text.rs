//! The answer in the terminal. Its first line is the answer; the rest is the evidence.

use super::cycles::Finding;
use super::examine::Report;
use super::graph::{Holders, Node, Source, Wait};
use crate::symbols::{Frame, Symbols};
use crate::text::{escaped, shown, time};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use waitword_record::format::Object;

/// How many functions of a stack are shown, from the innermost on.
const FRAMES: usize = 12;
/// The modules whose innermost functions say nothing about the program.
const OURS: &str = "libwaitword_pthread";
const LIBC: &str = "libc.so";
/// How many threads that wait for the same ended holder are shown with their stacks.
const MOST_WAITERS: usize = 5;
/// How many places are shown at which threads wait for locks without a known holder.
const MOST_PLACES: usize = 10;

/// What was found, or that nothing was. With `all`, every thread that waits is shown.
pub fn text(report: &Report, symbols: &mut Symbols<'_>, all: bool) -> String {
    let mut text = headline(report) + "\n";
    for (n, finding) in report.findings.iter().enumerate() {
        if n > 0 {
            let _ = writeln!(text, "\n{}", sentence(report, finding));
        }
        add_finding(&mut text, report, symbols, finding);
    }
    if report.findings.is_empty() {
        add_unknown(&mut text, report, symbols);
    }
    if all {
        let _ = writeln!(text, "\nAll threads that wait:");
        for (thread, _) in report.waits() {
            add_thread(&mut text, report, symbols, thread);
        }
    }
    text
}

/// The answer in a line.
pub fn headline(report: &Report) -> String {
    match report.findings.split_first() {
        None => nothing(report),
        Some((first, [])) => sentence(report, first),
        Some((first, more)) => {
            let things = if more.len() == 1 { "finding" } else { "findings" };
            format!("{} (and {} more {things})", sentence(report, first), more.len())
        }
    }
}

fn sentence(report: &Report, finding: &Finding) -> String {
    let threads = report.graph.threads.len();
    match finding {
        Finding::Cycle(waiters) => match waiters.as_slice() {
            [thread] => format!("deadlock: thread {thread} waits for a lock that it holds itself"),
            more => {
                format!("deadlock: {} of {threads} threads wait for each other", more.len())
            }
        },
        Finding::Ended { holder, waiters } => format!(
            "forgotten unlock: {} for a lock whose holder, thread {holder}, has ended",
            match waiters.as_slice() {
                [thread] => format!("thread {thread} waits"),
                more => format!("{} of {threads} threads wait", more.len()),
            }
        ),
        Finding::Starved { writer } => format!(
            "starved writer: thread {writer} waits for an rwlock that readers never leave free"
        ),
    }
}

fn nothing(report: &Report) -> String {
    let (locks, all) = (report.waiting_for_locks(), report.waits().count());
    let threads = report.graph.threads.len();
    let mut text = match report.without_holder().len() {
        0 => "no deadlock found".to_owned(),
        1 => "no deadlock found, but the holder is unknown for 1 waiting thread".to_owned(),
        more => format!("no deadlock found, but the holder is unknown for {more} waiting threads"),
    };
    let _ = write!(text, ": {locks} of {threads} threads wait for locks");
    let since = report.waits().filter(|(_, wait)| wait.object.is_lock());
    if let Some(since) = since.filter_map(|(_, wait)| wait.since).min() {
        let _ = write!(text, ", the longest for {}", time(report.graph.at.saturating_sub(since)));
    }
    let _ = write!(text, "; {} for work or an event", all - locks);
    text
}

fn add_finding(text: &mut String, report: &Report, symbols: &mut Symbols<'_>, finding: &Finding) {
    let waiters = finding.waiters();
    for thread in waiters.iter().take(MOST_WAITERS.max(cycle_len(finding))) {
        add_thread(text, report, symbols, *thread);
    }
    if waiters.len() > MOST_WAITERS && cycle_len(finding) == 0 {
        let _ = writeln!(text, "and {}", more(waiters.len() - MOST_WAITERS, "thread"));
    }
    if let Finding::Cycle(cycle) = finding {
        let behind = report.waits().filter(|(thread, wait)| {
            let waits_for_it = matches!(&wait.holders, Holders::Threads(holders)
                if wait.has_holder() && holders.iter().any(|holder| cycle.contains(holder)));
            waits_for_it && !cycle.contains(thread)
        });
        let behind: Vec<String> = behind.map(|(thread, _)| thread.to_string()).collect();
        if !behind.is_empty() {
            let _ = writeln!(text, "behind them: {}", list(&behind));
        }
    }
}

fn cycle_len(finding: &Finding) -> usize {
    if let Finding::Cycle(cycle) = finding { cycle.len() } else { 0 }
}

/// `1 more thread`, `2 more threads`.
fn more(count: usize, what: &str) -> String {
    format!("{count} more {what}{}", if count == 1 { "" } else { "s" })
}

/// Threads that wait for locks that do not say who holds them, by place.
fn add_unknown(text: &mut String, report: &Report, symbols: &mut Symbols<'_>) {
    let unknown = report.without_holder();
    let mut places: BTreeMap<Vec<u64>, Vec<u32>> = BTreeMap::new();
    for thread in &unknown {
        if let Some(node) = report.graph.threads.get(thread) {
            places.entry(node.stack.frames.clone()).or_default().push(*thread);
        }
    }
    if places.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "The holder is unknown for {}, so a deadlock among them is not ruled out:",
        if unknown.len() == 1 {
            "1 waiting thread".to_owned()
        } else {
            format!("{} waiting threads", unknown.len())
        },
    );
    let mut places: Vec<Vec<u32>> = places.into_values().collect();
    places.sort_by_key(|threads| (core::cmp::Reverse(threads.len()), threads.first().copied()));
    for threads in places.iter().take(MOST_PLACES) {
        let Some(first) = threads.first() else {
            continue;
        };
        add_thread(text, report, symbols, *first);
        if threads.len() > 1 {
            let _ = writeln!(text, "    at the same place: {}", more(threads.len() - 1, "thread"));
        }
    }
    if places.len() > MOST_PLACES {
        let _ = writeln!(text, "and {} (--all)", more(places.len() - MOST_PLACES, "place"));
    }
}

fn add_thread(text: &mut String, report: &Report, symbols: &mut Symbols<'_>, thread: u32) {
    let Some(node) = report.graph.threads.get(&thread) else {
        return;
    };
    let _ = writeln!(text, "{}", line(report, thread, node));
    for (n, frame) in frames(symbols, node).iter().enumerate() {
        let _ = writeln!(text, "    #{n:<2} {frame}");
    }
}

/// The functions of a stack, from the one on that called the lock's.
fn frames(symbols: &mut Symbols<'_>, node: &Node) -> Vec<String> {
    let mut all: Vec<Frame> = Vec::new();
    for &address in &node.stack.frames {
        all.extend_from_slice(symbols.frames(address));
    }
    // The drop-in's own, and those of the C library that have no names.
    let is_inside = |frame: &&Frame| {
        let is_nameless = frame.function.starts_with(&*frame.module);
        frame.module.starts_with(OURS) || frame.module.starts_with(LIBC) && is_nameless
    };
    let inside = all.iter().take_while(is_inside).count();
    let from = if inside < all.len() { inside } else { 0 };
    let mut shown_frames: Vec<String> = all[from..].iter().take(FRAMES).map(shown).collect();
    let more = (all.len() - from).saturating_sub(FRAMES);
    if more > 0 {
        shown_frames.push(format!("({more} more)"));
    } else if !node.stack.is_complete && !all.is_empty() {
        shown_frames.push("(the rest of the stack is not known)".to_owned());
    }
    shown_frames
}

fn line(report: &Report, thread: u32, node: &Node) -> String {
    let mut text = name(report, thread);
    let Some(wait) = &node.wait else {
        return text + " does not wait";
    };
    let _ = write!(text, " waits for {}", object(wait));
    if let Some(since) = wait.since {
        let _ = write!(text, " for {}", time(report.graph.at.saturating_sub(since)));
    }
    match &wait.holders {
        Holders::Threads(holders) if wait.object == Object::Join => {
            let names: Vec<String> = holders.iter().map(|it| name(report, *it)).collect();
            let _ = write!(text, " of {}", list(&names));
        }
        Holders::Threads(holders) if holders.as_slice() == [thread] => text += ", held by itself",
        Holders::Threads(holders) => {
            let names: Vec<String> = holders.iter().map(|it| name(report, *it)).collect();
            let _ = write!(text, ", held by {}", list(&names));
        }
        Holders::Readers(1) => text += ", held by a reader",
        Holders::Readers(readers) => _ = write!(text, ", held by {readers} readers"),
        Holders::Elsewhere(holder) => {
            let _ = write!(text, ", held by thread {holder} of another process");
        }
        Holders::Unknown(why) => _ = write!(text, ", holder unknown: {why}"),
        Holders::None => {}
    }
    if wait.source != Source::Stack {
        let _ = write!(text, " (by {})", wait.source.shown());
    }
    text
}

/// A thread with its name, and its ID here, if that is another one.
fn name(report: &Report, thread: u32) -> String {
    match report.graph.threads.get(&thread) {
        None => format!("thread {thread} (ended)"),
        Some(node) if node.thread.tid != thread => {
            format!("thread {thread} ({}, here {})", escaped(&node.thread.name), node.thread.tid)
        }
        Some(node) => format!("thread {thread} ({})", escaped(&node.thread.name)),
    }
}

fn object(wait: &Wait) -> String {
    let what = match wait.object {
        Object::Mutex => "mutex",
        Object::Read => "rwlock (to read)",
        Object::Write => "rwlock (to write)",
        Object::Condvar => "condition variable",
        Object::Semaphore => "semaphore",
        Object::Barrier => "barrier",
        Object::Futex => "futex",
        Object::Join => return "the end".to_owned(),
        Object::Once => "pthread_once",
        Object::Spin => "spin lock",
    };
    let mut text = "the ".to_owned();
    if let Some(kind) = wait.kind {
        text += kind;
        text += " ";
    }
    text += what;
    if let Some(address) = wait.address {
        let _ = write!(text, " {address:#x}");
    }
    text
}

/// `a`, `a and b`, `a, b and c`; at most ten.
fn list(items: &[String]) -> String {
    const MOST: usize = 10;
    let more = items.len().saturating_sub(MOST);
    let shown = &items[..items.len() - more];
    match (shown, more) {
        (items, 1..) => format!("{} and {more} more", items.join(", ")),
        ([before @ .., last], 0) if !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        (items, 0) => items.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cycles::tests::graph;
    use super::*;

    fn report(threads: &[(u32, Option<(Object, Holders)>)], findings: Vec<Finding>) -> String {
        let graph = graph(threads);
        let waiters = graph.threads.keys().copied().collect();
        let report = Report { graph, waiters, findings };
        text(&report, &mut Symbols::of_maps(&[], None), false)
    }

    #[test]
    fn the_first_line_is_the_answer_and_each_thread_says_what_it_waits_for() {
        let mutex = |holder| Some((Object::Mutex, Holders::Threads(vec![holder])));
        let threads = [(1, mutex(2)), (2, mutex(1)), (3, mutex(2)), (4, None)];
        let shown = report(&threads, vec![Finding::Cycle(vec![1, 2])]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "deadlock: 2 of 4 threads wait for each other",
                "thread 1 (t1) waits for the mutex 0x1001 for 1.00 s, held by thread 2 (t2) \
                 (by the recording)",
                "thread 2 (t2) waits for the mutex 0x1002 for 1.00 s, held by thread 1 (t1) \
                 (by the recording)",
                "behind them: 3",
            ]
        );
        let shown = report(&[(1, mutex(1))], vec![Finding::Cycle(vec![1])]);
        assert!(shown.starts_with("deadlock: thread 1 waits for a lock that it holds itself\n"));
        assert!(shown.contains(", held by itself (by"), "{shown}");
        let ended = Finding::Ended { holder: 9, waiters: vec![1] };
        let shown = report(&[(1, mutex(9))], vec![ended, Finding::Starved { writer: 1 }]);
        let first = "forgotten unlock: thread 1 waits for a lock whose holder, thread 9, has ended";
        assert!(shown.starts_with(&format!("{first} (and 1 more finding)\n")), "{shown}");
        assert!(shown.contains("held by thread 9 (ended)"), "{shown}");
        assert!(shown.contains("\nstarved writer: thread 1"), "{shown}");
    }

    #[test]
    fn without_a_finding_it_says_who_waits_and_what_is_not_known() {
        let work = Some((Object::Condvar, Holders::None));
        let lock = Some((Object::Mutex, Holders::Threads(vec![3])));
        let shown = report(&[(1, work), (2, lock), (3, None)], Vec::new());
        assert_eq!(
            shown,
            "no deadlock found: 1 of 3 threads wait for locks, the longest for 1.00 s; \
             1 for work or an event\n"
        );
        let unknown = Some((Object::Mutex, Holders::Unknown("it keeps no owner")));
        let shown = report(&[(1, unknown.clone()), (2, unknown)], Vec::new());
        assert!(shown.contains("not ruled out"), "{shown}");
        assert!(shown.contains("holder unknown: it keeps no owner"), "{shown}");
        assert!(shown.contains("at the same place: 1 more thread\n"), "{shown}");
    }

    #[test]
    fn lists_are_short() {
        let items: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert_eq!(list(&items[..1]), "0");
        assert_eq!(list(&items[..3]), "0, 1 and 2");
        assert!(list(&items).ends_with("9 and 2 more"));
    }
}
