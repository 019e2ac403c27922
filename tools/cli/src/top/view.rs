//! What `waitword top` shows, as texts and numbers: the same for the screen and for plain text.

use std::collections::HashMap;
use std::time::Duration;
use waitword_profile::live::rates::{Lock, Row, Sums, kind};
use waitword_profile::live::{Followed, Live, now, printable};
use waitword_profile::symbols::Frame;
use waitword_record::format::Object;

/// The most rows, places, threads and functions of a stack.
const MOST_ROWS: usize = 200;
const MOST_PLACES: usize = 8;
const MOST_THREADS: usize = 12;
const MOST_FRAMES: usize = 6;
/// The most callers of a function in the table.
const MOST_CALLERS: usize = 2;

/// All that the table shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The program or directory.
    pub(crate) title: String,
    /// How long it has been followed.
    pub(crate) elapsed: Duration,
    /// The time that the table is about, in seconds.
    pub(crate) seconds: f64,
    /// How many threads there are, and how many of them wait for a lock, and for something else.
    pub(crate) threads: usize,
    pub(crate) for_locks: usize,
    pub(crate) for_work: usize,
    /// How many processes record, and how many have ended.
    pub(crate) processes: usize,
    pub(crate) ended: usize,
    /// Whether each line says which process it belongs to.
    pub(crate) says_process: bool,
    /// Waits that are not in any number.
    pub(crate) lost: u64,
    /// Why there are no causes, or why a file is not followed.
    pub(crate) remark: Option<String>,
    /// The last line that the program has printed.
    pub(crate) last_line: String,
    /// The locks, those that lost the most time first.
    pub(crate) lines: Vec<Line>,
}

/// A lock.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) lock: Lock,
    /// Its process: the ID and the name. The name may be cut off.
    pub(crate) process: String,
    /// Seconds lost per second.
    pub(crate) lost: f64,
    /// Waits per second.
    pub(crate) waits: f64,
    /// The longest wait, or how long one lasts so far, in nanoseconds.
    pub(crate) longest: u64,
    /// Threads that wait now.
    pub(crate) waiters: u32,
    /// Nanoseconds lost since the beginning.
    pub(crate) total: u64,
    /// The kind and the address.
    pub(crate) name: String,
    /// Where threads wait for it: the functions, and also their lines.
    pub(crate) wanted_in: String,
    pub(crate) wanted_at: String,
    /// Who keeps it, likewise.
    pub(crate) held_by: String,
    pub(crate) held_at: String,
    /// What the holder did.
    pub(crate) why: String,
}

/// All that is shown of one lock.
#[derive(Clone, Debug)]
pub(crate) struct Detail {
    /// Each is a heading and the lines below it.
    pub(crate) parts: Vec<(String, Vec<String>)>,
}

impl View {
    /// About the last `nanoseconds`.
    pub(crate) fn of(
        live: &mut Live,
        nanoseconds: u64,
        title: String,
        elapsed: Duration,
        last_line: &str,
    ) -> Self {
        let (mut rows, length) = live.rates().rows(nanoseconds, live.processes());
        rows.retain(|row| row.object.is_lock());
        rows.sort_by_key(|row| {
            (core::cmp::Reverse((row.recent.share, row.waiters, row.total.nanoseconds)), row.lock)
        });
        rows.truncate(MOST_ROWS);
        let seconds = length.max(1) as f64 / 1e9;
        let mut view = Self {
            title,
            elapsed,
            seconds,
            last_line: printable(last_line),
            remark: live.problem().map(printable),
            ..Self::default()
        };
        for process in live.processes() {
            *if process.has_ended { &mut view.ended } else { &mut view.processes } += 1;
            view.lost = view.lost.saturating_add(process.recorded.lost);
            view.threads += process.threads.len();
            let waiting = process.threads.iter().filter_map(|thread| thread.waiting);
            let (locks, work): (Vec<_>, Vec<_>) = waiting.partition(|it| it.object.is_lock());
            view.for_locks += locks.len();
            view.for_work += work.len();
        }
        view.says_process = view.processes + view.ended > 1;
        let now = now();
        view.lines = rows.iter().map(|row| line(live, row, seconds, now)).collect();
        let mut processes = live.processes();
        let is_unknown = |process: &Followed| process.recorded.causes.is_none();
        if view.remark.is_none() && !rows.is_empty() && processes.all(is_unknown) {
            view.remark = Some(
                "What the holders do is not known: the kernel does not let this user see context \
                 switches."
                    .to_owned(),
            );
        }
        view
    }
}

