//! `better.txt`: the list of answers in which the drop-in may differ from glibc because it is
//! better.
//!
//! Each line is `PROGRAM CASE.WHAT | glibc's | ours | last version of glibc that gives it |
//! reason`.

use crate::report::Report;
use std::collections::BTreeSet;
use std::ffi::CStr;

/// One line.
pub(crate) struct Entry {
    pub(crate) program: String,
    answer: String,
    glibc: String,
    ours: String,
    /// The last version of glibc with this answer. Later versions have fixed it and may agree.
    until: Option<(u32, u32)>,
}

pub(crate) struct Better(Vec<Entry>);

impl Better {
    pub(crate) fn list() -> Self {
        let lines = include_str!("better.txt").lines();
        let entries = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(entries.map(Entry::read).collect())
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// Unlisted differences, and listed ones that do not differ as listed.
    pub(crate) fn differences(&self, program: &str, plain: &Report, ours: &Report) -> Vec<String> {
        let mut wrong = Vec::new();
        let answers: BTreeSet<_> = plain.answers.keys().chain(ours.answers.keys()).collect();
        let listed = |answer: &str| {
            self.0.iter().find(|entry| entry.program == program && entry.answer == answer)
        };
        let said = |report: &Report, answer: &str| {
            let nothing = || "nothing".to_owned();
            report.answers.get(answer).cloned().unwrap_or_else(nothing)
        };
        for answer in answers {
            let (here, there) = (said(plain, answer), said(ours, answer));
            match listed(answer) {
                None if here == there => {}
                None => wrong.push(format!(
                    "{answer}: glibc says {here}, the drop-in says {there}, and it is not listed"
                )),
                Some(entry) if entry.is_mended() && here == there => {}
                Some(entry) if here == entry.glibc && there == entry.ours => {}
                Some(entry) => wrong.push(format!(
                    "{answer}: listed as {} on glibc and {} under the drop-in, but they say {here} \
                     and {there}",
                    entry.glibc, entry.ours
                )),
            }
        }
        for entry in &self.0 {
            let is_silent = !plain.answers.contains_key(&entry.answer)
                && !ours.answers.contains_key(&entry.answer);
            let may_be = plain.was_skipped(&entry.answer) || cfg!(not(target_arch = "x86_64"));
            if entry.program == program && is_silent && !may_be {
                wrong.push(format!("{}: listed, but not answered", entry.answer));
            }
        }
        wrong
    }
}

impl Entry {
    fn read(line: &str) -> Self {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, glibc, ours, until, reason] = fields[..] else {
            panic!("better.txt: not five fields: {line}");
        };
        assert!(!reason.is_empty(), "better.txt: no reason: {line}");
        let (program, answer) =
            name.split_once(' ').unwrap_or_else(|| panic!("better.txt: no case: {line}"));
        Self {
            program: program.to_owned(),
            answer: answer.trim().to_owned(),
            glibc: glibc.to_owned(),
            ours: ours.to_owned(),
            until: (until != "-").then(|| version(until)),
        }
    }

    /// Whether this machine's glibc is newer than the last version that gives the answer.
    fn is_mended(&self) -> bool {
        self.until.is_some_and(|until| installed() > until)
    }
}

/// The C library's version.
fn installed() -> (u32, u32) {
    // SAFETY: the returned string is static.
    let text = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version(text.to_str().expect("digits and a point"))
}

fn version(text: &str) -> (u32, u32) {
    let number = |text: &str| text.parse().expect("a version: two numbers and a point");
    let (major, minor) = text.split_once('.').expect("a version has a point");
    (number(major), number(minor))
}
