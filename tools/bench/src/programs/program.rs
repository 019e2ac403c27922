//! A program: what it needs, how it is set up, how it is run once.

use super::child::Launcher;
use super::need::{Need, find};
use super::place::Place;
use crate::harness::Failure;
use crate::usage::Usage;

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
    pub(super) fn of(self, short: u64) -> u64 {
        match self {
            Self::Short => short,
            Self::Long => 8 * short,
        }
    }
}

/// A program.
pub(crate) struct Program {
    /// The name in reports.
    pub(crate) name: &'static str,
    /// The unit of its throughput.
    pub(crate) unit: &'static str,
    /// The commands it needs.
    pub(super) needs: &'static [Need],
    /// Creates files and input, once, and returns the job that makes one run.
    pub(super) prepare: fn(Place, Size) -> Result<Job, Failure>,
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
        let missing: Vec<&Need> =
            self.needs.iter().filter(|need| find(need.command).is_none()).collect();
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
    let mut packages: Vec<_> =
        needs.filter(|need| find(need.command).is_none()).map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::super::need::need;
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        const NEEDS: &[Need] = &[need("sh", "dash"), need("no-such-command", "no-such-package")];
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
        assert!(message.contains("apt-get install no-such-package)"), "{message}");
        assert!(!message.contains("dash"), "{message}");
        let twice = [&program, &program].into_iter();
        assert_eq!(missing_packages(twice), ["no-such-package"]);
    }
}
