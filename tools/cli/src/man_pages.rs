//! `waitword man-pages`: a page of section 1 for the command and for each of its subcommands, made
//! of what `--help` says. What `--help` leaves out is in [`sections`].

mod layout;
mod sections;

use crate::completions::public;
use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use sections::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `waitword man-pages`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory that receives the pages, which is made
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match write(&args.out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waitword: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn write(directory: &Path) -> Result<()> {
    let shown = || format!("--out {}", directory.display());
    fs::create_dir_all(directory).with_context(shown)?;
    let mut cli = public().disable_help_subcommand(true);
    cli.build();
    for (name, page) in pages(&cli)? {
        fs::write(directory.join(name), page).with_context(shown)?;
    }
    Ok(())
}

/// The pages of this command and of everything below it, with the names of their files.
fn pages(command: &Command) -> Result<Vec<(String, String)>> {
    let mut all = vec![(format!("{}.1", name(command)), page(command)?)];
    for below in command.get_subcommands() {
        all.append(&mut pages(below)?);
    }
    Ok(all)
}

/// `waitword-bench-any`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn page(command: &Command) -> Result<String> {
    let name = name(command);
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(date())
        .source(format!("waitword {}", env!("CARGO_PKG_VERSION")))
        .manual("waitword");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let help = AfterHelp::of(&help);
    let mut rest = Roff::new();
    let status = sections::exit_status(name);
    if !status.is_empty() {
        rest.control("SH", ["EXIT STATUS"]);
        entries(&mut rest, status);
    }
    for (heading, list) in
        [("ENVIRONMENT", sections::environment(name)), ("FILES", sections::files(name))]
    {
        if !list.is_empty() {
            rest.control("SH", [heading]);
            list.iter().for_each(|part| entries(&mut rest, part));
        }
    }
    help.write(&mut rest);
    see_also(&mut rest, command);
    rest.to_writer(&mut page)?;
    Ok(layout::lay_out(&String::from_utf8(page)?))
}

/// The commit's date. A build without a commit has none, and the page shows none.
fn date() -> &'static str {
    let date = env!("WAITWORD_VERSION").strip_suffix(')');
    date.and_then(|version| version.rsplit(' ').next()).unwrap_or_default()
}

/// The texts below the options in `--help`: `Examples:`, each a command and what it does, and
/// paragraphs of notes. A paragraph that begins with `Exit status:` is left out: the table of exit
/// statuses says it in another form.
struct AfterHelp<'a> {
    examples: Vec<(&'a str, String)>,
    notes: Vec<String>,
}

impl<'a> AfterHelp<'a> {
    fn of(text: &'a str) -> Self {
        let mut help = Self { examples: Vec::new(), notes: Vec::new() };
        for paragraph in text.split("\n\n") {
            if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
                help.add_examples(examples);
            } else if !paragraph.is_empty() && !paragraph.starts_with("Exit status: ") {
                help.notes.push(paragraph.replace('\n', " "));
            }
        }
        help
    }

    fn add_examples(&mut self, text: &'a str) {
        for line in text.lines() {
            let indented = line.len() - line.trim_start().len();
            match self.examples.last_mut() {
                // What the example above does.
                Some((_, does)) if indented > 2 => {
                    if !does.is_empty() {
                        does.push(' ');
                    }
                    does.push_str(line.trim());
                }
                _ => self.examples.push((line.trim(), String::new())),
            }
        }
    }

    fn write(&self, roff: &mut Roff) {
        if !self.notes.is_empty() {
            roff.control("SH", ["NOTES"]);
        }
        for (position, note) in self.notes.iter().enumerate() {
            if position > 0 {
                roff.control("PP", []);
            }
            roff.text([roman(note)]);
        }
        if !self.examples.is_empty() {
            roff.control("SH", ["EXAMPLES"]);
        }
        for (command, does) in &self.examples {
            roff.control("TP", []);
            roff.text([bold(*command)]);
            roff.text([roman(does)]);
        }
    }
}

fn entries(roff: &mut Roff, entries: &[Entry]) {
    for (term, meaning) in entries {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*meaning)]);
    }
}

/// The pages above, below and beside this one.
fn see_also(roff: &mut Roff, command: &Command) {
    let own = name(command);
    let above = own.rsplit_once('-').map(|(above, _)| above);
    let below = command.get_subcommands().map(name);
    let beside = sections::beside(own).iter().copied();
    let names: Vec<&str> = above.into_iter().chain(below).chain(beside).collect();
    let mut line: Vec<Inline> = Vec::new();
    for (position, name) in names.iter().enumerate() {
        let end = if position + 1 < names.len() { ", " } else { "" };
        line.extend([bold(*name), roman(format!("(1){end}"))]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text(line);
}
