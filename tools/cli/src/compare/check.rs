//! Whether a run did what the plain program does.

use super::child::{Ended, Until, run};
use crate::scratch;
use anyhow::Result;
use std::convert::Infallible;
use std::io::{Seek as _, Write as _};
use std::process::{Command, ExitStatus};
use std::str::FromStr;

/// How many characters of a line are shown.
const SHOWN: usize = 60;

/// What a run must have in common with a plain one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Stdout and the exit status.
    Output,
    /// The exit status.
    Status,
    /// The exit status, and this shell command accepts its stdout.
    Command(String),
}

impl FromStr for Check {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "output" => Self::Output,
            "status" => Self::Status,
            command => Self::Command(command.to_owned()),
        })
    }
}

/// What a plain run did.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) status: ExitStatus,
    stdout: Vec<u8>,
}

impl Expected {
    pub(super) fn new(plain: Ended) -> Self {
        Self { status: plain.status, stdout: plain.stdout }
    }

    /// What is wrong with this run; `None` if it did the same.
    ///
    /// # Errors
    /// The check cannot be made.
    pub(super) fn differs(
        &self,
        check: &Check,
        run: &Ended,
        until: Until<'_>,
    ) -> Result<Option<String>> {
        if let Some(late) = late(run, until) {
            return Ok(Some(late));
        }
        if run.status != self.status {
            let stderr = String::from_utf8_lossy(&run.stderr);
            let last = stderr.lines().rev().find(|line| !line.trim().is_empty());
            let last = last.map_or_else(String::new, |line| format!(" ({})", shown(line, 0)));
            return Ok(Some(format!("{} instead of {}{last}", run.status, self.status)));
        }
        Ok(match check {
            Check::Output if run.stdout != self.stdout => {
                Some(difference(&self.stdout, &run.stdout))
            }
            Check::Status | Check::Output => None,
            Check::Command(command) => rejects(command, &run.stdout, until)?,
        })
    }
}

/// That the run took too long, if it did.
pub(super) fn late(run: &Ended, until: Until<'_>) -> Option<String> {
    let seconds = until.limit.as_secs();
    run.is_late.then(|| format!("did not end within {seconds} s (see --limit)"))
}

/// Where two outputs differ.
fn difference(expected: &[u8], found: &[u8]) -> String {
    let same = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let before = &expected[..same];
    let number = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
    let begin = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let line = |text: &[u8]| {
        let line = text[begin..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        format!("'{}'", shown(&String::from_utf8_lossy(line), same - begin))
    };
    match (same == expected.len(), same == found.len()) {
        (_, true) => format!("stdout ends early, in line {number}"),
        (true, _) => format!("stdout goes on in line {number}: {}", line(found)),
        _ => format!("line {number} of stdout is {} instead of {}", line(found), line(expected)),
    }
}

/// The part of a line around this byte.
fn shown(line: &str, byte: usize) -> String {
    let before = line.char_indices().take_while(|(at, _)| *at < byte).count();
    let skipped = before.saturating_sub(SHOWN / 2);
    let rest = line.chars().count() - skipped;
    let part: String = line.chars().skip(skipped).take(SHOWN).collect();
    let [left, right] = [skipped > 0, rest > SHOWN].map(|is_cut| if is_cut { "..." } else { "" });
    format!("{left}{part}{right}")
}

/// What is wrong according to this command.
fn rejects(command: &str, stdout: &[u8], until: Until<'_>) -> Result<Option<String>> {
    let mut stdin = scratch::file()?;
    stdin.write_all(stdout)?;
    stdin.rewind()?;
    let ended = run(Command::new("sh").args(["-c", command]).stdin(stdin), until)?;
    Ok(match late(&ended, until) {
        Some(late) => Some(format!("the check '{command}' {late}")),
        None if ended.status.success() => None,
        None => Some(format!("the check '{command}' rejects the output: {}", ended.status)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;
    use waitword_bench::usage::Usage;

    fn ended(code: i32, stdout: &[u8], stderr: &str) -> Ended {
        Ended {
            status: ExitStatus::from_raw(code << 8),
            is_late: false,
            stdout: stdout.into(),
            stderr: stderr.into(),
            seconds: 1.0,
            usage: Usage::default(),
        }
    }

    fn verdict(check: &str, run: Ended) -> Option<String> {
        let expected = Expected::new(ended(0, b"one\ntwo\n", ""));
        let Ok(check) = check.parse();
        let stop = AtomicBool::new(false);
        let until = Until { limit: Duration::from_secs(60), stop: &stop };
        expected.differs(&check, &run, until).unwrap()
    }

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(verdict("output", ended(0, b"one\ntwo\n", "whatever")), None);
        let error = |stdout: &[u8]| verdict("output", ended(0, stdout, "")).unwrap();
        assert_eq!(error(b"one\n2\n"), "line 2 of stdout is '2' instead of 'two'");
        assert_eq!(error(b"one\ntwo\nthree"), "stdout goes on in line 3: 'three'");
        assert_eq!(error(b"one\ntwo"), "stdout ends early, in line 2");
        assert_eq!(error(b""), "stdout ends early, in line 1");
        assert_eq!(error(b"one\nt\xff\n"), "line 2 of stdout is 't\u{fffd}' instead of 'two'");
    }

    #[test]
    fn the_part_of_a_long_line_that_differs_is_shown() {
        let [one, other] = ["x", "y"].map(|last| "a".repeat(200) + last + "end");
        let text = difference(one.as_bytes(), other.as_bytes());
        let a = "a".repeat(30);
        assert_eq!(text, format!("line 1 of stdout is '...{a}yend' instead of '...{a}xend'"));
        assert_eq!(shown(&"b".repeat(61), 0), "b".repeat(60) + "...");
    }

    #[test]
    fn another_status_is_shown_with_the_last_line_of_stderr() {
        for check in ["output", "status", "true"] {
            let error = verdict(check, ended(3, b"one\ntwo\n", "first\nlast\n\n"));
            assert_eq!(error.unwrap(), "exit status: 3 instead of exit status: 0 (last)");
        }
        assert_eq!(verdict("status", ended(0, b"anything", "")), None);
        let late = Ended { is_late: true, ..ended(0, b"", "") };
        assert_eq!(verdict("status", late).unwrap(), "did not end within 60 s (see --limit)");
    }

    #[test]
    fn a_command_decides() {
        assert_eq!(verdict("grep -q thr", ended(0, b"three\n", "")), None);
        let error = verdict("grep -q thr", ended(0, b"four\n", "")).unwrap();
        assert_eq!(error, "the check 'grep -q thr' rejects the output: exit status: 1");
        // It need not read everything.
        assert_eq!(verdict("true", ended(0, &[b'x'; 1 << 20], "")), None);
    }
}
