//! Runs the commands of a page.
//!
//! All blocks of a page run one after another in one directory, so that a later command finds what
//! an earlier one made. `sh` is a script that must succeed. `console` shows commands behind `$ `,
//! continued behind `> `, and below each what it prints, on stdout and stderr.

use crate::blocks::Block;
use crate::expected;
use std::path::Path;
use std::process::{Command, Stdio};

/// So long may a block take.
const SECONDS: &str = "120";

/// Runs a script; its status and all that it printed.
pub(crate) fn run(script: &str, place: &Path) -> Result<(i32, String), String> {
    // One file for both streams keeps their order. `timeout` ends all that the script started.
    let output = tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))?;
    let both = || output.try_clone().map_err(|error| format!("no second handle: {error}"));
    let status = Command::new("timeout")
        .args(["--kill-after=5", SECONDS, "bash", "-euo", "pipefail", "-c", script])
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(both()?)
        .stderr(both()?)
        .status()
        .map_err(|error| format!("cannot start a shell: {error}"))?;
    let mut output = output;
    let text = read(&mut output)?;
    let status = status.code().unwrap_or(-1);
    let late =
        if status == 124 { format!("\n(not done after {SECONDS} s)") } else { String::new() };
    Ok((status, text + &late))
}

fn read(file: &mut std::fs::File) -> Result<String, String> {
    use std::io::{Read, Seek};
    let mut text = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut text))
        .map_err(|error| format!("cannot read what was printed: {error}"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What a command prints, which must succeed.
pub(crate) fn output(command: &str, place: &Path) -> Result<String, String> {
    match run(command, place)? {
        (0, text) => Ok(text),
        (status, text) => Err(format!("`{command}` ends with status {status}:\n{text}")),
    }
}

/// A command, and what the page shows of its output.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    command: String,
    output: String,
}

/// Runs the commands of a block. Returns how many there were.
pub(crate) fn check(block: &Block, place: &Path) -> Result<usize, String> {
    if block.language == "sh" {
        return match run(&block.text, place)? {
            (0, _) => Ok(commands(&block.text)),
            (status, text) => Err(format!("{} ends with status {status}:\n{text}", block.place())),
        };
    }
    let all = parse(&block.text).ok_or_else(|| format!("{}: no `$ `", block.place()))?;
    for Shown { command, output } in &all {
        let (status, text) = run(command, place)?;
        if status != 0 && !block.has("fails") {
            return Err(format!(
                "{}: `{command}` ends with status {status}:\n{text}",
                block.place()
            ));
        }
        if !expected::matches(output, &text, block.has("figures")) {
            return Err(format!(
                "{}: `{command}` prints\n{text}\nand not\n{output}",
                block.place()
            ));
        }
    }
    Ok(all.len())
}

/// The number of commands in a script: its lines, but for comments and those that continue another.
fn commands(script: &str) -> usize {
    let mut continues = false;
    let mut count = 0;
    for line in script.lines().map(str::trim) {
        if !continues && !line.is_empty() && !line.starts_with('#') {
            count += 1;
        }
        continues = line.ends_with('\\');
    }
    count
}

/// `None` if the block does not begin with a command.
fn parse(text: &str) -> Option<Vec<Shown>> {
    let mut all: Vec<Shown> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown { command: command.to_owned(), output: String::new() });
            continue;
        }
        let last = all.last_mut()?;
        match line.strip_prefix("> ") {
            Some(more) if last.output.is_empty() => {
                last.command.push('\n');
                last.command += more;
            }
            _ => {
                last.output += line;
                last.output.push('\n');
            }
        }
    }
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(language: &str, text: &str) -> Block {
        Block {
            page: "a.md".into(),
            line: 1,
            language: language.to_owned(),
            attributes: Vec::new(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn commands_see_what_earlier_ones_made_and_must_succeed() {
        let place = tempfile::tempdir().unwrap();
        let check = |block: Block| check(&block, place.path());
        assert_eq!(check(block("sh", "# a comment\necho a >f\ntest -e \\\n    f\n")), Ok(2));
        assert_eq!(check(block("console", "$ cat f\na\n$ echo \\\n> b\nb\n")), Ok(2));
        for (language, wrong) in [
            ("sh", "false"),
            ("sh", "false | true"),
            ("sh", "echo $unset_variable"),
            ("console", "$ cat f\nb\n"),
            ("console", "$ cat f\n"),
            ("console", "$ false\n"),
            ("console", "no command\n"),
        ] {
            assert!(check(block(language, wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_that_shall_fail_may() {
        let place = tempfile::tempdir().unwrap();
        let mut block = block("console", "$ echo a; false\na\n");
        block.attributes.push("fails".to_owned());
        assert_eq!(check(&block, place.path()), Ok(1));
    }
}
