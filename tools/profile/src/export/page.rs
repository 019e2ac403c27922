//! A recording as one page: what lost the most time and why, the locks, a flame graph, and the
//! longest waits on a timeline. It loads nothing, and shows everything but the details without its
//! script.

mod parts;

use super::Recording;
use super::flame::{self, Waits, printable};
use crate::calls;
use crate::locks::Lock;
use crate::longest::Listed;
use crate::profile::{Profile, USUAL_LISTED};
use crate::sites::Site;
use crate::symbols::Symbols;
use crate::text::time;
use core::cmp::Reverse;
use core::ops::Range;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use parts::place;
use waitword_record::format::Causes;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/page.js");
/// More locks are not listed.
const LOCKS: usize = 50;

/// Nothing from elsewhere, whatever a name in the recording looks like.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The page.
pub fn page(recording: &mut Recording<'_>) -> String {
    let totals = Totals::of(recording);
    let locks = locks(recording);
    let longest = longest(recording);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title {
                    @if let Some(program) = &totals.program { (program) ": " }
                    (time(totals.all.nanoseconds)) " lost waiting for locks"
                }
                style { (PreEscaped(flame::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (totals.first_lines(recording, &locks))
                    section #locks { (lock_table(recording, &locks, &totals)) }
                    section #graph { (graphs(recording)) }
                    section #timeline { (timeline(recording, &longest, &totals)) }
                    footer { (notes(recording)) }
                }
                script { (flame::script(flame::ZOOM)) }
                script { (flame::script(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// A lock, by its place in the recording.
#[derive(Clone, Copy)]
struct Place {
    process: usize,
    at: usize,
}

/// What all processes lost.
struct Totals {
    all: Site,
    idle: u64,
    threads: usize,
    locks: usize,
    lost: u64,
    left_out: u64,
    several: bool,
    program: Option<String>,
}

impl Totals {
    fn of(recording: &Recording<'_>) -> Self {
        let mut totals = Self {
            all: Site::default(),
            idle: 0,
            threads: 0,
            locks: 0,
            lost: 0,
            left_out: 0,
            several: false,
            program: None,
        };
        let mut of_program = 0;
        let mut with_locks = 0;
        for (profile, _) in &recording.processes {
            for (key, site) in &profile.sites {
                if key.object.is_lock() {
                    totals.all.merge(site);
                } else {
                    totals.idle = totals.idle.saturating_add(site.nanoseconds);
                }
            }
            let locks = profile.objects.iter().filter(|lock| lock.key.object.is_lock());
            let mut threads = std::collections::HashSet::new();
            let before = totals.locks;
            for lock in locks {
                totals.locks += 1;
                threads.extend(lock.threads.iter().map(|(thread, _)| *thread));
            }
            with_locks += usize::from(totals.locks > before);
            let lost = profile.totals().0;
            if totals.program.is_none() || lost > of_program {
                (totals.program, of_program) = (program(profile), lost);
            }
            totals.threads += threads.len();
            totals.lost = totals.lost.saturating_add(profile.process.lost);
            totals.left_out = totals.left_out.saturating_add(profile.left_out);
        }
        totals.several = with_locks > 1;
        totals
    }

    /// What a reader wants to know first.
    fn first_lines(&self, recording: &mut Recording<'_>, locks: &[Place]) -> Markup {
        html! {
            header {
                h1 { b { (time(self.all.nanoseconds)) } " lost waiting for locks" }
                p {
                    @if let Some(program) = &self.program { b { (program) } ": " }
                    (self.all.count) " waits of " (counted(self.threads, "thread")) " for "
                    (counted(self.locks, "lock")) ". Not counted: " (time(self.idle))
                    " of waiting for work or an event."
                    @if self.lost > 0 { " " strong { (self.lost) " records were lost." } }
                }
                @if let Some(first) = locks.first() { (self.worst(recording, *first)) }
                @else { p.worst { "No thread waited for a lock for longer than the threshold." } }
                @if self.all.nanoseconds > 0 {
                    h2 { "What the holders did meanwhile" }
                    (parts::causes(&self.all))
                    (parts::legend(&self.all))
                }
            }
        }
    }

    /// The lock that lost the most, in a sentence.
    fn worst(&self, recording: &mut Recording<'_>, worst: Place) -> Markup {
        let (profile, symbols) = &mut recording.processes[worst.process];
        let lock = &profile.objects[worst.at];
        let ((stack, holder_stack), _) = lock.stacks.first().unwrap_or_default();
        let share = 100.0 * lock.sum.nanoseconds as f64 / self.all.nanoseconds.max(1) as f64;
        let process = &profile.process;
        html! {
            p.worst {
                (format!("{share:.0} % of it")) " at one " (lock.key.object_name()) ", mostly in "
                code { (place(process, symbols, stack)) }
                @if holder_stack != 0 {
                    ", while it was kept by "
                    code { (place(process, symbols, holder_stack)) }
                }
                @let cause = cause(&lock.sum);
                @if !cause.is_empty() { ", which was " strong { (cause) } }
                "."
            }
        }
    }
}

/// The name of a process's program: its mappings are in front of those of its libraries.
fn program(profile: &Profile) -> Option<String> {
    let first = profile.process.maps.iter().find(|mapping| mapping.file.is_absolute())?;
    Some(printable(&first.file.file_name()?.to_string_lossy()))
}

/// What the holder did most of the time, as far as it is known.
fn cause(site: &Site) -> String {
    let parts = [
        (site.asleep, "asleep"),
        (site.running, "running"),
        (site.preempted, "runnable without a CPU"),
    ];
    let Some((part, what)) = parts.into_iter().max_by_key(|(part, _)| *part) else {
        return String::new();
    };
    let percent = 100.0 * part as f64 / site.nanoseconds.max(1) as f64;
    if percent < 10.0 {
        return String::new();
    }
    let call = (what == "asleep").then(|| site.calls.first()).flatten();
    match call.and_then(|(call, _)| calls::name(call)) {
        Some(call) => format!("asleep in {call} for {percent:.0} % of the time"),
        None => format!("{what} for {percent:.0} % of the time"),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The locks of all processes that lost the most time.
fn locks(recording: &Recording<'_>) -> Vec<Place> {
    let mut all = Vec::new();
    for (process, (profile, _)) in recording.processes.iter().enumerate() {
        let locks = profile.objects.iter().enumerate();
        let locks = locks.filter(|(_, lock)| lock.key.object.is_lock()).take(LOCKS);
        all.extend(locks.map(|(at, lock)| (lock.sum.nanoseconds, Place { process, at })));
    }
    all.sort_by_key(|(nanoseconds, _)| Reverse(*nanoseconds));
    all.into_iter().take(LOCKS).map(|(_, place)| place).collect()
}

/// The longest waits for locks of all processes.
fn longest(recording: &Recording<'_>) -> Vec<(usize, Listed)> {
    let mut all: Vec<(usize, Listed)> = Vec::new();
    for (process, (profile, _)) in recording.processes.iter().enumerate() {
        let listed = profile.longest.iter().take(USUAL_LISTED);
        all.extend(listed.map(|listed| (process, *listed)));
    }
    all.sort_by_key(|(_, listed)| Reverse(*listed));
    all.truncate(USUAL_LISTED);
    all
}

fn lock_table(recording: &mut Recording<'_>, locks: &[Place], totals: &Totals) -> Markup {
    let columns = [
        ("lost", "Lost", "All waits for this lock together"),
        ("share", "Share", "Of all time lost waiting for locks"),
        ("waits", "Waits", "How many"),
        ("median", "Median", "Half of the waits took no longer"),
        ("p99", "99 %", "99 of 100 waits took no longer"),
        ("longest", "Longest", "The longest wait"),
    ];
    let after = [
        ("fairness", "Fairness", "1: all threads waited equally long (Jain's index)"),
        ("threads", "Threads", "How many threads waited"),
    ];
    let listed = locks.iter().map(|at| &recording.processes[at.process].0.objects[at.at]);
    let range = parts::range(listed.map(|lock| &lock.histogram));
    let scale = format!("How many waits took how long: {}", parts::ends(&range));
    html! {
        h2 { "Locks" }
        @if locks.is_empty() { p { "None." } } @else {
            p.s { "A click on a column sorts by it; one on a lock shows its stacks and threads." }
            div.wide { table #lock-table {
                thead { tr {
                    th scope="col" { "Lock" }
                    @for (name, shown, title) in columns {
                        th.n scope="col" title=(title)
                            aria-sort=[(name == "lost").then_some("descending")] {
                            button type="button" data-sort=(name) { (shown) }
                        }
                    }
                    th scope="col" title=(scale) { "Distribution" }
                    th scope="col" title="What the holder did meanwhile" { "Holder" }
                    @for (name, shown, title) in after {
                        th.n scope="col" title=(title) {
                            button type="button" data-sort=(name) { (shown) }
                        }
                    }
                } }
                @for place in locks { (lock_rows(recording, *place, totals, &range)) }
            } }
            @if totals.locks > locks.len() {
                p.s { "The " (totals.locks - locks.len()) " other locks lost less." }
            }
        }
    }
}

/// A lock's row, and a hidden one with its details.
fn lock_rows(
    recording: &mut Recording<'_>,
    at: Place,
    totals: &Totals,
    range: &Range<usize>,
) -> Markup {
    let (profile, symbols) = &mut recording.processes[at.process];
    let lock = &profile.objects[at.at];
    let sum = &lock.sum;
    let ((stack, holder_stack), _) = lock.stacks.first().unwrap_or_default();
    let share = 100.0 * sum.nanoseconds as f64 / totals.all.nanoseconds.max(1) as f64;
    let (median, p99) = (lock.quantile(0.5), lock.quantile(0.99));
    let fairness = lock.fairness();
    let name = place(&profile.process, symbols, stack);
    html! {
        tbody data-lost=(sum.nanoseconds) data-share=(share) data-waits=(sum.count)
            data-median=(median) data-p99=(p99) data-longest=(sum.longest)
            data-fairness=(fairness.unwrap_or(2.0)) data-threads=(lock.threads.len()) {
            tr.lock tabindex="0" aria-expanded="false" {
                th scope="row" {
                    span.kind { (lock.key.object_name()) " " (format!("{:#x}", lock.key.address)) }
                    @if totals.several { span.kind { " in process " (profile.process.pid) } }
                    span.place { (name) }
                }
                td.n { (time(sum.nanoseconds)) }
                td.n { (format!("{share:.1} %")) }
                td.n { (sum.count) }
                td.n { (time(median)) }
                td.n { (time(p99)) }
                td.n { (time(sum.longest)) }
                td { (parts::histogram(&lock.histogram, range)) }
                td { (parts::causes(sum)) }
                td.n { @match fairness { Some(index) => (format!("{index:.2}")), None => "–" } }
                td.n { (lock.threads.len()) }
            }
            tr.details hidden { td colspan="11" {
                (details(profile, symbols, lock, stack, holder_stack))
            } }
        }
    }
}

fn details(
    profile: &Profile,
    symbols: &mut Symbols<'_>,
    lock: &Lock,
    stack: u32,
    holder_stack: u32,
) -> Markup {
    /// More threads are not listed.
    const THREADS: usize = 12;
    let sum = &lock.sum;
    let longest = lock.threads.first().map_or(1, |(_, share)| share.nanoseconds.max(1));
    let facts = [
        (sum.handed_over, "handed over: kept for the waiter by the thread that released it"),
        (sum.timed_out, "ended by a deadline"),
        (sum.broken, "interrupted, cancelled, or in error"),
        (sum.in_vain, "times a waiter was woken and had to sleep again"),
        (sum.passed, "times others took and released the lock meanwhile"),
    ];
    html! {
        div.columns {
            div { h3 { "Waits in" } (parts::stack(&profile.process, symbols, stack)) }
            div { h3 { "Kept by" } (parts::stack(&profile.process, symbols, holder_stack)) }
            div {
                h3 { "Threads" }
                table.threads { @for (thread, share) in lock.threads.iter().take(THREADS) {
                    tr {
                        th scope="row" { (parts::thread(&profile.process, *thread)) }
                        td.n { (time(share.nanoseconds)) }
                        td.n { (share.count) }
                        td { (parts::bar(share.nanoseconds as f64 / longest as f64)) }
                    }
                } }
                @if lock.threads.len() > THREADS {
                    p.s { "and " (lock.threads.len() - THREADS) " more" }
                }
                ul { @for (count, what) in facts {
                    @if count > 0 { li { b { (count) } " " (what) } }
                } }
                @if let Some((holder, _)) = lock.holders.first() {
                    p { "Kept longest by " (parts::thread(&profile.process, holder)) "." }
                }
                @if let Some((next, _)) = sum.next.first().filter(|it| it.0 != lock.key.address) {
                    p { "The holder waited for the lock at " code { (format!("{next:#x}")) } "." }
                }
                (parts::legend(sum))
            }
        }
    }
}

fn graphs(recording: &mut Recording<'_>) -> Markup {
    html! {
        h2 { "Flame graph" }
        p.s {
            "Each function is as wide as the time that was waited in it and in what it called. A "
            "click shows one in full width."
        }
        @for (name, waits) in [("locks", Waits::Locks), ("work", Waits::Work)] {
            input type="radio" name="graph" id=(format!("show-{name}")) checked[name == "locks"];
            label for=(format!("show-{name}")) { (waits.title()) }
        }
        div.graph.of-locks { (flame::graph(recording, Waits::Locks)) }
        div.graph.of-work { (flame::graph(recording, Waits::Work)) }
    }
}

/// The rows of the longest waits: a row is a thread of a process.
fn timeline(recording: &mut Recording<'_>, longest: &[(usize, Listed)], totals: &Totals) -> Markup {
    let mut rows: Vec<(usize, u32)> = Vec::new();
    for (process, listed) in longest {
        if !rows.contains(&(*process, listed.thread)) {
            rows.push((*process, listed.thread));
        }
    }
    rows.sort_unstable();
    let began = longest.iter().map(|(_, listed)| listed.wait.began).min().unwrap_or(0);
    let end = |listed: &Listed| listed.wait.began.saturating_add(listed.wait.took);
    let ended = longest.iter().map(|(_, listed)| end(listed)).max().unwrap_or(began);
    let all = ended.saturating_sub(began).max(1) as f64;
    let percent = |nanoseconds: u64| format!("{:.4}%", 100.0 * nanoseconds as f64 / all);
    // The time at which the first of the recorded processes began.
    let first = recording.processes.iter().map(|(it, _)| it.process.began).min().unwrap_or(0);
    let others = totals.left_out;
    html! {
        h2 { "The " (longest.len()) " longest waits for locks" }
        @if longest.is_empty() { p { "None." } } @else {
            p.s {
                "From " (time(began.saturating_sub(first))) " to "
                (time(ended.saturating_sub(first))) " after the recording began. "
                @if others > 0 { (others) " shorter waits are not shown. " }
                "A click shows what is known of a wait."
            }
            div.timeline {
                @for (process, thread) in &rows {
                    div.row {
                        span.name {
                            @if totals.several {
                                (recording.processes[*process].0.process.pid) " "
                            }
                            (parts::thread(&recording.processes[*process].0.process, *thread))
                        }
                        div.track {
                            @for (number, (_, listed)) in longest.iter().enumerate()
                                .filter(|(_, (of, it))| (of, &it.thread) == (process, thread)) {
                                button.wait.(parts::main_cause(&listed.wait)) type="button"
                                    data-wait=(number)
                                    title=(format!("{}, after {}", time(listed.wait.took),
                                        time(listed.wait.began.saturating_sub(first))))
                                    style=(format!("left:{};width:{}",
                                        percent(listed.wait.began - began),
                                        percent(listed.wait.took))) {}
                            }
                        }
                    }
                }
            }
            div #picked aria-live="polite" {}
            @for (number, (process, listed)) in longest.iter().enumerate() {
                template id=(format!("wait-{number}")) {
                    (parts::wait(&mut recording.processes[*process], listed, first))
                }
            }
        }
    }
}

/// What limits what is shown.
fn notes(recording: &Recording<'_>) -> Markup {
    let processes = &recording.processes;
    let threshold = processes.iter().map(|(it, _)| it.process.threshold).max().unwrap_or(0);
    let has = |causes| processes.iter().any(|(it, _)| it.process.causes == Some(causes));
    html! {
        p.s {
            "Waits shorter than " (time(threshold)) " were not recorded. "
            @if has(Causes::Switches) {
                "What the holders did is from the kernel's context switches."
            } @else if has(Causes::Sums) {
                "What the holders did is from sums in /proc, which are coarser than context "
                "switches."
            } @else {
                "What the holders did is not known if the kernel does not let this user see "
                "context switches."
            }
            " Processes: "
            @for (number, (profile, _)) in processes.iter().enumerate() {
                @if number > 0 { ", " }
                (profile.process.pid)
                @if let Some(program) = program(profile) { " (" (program) ")" }
            }
            ". Written by waitword report."
        }
    }
}

#[cfg(test)]
mod tests;
