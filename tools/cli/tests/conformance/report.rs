//! The output of a program of the suite, case by case.

use crate::programs::{Output, Program};
use std::collections::BTreeMap;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Ok,
    Skipped,
    Failed(String),
}

/// All cases and answers of one run.
pub(crate) struct Report {
    ends: BTreeMap<String, End>,
    pub(crate) answers: BTreeMap<String, String>,
    /// Cases without any output.
    silent: Vec<String>,
    /// Contains the threads of cases that hung.
    stderr: String,
}

impl Report {
    pub(crate) fn of(program: &Program, output: &Output) -> Self {
        let mut report = Self {
            ends: BTreeMap::new(),
            answers: BTreeMap::new(),
            silent: Vec::new(),
            stderr: output.stderr.clone(),
        };
        assert!(!output.cases.is_empty(), "{} names no cases", program.name);
        for line in output.stdout.lines() {
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (case, text) = rest.split_once(' ').unwrap_or((rest, ""));
            let (case, text) = (case.to_owned(), text.to_owned());
            match what {
                "ok" => report.end(case, End::Ok),
                "skip" => {
                    eprintln!("{}: skipped {case}: {text}", program.name);
                    report.end(case, End::Skipped);
                }
                "FAIL" => report.end(case, End::Failed(text)),
                "answer" => {
                    report.answers.insert(case, text);
                }
                _ => panic!("{} printed an unknown line: {line}", program.name),
            }
        }
        for case in &output.cases {
            if !report.ends.contains_key(case) {
                report.silent.push(case.clone());
            }
        }
        report
    }

    /// Records the end of a case. A failure in a child process stays a failure, even if the case
    /// goes on in the parent.
    fn end(&mut self, case: String, end: End) {
        match self.ends.get(&case) {
            Some(End::Failed(_)) => {}
            _ => {
                self.ends.insert(case, end);
            }
        }
    }

    /// Leaves out the cases that also fail in the other run.
    pub(crate) fn forgive(&mut self, other: &Self) {
        let failed = |end: Option<&End>| matches!(end, Some(End::Failed(_)));
        self.ends.retain(|case, _| !failed(other.ends.get(case)));
    }

    /// Leaves out a case that also fails now and then in the other run.
    pub(crate) fn leave_out(&mut self, case: &str) {
        self.ends.remove(case);
    }

    /// Whether the case of this answer was skipped, so that there is no answer.
    pub(crate) fn was_skipped(&self, answer: &str) -> bool {
        let case = answer.split('.').next().unwrap_or(answer);
        self.ends.get(case) == Some(&End::Skipped)
    }

    /// The failures, as text.
    pub(crate) fn wrong(&self, how: &str) -> Vec<String> {
        let failed = self.ends.iter().filter_map(|(case, end)| match end {
            End::Failed(why) => Some(format!("{how}: {case}: {why}{}", self.threads_of(case))),
            End::Ok | End::Skipped => None,
        });
        let silent = self.silent.iter().map(|case| {
            format!("{how}: {case}: ended, and said nothing{}", indented(&self.stderr))
        });
        failed.chain(silent).collect()
    }

    /// The runner's output about the threads of a case that hung.
    fn threads_of(&self, case: &str) -> String {
        let from =
            self.stderr.lines().skip_while(|line| *line != format!("{case} hangs; its threads:"));
        let threads: Vec<_> = from.skip(1).take_while(|line| line.starts_with("  ")).collect();
        indented(&threads.join("\n"))
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("\n    {line}")).collect()
}
