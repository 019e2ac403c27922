//! The small parts of the page: bars, histograms, stacks, a wait.

use super::printable;
use crate::calls;
use crate::export::{frames, json::ended};
use crate::locks::{BUCKETS, shortest};
use crate::longest::Listed;
use crate::profile::Profile;
use crate::read::Process;
use crate::sites::{Site, weight};
use crate::symbols::{Frame, Symbols};
use crate::text::{addresses_of, is_between, place_as, shown, time};
use core::ops::Range;
use maud::{Markup, html};
use waitword_record::format::Wait;

/// The causes, in the order in which they are drawn: the class, and what it means.
const CAUSES: [(&str, &str); 4] = [
    ("running", "running"),
    ("preempted", "runnable without a CPU"),
    ("asleep", "asleep"),
    ("unknown", "unknown"),
];

/// Shares of the time of some waits, in the order of [`CAUSES`].
fn shares(site: &Site) -> [f64; 4] {
    let all = site.nanoseconds.max(1) as f64;
    let known = [site.running, site.preempted, site.asleep].map(|part| part as f64 / all);
    let [running, preempted, asleep] = known;
    [running, preempted, asleep, (1.0 - running - preempted - asleep).max(0.0)]
}

/// A bar of what the holders did.
pub(super) fn causes(site: &Site) -> Markup {
    let shares = shares(site);
    let said = CAUSES.iter().zip(shares).filter(|(_, share)| *share >= 0.005);
    let said: Vec<String> =
        said.map(|((_, what), share)| format!("{:.0} % {what}", 100.0 * share)).collect();
    html! {
        div.causes role="img" aria-label=(said.join(", ")) title=(said.join(", ")) {
            @for ((class, _), share) in CAUSES.iter().zip(shares) {
                @if share >= 0.0005 { i.(class) style=(format!("width:{:.2}%", 100.0 * share)) {} }
            }
        }
    }
}

/// What the colours mean, with the shares.
pub(super) fn legend(site: &Site) -> Markup {
    let call = site.calls.first().and_then(|(call, _)| calls::name(call));
    html! {
        ul.legend {
            @for ((class, what), share) in
                CAUSES.iter().zip(shares(site)).filter(|(_, share)| *share >= 0.005) {
                li {
                    i.(class) {} (format!("{:.0} %", 100.0 * share)) " " (what)
                    @if let (Some(call), "asleep") = (&call, *class) {
                        ", mostly in " code { (call) }
                    }
                }
            }
        }
    }
}

/// The buckets from the first to the last that any of these histograms uses.
pub(super) fn range<'a>(all: impl Iterator<Item = &'a [u64; BUCKETS]>) -> Range<usize> {
    let (mut first, mut end) = (BUCKETS, 0);
    for buckets in all {
        for (number, _) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            (first, end) = (first.min(number), end.max(number + 1));
        }
    }
    first.min(end)..end
}

/// The times of these buckets.
pub(super) fn ends(range: &Range<usize>) -> String {
    if range.is_empty() {
        return "none".to_owned();
    }
    format!("from {} to {}", time(shortest(range.start)), time(shortest(range.end)))
}

/// How many waits took how long: a column for each bucket of the range, which all histograms of
/// the table share.
pub(super) fn histogram(buckets: &[u64; BUCKETS], range: &Range<usize>) -> Markup {
    const WIDTH: f64 = 130.0;
    const HEIGHT: f64 = 24.0;
    let most = buckets.iter().copied().max().unwrap_or(1).max(1) as f64;
    let column = WIDTH / range.len().max(1) as f64;
    let used = ends(&self::range(core::iter::once(buckets)));
    html! {
        svg.histogram width=(WIDTH) height=(HEIGHT) role="img" aria-label=(used) {
            title { (used) }
            @for (number, count) in buckets[range.clone()].iter().enumerate() {
                @if *count > 0 {
                    // A single wait is visible.
                    @let height = (HEIGHT * *count as f64 / most).max(1.5);
                    rect x=(format!("{:.2}", number as f64 * column))
                        y=(format!("{:.1}", HEIGHT - height))
                        width=(format!("{:.2}", (column - 0.5).max(1.0)))
                        height=(format!("{height:.1}")) {}
                }
            }
        }
    }
}

