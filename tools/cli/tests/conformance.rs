//! The conformance suite: C and C++ programs written from POSIX and the man pages
//! (`crates/waitword-pthread/conformance`). Each program is run on glibc alone and under
//! `waitword run`, and the answers are compared case by case.
//!
//! Every check of every case must hold in both runs. A result that POSIX leaves open is printed as
//! an answer. It must be the same in both runs, or be listed in `conformance/better.txt` with the
//! reason why ours may differ. A listed answer that no longer differs fails the test, too.

#[path = "conformance/better.rs"]
mod better;
#[path = "conformance/constructors.rs"]
mod constructors;
#[path = "conformance/programs.rs"]
mod programs;
#[path = "conformance/report.rs"]
mod report;

use better::Better;
use programs::{Program, Under};
use report::Report;
use std::path::Path;

/// Runs a program both ways, and fails with a list of everything that is wrong.
fn conforms(program: &Program) {
    let built = program.build();
    let plain = Report::of(program, &built.run(Under::Glibc));
    let ours = Report::of(program, &built.run(Under::DropIn));
    let mut wrong = plain.wrong("on glibc alone (so the case is wrong, or expects too much)");
    wrong.extend(ours.wrong("under the drop-in"));
    wrong.extend(Better::list().differences(program.name, &plain, &ours));
    assert!(
        wrong.is_empty(),
        "{}:\n{}\nto see for yourself: {}",
        program.name,
        wrong.join("\n"),
        program.by_hand(),
    );
}

