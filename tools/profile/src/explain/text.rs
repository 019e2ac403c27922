//! The findings as text.

use super::{Explained, Kind};
use crate::read::Process;
use crate::symbols::Symbols;
use crate::text::{place, time};
use std::fmt::Write as _;
use waitword_record::format::Causes;

/// The width of a line, except where a name is longer.
const WIDTH: usize = 96;
/// Findings of each process that are shown.
const SHOWN: usize = 20;

/// The findings of all processes of a recording. Where there are none, it says what was looked for.
pub fn text(processes: &[(Process, Explained)]) -> String {
    let mut text = String::new();
    let mut is_anything_found = false;
    for (process, Explained { findings: found, length, .. }) in processes {
        if found.is_empty() {
            continue;
        }
        is_anything_found = true;
        let length = *length;
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

/// What the recording cannot show.
fn limits(text: &mut String, processes: &[(Process, Explained)]) {
    let with_waits = || processes.iter().filter(|(_, explained)| explained.length > 0);
    let has_holders = with_waits().any(|(_, explained)| explained.has_holders);
    if has_holders && !with_waits().any(|(_, explained)| explained.has_causes) {
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
    if with_waits().any(|(process, _)| process.causes == Some(Causes::Sums)) {
        flush_left(
            text,
            "What the holders did is from sums in /proc, which are coarser than context switches.",
        );
    }
    let lost: u64 = processes.iter().map(|(process, _)| process.lost).fold(0, u64::saturating_add);
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
