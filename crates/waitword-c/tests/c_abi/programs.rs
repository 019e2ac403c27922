//! The examples and the C and C++ tests, compiled and run with the shared library and with the
//! archive.

use crate::installed::{Language, Linking, compile, link, package, run};
use std::collections::BTreeSet;

const EVERY_LINKING: [Linking; 3] = [Linking::Dynamic, Linking::Archive, Linking::Static];

fn compiles_and_runs_as(source: &str, standard: &str, flags: &[&str], linkings: &[Linking]) {
    let source = package().join(source);
    let object = compile(&source, standard, flags);
    for &linking in linkings {
        let output = run(&link(&object, linking));
        assert!(!output.is_empty(), "{} says nothing ({linking:?})", source.display());
        print!("{output}");
    }
}

fn compiles_and_runs(source: &str) {
    compiles_and_runs_as(source, "c11", &[], &EVERY_LINKING);
}

/// In the newest C++ with every way of linking, in the oldest with one.
fn compiles_and_runs_in_cpp(source: &str) {
    if Language::Cpp.is_here() {
        compiles_and_runs_as(source, "c++20", &[], &EVERY_LINKING);
        compiles_and_runs_as(source, "c++17", &[], &[Linking::Dynamic]);
    }
}

#[test]
fn bad_input_fails_with_the_kernel_s_errors() {
    compiles_and_runs("tests/c/bad_input.c");
}

#[test]
fn every_operation_works_from_c() {
    compiles_and_runs("tests/c/operations.c");
}

#[test]
fn mutexes() {
    compiles_and_runs("tests/c/mutex.c");
}

#[test]
fn condition_variables() {
    compiles_and_runs("tests/c/cond.c");
}

#[test]
fn reader_writer_locks() {
    compiles_and_runs("tests/c/rwlock.c");
}

#[test]
fn semaphores_barriers_latches_and_events() {
    compiles_and_runs("tests/c/small_locks.c");
}

#[test]
fn once() {
    compiles_and_runs("tests/c/once.c");
}

#[test]
fn a_once_is_left_by_code_without_unwind_tables() {
    let flags = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let source = "tests/c/once_without_tables.c";
    compiles_and_runs_as(source, "c11", &flags, &EVERY_LINKING);
}

#[test]
fn robust_mutexes() {
    compiles_and_runs("tests/c/robust.c");
}

#[test]
fn statistics() {
    compiles_and_runs("tests/c/stats.c");
}

#[test]
fn the_standard_s_requirements() {
    compiles_and_runs_in_cpp("tests/cpp/requirements.cpp");
}

#[test]
fn mutexes_in_cpp() {
    compiles_and_runs_in_cpp("tests/cpp/mutexes.cpp");
}

#[test]
fn condition_variables_in_cpp() {
    compiles_and_runs_in_cpp("tests/cpp/conditions.cpp");
}

#[test]
fn small_locks_in_cpp() {
    compiles_and_runs_in_cpp("tests/cpp/small_locks.cpp");
}

#[test]
fn one_namespace_for_another() {
    compiles_and_runs_in_cpp("tests/cpp/drop_in.cpp");
}

const C_EXAMPLES: [&str; 4] = ["event.c", "mutex64.c", "shared.c", "work_queue.c"];
const CPP_EXAMPLES: [&str; 2] = ["pipeline.cpp", "wait_any.cpp"];

#[test]
fn examples_in_c() {
    for name in C_EXAMPLES {
        compiles_and_runs(&format!("examples/{name}"));
    }
}

#[test]
fn examples_in_cpp() {
    for name in CPP_EXAMPLES {
        compiles_and_runs_in_cpp(&format!("examples/{name}"));
    }
}

#[test]
fn no_example_is_left_out() {
    let files: BTreeSet<String> = std::fs::read_dir(package().join("examples"))
        .expect("the examples' folder")
        .map(|entry| entry.expect("readable"))
        // The projects of build systems are for `scripts/build-systems`.
        .filter(|entry| entry.file_type().expect("readable").is_file())
        .map(|entry| entry.file_name().into_string().expect("plain"))
        .collect();
    let run = C_EXAMPLES.into_iter().chain(CPP_EXAMPLES);
    assert_eq!(files, run.map(str::to_owned).collect());
}
