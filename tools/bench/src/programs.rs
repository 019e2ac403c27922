//! Whole third-party programs, plain and under the pthread drop-in: they must produce the same
//! output, and their cost is measured.
//!
//! | item | contents |
//! |---|---|
//! | [`Program`] | a program: what it needs, how it is set up, how it is run once |
//! | `list`, `tools`, `servers`, `databases`, `written` | the programs themselves |
//! | `place` | a working directory, generated input, ports |
//! | `child` | a child process: its start, output, time limit and resource usage |
//! | `hang` | which thread waits where in a process that does not end |
//!
//! The result of a run is [`Done`]: how many operations in how many seconds, the resources that the
//! program used (for a server: the server, not its load generator), and *the bytes that must be the
//! same in every run*, such as an encoded file or printed results. Programs that print nothing but
//! measurements only have to end successfully.
//!
//! The programs are benchmarks and tools, servers with a load generator, databases, and small
//! programs written for this purpose.

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

/// Amount of work in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// About a second.
    Short,
    /// Several seconds.
    Long,
}

impl Size {
    /// `short`, or eight times as much.
    fn of(self, short: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Long => 8 * short,
        }
    }
}

/// A command, and the Debian package that contains it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    command: &'static str,
    package: &'static str,
}

const fn need(command: &'static str, package: &'static str) -> Need {
    Need { command, package }
}

/// A program.
pub(crate) struct Program {
    /// The name in reports.
    pub(crate) name: &'static str,
    /// The unit of its throughput.
    pub(crate) unit: &'static str,
    /// The commands it needs.
    needs: &'static [Need],
    /// Creates files and input, once, and returns the job that makes one run.
    prepare: fn(Place, Size) -> Result<Job, Failure>,
}

/// Makes one run with the given launcher.
pub(crate) type Job = Box<dyn FnMut(&Launcher) -> Result<Done, Failure>>;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Done {
    /// Operations done.
    pub(crate) operations: u64,
    /// Time they took, by the program's own clock if it has one.
    pub(crate) seconds: f64,
    /// Resources used by the program and its children.
    pub(crate) usage: Usage,
    /// Output that must be the same in every run; empty if there is none.
    pub(crate) same: Vec<u8>,
}

impl Program {
    /// Checks that all needed commands are installed.
    ///
    /// # Errors
    /// The commands that are not installed, as [`Failure::Missing`].
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

    /// Sets the program up.
    ///
    /// # Errors
    /// What could not be set up.
    pub(crate) fn prepare(&self, size: Size) -> Result<Job, Failure> {
        (self.prepare)(Place::new()?, size)
    }
}

/// The Debian packages of all commands that these programs need and that are not installed, each
/// once.
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

/// The path of a command. Debian's own directories come first: a shim earlier in `PATH` may be a
/// script or another version. PostgreSQL has one directory per version.
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

/// Parses the number that follows `before` in a text, skipping spaces between them.
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
            "no number after {before:?} in the program's output:\n{text}"
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
