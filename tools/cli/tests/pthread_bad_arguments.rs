//! Calls every function that the drop-in exports with wrong arguments. The answer must be glibc's
//! or a better one. The drop-in must never crash or hang where glibc does not, and must never write
//! a byte outside the object.
//!
//! The functions are checked against the library's exports (`functions.rs`), so none can be
//! forgotten. The cases follow from their parameters (`cases.rs`). Each call is made on glibc alone
//! and under the drop-in, in a child with a time limit (`harm.rs` of the test kit), on objects
//! between inaccessible pages (`arena.rs` there). Then the two outcomes are compared (`judge.rs`).
//!
//! | tried | expected |
//! |---|---|
//! | NULL, an inaccessible address, every misaligned address | as glibc (1) |
//! | objects: free, held by another thread or by the caller, destroyed, all zeros | as glibc |
//! | invalid attributes, clocks, times, counts, types | as glibc |
//! | objects of ones, of random bytes, or with an overwritten kind | any answer (2) |
//!
//! 1. Where glibc dies: an error, or the same death.
//! 2. A crash or a hang only where glibc has one.
//!
//! Where the drop-in is better, `judge.rs` gives the reason.

#[path = "pthread_bad_arguments/calls.rs"]
mod calls;
#[path = "pthread_bad_arguments/cases.rs"]
mod cases;
#[path = "pthread_bad_arguments/functions.rs"]
mod functions;
#[path = "pthread_bad_arguments/judge.rs"]
mod judge;
#[path = "raw_futex/support.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod support;
#[path = "pthread_bad_arguments/values.rs"]
mod values;
#[path = "pthread_bad_arguments/worker.rs"]
mod worker;

use cases::Case;
use functions::FUNCTIONS;
use judge::{BETTER, Verdict, judge};
use std::collections::BTreeMap;
use std::process::Command;
use waitword_testkit::{arena, harm};
use worker::Order;

/// Milliseconds for each call: more than a call takes that does not wait.
const PATIENCE: i64 = 25;
/// Calls whose outcomes differ are made once more, with enough time for a loaded machine.
const MORE_PATIENCE: i64 = 3000;

/// The test that also serves as the process that makes the calls (`worker.rs`).
const MAKES_CALLS: &str = "every_function_answers_every_bad_argument_as_glibc_or_better";

fn all_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for function in FUNCTIONS {
        let before = cases.len();
        cases::of(function, &mut cases);
        assert!(cases.len() > before, "there are no cases for {}", function.name);
    }
    cases
}

/// The path of the drop-in.
fn drop_in() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    let (path, _) = support::texts(support::run(command.arg("preload")));
    path.trim().to_owned()
}

/// The verdicts on the cases with these numbers, with these libraries preloaded.
fn verdicts(cases: &[Case], numbers: &[usize], preload: &str) -> Vec<Verdict> {
    let ask = |numbers: &[usize], patience| {
        let order = |preload: &str| Order {
            preload: preload.to_owned(),
            cases: numbers.to_vec(),
            patience,
        };
        let (glibc, ours) = (order(""), order(preload));
        let (glibc, ours) = std::thread::scope(|threads| {
            let glibc = threads.spawn(|| glibc.carry_out(MAKES_CALLS));
            let ours = ours.carry_out(MAKES_CALLS);
            (glibc.join().expect("glibc's calls"), ours)
        });
        let pairs = numbers.iter().zip(glibc.into_iter().zip(ours));
        pairs.map(|(&number, (glibc, ours))| judge(&cases[number], glibc, ours)).collect::<Vec<_>>()
    };
    let mut verdicts = ask(numbers, PATIENCE);
    let doubtful: Vec<usize> =
        (0..numbers.len()).filter(|&index| matches!(verdicts[index], Verdict::Wrong(_))).collect();
    if !doubtful.is_empty() {
        let numbers: Vec<usize> = doubtful.iter().map(|&index| numbers[index]).collect();
        for (index, verdict) in doubtful.into_iter().zip(ask(&numbers, MORE_PATIENCE)) {
            verdicts[index] = verdict;
        }
    }
    verdicts
}

