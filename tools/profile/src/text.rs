//! The summary in the terminal: the places where threads lost the most time waiting for locks.

use crate::read::Process;
use crate::sites::{Key, Site, sites};
use crate::symbols::{Frame, Symbols};
use std::fmt::Write as _;
use waitword_record::format::Causes;

/// How many places are shown.
const SHOWN: usize = 10;
/// How many places are shown at which threads wait for something that is no lock.
const SHOWN_OF_WORK: usize = 3;
/// Our own libraries, and those that only pass a wait on.
const BETWEEN: [&str; 3] = ["libwaitword", "libc.so", "libstdc++"];
/// The same in a Rust program, which contains them.
const BETWEEN_CRATES: [&str; 5] =
    ["waitword::", "<waitword::", "waitword_record::", "lock_api::", "<lock_api::"];

const STD: [&str; 4] = ["std::", "<std::", "core::", "<core::"];

/// What a reader wants to know first: where, how long, and because of whom.
pub fn summary(processes: &[Process]) -> String {
    let mut text = String::new();
    let (mut lost_in_all, mut known) = (0, 0);
    let with_waits: Vec<&Process> = processes.iter().filter(|it| !it.waits.is_empty()).collect();
    if with_waits.is_empty() {
        let threshold = processes.iter().map(|process| process.threshold).max().unwrap_or(0);
        let _ = writeln!(text, "No thread waited for longer than {}.", time(threshold));
    }
    for process in with_waits {
        let all = sites(process);
        let (locks, idle): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(key, _)| key.object.is_lock());
        let total = |sites: &[(Key, Site)]| sites.iter().map(|(_, site)| site.nanoseconds).sum();
        let (lost, idled): (u64, u64) = (total(&locks), total(&idle));
        lost_in_all += lost;
        known += locks.iter().map(|(_, it)| it.running + it.preempted + it.asleep).sum::<u64>();
        let _ = writeln!(
            text,
            "process {}: {} lost waiting for locks, {} waiting for work",
            process.pid,
            time(lost),
            time(idled),
        );
        let mut symbols = Symbols::of(process);
        for (key, site) in locks.iter().take(SHOWN) {
            let waiter = place(process, &mut symbols, key.stack);
            let share = 100.0 * site.nanoseconds as f64 / lost.max(1) as f64;
            let _ = writeln!(
                text,
                "{share:5.1} % {:>9}  {} for {:?}, longest {}: {waiter}",
                time(site.nanoseconds),
                count(site.count, "wait"),
                key.object,
                time(site.longest),
            );
            if key.holder_stack != 0 {
                let holder = place(process, &mut symbols, key.holder_stack);
                let _ = writeln!(text, "                   kept by {holder}{}", cause(site));
            }
        }
        for (key, site) in idle.iter().take(SHOWN_OF_WORK) {
            let waiter = place(process, &mut symbols, key.stack);
            let _ = writeln!(
                text,
                "        {:>9}  {} for {:?}, for work or an event: {waiter}",
                time(site.nanoseconds),
                count(site.count, "wait"),
                key.object,
            );
        }
        if process.lost > 0 {
            let was = if process.lost == 1 { "was" } else { "were" };
            let _ = writeln!(text, "{} {was} lost.", count(process.lost, "record"));
        }
    }
    if lost_in_all > 0 && known == 0 {
        text += "What the holders did meanwhile is not known: the kernel does not let this user\n\
                 see context switches (perf_event_paranoid above 2, or a container).\n";
    } else if processes.iter().any(|it| it.causes == Some(Causes::Sums)) {
        text += "What the holders did is an estimate from /proc: the kernel does not let this\n\
                 user see context switches (perf_event_paranoid above 2, or a container).\n";
    }
    text
}

