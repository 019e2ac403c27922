//! Tests that what cannot be run as asked is reported before the run.

use crate::command::{AS_TORTURE, text, torture};
use libtest_mimic::Failed;
use std::process::Command;

const CASES: &str = "
    --seconds 0                           => not a number of seconds above 0
    --seconds soon                        => not a number of seconds above 0
    --patience 0                          => not a number of seconds from 1
    --threads 0                           => `0` is not a number from 4 to 2048
    --threads 4,x                         => `x` is not a number from 4 to 2048
    --only nothing                        => possible values: tokens,
    --only ring,raw-futex                 => `raw-futex` is a scenario of --drop-in
    --drop-in --only raw-futex,ring       => `ring` is a scenario of the library
    --faults nothing                      => `nothing` is not one of auto, none, all, hold
    --faults clock                        => needs --clock-steps
    --slice 3                             => --seed
    --record DIR/no/where                 => DIR/no/where: No such file
    --record DIR/notes                    => DIR/notes:1: not the record of a run
    --record DIR                          => DIR: Is a directory
    --records DIR/missing                 => DIR/missing: No such file
    --records DIR/notes                   => DIR/notes:1: not the record of a run
    --choices DIR/no/where                => DIR/no/where: No such file
    --drop-in --drop-in-library DIR/none  => DIR/none: No such file
";

/// Errors in the command line, or in the files that it names, are reported at once.
pub(crate) fn errors_come_first() -> Result<(), Failed> {
    let dir = std::env::temp_dir().join(format!("waitword-errors-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    std::fs::write(dir.join("notes"), "no record\n")?;
    let cases = CASES.replace("DIR", &dir.display().to_string());
    let says = |line: &str| -> Result<(), Failed> {
        let (arguments, error) = line.split_once("=>").ok_or("no error")?;
        let output = torture(arguments)?;
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        // The first thing that a starting run prints.
        let has_run = stdout.contains("scenarios, ");
        match !output.status.success() && !has_run && stderr.contains(error.trim()) {
            true => Ok(()),
            false => Err(format!("{line}: {stdout}{stderr}").into()),
        }
    };
    let verdict = cases.trim().lines().try_for_each(says);
    std::fs::remove_dir_all(&dir)?;
    verdict
}

/// If there is no memory for the threads' stacks, this is reported before the run.
pub(crate) fn too_many_threads() -> Result<(), Failed> {
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 300000 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe()?)
        .args([AS_TORTURE, "--only", "ring", "--threads", "2048"])
        .output()?;
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match stderr.contains("2048 threads and their visitors cannot exist at once: there is no ") {
        true if !output.status.success() && !stdout.contains("scenarios, ") => Ok(()),
        _ => Err(format!("{stdout}{stderr}").into()),
    }
}