fn line(live: &mut Live, row: &Row, seconds: f64, now: u64) -> Line {
    let id = row.lock.process;
    let (waiter, releaser) = match row.worst {
        Some(place) => (live.frames(id, place.stack), live.frames(id, place.holder_stack)),
        // Threads wait, but no wait has ended.
        None => (live.frames_of_waiter(row.lock), Vec::new()),
    };
    let now_held = live.process(id).and_then(|process| {
        let first = *row.holders.first()?;
        let more = match row.holders.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        Some(thread(process, first) + &more)
    });
    let now_held = now_held.map(|thread| format!("[{thread}]"));
    let held = |show| {
        let places = Some(with_callers(&releaser, show)).filter(|places| !places.is_empty());
        let parts: Vec<String> = places.into_iter().chain(now_held.clone()).collect();
        parts.join(" ")
    };
    let sums = if row.recent.nanoseconds > 0 { row.recent } else { row.total };
    let longest = row.since.map_or(0, |since| now.saturating_sub(since));
    Line {
        lock: row.lock,
        process: live.process(id).map_or_else(String::new, process_name),
        lost: row.recent.share as f64 / 1e9 / seconds,
        waits: row.recent.count as f64 / seconds,
        longest: sums.longest.max(longest),
        waiters: row.waiters,
        total: row.total.nanoseconds.saturating_add(row.so_far),
        name: format!("{} {:#x}", short_kind(row.object), row.lock.address),
        wanted_in: with_callers(&waiter, short),
        wanted_at: with_callers(&waiter, full),
        held_by: held(short),
        held_at: held(full),
        why: why(&sums),
    }
}

impl Detail {
    /// Of this lock, since the beginning.
    pub(crate) fn of(live: &mut Live, lock: Lock) -> Self {
        let places = live.rates().places(lock);
        let threads = live.rates().threads(lock);
        let mut sum = Sums::default();
        places.iter().for_each(|(_, of_place)| sum.add(of_place));
        let (rows, _) = live.rates().rows(1_000_000_000, live.processes());
        let row = rows.into_iter().find(|row| row.lock == lock);
        let mut head = Vec::new();
        head.push(format!(
            "{} waits lost {}, the longest {}; {} timed out, {} got it by hand-off",
            sum.count,
            time(sum.nanoseconds),
            time(sum.longest),
            sum.timed_out,
            sum.handed_over,
        ));
        head.push(match why(&sum) {
            why if why.is_empty() => "What the holders did meanwhile is not known.".to_owned(),
            why => format!("The holders meanwhile: {why}"),
        });
        if let Some(row) = &row {
            let holders: Vec<String> =
                live.process(lock.process).map_or_else(Vec::new, |process| {
                    row.holders.iter().take(MOST_THREADS).map(|it| thread(process, *it)).collect()
                });
            let held = if holders.is_empty() { "unknown".to_owned() } else { holders.join(", ") };
            head.push(format!("Now: {}; holder: {held}", waiters(row.waiters)));
        }
        let process = live.process(lock.process).map_or_else(String::new, process_name);
        let kind = row.map_or("lock", |row| short_kind(row.object));
        let mut parts = vec![(format!("{kind} {:#x} of {process}", lock.address), head)];
        let (mut waiters, mut holders) = (HashMap::new(), HashMap::new());
        for (place, of_place) in &places {
            waiters.entry(place.stack).or_insert_with(Sums::default).add(of_place);
            holders.entry(place.holder_stack).or_insert_with(Sums::default).add(of_place);
        }
        parts.push(("Who waits".to_owned(), stacks(live, lock, waiters, &sum, false)));
        parts.push(("Who keeps it".to_owned(), stacks(live, lock, holders, &sum, true)));
        let mut lines = Vec::new();
        if let Some(process) = live.process(lock.process) {
            for (number, of_thread) in threads.iter().take(MOST_THREADS) {
                lines.push(format!(
                    "{:5.1} %  {:>9}  {:>8} waits  {}",
                    percent(of_thread.nanoseconds, sum.nanoseconds),
                    time(of_thread.nanoseconds),
                    of_thread.count,
                    thread(process, *number),
                ));
            }
        }
        if threads.len() > MOST_THREADS {
            lines.push(format!("and {} more threads", threads.len() - MOST_THREADS));
        }
        parts.push(("Which threads".to_owned(), lines));
        Self { parts }
    }
}

