//! The summary in the terminal: the places where threads lost the most time waiting for locks.

use crate::calls;
use crate::export::Recording;
use crate::read::Process;
use crate::sites::Site;
use crate::symbols::{Frame, Symbols};
use std::fmt::Write as _;
use waitword_record::format::Causes;

/// How many places are shown.
const SHOWN: usize = 10;
/// How many places are shown at which threads wait for something that is no lock.
const SHOWN_OF_WORK: usize = 3;
/// Our own libraries, and those that only pass a wait on.
const BETWEEN: [&str; 3] = ["libwaitword", "libc.so", "libstdc++"];
/// Where the sources of standard libraries are, which are compiled into the program: the system's
/// headers, and Rust's, as built and as installed.
const BETWEEN_FILES: [&str; 3] = ["/usr/include/", "/rustc/", "/lib/rustlib/src/"];
/// What their functions are called, where there is no line.
const BETWEEN_NAMES: [&str; 5] = ["std::", "core::", "alloc::", "__gnu_cxx::", "__gthread_"];
/// Crates that a Rust program contains, wherever their sources are.
const BETWEEN_CRATES: [&str; 5] =
    ["waitword::", "<waitword::", "waitword_record::", "lock_api::", "<lock_api::"];

/// What a reader wants to know first: where, how long, and because of whom.
pub fn summary(recording: &mut Recording<'_>) -> String {
    let mut text = String::new();
    let (mut lost_in_all, mut known) = (0_u64, 0_u64);
    let all = &mut recording.processes;
    if all.iter().all(|(profile, _)| profile.sites.is_empty()) {
        let threshold = all.iter().map(|(profile, _)| profile.process.threshold).max();
        let _ =
            writeln!(text, "No thread waited for longer than {}.", time(threshold.unwrap_or(0)));
    }
    for (profile, symbols) in all.iter_mut().filter(|(profile, _)| !profile.sites.is_empty()) {
        let (locks, idle): (Vec<_>, Vec<_>) =
            profile.sites.iter().partition(|(key, _)| key.object.is_lock());
        let (lost, idled) = profile.totals();
        lost_in_all = lost_in_all.saturating_add(lost);
        for (_, site) in &locks {
            for part in [site.running, site.preempted, site.asleep] {
                known = known.saturating_add(part);
            }
        }
        let _ = writeln!(
            text,
            "process {}: {} lost waiting for locks, {} waiting for work",
            profile.process.pid,
            time(lost),
            time(idled),
        );
        for (key, site) in locks.iter().take(SHOWN) {
            let waiter = place(&profile.process, symbols, key.stack);
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
                let holder = place(&profile.process, symbols, key.holder_stack);
                let _ = writeln!(text, "                   kept by {holder}{}", cause(site));
            }
        }
        for (key, site) in idle.iter().take(SHOWN_OF_WORK) {
            let waiter = place(&profile.process, symbols, key.stack);
            let _ = writeln!(
                text,
                "        {:>9}  {} for {:?}, for work or an event: {waiter}",
                time(site.nanoseconds),
                count(site.count, "wait"),
                key.object,
            );
        }
        let lost = profile.process.lost;
        if lost > 0 {
            let was = if lost == 1 { "was" } else { "were" };
            let _ = writeln!(text, "{} {was} lost.", count(lost, "record"));
        }
    }
    let has = |causes| all.iter().any(|(it, _)| it.process.causes == Some(causes));
    if lost_in_all > 0 && known == 0 && !has(Causes::Switches) {
        text += "What the holders did meanwhile is not known: the kernel does not let this user\n\
                 see context switches (perf_event_paranoid above 2, or a container).\n";
    } else if has(Causes::Sums) {
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
    let call = site.calls.first().and_then(|(call, _)| calls::name(call));
    let said: Vec<String> = parts
        .iter()
        .filter(|(percent, _)| *percent >= 1.0)
        .map(|(percent, what)| match &call {
            Some(call) if *what == "asleep" => format!("{percent:.0} % asleep in {call}"),
            _ => format!("{percent:.0} % {what}"),
        })
        .collect();
    if said.is_empty() { String::new() } else { format!(", {}", said.join(", ")) }
}