/// The innermost functions of the program itself, with the names and lines of their files.
pub(super) fn place(process: &Process, symbols: &mut Symbols<'_>, stack: u32) -> String {
    let short = |frame: &Frame| {
        let line = frame
            .line
            .as_ref()
            .map(|(file, line)| (file.rsplit('/').next().unwrap_or_default().to_owned(), *line));
        shown(&Frame { line, ..frame.clone() })
    };
    let caller = |frame: &Frame| match frame.line {
        Some(_) => short(frame),
        None => frame.function.clone(),
    };
    printable(&place_as(addresses_of(process, stack), symbols, short, caller))
}

/// A bar of this share.
pub(super) fn bar(share: f64) -> Markup {
    html! { div.bar { i style=(format!("width:{:.1}%", 100.0 * share.clamp(0.0, 1.0))) {} } }
}

/// A thread's name and number.
pub(super) fn thread(process: &Process, thread: u32) -> String {
    let name = process.threads.get(&thread).map_or("", String::as_str);
    printable(format!("{name} {thread}").trim_start())
}

/// The functions of a stack, the innermost first. The program's own stand out.
pub(super) fn stack(process: &Process, symbols: &mut Symbols<'_>, number: u32) -> Markup {
    let frames = frames(process, symbols, number);
    html! {
        @if frames.is_empty() { p.s { "unknown" } }
        ol.stack { @for frame in &frames {
            li.between[is_between(frame)] { (printable(&shown(frame))) }
        } }
    }
}

/// The class of the cause that has most of a wait.
pub(super) fn main_cause(wait: &Wait) -> &'static str {
    let known = [wait.running, wait.preempted, wait.asleep].map(|part| part.min(1000));
    let unknown = 1000_u16.saturating_sub(known.iter().sum());
    let parts = [known[0], known[1], known[2], unknown];
    let most = CAUSES.iter().zip(parts).rev().max_by_key(|(_, part)| *part);
    most.map_or("unknown", |((class, _), _)| class)
}

/// All that is known of a wait.
pub(super) fn wait(
    (profile, symbols): &mut (&Profile, Symbols<'_>),
    listed: &Listed,
    first: u64,
) -> Markup {
    let process = &profile.process;
    let wait = &listed.wait;
    let object = wait.object().map_or_else(String::new, |object| format!("{object:?}"));
    let percent = |thousandths: u16| format!("{:.0} %", f64::from(thousandths.min(1000)) / 10.0);
    let mut facts = vec![
        ("Thread", thread(process, listed.thread)),
        ("Lock", format!("{object} {:#x}", wait.address)),
        ("Waited", time(wait.took)),
        ("From", format!("{} after the recording began", time(wait.began.saturating_sub(first)))),
        ("Ended", ended(wait.ended).to_owned()),
    ];
    if wait.holder != 0 {
        facts.push(("Holder", thread(process, wait.holder)));
    }
    if wait.waker != 0 {
        facts.push(("Ended by", thread(process, wait.waker)));
    }
    if wait.running > 0 || wait.preempted > 0 || wait.asleep > 0 {
        facts.push((
            "Holder was",
            format!(
                "{} running, {} runnable without a CPU, {} asleep{}",
                percent(wait.running),
                percent(wait.preempted),
                percent(wait.asleep),
                calls::name(wait.call).map_or_else(String::new, |call| format!(" in {call}")),
            ),
        ));
    }
    if wait.next != 0 && wait.next != wait.address {
        facts.push(("Holder waited for", format!("{:#x}", wait.next)));
    }
    for (name, count) in [
        ("Woken in vain", u64::from(wait.in_vain)),
        ("Others came first", wait.passed.into()),
        ("Stands for", weight(wait)),
    ] {
        if count > u64::from(name == "Stands for") {
            facts.push((name, count.to_string()));
        }
    }
    html! {
        div.columns {
            dl { @for (name, value) in facts { dt { (name) } dd { (value) } } }
            div { h3 { "Waited in" } (stack(process, symbols, wait.stack)) }
            div { h3 { "Kept by" } (stack(process, symbols, wait.holder_stack)) }
        }
    }
}