macro_rules! programs {
    ($($name:ident: $program:expr;)*) => {
        $(
            #[test]
            fn $name() {
                conforms(&$program);
            }
        )*

        /// The programs that the list of better answers may name.
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

programs! {
    attributes: Program::new("attributes.c");
    mutex: Program::new("mutex.c");
    cond: Program::new("cond.c");
    cond_threads: Program::new("cond_threads.c");
    cancel: Program::new("cancel.c");
    cancel_points: Program::new("cancel_points.c");
    leaving: Program::new("leaving.c");
    leaving_exceptions: Program::new("leaving_exceptions.cpp");
    sem: Program::new("sem.c");
    rwlock: Program::new("rwlock.c");
    barrier: Program::new("barrier.c");
    once: Program::new("once.c")
        .with_library("untabled.c")
        .with_library_flags(&["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]);
    c11: Program::new("c11.c");
    robust: Program::new("robust.c");
    shared: Program::new("shared.c");
    fork: Program::new("fork.c");
    loading: Program::new("loading.c").with_library("library.c").with_plugin("library.c");
    constructors: constructors::program();
    malloc: Program::new("malloc.c");
    exceptions: Program::new("exceptions.cpp");
    inheritance: Program::new("inheritance.c").with_real_time_threads();
    real_time: Program::new("real_time.c").with_real_time_threads();
    // A thread that is stepped instruction by instruction spins for very long, so spinning is off
    // here. The long run below includes it.
    lost_wakeup: Program::new("lost_wakeup.c").with_variables(&[("WAITWORD_SPIN_NS", "0")]);
    stepped: Program::new("stepped.c").with_variables(&[("WAITWORD_SPIN_NS", "0")]);
    leaving_stepped: Program::new("leaving_stepped.cpp")
        .with_variables(&[("WAITWORD_SPIN_NS", "0"), ("CONFORMANCE_ROUNDS", "12")]);
}

#[test]
fn the_list_speaks_of_programs_that_there_are() {
    for entry in Better::list().entries() {
        assert!(
            NAMES.contains(&entry.program.as_str()),
            "better.txt: no program is called {}",
            entry.program
        );
    }
}

/// Runs programs that load libraries, fork and throw, with two allocators that take locks while
/// they allocate, in front of the C library's.
#[test]
fn other_allocators_work_under_the_drop_in() {
    for allocator in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"] {
        let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"];
        let found = directories
            .iter()
            .map(|directory| Path::new(directory).join(allocator))
            .find(|path| path.exists());
        let Some(path) = found else {
            eprintln!("not installed, so not tried: {allocator}");
            continue;
        };
        for program in [
            Program::new("exceptions.cpp"),
            Program::new("loading.c").with_library("library.c").with_plugin("library.c"),
            Program::new("cancel.c"),
            Program::new("cancel_points.c"),
        ] {
            let built = program.build();
            let plain = Report::of(&program, &built.run(Under::GlibcAnd(&path)));
            let mut ours = Report::of(&program, &built.run(Under::DropInAnd(&path)));
            ours.forgive(&plain);
            if allocator.contains("tcmalloc") {
                // It cannot handle a main thread that ends before other threads: on glibc alone two
                // of three such runs crash.
                ours.leave_out("after_the_main_thread");
            }
            let wrong = ours.wrong(allocator);
            assert!(wrong.is_empty(), "{}: {}", program.name, wrong.join("\n"));
        }
    }
}

/// When the drop-in is switched off, every answer is glibc's.
#[test]
fn switched_off_it_answers_as_glibc() {
    for source in ["mutex.c", "rwlock.c", "c11.c"] {
        let program = Program::new(source);
        let built = program.build();
        let plain = Report::of(&program, &built.run(Under::Glibc));
        let off = Report::of(&program, &built.run(Under::DropInWith("WAITWORD", "off")));
        let wrong = off.wrong("with WAITWORD=off");
        assert!(wrong.is_empty(), "{}: {}", program.name, wrong.join("\n"));
        assert_eq!(off.answers, plain.answers, "{}", program.name);
    }
}

/// The checks hold with every way of waiting for mutexes.
#[test]
fn every_setting_conforms() {
    for program in [
        Program::new("mutex.c"),
        Program::new("cond.c"),
        Program::new("cond_threads.c"),
        Program::new("real_time.c").with_real_time_threads(),
    ] {
        let built = program.build();
        for (name, value) in [
            ("WAITWORD_MUTEX", "throughput"),
            ("WAITWORD_MUTEX", "wait-wake"),
            ("WAITWORD_SPIN_NS", "0"),
        ] {
            let ours = Report::of(&program, &built.run(Under::DropInWith(name, value)));
            let wrong = ours.wrong(&format!("with {name}={value}"));
            assert!(wrong.is_empty(), "{}: {}", program.name, wrong.join("\n"));
        }
    }
}

/// Holds threads up at every instruction, for minutes.
/// `cargo test -p waitword-cli --test conformance -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn held_up_at_every_instruction_for_minutes() {
    for (source, rounds) in [
        ("lost_wakeup.c", &[("CONFORMANCE_ROUNDS", "5000"), ("CONFORMANCE_PATIENCE", "20")]),
        ("stepped.c", &[("CONFORMANCE_ROUNDS", "300"), ("CONFORMANCE_PATIENCE", "20")]),
        ("leaving_stepped.cpp", &[("CONFORMANCE_ROUNDS", "1000"), ("CONFORMANCE_PATIENCE", "40")]),
    ] {
        let program = Program::new(source).with_variables(rounds);
        let ours = Report::of(&program, &program.build().run(Under::DropIn));
        let wrong = ours.wrong("under the drop-in");
        assert!(wrong.is_empty(), "{source}: {}", wrong.join("\n"));
    }
}

/// The runner detects a case that fails, one that hangs, one that a signal ends, and one that says
/// nothing.
#[test]
fn what_goes_wrong_is_seen() {
    let program = Program::new("wrong.c");
    let report = Report::of(&program, &program.build().run(Under::Glibc));
    let mut wrong = report.wrong("here");
    wrong.sort();
    let text = wrong.join("\n");
    assert_eq!(wrong.len(), 4, "{text}");
    assert!(wrong[0].contains("crashes: ended by signal 6"), "{text}");
    assert!(wrong[1].contains("fails: line"), "{text}");
    assert!(wrong[2].contains("hangs: hangs"), "{text}");
    assert!(wrong[2].contains("wchan: "), "its threads are shown: {text}");
    assert!(wrong[3].contains("says_nothing: "), "{text}");
}