/// What the holder did meanwhile, as far as that is known.
fn cause(site: &Site) -> String {
    let percent = |part: u64| 100.0 * part as f64 / site.nanoseconds.max(1) as f64;
    let parts = [
        (percent(site.asleep), "asleep"),
        (percent(site.running), "running"),
        (percent(site.preempted), "runnable without a CPU"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(percent, _)| *percent >= 1.0)
        .map(|(percent, what)| format!("{percent:.0} % {what}"))
        .collect();
    if said.is_empty() { String::new() } else { format!(", {}", said.join(", ")) }
}

/// The innermost functions of the program itself, with the line of the first one.
pub(crate) fn place(process: &Process, symbols: &mut Symbols<'_>, stack: u32) -> String {
    place_of(process.stacks.get(&stack).map_or(&[][..], Vec::as_slice), symbols)
}

/// The same, of a stack's return addresses.
pub(crate) fn place_of(addresses: &[u64], symbols: &mut Symbols<'_>) -> String {
    /// How many functions are named.
    const NAMED: usize = 3;
    let all: Vec<Frame> =
        addresses.iter().flat_map(|&address| symbols.frames(address).to_vec()).collect();
    let is_between = |frame: &Frame| {
        BETWEEN.iter().any(|name| frame.module.starts_with(name))
            || BETWEEN_CRATES.iter().any(|name| frame.function.starts_with(name))
    };
    // Of Rust's own functions, those that ours call are ours too.
    let is_std = |frame: &&Frame| STD.iter().any(|name| frame.function.starts_with(name));
    let first = all.iter().take_while(|frame| is_between(frame) || is_std(frame));
    let own = first.collect::<Vec<_>>().into_iter().rposition(is_between).map_or(0, |at| at + 1);
    // All of them: the innermost is better than none.
    let own = if own < all.len() { own } else { 0 };
    let Some(first) = all.get(own) else {
        return "an unknown place".to_owned();
    };
    let mut text = shown(first);
    for frame in all[own + 1..].iter().take_while(|frame| !is_between(frame)).take(NAMED - 1) {
        text += " < ";
        text += &frame.function;
    }
    text
}

/// A number of things, in words.
pub(crate) fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// A function, with its line, or else its module.
pub(crate) fn shown(frame: &Frame) -> String {
    let function = escaped(&frame.function);
    match &frame.line {
        Some((file, line)) => format!("{function} ({}:{line})", escaped(file)),
        None => format!("{function} ({})", escaped(&frame.module)),
    }
}

/// A name as a terminal may show it: the program has chosen it.
pub(crate) fn escaped(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter.is_control() {
            true => text.extend(letter.escape_debug()),
            false => text.push(letter),
        }
    }
    text
}

/// Three significant digits.
pub(crate) fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    let (value, unit) = match value {
        // Before it is rounded to 1000 of the smaller unit.
        999.5e6.. => (value / 1e9, "s"),
        999.5e3.. => (value / 1e6, "ms"),
        _ => (value / 1e3, "µs"),
    };
    let decimals = match value {
        99.95.. => 0,
        9.995.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_costliest_place_comes_first_with_its_holder_and_the_cause() {
        let text = summary(&[crate::sites::tests::process()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0], "process 0: 0.60 µs lost waiting for locks, 5.00 µs waiting for work",
            "{text}"
        );
        assert!(lines[1].starts_with(" 83.3 %   0.50 µs  2 waits for Mutex"), "{text}");
        assert!(lines[2].ends_with("kept by 0x30 (?), 90 % asleep, 10 % running"), "{text}");
        assert!(lines[3].contains("1 wait for Write"), "{text}");
        assert!(lines[4].contains("1 wait for Condvar, for work or an event"), "{text}");
        assert_eq!(lines.len(), 5, "{text}");
    }

    #[test]
    fn without_waits_and_without_causes_it_says_so() {
        let mut process = crate::sites::tests::process();
        for (_, wait) in &mut process.waits {
            (wait.running, wait.asleep) = (0, 0);
        }
        assert!(summary(&[process]).contains("perf_event_paranoid"));
        let sums = || Process { causes: Some(Causes::Sums), ..crate::sites::tests::process() };
        assert!(summary(&[sums()]).contains("an estimate from /proc"));
        assert!(!summary(&[crate::sites::tests::process()]).contains("estimate"));
        let empty = Process { threshold: 10_000, ..Process::default() };
        assert_eq!(summary(&[empty]), "No thread waited for longer than 10.0 µs.\n");
    }
}
