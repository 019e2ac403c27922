//! Tests that the same seed makes the same choices.

use crate::command::{text, torture};
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) fn seed_is_printed() -> Result<(), Failed> {
    let output = torture("--only ring --seconds 0.01 --seed 42 --threads 4")?;
    match output.status.success() && text(&output.stdout).contains("seed 42") {
        true => Ok(()),
        false => Err(text(&output.stdout).into()),
    }
}

/// What a run wrote down: its own choices, and those of each fault. A slow run makes fewer of the
/// latter.
type Choices = (Vec<String>, BTreeMap<String, String>);

/// Runs the torture with these arguments, and reads the choices that it wrote down.
fn choices_of(arguments: &str) -> Result<Choices, Failed> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("waitword-choices-{}-{number}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let path = file.to_str().ok_or("a name in UTF-8")?;
    torture(&format!("{arguments} --choices {path}"))?;
    let written = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    let (faults, mut own): (Vec<_>, Vec<_>) =
        (written.lines().map(str::to_owned)).partition(|line| line.starts_with("fault "));
    own.sort();
    let split = |line: String| {
        let (number, choice) = line.split_once(": ")?;
        Some((number.to_owned(), choice.to_owned()))
    };
    Ok((own, faults.into_iter().filter_map(split).collect()))
}

fn same(first: &Choices, second: &Choices) -> Result<(), Failed> {
    let (own, faults) = first;
    if own.is_empty() || *own != second.0 {
        return Err(format!("{own:#?}\nare not\n{:#?}", second.0).into());
    }
    let differs = |(number, choice): (&String, &String)| {
        (second.1.get(number)).is_some_and(|other| other != choice)
    };
    match faults.iter().find(|&fault| differs(fault)) {
        None => Ok(()),
        Some(fault) => Err(format!("{fault:?} was another one").into()),
    }
}

pub(crate) fn seed_repeats() -> Result<(), Failed> {
    let run = |seed| {
        choices_of(&format!(
            "--only tokens,semaphore --seconds 8 --rounds 3 --threads 4,16 --faults \
             hold,shuffle,stutter --slice 2 --seed {seed}"
        ))
    };
    let (first, again, other) = (run("42")?, run("42")?, run("43")?);
    same(&first, &again)?;
    if first.1.is_empty() {
        return Err("no fault was written down".into());
    }
    match same(&first, &other) {
        Err(_) => Ok(()),
        Ok(()) => Err("another seed makes the same choices".into()),
    }
}

/// The command that a failing slice prints makes the same choices, and fails again.
pub(crate) fn failure_repeats() -> Result<(), Failed> {
    let arguments = "--only order --seconds 9 --rounds 2 --sabotage miscount --seed 7 --slice 1";
    let stdout = text(&torture(arguments)?.stdout);
    let command = (stdout.lines())
        .find_map(|line| line.strip_prefix("again, with the same choices: waitword torture "))
        .ok_or("no command")?;
    if torture(command)?.status.success() {
        return Err(format!("it did not fail again: {command}").into());
    }
    same(&choices_of(arguments)?, &choices_of(command)?)
}
