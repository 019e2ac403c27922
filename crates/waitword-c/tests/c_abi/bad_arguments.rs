//! Every function of `waitword.h` with arguments that are wrong: an error, or nothing worse than what the header leaves
//! undefined. Never a crash, a hang, or a byte of memory beside the object.
//!
//! The header is read, so no function can be forgotten: what is tried follows from the types and names of its
//! arguments (`cases.rs`), and one that is of no known kind fails the test. Each call is made in a child with a time
//! limit, on objects between pages that may not be touched (`arena.rs`, `child.rs`).
//!
//! | what is tried | what must come |
//! |---|---|
//! | NULL and every misaligned pointer to an object | `EINVAL`, and nothing written |
//! | unknown flags | `EINVAL`, and nothing written |
//! | an unknown clock | `EINVAL`, held or not |
//! | a call that must wait, with a time that is none | `EINVAL`; with one that has passed, or is negative: `ETIMEDOUT` |
//! | counts of 0, -1, `INT_MIN`, `INT_MAX`, `UINT_MAX`, above the documented maximum | the documented error, or any answer |
//! | an object of zeros, ones, chance bytes, or destroyed | any answer, in time, and nothing else is touched |
//!
//! The last row is undefined behaviour by the header ("NULL or a mutex"); that a chance object is survived all the same, but
//! for what `UNDEFINED` lists, is shown here, not promised.

#[path = "bad_arguments/arena.rs"]
mod arena;
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

use crate::installed::{package, prefix};
use cases::{Case, Expect};
use child::Outcome;
use header::Function;
use library::Library;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a function may do with an object that is none, and why that is left undefined.
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
    let outcomes = child::run(&library, &cases);
    let mut wrong = String::new();
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(&outcomes) {
        let count = counts.entry(&case.function.name).or_default();
        count[usize::from(case.expect == Expect::Anything)] += 1;
        if let Some(defect) = defect(case, outcome) {
            let _ = writeln!(wrong, "{case}: {defect}");
        }
    }
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
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{wrong}",
        wrong.lines().count()
    );
}

/// What is wrong with an outcome, if anything is.
fn defect(case: &Case<'_>, outcome: &Outcome) -> Option<String> {
    let is_undefined = || {
        UNDEFINED
            .iter()
            .any(|(name, _)| *name == case.function.name)
    };
    match outcome {
        Outcome::Crashed(signal) => (!is_undefined()).then(|| format!("signal {signal}")),
        Outcome::Hung => (!case.may_wait).then(|| "hangs".to_owned()),
        Outcome::TouchedOthers => Some("memory beside the object was written".to_owned()),
        Outcome::Answered {
            answer,
            errno,
            changed,
        } => {
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

/// That a function cannot be added without being tried.
#[test]
fn a_parameter_of_an_unknown_kind_is_noticed() {
    let text = "/** Does not block. */\nint ww_new(struct ww_unheard_of *object);\n";
    let function: &Function = &header::functions(text)[0];
    let tried = std::panic::catch_unwind(|| cases::of(function, &mut Vec::new()));
    assert!(tried.is_err());
}
