//! The findings as text.

use super::{Kind, findings};
use crate::read::Process;
use crate::symbols::Symbols;
use crate::text::{place, time};
use std::fmt::Write as _;
use waitword_record::format::{Causes, Wait};

/// The width of a line, except where a name is longer.
const WIDTH: usize = 96;
/// Findings of each process that are shown.
const SHOWN: usize = 20;

/// The findings of all processes of a recording. Where there are none, it says what was looked for.
pub fn text(processes: &[Process]) -> String {
    let mut text = String::new();
    let mut is_anything_found = false;
    for process in processes.iter().filter(|process| !process.waits.is_empty()) {
        let found = findings(process);
        if found.is_empty() {
            continue;
        }
        is_anything_found = true;
        let length = length(process);
        let _ = writeln!(text, "process {}, {}:", process.pid, time(length));
        let mut symbols = Symbols::of(process);
        for (number, finding) in found.iter().take(SHOWN).enumerate() {
            let share = 100.0 * finding.lost as f64 / length as f64;
            let share = match share {
                ..=100.0 => format!("{share:.0} % of the run"),
                _ => format!("as if {:.1} threads had waited for the whole run", share / 100.0),
            };
            let _ =
                writeln!(text, "{}. {}: {}, {share}", number + 1, finding.kind, time(finding.lost));
            for line in &finding.said {
                let place = line.stack.map(|stack| place(process, &mut symbols, stack));
                paragraph(&mut text, &[&*line.text, place.as_deref().unwrap_or("")].join(" "));
            }
            paragraph(&mut text, &format!("What to do: {}", finding.advice));
        }
        if found.len() > SHOWN {
            let _ = writeln!(text, "There are {} more findings.", found.len() - SHOWN);
        }
    }
    if !is_anything_found {
        let kinds: Vec<String> = Kind::ALL.iter().map(Kind::to_string).collect();
        flush_left(&mut text, &format!("Nothing was found. Looked for: {}.", kinds.join(", ")));
    }
    limits(&mut text, processes);
    text
}

/// The time from the beginning of the recording to the end of its last wait.
fn length(process: &Process) -> u64 {
    let ended = process.waits.iter().map(|(_, it)| it.began.saturating_add(it.took)).max();
    let first = process.waits.iter().map(|(_, it)| it.began).min().unwrap_or(0);
    let began = if process.began == 0 { first } else { process.began.min(first) };
    ended.unwrap_or(0).saturating_sub(began).max(1)
}

/// What the recording cannot show.
fn limits(text: &mut String, processes: &[Process]) {
    let with_waits = || processes.iter().filter(|process| !process.waits.is_empty());
    let shows = |process: &Process| {
        process.waits.iter().any(|(_, it)| it.running | it.preempted | it.asleep != 0)
    };
    let has_locks = |process: &Process| {
        let is_lock = |it: &Wait| it.object().is_some_and(|object| object.is_lock());
        process.waits.iter().any(|(_, it)| it.holder != 0 && is_lock(it))
    };
    let is_known = |process: &&Process| process.causes.is_some() || shows(process);
    if with_waits().any(has_locks) && !with_waits().any(|process| is_known(&process)) {
        let unknown: Vec<String> =
            Kind::ALL.iter().filter(|kind| kind.needs_causes()).map(Kind::to_string).collect();
        flush_left(
            text,
            &format!(
                "The kernel did not show what the holders of locks did (perf_event_paranoid above \
                 2, or a container), so these were not looked for: {}.",
                unknown.join(", "),
            ),
        );
    }
    if with_waits().any(|process| process.causes == Some(Causes::Sums)) {
        flush_left(
            text,
            "What the holders did is from sums in /proc, which are coarser than context switches.",
        );
    }
    let lost: u64 = processes.iter().map(|process| process.lost).fold(0, u64::saturating_add);
    if lost > 0 {
        flush_left(text, &format!("{lost} records were lost; what they would show is missing."));
    }
}

fn paragraph(text: &mut String, sentence: &str) {
    wrapped(text, sentence.trim_end(), "   ", "     ");
}

fn flush_left(text: &mut String, sentence: &str) {
    wrapped(text, sentence, "", "");
}

fn wrapped(text: &mut String, sentence: &str, first: &str, others: &str) {
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(first)
        .subsequent_indent(others)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    for line in textwrap::wrap(sentence, options) {
        let _ = writeln!(text, "{line}");
    }
}
