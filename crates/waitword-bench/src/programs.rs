//! Whole programs of others, plain and under the pthread drop-in: the same output, and what it cost.
//!
//! | room | what lives there |
//! |---|---|
//! | [`Program`] | one of them: what must be installed, how it is set up, how one run of it is made |
//! | `list`, `tools`, `servers`, `databases`, `written` | which there are: benchmarks and tools, servers with a loader, small programs written for this |
//! | `place` | a directory of its own, input made for it, ports |
//! | `child` | a child process: started plain or on the drop-in, its output, its time limit, what it used |
//! | `hang` | who waits where in a process that does not end |
//!
//! A run is [`Done`]: how many operations in how many seconds, what the program (for a server: the server, not
//! its loader) used, and *what must be the same in every run*, byte by byte: an encoded file, results that were
//! printed. Programs whose every word of output is a measurement have nothing to compare but that they ended well.

mod child;
mod databases;
mod hang;
mod list;
mod place;
mod servers;
mod tools;
mod written;

pub(crate) use child::Launcher;
pub(crate) use list::programs;
pub(crate) use place::Place;

use crate::harness::Failure;
use crate::usage::Usage;
use std::path::PathBuf;

/// How much work a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// About a second.
    Short,
    /// Several seconds.
    Long,
}

impl Size {
    /// So many, and eight times as many.
    fn of(self, short: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Long => 8 * short,
        }
    }
}

/// A command, and Debian's package that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    command: &'static str,
    package: &'static str,
}

const fn need(command: &'static str, package: &'static str) -> Need {
    Need { command, package }
}

/// One program.
pub(crate) struct Program {
    /// As the report calls it.
    pub(crate) name: &'static str,
    /// What its throughput counts.
    pub(crate) unit: &'static str,
    /// What it runs.
    needs: &'static [Need],
    /// Makes files and input, once, and says how one run is made.
    prepare: fn(Place, Size) -> Result<Job, Failure>,
}

/// Makes one run, on what the launcher says.
pub(crate) type Job = Box<dyn FnMut(&Launcher) -> Result<Done, Failure>>;

/// What a run was.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Done {
    /// How much got done.
    pub(crate) operations: u64,
    /// In this time, by the program's own clock if it has one.
    pub(crate) seconds: f64,
    /// By the program and its children.
    pub(crate) usage: Usage,
    /// The same in every run; empty if nothing is.
    pub(crate) same: Vec<u8>,
}

impl Program {
    /// # Errors
    /// What it needs and what is not installed, as [`Failure::Missing`].
    pub(crate) fn is_installed(&self) -> Result<(), Failure> {
        let missing: Vec<&Need> = self
            .needs
            .iter()
            .filter(|need| find(need.command).is_none())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let join = |part: fn(&Need) -> &'static str, with: &str| {
            let parts: Vec<&str> = missing.iter().map(|need| part(need)).collect();
            parts.join(with)
        };
        Err(Failure::Missing(format!(
            "{} (no {}; apt-get install {})",
            self.name,
            join(|need| need.command, ", "),
            join(|need| need.package, " "),
        )))
    }

    /// # Errors
    /// What could not be set up.
    pub(crate) fn prepare(&self, size: Size) -> Result<Job, Failure> {
        (self.prepare)(Place::new()?, size)
    }
}

/// Debian's packages of those of these programs that are not installed, each once.
pub(crate) fn missing_packages<'a>(
    programs: impl Iterator<Item = &'a Program>,
) -> Vec<&'static str> {
    let needs = programs.flat_map(|program| program.needs);
    let mut packages: Vec<_> = needs
        .filter(|need| find(need.command).is_none())
        .map(|need| need.package)
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Where a command is. Debian's own directories first: a shim before them may be a script, or another version. PostgreSQL's are in
/// one of each version.
fn find(command: &str) -> Option<PathBuf> {
    let usual = ["/usr/bin", "/usr/sbin"].map(PathBuf::from);
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let of_version =
        |version: std::io::Result<std::fs::DirEntry>| Some(version.ok()?.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions
        .into_iter()
        .flatten()
        .filter_map(of_version)
        .chain(usual)
        .chain(std::env::split_paths(&path))
        .map(|directory| directory.join(command))
        .find(|path| path.is_file())
}

/// The number that follows `before` in a text; spaces between them do not count.
fn number_after(text: &str, before: &str) -> Result<f64, Failure> {
    let found = text.split_once(before).and_then(|(_, rest)| {
        let rest = rest.trim_start();
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        rest[..end].trim_end_matches('.').parse().ok()
    });
    found.ok_or_else(|| {
        Failure::new(format!(
            "no number after {before:?} in what it said:\n{text}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        const NEEDS: &[Need] = &[
            need("sh", "dash"),
            need("no-such-command", "no-such-package"),
        ];
        let program = Program {
            name: "some program",
            unit: "",
            needs: NEEDS,
            prepare: |_, _| unreachable!(),
        };
        let Err(Failure::Missing(message)) = program.is_installed() else {
            panic!("nothing is missing");
        };
        assert!(message.contains("some program"), "{message}");
        assert!(
            message.contains("apt-get install no-such-package)"),
            "{message}"
        );
        assert!(!message.contains("dash"), "{message}");
        let twice = [&program, &program].into_iter();
        assert_eq!(missing_packages(twice), ["no-such-package"]);
    }

    #[test]
    fn numbers_are_found_where_they_are_said() {
        assert_eq!(number_after("total time:   2.5s\n", "total time:"), Ok(2.5));
        assert_eq!(number_after("took 12. Then", "took"), Ok(12.0));
        assert!(number_after("took long", "took").is_err());
        assert!(number_after("", "took").is_err());
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = programs().iter().map(|program| program.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), programs().len());
    }
}
