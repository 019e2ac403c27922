//! The drop-in's rwlocks, barriers, spin locks, once, C11 functions and old names.
//!
//! The tests are C and C++ programs beside this file. Each is run three times: on the C library
//! alone, under `waitword run`, and under `waitword run` with `WAITWORD=off`. Where the C library
//! serves, the programs skip the calls that it answers differently or hangs in.

use std::path::{Path, PathBuf};
use std::process::Command;
use waitword_testkit::command::{output, texts};

/// Runs a command to its end and returns its output. If it fails or hangs, fails with the output.
fn run(mut command: Command) -> String {
    let (stdout, stderr) = texts(output(&mut command));
    stdout + &stderr
}

/// The directory of this file.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pthread_families")
}

/// Compiles the program from this source. Returns the program's path.
fn compile(source: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let here = here();
    let name = source.split('.').next().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pthread-{name}"));
    let compiler = match source.ends_with(".cpp") {
        true => "c++",
        false => "cc",
    };
    let mut command = Command::new(compiler);
    command
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg("-iquote")
        .arg(&here)
        .arg("-iquote")
        .arg(crates.join("waitword-c/tests/c"))
        .arg(here.join(source));
    run(command);
    program
}

fn passes(source: &str) {
    let program = compile(source);
    for served_by in ["glibc", "waitword", "nothing of waitword"] {
        let mut command = match served_by {
            "glibc" => Command::new(&program),
            _ => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
                command.arg("run").arg("--").arg(&program);
                command
            }
        };
        command.env_remove("LD_PRELOAD").env_remove("WAITWORD").env("SERVED_BY", served_by);
        if served_by.starts_with("nothing") {
            command.env("WAITWORD", "off");
        }
        let output = run(command);
        assert!(output.contains(" 0 failed") || output.contains("on this machine"), "{output}");
    }
}

macro_rules! programs {
    ($($name:ident: $source:literal,)*) => {$(
        #[test]
        fn $name() {
            passes($source);
        }
    )*};
}

programs! {
    what_rwlocks_answer: "rwlock_answers.c",
    whom_rwlocks_prefer: "rwlock_prefers.c",
    rwlocks_among_many: "rwlock_many.c",
    rwlocks_and_fork: "rwlock_fork.c",
    rwlocks_where_others_were: "rwlock_reuse.c",
    rwlocks_of_real_time_threads: "rwlock_real_time.c",
    barriers: "barrier.c",
    once: "once.c",
    once_with_exceptions: "once_throws.cpp",
    spin_locks: "spin.c",
    counters_at_their_ends: "counters.c",
    mutexes_of_c11: "c11_mutex.c",
    conditions_of_c11: "c11_cond.c",
    old_names: "old_names.c",
    waits_that_end_by_themselves: "not_ended_early.c",
}

/// Every source in this directory has a test.
#[test]
fn no_program_is_forgotten() {
    let tests = include_str!("main.rs");
    for entry in std::fs::read_dir(here()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_program = name.ends_with(".c") || name.ends_with(".cpp");
        assert!(!is_program || tests.contains(&format!("{name:?},")), "{name}");
    }
}
