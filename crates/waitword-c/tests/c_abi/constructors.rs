//! A library that uses waitword in threads that its constructor starts: the dynamic loader holds a
//! lock while it loads the library.

use crate::installed::{Language, Linking, compile, libraries, link, package, prefix};
use crate::{pkg_config, scratch, watchdog};
use std::process::Command;
use std::time::Duration;

const OPERATIONS: [&str; 9] = [
    "mutex",
    "inheriting mutex",
    "mutex with a time limit",
    "rwlock",
    "semaphore",
    "barrier",
    "cond",
    "cond with a time limit",
    "futex",
];

#[test]
fn the_first_operation_of_a_process_may_be_in_such_a_thread() {
    let loader = link(&compile(&package().join("tests/c/load.c"), "gnu11", &[]), Linking::Dynamic);
    for linking in [Linking::Dynamic, Linking::Archive] {
        let library = scratch::folder().join(format!("constructor-{linking:?}.so"));
        let mut compiler = Command::new(Language::C.compiler());
        compiler
            .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(["-shared", "-fPIC"])
            .args(pkg_config::ask(&["--cflags"]))
            .arg("-o")
            .arg(&library)
            .arg(package().join("tests/c/constructor.c"))
            .args(libraries(linking));
        watchdog::run(&mut compiler, watchdog::BUILD);
        for operation in OPERATIONS {
            let mut command = Command::new(&loader);
            command
                .arg(&library)
                .env("OPERATION", operation)
                .env("LD_LIBRARY_PATH", prefix().join("lib"));
            let output = watchdog::run(&mut command, Duration::from_secs(20));
            assert_eq!(output, format!("{operation} works\n"), "{linking:?}");
        }
    }
}
