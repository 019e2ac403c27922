//! Raw futexes under the drop-in: our table gives the same answers as the kernel does without it.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

#[path = "raw_futex/support.rs"]
mod support;

use object::{Object as _, ObjectSymbol as _};
use std::process::Command;
use support::{C, compile, number, run, texts, under};

/// The Rust compiler, for programs that use its standard library.
const RUST: &[&str] = &["rustc", "--edition=2024", "-O"];
const CXX: &[&str] = &["g++", "-O2", "-std=c++20", "-pthread"];

#[test]
fn every_answer_and_errno_is_as_without_it() {
    as_without_it("answers.c");
}

#[test]
fn plain_and_inheriting_operations_refuse_each_other_as_without_it() {
    as_without_it("inheriting.c");
}

fn as_without_it(source: &str) {
    let program = compile(C, source);
    let (alone, _) = texts(run(&mut Command::new(program.path())));
    assert!(alone.lines().count() > 100, "{alone}");
    for options in [&[][..], &["--no-futex"]] {
        let (under_it, _) = texts(run(&mut under(options, program.path(), &[])));
        let differing: Vec<_> = alone
            .lines()
            .zip(under_it.lines())
            .filter(|(alone, under_it)| alone != under_it)
            .collect();
        assert!(differing.is_empty(), "{options:?}: {differing:#?}");
        assert_eq!(alone.lines().count(), under_it.lines().count());
    }
}

#[test]
fn the_table_serves_private_words_unless_it_is_told_not_to() {
    let program = compile(C, "answers.c");
    let (_, summary) = texts(run(&mut under(&["--summary"], program.path(), &[])));
    let (slept, moved) = (number(&summary, "sleeps"), number(&summary, "requeues"));
    // 17 of its waiters wait longer than any waiter spins, and 4 are moved.
    assert!(slept >= 17 && moved == 4, "{slept} sleeps, {moved} requeues");
    // With --no-futex nothing is counted, and a process that counted nothing writes no line.
    let options = &["--summary", "--no-futex"];
    let (_, summary) = texts(run(&mut under(options, program.path(), &[])));
    assert_eq!(summary, "");
}

#[test]
fn rusts_standard_library_stands_on_it() {
    let program = compile(RUST, "std_program.rs");
    let (alone, _) = texts(run(&mut Command::new(program.path())));
    let (under_it, summary) = texts(run(&mut under(&["--summary"], program.path(), &[])));
    assert_eq!(alone, under_it);
    assert!(number(&summary, "sleeps") > 0, "{summary}");
}

#[test]
fn cxx_atomics_semaphores_and_latches_stand_on_it() {
    let program = compile(CXX, "waits.cpp");
    let (alone, _) = texts(run(&mut Command::new(program.path())));
    // (Debian 12's libstdc++ uses shared futexes, which the kernel serves. So this does not check
    // that the table serves them.)
    let (under_it, _) = texts(run(&mut under(&[], program.path(), &[])));
    assert_eq!(alone, under_it);
}

/// Threads post and wait on one word, while signal handlers interrupt them and wake waiters, and
/// children are forked.
#[test]
fn a_storm_of_waits_wakes_signals_and_forks_loses_nobody() {
    let program = compile(C, "storm.c");
    let (said, _) = texts(run(&mut under(&[], program.path(), &[])));
    assert!(said.ends_with("all came through\n"), "{said}");
}

/// A wait in a thread that may be cancelled at any moment leaves nothing behind in the table.
#[test]
fn a_thread_that_is_cancelled_asynchronously_leaves_the_table_whole() {
    let program = compile(C, "cancel.c");
    let (said, _) = texts(run(&mut under(&[], program.path(), &[])));
    assert_eq!(said, "the table is whole\n");
}

#[test]
fn perf_counts_the_same_wakes_and_requeues() {
    for bench in ["wake", "requeue"] {
        let arguments = ["bench", "futex", bench, "-t", "9", "-w", "2", "-q", "2"];
        let arguments = match bench {
            "wake" => &arguments[..7],
            _ => &["bench", "futex", "requeue", "-t", "9", "-q", "2"],
        };
        let alone = run(Command::new("perf").args(arguments));
        if !alone.status.success() {
            panic!("perf: {}", String::from_utf8_lossy(&alone.stderr));
        }
        let (said, _) = texts(run(&mut under(&[], "perf", arguments)));
        let all = match bench {
            "wake" => "Wokeup 9 of 9 threads",
            _ => "Requeued 9 of 9 threads",
        };
        assert_eq!(said.matches(all).count(), 11, "{said}");
    }
}

/// Compiled code may move the stack pointer first, which would break `vfork` and `rt_sigreturn`.
#[test]
fn the_exported_syscall_is_the_assembly_itself() {
    let (library, _) = texts(run(Command::new(env!("CARGO_BIN_EXE_waitword")).arg("preload")));
    let bytes = std::fs::read(library.trim()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let exported = file
        .dynamic_symbols()
        .find(|symbol| symbol.is_definition() && symbol.name() == Ok("syscall"))
        .expect("`syscall` is exported");
    let assembly = file
        .symbols()
        .find(|symbol| symbol.name() == Ok("waitword_syscall"))
        .expect("the assembly's entry");
    assert_eq!(exported.address(), assembly.address());
}

/// Only code for x86-64 can be searched.
#[cfg(target_arch = "x86_64")]
#[test]
fn check_tells_which_futex_calls_will_not_be_seen() {
    let program = compile(C, "inlined.c");
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.args(["run", "--check", program.path()]);
    let (said, _) = texts(run(&mut command));
    let of_program = said
        .lines()
        .find(|line| line.starts_with(program.path()) && line.contains("of its own"))
        .unwrap_or_else(|| panic!("{said}"));
    assert!(
        of_program.contains("2 futex calls of its own") && of_program.contains(" 1 through"),
        "{said}"
    );
    assert!(said.contains("--no-futex"), "{said}");
    // A program without such calls. It is not run, either.
    let program = compile(C, "answers.c");
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    command.args(["run", "--check", program.path()]);
    let (said, _) = texts(run(&mut command));
    assert!(!said.contains("of its own"), "{said}");
    assert!(!said.contains("EAGAIN"), "{said}");
}