/// A line for each case that is wrong.
fn wrong(cases: &[Case], numbers: &[usize], verdicts: &[Verdict]) -> Vec<String> {
    let pairs = numbers.iter().zip(verdicts);
    pairs
        .filter_map(|(&number, verdict)| match verdict {
            Verdict::Wrong(how) => Some(format!("{}: {how}", cases[number])),
            _ => None,
        })
        .collect()
}

#[test]
fn every_function_answers_every_bad_argument_as_glibc_or_better() {
    let cases = all_cases();
    if worker::works(&cases) {
        return;
    }
    let numbers: Vec<usize> = (0..cases.len()).collect();
    let verdicts = verdicts(&cases, &numbers, &drop_in());
    print_table(&cases, &verdicts);
    let wrong = wrong(&cases, &numbers, &verdicts);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn print_table(cases: &[Case], verdicts: &[Verdict]) {
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut better = vec![0; BETTER.len()];
    for (case, verdict) in cases.iter().zip(verdicts) {
        let count = counts.entry(case.function.name).or_default();
        match verdict {
            Verdict::Right => count[0] += 1,
            Verdict::AsBad => count[1] += 1,
            Verdict::Better(index) => {
                count[2] += 1;
                better[*index] += 1;
            }
            Verdict::Wrong(_) => {}
        }
    }
    println!("{:32} {:>6} {:>6} {:>6}", "function", "right", "as bad", "better");
    for (name, [right, as_bad, better]) in counts {
        println!("{name:32} {right:6} {as_bad:6} {better:6}");
    }
    println!("{} calls. Better than glibc:", cases.len());
    for (better, count) in BETTER.iter().zip(better) {
        println!("{count:6}  {}", better.why);
    }
}

/// Puts a defect in front of a function of the drop-in. It must be reported.
#[test]
fn planted_defects_are_found() {
    let cases = all_cases();
    // The defect, the function, the cases, and what is reported about one of them.
    let defects = [
        ("WRITES_BEHIND", "pthread_rwlock_tryrdlock", "Free", "0 on glibc, here SIGSEGV"),
        (
            "WRITES_BEHIND",
            "pthread_rwlock_tryrdlock",
            "Free",
            "memory beside the object was written",
        ),
        ("WRITES_BEFORE", "pthread_rwlock_tryrdlock", "Free", "0 on glibc, here SIGSEGV"),
        (
            "WRITES_BEFORE",
            "pthread_rwlock_tryrdlock",
            "Free",
            "memory beside the object was written",
        ),
        (
            "WRITES_ATTRIBUTES",
            "pthread_mutex_init",
            "Word(4, 4)",
            "memory beside the object was written",
        ),
        ("HANGS", "sem_trywait", "Free(0)", "0 on glibc, here hangs"),
        ("ANSWERS", "pthread_spin_trylock", "Busy", "EBUSY on glibc, here 0"),
        ("DIES", "pthread_barrier_init", "Number(0)", "EINVAL on glibc, here SIGSEGV"),
    ];
    for (defect, function, argument, said) in defects {
        let planted = planted(defect);
        let numbers: Vec<usize> = (0..cases.len())
            .filter(|&number| {
                let case = &cases[number];
                case.function.name == function && case.to_string().contains(argument)
            })
            .collect();
        let preload = format!("{}:{}", planted.path(), drop_in());
        let verdicts = verdicts(&cases, &numbers, &preload);
        let wrong = wrong(&cases, &numbers, &verdicts);
        assert!(wrong.iter().any(|line| line.contains(said)), "{defect}: {wrong:?}");
    }
}

/// A shared library with one defect.
fn planted(defect: &str) -> support::Program {
    let define = format!("-D{defect}");
    let compiler = [support::C, &["-shared", "-fPIC", &define]].concat();
    support::compile(&compiler, "../pthread_bad_arguments/planted.c")
}

#[test]
fn an_exported_function_that_is_not_known_is_noticed() {
    let (unknown, missing) = functions::unknown_and_missing(planted("EXPORTS").path());
    assert_eq!(unknown, ["pthread_unheard_of"]);
    assert!(missing.contains(&"sem_post".to_owned()));
}

#[test]
fn every_exported_function_is_known() {
    let (unknown, missing) = functions::unknown_and_missing(&drop_in());
    assert!(unknown.is_empty(), "there are no cases for {unknown:?}");
    assert!(missing.is_empty(), "{missing:?} are no longer exported");
}
