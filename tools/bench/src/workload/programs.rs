//! `programs`: whole third-party programs, plain and under the pthread drop-in.
//!
//! **Work.** Each installed program of the list (`programs/list.rs`), alternately plain and started
//! by `waitword run`. For a program that is not installed, the report names it and the package that
//! installs it. The workload runs only when selected by name or with `--full`.
//!
//! **Reproduces** nothing: it is what a user sees. RocksDB's eight writers and readers, sysbench,
//! x264's sliced threads, Python's queue, Java's wait and notify, nginx's thread pool and `perf
//! bench futex` are common lock benchmarks; the other programs are included because their output
//! shows whether everything went well.
//!
//! **Figures.** *throughput* by the program's own clock, more is better. *CPU* and *switches* of
//! the whole program (of a server: without its loader) per operation, start-up included. *output
//! compared*: bytes of output that were the same in all runs. A run whose output differs is an
//! error, and so is one that fails or takes three minutes.

use crate::harness::{Case, Contender, Context, Failure, Measured, Metric, Workload, check};
use crate::programs::{self, Job, Launcher, Program, Size};
use crate::settings::Settings;
use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;

/// The workload, as selected by name.
pub const WORKLOAD: Workload = Workload {
    name: "programs",
    about: "whole programs, plain and under the pthread drop-in: the same output, and what it cost",
    patch: None,
    milliseconds: 1500,
    cases,
};

/// Plain, and on the drop-in.
const NAMES: &[&str] = &["plain", "waitword"];

/// Debian packages of the selected programs that are not installed.
pub fn missing_packages(settings: &Settings) -> Vec<&'static str> {
    programs::missing_packages(asked_for(settings))
}

pub(super) fn asked_for(settings: &Settings) -> impl Iterator<Item = &'static Program> {
    let programs = programs::programs().iter();
    programs.filter(|program| settings.wants_program(program.name))
}

fn cases(settings: &Settings) -> Vec<Case> {
    let size = if settings.full { Size::Long } else { Size::Short };
    asked_for(settings).map(|program| case(program, size, NAMES, befores)).collect()
}

/// The words in front of a program: this program itself starts it on the drop-in.
fn befores() -> Result<Vec<Vec<OsString>>, Failure> {
    let command = std::env::current_exe().map_err(Failure::new)?;
    Ok(vec![Vec::new(), vec![command.into(), "run".into(), "--".into()]])
}

/// A program, started by contenders of these names with these words in front of it.
pub(super) fn case(
    program: &'static Program,
    size: Size,
    names: &'static [&'static str],
    befores: fn() -> Result<Vec<Vec<OsString>>, Failure>,
) -> Case {
    let metrics = [
        Metric::more("throughput", program.unit),
        Metric::less("CPU", "ns/op"),
        Metric::less("switches", "/op"),
        Metric::neither("output compared", "bytes"),
    ];
    Case::new(program.name, &metrics, names.len(), move |_| {
        program.is_installed()?;
        let shared = Rc::new(RefCell::new(Shared { job: program.prepare(size)?, first: None }));
        let contender = |(&name, before): (&&'static str, Vec<OsString>)| {
            let shared = shared.clone();
            Contender::named(name, move |context: &Context| {
                shared.borrow_mut().measure(name, &before, context)
            })
        };
        Ok(names.iter().zip(befores()?).map(contender).collect())
    })
}

/// A program, set up once for both contenders.
struct Shared {
    job: Job,
    /// The first contender that ran, and its output: every other output must be the same.
    first: Option<(&'static str, Vec<u8>)>,
}

impl Shared {
    fn measure(
        &mut self,
        name: &'static str,
        before: &[OsString],
        context: &Context,
    ) -> Result<Measured, Failure> {
        let done = (self.job)(&Launcher { before, context })?;
        let (whose, first) = self.first.get_or_insert_with(|| (name, done.same.clone()));
        check(*first == done.same, || differ(whose, first, &done.same))?;
        let operations = done.operations as f64;
        check(done.operations > 0 && done.seconds > 0.0, || {
            format!("the program did no work: {done:?}")
        })?;
        Ok(Measured {
            values: vec![
                operations / done.seconds,
                done.usage.cpu_seconds * 1e9 / operations,
                done.usage.switches() as f64 / operations,
                done.same.len() as f64,
            ],
            operations: done.operations,
            usage: done.usage,
        })
    }
}

fn differ(whose: &str, first: &[u8], other: &[u8]) -> String {
    let at = first.iter().zip(other).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let from = at.saturating_sub(100).min(bytes.len());
        let part = &bytes[from..bytes.len().min(at + 100)];
        String::from_utf8_lossy(part).into_owned()
    };
    format!(
        "its output ({} bytes) differs from the first one, by {whose} ({} bytes), from byte {at} \
         on:\n{:?}\n{:?}",
        other.len(),
        first.len(),
        around(other),
        around(first),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::run_case;
    use crate::programs::Done;
    use crate::usage::Usage;
    use std::sync::Arc;

    fn shared(outputs: &'static [&'static str]) -> Shared {
        let mut outputs = outputs.iter();
        Shared {
            job: Box::new(move |_| {
                Ok(Done {
                    operations: 10,
                    seconds: 2.0,
                    usage: Usage::default(),
                    same: outputs.next().expect("so many runs").as_bytes().to_vec(),
                })
            }),
            first: None,
        }
    }

    #[test]
    fn another_output_is_an_error() {
        let context = Context::new(Settings::default(), Arc::default());
        let mut shared = shared(&["same", "same", "other"]);
        let measured = shared.measure("plain", &[], &context).unwrap();
        assert_eq!(measured.values, [5.0, 0.0, 0.0, 4.0]);
        assert!(shared.measure("waitword", &[], &context).is_ok());
        let failure = shared.measure("waitword", &[], &context).unwrap_err().to_string();
        assert!(failure.contains("plain") && failure.contains("byte 0"), "{failure}");
    }

    #[test]
    fn a_program_is_run_by_both() {
        let settings = Settings { rounds: 1, ..Settings::default() };
        let context = Context::new(settings, Arc::default());
        let program = programs::programs()
            .iter()
            .find(|program| program.name.contains("Rust"))
            .expect("it is on the list");
        let case = case(program, Size::Short, NAMES, || Ok(vec![Vec::new(), vec!["env".into()]]));
        let (report, failure) = run_case(case, &context, &mut |_| ());
        assert_eq!(failure, None);
        let report = report.unwrap();
        for (variant, name) in report.variants.iter().zip(NAMES) {
            assert_eq!(variant.name, *name);
            assert!(
                variant.metrics.iter().all(|metric| metric.summary.median > 0.0),
                "{variant:?}"
            );
        }
    }
}
