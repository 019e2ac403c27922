//! Small programs written for this benchmark, in languages whose libraries have their own locks.
//! Their sources are in `sources/`.
//!
//! Each takes the number of turns as an argument and prints results that are the same in every run.
//! Last, it prints on standard error how many seconds the turns took, so that setting up a virtual
//! machine does not count.

use super::child::{Launcher, number_after};
use super::need::find;
use super::place::Place;
use super::program::{Done, Job, Size};
use crate::harness::Failure;
use std::process::Command;

pub(super) fn python_queues(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("queues.py", include_str!("sources/queues.py"))?;
    // The count is per producer; there are four.
    Ok(job(place, "python3", &["queues.py"], size.of(20_000), 4))
}

pub(super) fn python_threads(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("threads.py", include_str!("sources/threads.py"))?;
    Ok(job(place, "python3", &["threads.py"], size.of(500), 4))
}

pub(super) fn java_hand_off(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("HandOff.java", include_str!("sources/HandOff.java"))?;
    compile(&place, "javac", &["HandOff.java"])?;
    Ok(job(place, "java", &["-cp", ".", "HandOff"], size.of(30_000), 2))
}

pub(super) fn java_locks(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("Locks.java", include_str!("sources/Locks.java"))?;
    compile(&place, "javac", &["Locks.java"])?;
    Ok(job(place, "java", &["-cp", ".", "Locks"], size.of(20_000), 4))
}

pub(super) fn cpp(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("locks.cc", include_str!("sources/cpp.cc"))?;
    compile(&place, "g++", &["-std=c++20", "-O2", "-pthread", "locks.cc", "-o", "locks"])?;
    Ok(job(place, "./locks", &[], size.of(40_000), 4))
}

/// `how` the threads hold a recursive mutex in every second turn: they `yield` or `sleep`.
pub(super) fn holders(
    place: Place,
    size: Size,
    how: &'static [&'static str],
    turns: u64,
) -> Result<Job, Failure> {
    place.write("holders.c", include_str!("sources/holders.c"))?;
    compile(&place, "gcc", &["-O2", "-pthread", "holders.c", "-o", "holders"])?;
    Ok(job(place, "./holders", how, size.of(turns), 16))
}

pub(super) fn rust_std(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("locks.rs", include_str!("sources/std_locks.rs"))?;
    compile(&place, "rustc", &["--edition", "2021", "-O", "locks.rs", "-o", "locks"])?;
    Ok(job(place, "./locks", &[], size.of(20_000), 4))
}

pub(super) fn node(place: Place, size: Size) -> Result<Job, Failure> {
    place.write("workers.js", include_str!("sources/workers.js"))?;
    Ok(job(place, "node", &["workers.js"], size.of(20_000), 2))
}

fn compile(place: &Place, compiler: &str, arguments: &[&str]) -> Result<(), Failure> {
    let path = find(compiler).unwrap_or_else(|| compiler.into());
    let output = Command::new(path)
        .args(arguments)
        .current_dir(place.directory())
        .output()
        .map_err(|error| Failure::new(format!("{compiler}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{compiler}: {}\n{}", output.status, said.trim())))
}

fn job(
    place: Place,
    program: &'static str,
    arguments: &'static [&'static str],
    turns: u64,
    takers: u64,
) -> Job {
    Box::new(move |launcher: &Launcher| {
        let count = turns.to_string();
        let program = match program.strip_prefix("./") {
            Some(name) => place.path(name).display().to_string(),
            None => program.to_owned(),
        };
        let ended = launcher.run(&place, &program, arguments.iter().copied().chain([&*count]))?;
        Ok(Done {
            operations: takers * turns,
            seconds: number_after(&ended.stderr, "seconds")?,
            usage: ended.usage,
            same: ended.stdout,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Context;
    use crate::settings::Settings;
    use std::sync::Arc;

    #[test]
    fn a_written_program_says_the_same_twice() {
        let context = Context::new(Settings::default(), Arc::default());
        let launcher = Launcher { before: &[], context: &context };
        let mut job = rust_std(Place::new().unwrap(), Size::Short).unwrap();
        let (first, second) = (job(&launcher).unwrap(), job(&launcher).unwrap());
        assert!(!first.same.is_empty());
        assert_eq!(first.same, second.same);
        assert!(first.seconds > 0.0 && first.usage.cpu_seconds > 0.0, "{first:?}");
    }

    #[test]
    fn what_does_not_compile_is_shown() {
        let place = Place::new().unwrap();
        place.write("bad.rs", "fn main() { nothing }").unwrap();
        let failure = compile(&place, "rustc", &["bad.rs"]).unwrap_err();
        assert!(failure.to_string().contains("nothing"), "{failure}");
    }
}
