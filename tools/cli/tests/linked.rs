//! Recordings of programs that are linked with the library: in C with `libwaitword.so`, in Rust
//! with the crate's feature `record`. With the drop-in beside it, without, and from outside.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use waitword_profile::attach::{Attached, Request};
use waitword_profile::read::{Process, read};
use waitword_record::format::{Ended, Object};
use waitword_testkit::command::{output, output_within, texts};
use waitword_testkit::{limit, watch_for};

/// Both kinds of lock: which function waits, and which one keeps the lock.
const LOCKS: [(Object, &str, &str); 2] = [
    (Object::Mutex, "wants_the_mutex", "sleeps_with_the_mutex"),
    (Object::Read, "wants_to_read", "sleeps_with_the_rwlock"),
];

/// The library and the Rust program, in a directory of their own. Cargo does not build them for the
/// tests of this package.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linked");
        let packages: [&[&str]; 2] =
            [&["waitword-c", "--lib"], &["waitword", "--example", "recorded", "--features=record"]];
        for package in packages {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--locked", "-p"]).args(package).env("CARGO_TARGET_DIR", &target);
            cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
            for name in ["LD_LIBRARY_PATH", "CARGO_BUILD_TARGET"] {
                cargo.env_remove(name);
            }
            texts(output_within(limit(900), &mut cargo, |_| ()));
        }
        target.join("debug")
    })
}

/// The programs, with the same functions.
fn programs(place: &Path) -> [PathBuf; 2] {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let in_c = place.join("program");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&in_c);
    compiler.arg(sources.join("tests/linked/program.c"));
    compiler.arg("-I").arg(sources.join("../../crates/waitword-c/include"));
    // By the name that programs load it by.
    let library = place.join("libwaitword.so.0");
    std::fs::copy(built().join("libwaitword.so"), &library).unwrap();
    compiler.arg(&library).arg(format!("-Wl,-rpath,{}", place.display()));
    texts(output(&mut compiler));
    [in_c, built().join("examples/recorded")]
}

/// Whether the summary names the places that wait and their holders, which sleep.
fn shows_sites(text: &str) {
    for (_, waiter, holder) in LOCKS {
        let is_it = |line: &&str| line.contains(" waits for ") && line.contains(waiter);
        let line = text.lines().position(|line| is_it(&line)).expect(text);
        // The innermost function of the program's own.
        let first = text.lines().nth(line).unwrap().rsplit(": ").next().unwrap();
        let function = first.split(" (").next().unwrap();
        assert!(function.ends_with(waiter), "{waiter}: {text}");
        let kept = text.lines().nth(line + 1).unwrap_or_default();
        assert!(kept.contains("kept by ") && kept.contains(holder), "{holder}: {text}");
    }
}

/// Whether waits for these objects that others end after 5 ms are there, with who ended them.
fn has_waits(process: &Process) {
    for (object, ..) in LOCKS {
        let mut waits = process.waits.iter().map(|(_, wait)| wait);
        assert!(
            waits.any(|wait| wait.object() == Some(object)
                && wait.took > 2_000_000
                && wait.holder != 0
                && wait.stack != 0
                && wait.holder_stack != 0
                && wait.ended != Ended::TimedOut as u8),
            "{object:?}: {:?}",
            process.waits
        );
    }
}

#[test]
fn profile_shows_the_locks_of_a_linked_program() {
    let _watchdog = watch_for(limit(1200));
    let place = tempfile::tempdir().unwrap();
    for program in programs(place.path()) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitword"));
        command.args(["profile", "--"]).arg(&program).arg("60");
        let ended = output(&mut command);
        let said = String::from_utf8_lossy(&ended.stderr);
        shows_sites(&said);
        if program.ends_with("program") {
            assert_eq!(ended.status.code(), Some(7));
            assert!(said.contains("waits_for_an_item") && said.contains("for Condvar"), "{said}");
            assert!(said.contains("waits_for_a_token") && said.contains("for Semaphore"), "{said}");
        }
    }
}

#[test]
fn a_linked_program_records_by_itself() {
    let _watchdog = watch_for(limit(1200));
    let place = tempfile::tempdir().unwrap();
    for (n, program) in programs(place.path()).iter().enumerate() {
        let [by_call, by_variable] = ["call", "variable"].map(|name| {
            let directory = place.path().join(format!("{name}{n}"));
            std::fs::create_dir(&directory).unwrap();
            directory
        });
        let ended = output(Command::new(program).arg("40").arg(&by_call));
        if n == 0 {
            let said = String::from_utf8_lossy(&ended.stdout);
            assert_eq!(said, format!("{} Success\n", libc::EINVAL));
        }
        output(Command::new(program).arg("40").env("WAITWORD_RECORD", &by_variable));
        for directory in [by_call, by_variable] {
            let processes = read(&directory).unwrap();
            assert_eq!(processes.len(), 1);
            has_waits(&processes[0]);
        }
    }
}

/// Killed at the end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_linked_program_is_recorded_from_outside() {
    let _watchdog = watch_for(limit(1200));
    let place = tempfile::tempdir().unwrap();
    for program in programs(place.path()) {
        for with_drop_in in [false, true] {
            let mut command = match with_drop_in {
                true => Command::new(env!("CARGO_BIN_EXE_waitword")),
                false => Command::new(&program),
            };
            if with_drop_in {
                command.args(["run", "--"]).arg(&program);
            }
            command.arg("1000000").stdout(Stdio::null());
            let running = Running(command.spawn().unwrap());
            let request = Request {
                threshold: 10_000,
                patience: Duration::from_secs(60),
                despite_filter: false,
            };
            for _ in 0..2 {
                let mut attached = loop {
                    // An error: it has not come to its first lock.
                    let stop = AtomicBool::new(false);
                    if let Ok(attached) = Attached::begin(running.0.id(), request, &stop) {
                        break attached;
                    }
                };
                let is_there = || {
                    let processes = read(attached.directory()).unwrap_or_default();
                    LOCKS.iter().all(|&(object, ..)| {
                        processes.iter().flat_map(|process| &process.waits).any(|(_, wait)| {
                            wait.object() == Some(object)
                                && wait.took > 2_000_000
                                && wait.holder != 0
                        })
                    })
                };
                while !is_there() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                attached.end();
            }
        }
    }
}