/// The stacks that lost the most time, each with its innermost functions.
fn stacks(
    live: &mut Live,
    lock: Lock,
    all: HashMap<u32, Sums>,
    sum: &Sums,
    of_holders: bool,
) -> Vec<String> {
    let mut all: Vec<(u32, Sums)> = all.into_iter().collect();
    all.sort_by_key(|(stack, sums)| (core::cmp::Reverse(sums.nanoseconds), *stack));
    let mut lines = Vec::new();
    for (stack, sums) in all.iter().take(MOST_PLACES) {
        let what = if of_holders { why(sums) } else { format!("{} waits", sums.count) };
        lines.push(format!(
            "{:5.1} %  {:>9}  {what}",
            percent(sums.nanoseconds, sum.nanoseconds),
            time(sums.nanoseconds),
        ));
        let frames = live.frames(lock.process, *stack);
        if frames.is_empty() {
            lines.push("          unknown".to_owned());
        }
        lines.extend(frames.iter().take(MOST_FRAMES).map(|it| format!("          {}", full(it))));
    }
    if all.len() > MOST_PLACES {
        lines.push(format!("and {} more", all.len() - MOST_PLACES));
    }
    lines
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

/// A function and its callers: the innermost one is often only a wrapper.
fn with_callers(frames: &[Frame], show: fn(&Frame) -> String) -> String {
    let shown: Vec<String> = frames.iter().take(MOST_CALLERS + 1).map(show).collect();
    shown.join(" < ")
}

fn short(frame: &Frame) -> String {
    printable(&frame.function)
}

fn full(frame: &Frame) -> String {
    let place = match &frame.line {
        Some((file, line)) => {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!("{} {name}:{line}", frame.function)
        }
        None if frame.function.starts_with(&frame.module) => frame.function.clone(),
        None => format!("{} {}", frame.function, frame.module),
    };
    printable(&place)
}

/// How many threads wait now.
pub(crate) fn waiters(count: u32) -> String {
    match count {
        0 => "no thread waits".to_owned(),
        1 => "1 thread waits".to_owned(),
        _ => format!("{count} threads wait"),
    }
}

fn process_name(process: &Followed) -> String {
    format!("{} {}", process.recorded.pid, process.process_name())
}

/// A thread's number, and its name instead of `thread` if that is not the program's.
fn thread(process: &Followed, thread: u32) -> String {
    let program = process.thread_name(process.recorded.pid);
    match process.thread_name(thread) {
        Some(name) if Some(name) != program => format!("{name} {thread}"),
        _ => format!("thread {thread}"),
    }
}

/// The kind of a lock, without what it is wanted for.
fn short_kind(object: Object) -> &'static str {
    match object {
        Object::Read | Object::Write => "rwlock",
        other => kind(other),
    }
}

