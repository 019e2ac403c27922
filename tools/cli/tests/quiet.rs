//! The drop-in's use of the kernel and of the environment (SECURITY.md). A program under the
//! drop-in opens no file, socket or pipe and installs no signal handler that it would not without
//! it. A program with more rights than its caller does not obey the caller's environment.

#[allow(dead_code, reason = "this test uses a part of it")]
#[path = "raw_futex/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use support::{C, compile, run, texts};

/// The additional system calls that a program may make under the drop-in: for memory, for sleeping
/// and waking, and to find out about CPUs, NUMA nodes, priorities and its own identity.
const MAY_CALL: &[&str] = &[
    "clock_gettime",
    "clock_nanosleep",
    "futex",
    "futex_waitv",
    "get_mempolicy",
    "get_robust_list",
    "getpid",
    "gettid",
    "madvise",
    "mbind",
    "mmap",
    "mprotect",
    "munmap",
    "prctl",
    "restart_syscall",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_yield",
];
/// The calls by which the dynamic loader loads one more library, and the unwinder with it.
const LOADER_CALLS: &[&str] = &["close", "fstat", "newfstatat", "openat", "pread64", "read"];
const MAY_OPEN: &[&str] = &["libwaitword_pthread", "libgcc_s.so"];

/// The path of the drop-in.
fn preload() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
    let (path, _) = texts(run(command.arg("preload")));
    path.trim().to_owned()
}

/// Runs a program under strace. Returns the names of the system calls of all its threads, and the
/// files that it opened.
fn traced(program: &str, preload: Option<&str>) -> (BTreeSet<String>, BTreeSet<String>) {
    let log = format!("{program}.{}", preload.is_some());
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", &log]);
    if let Some(library) = preload {
        command.arg("-E").arg(format!("LD_PRELOAD={library}"));
    }
    let (said, _) = texts(run(command.arg(program)));
    assert_eq!(said, "done, as its caller\n");
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let calls = lines.lines().filter_map(|line| {
        // Takes "4711 openat(AT_FDCWD, ...", but not "+++ exited", "--- SIGCHLD" and
        // "<... futex resumed>".
        let (name, arguments) = line.split_once(' ')?.1.trim_start().split_once('(')?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then_some((name, arguments))
    });
    let (mut names, mut files) = (BTreeSet::new(), BTreeSet::new());
    for (name, arguments) in calls {
        names.insert(name.to_owned());
        if name.starts_with("open") {
            files.extend(arguments.split('"').nth(1).map(str::to_owned));
        }
    }
    (names, files)
}

#[test]
fn it_opens_nothing_and_handles_no_signal_that_the_program_does_not() {
    let program = compile(C, "quiet.c");
    let (plain, plain_files) = traced(program.path(), None);
    let (ours, our_files) = traced(program.path(), Some(&preload()));
    let more: Vec<_> = ours
        .difference(&plain)
        .filter(|name| !MAY_CALL.contains(&name.as_str()) && !LOADER_CALLS.contains(&name.as_str()))
        .collect();
    assert!(more.is_empty(), "it also calls {more:?}");
    let opened: Vec<_> = our_files
        .difference(&plain_files)
        .filter(|file| !MAY_OPEN.iter().any(|may| file.contains(may)))
        .collect();
    assert!(opened.is_empty(), "it also opens {opened:?}");
    // The drop-in was loaded.
    assert!(our_files.iter().any(|file| file.contains("libwaitword")));
}

/// Runs only as root, since it needs a setuid program and an unprivileged user to run it.
#[test]
fn a_setuid_program_does_not_write_where_its_caller_says() {
    const NOBODY: u32 = 65_534;
    // SAFETY: it cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not root: not tested");
        return;
    }
    let library = preload();
    let directory = library.rsplit_once('/').unwrap().0;
    let rpath = format!("-Wl,-rpath,{directory}");
    // Linked with the drop-in, since the loader preloads nothing into a setuid program.
    let compiler = [C, &["-Wl,--no-as-needed", &library, &rpath]].concat();
    let program = compile(&compiler, "quiet.c");
    let summary = format!("{}.summary", program.path());
    let told = |program: &str| {
        let mut command = Command::new(program);
        command.env("WAITWORD_SUMMARY", &summary).uid(NOBODY);
        let (said, _) = texts(run(&mut command));
        let told = std::fs::remove_file(&summary).is_ok();
        (said, told)
    };
    // Without setuid, it obeys its user's environment.
    assert_eq!(told(program.path()), ("done, as its caller\n".to_owned(), true));
    std::fs::set_permissions(program.path(), PermissionsExt::from_mode(0o4755)).unwrap();
    let (said, told) = told(program.path());
    if said == "done, as its caller\n" {
        eprintln!("programs here do not become setuid: not tested");
        return;
    }
    assert_eq!(said, "done, with another's rights\n");
    assert!(!told, "it wrote with root's rights to a file that its caller named");
}