/// The innermost functions of the program itself, with the line of the first one.
pub(crate) fn place(process: &Process, symbols: &mut Symbols<'_>, stack: u32) -> String {
    place_as(addresses_of(process, stack), symbols, shown, caller)
}

/// The same, of a stack's return addresses.
pub(crate) fn place_of(addresses: &[u64], symbols: &mut Symbols<'_>) -> String {
    place_as(addresses, symbols, shown, caller)
}

/// The return addresses of a stack; none if it is unknown.
pub(crate) fn addresses_of(process: &Process, stack: u32) -> &[u64] {
    process.stacks.get(&stack).map_or(&[], Vec::as_slice)
}

/// The same, with the first function and its callers shown in other ways.
pub(crate) fn place_as(
    addresses: &[u64],
    symbols: &mut Symbols<'_>,
    first_shown: impl Fn(&Frame) -> String,
    caller_shown: impl Fn(&Frame) -> String,
) -> String {
    /// How many functions are named.
    const NAMED: usize = 3;
    let all: Vec<Frame> =
        addresses.iter().flat_map(|&address| symbols.frames(address).to_vec()).collect();
    let own = all.iter().position(|frame| !is_between(frame)).unwrap_or(0);
    let Some(first) = all.get(own) else {
        return "an unknown place".to_owned();
    };
    let mut text = first_shown(first);
    for frame in all[own + 1..].iter().take_while(|frame| !is_between(frame)).take(NAMED - 1) {
        text += " < ";
        text += &caller_shown(frame);
    }
    text
}

/// Whether this function is a standard library's, or of a library that only passes a wait on.
pub(crate) fn is_between(frame: &Frame) -> bool {
    BETWEEN.iter().any(|name| frame.module.starts_with(name))
        || BETWEEN_CRATES.iter().any(|name| frame.function.starts_with(name))
        || match &frame.line {
            Some((file, _)) => BETWEEN_FILES.iter().any(|directory| file.contains(directory)),
            None => BETWEEN_NAMES.iter().any(|name| frame.function.starts_with(name)),
        }
}

/// A function that has called the first one, with its line: the first one may be a wrapper of
/// `pthread_mutex_lock` that all the program calls.
fn caller(frame: &Frame) -> String {
    let function = escaped(&frame.function);
    match &frame.line {
        Some((path, line)) => {
            let file = path.rsplit('/').next().unwrap_or(path);
            format!("{function} ({}:{line})", escaped(file))
        }
        None => function,
    }
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
    use crate::profile::Profile;

    fn summary_of(process: Process) -> String {
        summary(&mut Recording::new(&[Profile::of(process)], &std::rc::Rc::default()))
    }

    #[test]
    fn the_costliest_place_comes_first_with_its_holder_and_the_cause() {
        let text = summary_of(crate::sites::tests::process());
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
    fn functions_of_standard_libraries_are_between() {
        let frame = |function: &str, file: Option<&str>| Frame {
            function: function.to_owned(),
            line: file.map(|file| (file.to_owned(), 7)),
            module: "program".to_owned(),
        };
        for between in [
            frame("__gthread_mutex_lock", Some("/usr/include/c++/12/bits/gthr-default.h")),
            frame("lock<i32>", Some("/rustc/1234abcd/library/std/src/sync/poison/mutex.rs")),
            frame("std::mutex::lock()", None),
            Frame { module: "libc.so.6".to_owned(), ..frame("start_thread", Some("create.c")) },
        ] {
            assert!(is_between(&between), "{between:?}");
        }
        for own in [frame("take", Some("/home/me/queue.cc")), frame("stdio_lock", None)] {
            assert!(!is_between(&own), "{own:?}");
        }
    }

    #[test]
    fn without_waits_and_without_causes_it_says_so() {
        let mut process = crate::sites::tests::process();
        for (_, wait) in &mut process.waits {
            (wait.running, wait.asleep) = (0, 0);
        }
        assert!(summary_of(process).contains("perf_event_paranoid"));
        let sums = || Process { causes: Some(Causes::Sums), ..crate::sites::tests::process() };
        assert!(summary_of(sums()).contains("an estimate from /proc"));
        assert!(!summary_of(crate::sites::tests::process()).contains("estimate"));
        let empty = Process { threshold: 10_000, ..Process::default() };
        assert_eq!(summary_of(empty), "No thread waited for longer than 10.0 µs.\n");
    }
}