/// What the holders did, the greatest part first; empty if that is not known.
pub(crate) fn why(sums: &Sums) -> String {
    let mut parts = [
        (percent(sums.asleep, sums.nanoseconds), "asleep"),
        (percent(sums.running, sums.nanoseconds), "running"),
        (percent(sums.preempted, sums.nanoseconds), "preempted"),
    ];
    parts.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let shown = parts.iter().filter(|(percent, _)| *percent >= 1.0);
    let shown: Vec<String> =
        shown.map(|(percent, what)| format!("{percent:.0} % {what}")).collect();
    shown.join(", ")
}

/// A time with three digits or so.
pub(crate) fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match value {
        100e9.. => format!("{:.0} s", value / 1e9),
        10e9.. => format!("{:.1} s", value / 1e9),
        1e9.. => format!("{:.2} s", value / 1e9),
        100e6.. => format!("{:.0} ms", value / 1e6),
        10e6.. => format!("{:.1} ms", value / 1e6),
        1e6.. => format!("{:.2} ms", value / 1e6),
        1.0.. => format!("{:.0} µs", value / 1e3),
        _ => "-".to_owned(),
    }
}

/// Seconds lost per second.
pub(crate) fn lost(seconds: f64) -> String {
    match seconds {
        ..0.0005 => "-".to_owned(),
        ..1.0 => format!("{:.0} ms", 1e3 * seconds),
        _ => format!("{seconds:.2} s"),
    }
}

/// A number of waits per second.
pub(crate) fn rate(waits: f64) -> String {
    match waits {
        ..0.05 => "-".to_owned(),
        ..10.0 => format!("{waits:.1}"),
        ..10_000.0 => format!("{waits:.0}"),
        _ => format!("{:.0}k", waits / 1e3),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two locks of an invented program.
    pub(crate) fn view() -> View {
        let line = |address, lost, waits, longest, waiters| Line {
            lock: Lock { process: 0, address },
            process: "4711 program".to_owned(),
            lost,
            waits,
            longest,
            waiters,
            total: 5 * longest,
            name: format!("mutex {address:#x}"),
            wanted_in: format!("wants_{address:x} < work"),
            wanted_at: format!("wants_{address:x} program.c:12 < work program.c:40"),
            held_by: format!("keeps_{address:x} [worker 4713]"),
            held_at: format!("keeps_{address:x} program.c:30 [worker 4713]"),
            why: "91 % asleep, 9 % running".to_owned(),
        };
        View {
            title: "./program (4711)".to_owned(),
            elapsed: Duration::from_secs(75),
            seconds: 1.0,
            threads: 9,
            for_locks: 4,
            for_work: 3,
            processes: 1,
            ended: 0,
            says_process: false,
            lost: 0,
            remark: None,
            last_line: "the last line".to_owned(),
            lines: vec![
                line(0xa0, 3.5, 120.0, 40_000_000, 4),
                line(0xb0, 0.25, 12_345.0, 900_000, 0),
            ],
        }
    }

    #[test]
    fn numbers_are_short_and_nothing_is_a_dash() {
        let times = [0, 999, 12_345, 1_234_567, 45_600_000, 123_456_789, 9_990_000_000];
        let shown = ["-", "1 µs", "12 µs", "1.23 ms", "45.6 ms", "123 ms", "9.99 s"];
        assert_eq!(times.map(time), shown);
        assert_eq!([0.0, 0.25, 13.9].map(lost), ["-", "250 ms", "13.90 s"]);
        assert_eq!([0.0, 0.5, 120.0, 12_345.0].map(rate), ["-", "0.5", "120", "12k"]);
    }

    #[test]
    fn the_greatest_cause_comes_first() {
        let sums = Sums { nanoseconds: 1000, running: 90, asleep: 900, ..Sums::default() };
        assert_eq!(why(&sums), "90 % asleep, 9 % running");
        assert_eq!(why(&Sums { nanoseconds: 1000, ..Sums::default() }), "");
    }
}
