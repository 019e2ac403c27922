//! Calls every function of `waitword.h` with bad arguments. Each call must return an error, or do
//! nothing worse than what the header leaves undefined. It must never crash, hang, or write a byte
//! of memory next to the object.
//!
//! The test parses the header, so no function can be forgotten. The types and names of a function's
//! parameters determine its cases (`cases.rs`), and a parameter of an unknown kind fails the test.
//! Each call is made in a child process with a time limit (`harm.rs` of the test kit), on objects
//! between inaccessible pages (`arena.rs` there).
//!
//! | case | required result |
//! |---|---|
//! | NULL and every misaligned pointer to an object | `EINVAL`, nothing written |
//! | unknown flags | `EINVAL`, nothing written |
//! | an unknown clock | `EINVAL`, held or not |
//! | a call that must wait, with an invalid time | `EINVAL` |
//! | the same with a time that has passed or is negative | `ETIMEDOUT` |
//! | counts of 0, -1, `INT_MIN`, `INT_MAX`, `UINT_MAX`, too high | the documented error, or any |
//! | a directory's name that is not absolute, or too long | `EINVAL` |
//! | a directory that does not exist, or is a file | `ENOENT`, `ENOTDIR` |
//! | an object of zeros, ones, random bytes, or destroyed | any, in time, nothing else touched |
//!
//! The last row is undefined behaviour according to the header ("NULL or point to a mutex"). The
//! test shows, but the library does not promise, that random objects do no harm, except as listed
//! in `UNDEFINED`.

#[path = "bad_arguments/cases.rs"]
mod cases;
#[path = "bad_arguments/child.rs"]
mod child;
#[path = "bad_arguments/header.rs"]
mod header;
#[path = "bad_arguments/library.rs"]
mod library;
#[path = "bad_arguments/values.rs"]
mod values;

use crate::installed::{Language, package, prefix};
use crate::{scratch, watchdog};
use cases::{Case, Expect};
use header::Function;
use library::Library;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use waitword_testkit::{arena, harm, harm::Outcome};

/// The functions that may misbehave with an invalid object, and why that is left undefined.
const UNDEFINED: [(&str, &str); 0] = [];

#[test]
fn every_function_survives_every_bad_argument() {
    let text = std::fs::read_to_string(package().join("include/waitword.h")).expect("the header");
    let functions = header::functions(&text);
    assert!(functions.len() > 90, "{} functions found", functions.len());
    let library = Library::open(&prefix().join("lib/libwaitword.so"));
    let mut cases = Vec::new();
    for function in &functions {
        cases::of(function, &mut cases);
    }
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for case in &cases {
        let count = counts.entry(&case.function.name).or_default();
        count[usize::from(case.expect == Expect::Anything)] += 1;
    }
    let wrong = wrong(&library, &cases);
    println!("{:32} {:>8} {:>8}", "function", "errors", "survived");
    for (name, [errors, survived]) in &counts {
        println!("{name:32} {errors:8} {survived:8}");
    }
    println!("{} calls", cases.len());
    let untried: Vec<_> = functions
        .iter()
        .filter(|function| !function.parameters.is_empty())
        .filter(|function| !counts.contains_key(&*function.name))
        .map(|function| &function.name)
        .collect();
    assert!(untried.is_empty(), "nothing was tried of {untried:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Makes the calls. Returns a line for each wrong result.
fn wrong(library: &Library, cases: &[Case<'_>]) -> Vec<String> {
    let outcomes = child::run(library, cases);
    let pairs = cases.iter().zip(&outcomes);
    pairs
        .filter_map(|(case, outcome)| Some(format!("{case}: {}", defect(case, outcome)?)))
        .collect()
}

/// Describes what is wrong with an outcome, if anything.
fn defect(case: &Case<'_>, outcome: &Outcome) -> Option<String> {
    let is_undefined = || UNDEFINED.iter().any(|(name, _)| *name == case.function.name);
    match outcome {
        Outcome::Crashed(signal) => (!is_undefined()).then(|| format!("signal {signal}")),
        Outcome::Hung => (!case.may_wait).then(|| "hangs".to_owned()),
        Outcome::TouchedOthers => Some("memory beside the object was written".to_owned()),
        Outcome::Answered { answer, errno, changed } => {
            let error = case.function.error_of(*answer, *errno);
            match &case.expect {
                Expect::Anything => (!case.function.is_answer(*answer))
                    .then(|| format!("{answer} is no answer of such a function")),
                Expect::Error(expected) if error != Some(*expected) => Some(format!(
                    "error {expected} was expected; the answer is {answer} (errno {errno})"
                )),
                Expect::Error(libc::EINVAL) if *changed => {
                    Some("refused, but the object was written to".to_owned())
                }
                Expect::Error(_) => None,
            }
        }
    }
}

/// Each planted function overrides the library's function, and the test must report it.
#[test]
fn planted_defects_are_found() {
    let text = std::fs::read_to_string(package().join("include/waitword.h")).expect("the header");
    let functions = header::functions(&text);
    // The defect, the function, the case, and the expected report.
    let defects = [
        ("WRITES_BEHIND", "ww_rwlock_tryrdlock", "Busy", "signal 11"),
        ("WRITES_BEFORE", "ww_rwlock_tryrdlock", "Busy", "memory beside the object was written"),
        (
            "WRITES_REFUSED",
            "ww_rwlock_clockrdlock",
            "Number(2)",
            "refused, but the object was written to",
        ),
        ("HANGS", "ww_sem_trywait", "Busy", "hangs"),
        ("ANSWERS", "ww_mutex_trylock", "Null", "error 22 was expected; the answer is 0"),
        ("ANSWERS_ODDLY", "ww_mutex_trylock", "Busy", "is no answer of such a function"),
    ];
    for (defect, name, argument, said) in defects {
        let library = Library::open(&planted(defect));
        let mut cases = Vec::new();
        let function = functions.iter().find(|function| function.name == name);
        cases::of(function.expect("a function of the header"), &mut cases);
        cases.retain(|case| case.to_string().contains(argument));
        cases.truncate(1);
        let wrong = wrong(&library, &cases);
        assert!(wrong.len() == 1 && wrong[0].contains(said), "{defect}: {wrong:?}");
    }
}

/// The library, overridden by one defect.
fn planted(defect: &str) -> PathBuf {
    let directory = prefix().join("lib");
    let library = scratch::folder().join(format!("libplanted_{defect}.so"));
    let mut compiler = Command::new(Language::C.compiler());
    compiler
        .args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-Wl,--no-as-needed"])
        .arg(format!("-D{defect}"))
        .arg("-I")
        .arg(package().join("include"))
        .arg("-o")
        .arg(&library)
        .arg(package().join("tests/c_abi/bad_arguments/planted.c"))
        .arg(directory.join("libwaitword.so"))
        .arg(format!("-Wl,-rpath,{}", directory.display()));
    watchdog::run(&mut compiler, watchdog::BUILD);
    library
}

/// A new function cannot escape the test.
#[test]
fn a_parameter_of_an_unknown_kind_is_noticed() {
    let text = "/** Does not block. */\nint ww_new(struct ww_unheard_of *object);\n";
    let function: &Function = &header::functions(text)[0];
    let tried = std::panic::catch_unwind(|| cases::of(function, &mut Vec::new()));
    assert!(tried.is_err());
}
