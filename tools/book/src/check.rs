//! `waitword-book check`: all that can be checked once mdBook has rendered the pages.

use crate::blocks::{self, Block};
use crate::{c, links, shell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The arguments of `waitword-book check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Directory of the repository
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    repository: PathBuf,

    /// What mdBook's renderer `markdown` wrote: the pages with everything in place
    #[arg(long, value_name = "DIRECTORY")]
    markdown: PathBuf,

    /// What its renderer `html` wrote
    #[arg(long, value_name = "DIRECTORY")]
    html: PathBuf,

    /// Check only the blocks of pages with this in their name
    #[arg(long, value_name = "PART")]
    only: Option<String>,

    /// Files of Markdown, relative to the repository, whose links are followed
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut count = |what: &'static str, more: usize| *counts.entry(what).or_default() += more;
    for path in files_below(&args.markdown, "md")? {
        let page = path.strip_prefix(&args.markdown).unwrap_or(&path);
        let is_wanted = args.only.as_ref().is_none_or(|part| page.to_string_lossy().contains(part));
        // mdBook's own list of the pages, with no blocks.
        if !is_wanted || page == Path::new("SUMMARY.md") {
            continue;
        }
        count("pages", 1);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        count("diagrams", text.matches("<figure class=\"diagram\">").count());
        count("measured pictures", text.matches("<figcaption>").count());
        let place = Workplace::new(&args.repository)?;
        for (number, block) in blocks::of(page, &text).iter().enumerate() {
            match check(block, number, &place, &args.repository) {
                Ok(done) => done.into_iter().for_each(|(what, more)| count(what, more)),
                Err(why) => failures.push(why),
            }
        }
    }
    for done in [
        links::check_html(&args.html).map(|links| ("links in the pages", links)),
        links::check_files(&args.repository, &args.files).map(|links| ("other links", links)),
    ] {
        match done {
            Ok((what, more)) => count(what, more),
            Err(why) => failures.push(why),
        }
    }
    match programs(&args.repository) {
        Ok(programs) => count("programs compiled", programs),
        Err(why) => failures.push(why),
    }
    failures.extend(forgotten(&args.repository)?);
    for failure in &failures {
        eprintln!("{failure}\n");
    }
    let counts: Vec<String> =
        counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
    println!("{}", counts.join(", "));
    if failures.is_empty() { Ok(()) } else { Err(format!("{} failures", failures.len())) }
}

/// Where the blocks of one page run: a directory with the book's programs.
struct Workplace(tempfile::TempDir);

impl Workplace {
    fn new(repository: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot copy the programs: {error}");
        let place = tempfile::tempdir().map_err(failed)?;
        let programs = repository.join("book/programs");
        for entry in std::fs::read_dir(programs).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            std::fs::copy(entry.path(), place.path().join(entry.file_name())).map_err(failed)?;
        }
        Ok(Self(place))
    }
}

/// Checks one block. Returns what was done, and how often.
fn check(
    block: &Block,
    number: usize,
    place: &Workplace,
    repository: &Path,
) -> Result<Vec<(&'static str, usize)>, String> {
    let place = place.0.path();
    match block.language.as_str() {
        // Not compiled by itself: a part of a program.
        "c" | "cpp" | "diff" if block.has("ignore") || block.language == "diff" => {
            let programs = repository.join("book/programs");
            let ending = if block.language == "diff" { "patch" } else { &block.language };
            is_part_of(&programs, ending, block).map(|()| vec![("parts of programs", 1)])
        }
        "c" | "cpp" => match c::compile(block, number, place)? {
            c::Done::Compiled => Ok(vec![("C and C++ compiled", 1)]),
            c::Done::Ran => Ok(vec![("C and C++ compiled", 1), ("C and C++ run", 1)]),
        },
        "sh" | "console" => shell::check(block, place).map(|count| vec![("commands run", count)]),
        // Rustdoc compiles the others. This one must be a part of a program that cargo builds.
        "rust" if block.has("ignore") => {
            let programs = repository.join("book/examples");
            is_part_of(&programs, "rs", block).map(|()| vec![("parts of programs", 1)])
        }
        "rust" => Ok(Vec::new()),
        "toml" => match toml::from_str::<toml::Table>(&block.text) {
            Ok(_) => Ok(vec![("TOML read", 1)]),
            Err(error) => Err(format!("{}: {error}", block.place())),
        },
        "yaml" => {
            let file = place.join("block.yml");
            std::fs::write(&file, &block.text).map_err(|error| error.to_string())?;
            shell::output("promtool check config block.yml", place)
                .map(|_| vec![("Prometheus configurations read", 1)])
                .map_err(|error| format!("{}: {error}", block.place()))
        }
        // What nothing can check: output of another time, drawings, other tools' languages.
        "text" => Ok(Vec::new()),
        _ => Err(format!("{}: unknown language; `text` is not checked", block.place())),
    }
}

/// Whether a file in this directory has the block's text.
fn is_part_of(directory: &Path, ending: &str, block: &Block) -> Result<(), String> {
    let is_part = |path: &PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| text.contains(block.text.trim_end()))
    };
    if files_below(directory, ending)?.iter().any(is_part) {
        return Ok(());
    }
    Err(format!("{}: no file in {} has this", block.place(), directory.display()))
}

/// Compiles the book's programs. Returns their number.
fn programs(repository: &Path) -> Result<usize, String> {
    let mut count = 0;
    let place = Workplace::new(repository)?;
    for ending in ["c", "cpp"] {
        for path in files_below(place.0.path(), ending)? {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let block = Block {
                page: path.file_name().unwrap_or_default().into(),
                line: 1,
                language: ending.to_owned(),
                attributes: vec!["no_run".to_owned()],
                text,
            };
            c::compile(&block, count, place.0.path())?;
            count += 1;
        }
    }
    Ok(count)
}

/// Pages that no table of contents names, and pages whose Rust blocks rustdoc does not get.
fn forgotten(repository: &Path) -> Result<Vec<String>, String> {
    let read = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let source = repository.join("book/src");
    let summary = read(&source.join("SUMMARY.md"))?;
    let named: BTreeSet<String> = links::of(&summary).into_iter().map(|link| link.target).collect();
    let doctests = read(&repository.join("book/lib.rs"))?;
    let mut failures = Vec::new();
    for path in files_below(&source, "md")? {
        let page = path.strip_prefix(&source).unwrap_or(&path).display().to_string();
        if page == "SUMMARY.md" {
            continue;
        }
        if !named.contains(&page) {
            failures.push(format!("book/src/{page} is not in book/src/SUMMARY.md"));
        }
        let has_rust = blocks::of(Path::new(&page), &read(&path)?)
            .iter()
            .any(|block| block.language == "rust" && !block.has("ignore"));
        if has_rust != doctests.contains(&format!("\"src/{page}\"")) {
            let verb = if has_rust { "lacks" } else { "has, without Rust blocks," };
            failures.push(format!("book/lib.rs {verb} src/{page}"));
        }
    }
    Ok(failures)
}

/// All files with this ending below a directory, sorted.
pub(crate) fn files_below(directory: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in std::fs::read_dir(&next).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|of| of == ending) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
