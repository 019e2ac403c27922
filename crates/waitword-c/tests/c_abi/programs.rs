//! The examples and the C tests, compiled and run with the shared library and with the archive.

use crate::installed::{Language, Linking, compile, package, run};

fn compiles_and_runs(source: &str) {
    let source = package().join(source);
    for linking in [Linking::Dynamic, Linking::Archive, Linking::Static] {
        let output = run(&compile(&source, linking));
        assert!(
            !output.is_empty(),
            "{} says nothing ({linking:?})",
            source.display()
        );
        print!("{output}");
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
fn semaphores_barriers_latches_events_and_once() {
    compiles_and_runs("tests/c/small_locks.c");
}

#[test]
fn robust_mutexes() {
    compiles_and_runs("tests/c/robust.c");
}

#[test]
fn examples_in_c() {
    for name in ["event", "mutex64", "shared"] {
        compiles_and_runs(&format!("examples/{name}.c"));
    }
}

#[test]
fn examples_in_cpp() {
    if Language::Cpp.is_here() {
        compiles_and_runs("examples/wait_any.cpp");
    }
}

#[test]
fn no_example_is_left_out() {
    let mut files: Vec<String> = std::fs::read_dir(package().join("examples"))
        .expect("the examples' folder")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("plain")
        })
        .collect();
    files.sort();
    assert_eq!(files, ["event.c", "mutex64.c", "shared.c", "wait_any.cpp"]);
}
