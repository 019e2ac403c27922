//! Recordings of programs that are linked with the library: in C with `libwaitword.so`, in Rust
//! with the crate's feature `record`. With the drop-in beside it, without, and from outside.

use std::io::{BufRead as _, BufReader};
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

/// A program in C, linked with the library.
fn compile(place: &Path, name: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = place.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-o"]).arg(&program);
    compiler.arg(sources.join("tests/linked").join(format!("{name}.c")));
    compiler.arg("-I").arg(sources.join("../../crates/waitword-c/include"));
    // By the name that programs load it by.
    let library = place.join("libwaitword.so.0");
    std::fs::copy(built().join("libwaitword.so"), &library).unwrap();
    compiler.arg(&library).arg(format!("-Wl,-rpath,{}", place.display()));
    texts(output(&mut compiler));
    program
}

/// The programs, with the same functions.
fn programs(place: &Path) -> [PathBuf; 2] {
    [compile(place, "program"), built().join("examples/recorded")]
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
            // Earlier, the drop-in may be found, and the library, which comes after it, may not.
            let tasks = format!("/proc/{}/task", running.0.id());
            while std::fs::read_dir(&tasks).unwrap().count() < 5 {
                std::thread::sleep(Duration::from_millis(1));
            }
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

/// What `kinds.c` waits for: the function, and how the recording names the object.
const KINDS: [(&str, &str); 15] = [
    ("waits_for_priority", "Mutex"),
    ("waits_for_recursive", "Mutex"),
    ("waits_for_shared", "Mutex"),
    ("waits_for_robust", "Mutex"),
    ("waits_for_once", "Once"),
    ("waits_with_priority", "Condvar"),
    ("waits_everywhere", "Condvar"),
    ("waits_at_barrier", "Barrier"),
    ("waits_at_shared_barrier", "Barrier"),
    ("waits_at_latch", "Barrier"),
    ("waits_for_event", "Semaphore"),
    ("waits_on_word", "Futex"),
    ("waits_on_shared_word", "Futex"),
    ("waits_on_several_words", "Futex"),
    ("waits_as_futex", "Futex"),
];

#[test]
fn every_kind_of_wait_is_recorded() {
    let _watchdog = watch_for(limit(1200));
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("recording");
    std::fs::create_dir(&directory).unwrap();
    let mut program = Command::new(compile(place.path(), "kinds"));
    let ended = output(program.arg("10").env("WAITWORD_RECORD", &directory));
    assert!(ended.status.success(), "{ended:?}");
    let folded = [&[][..], &["--idle"]].map(|arguments| {
        let file = place.path().join("folded");
        let mut report = Command::new(env!("CARGO_BIN_EXE_waitword"));
        report.arg("report").arg(&directory).args(arguments).arg("--folded").arg(&file);
        texts(output(&mut report));
        std::fs::read_to_string(file).unwrap()
    });
    let [locks, others] = &folded;
    for (function, object) in KINDS {
        let text = if matches!(object, "Mutex" | "Once") { locks } else { others };
        let microseconds = text.lines().filter_map(|line| {
            let (stack, time) = line.rsplit_once(' ')?;
            let is_it = stack.split(';').any(|it| it == function);
            (is_it && stack.ends_with(&format!(";[{object}]"))).then(|| time.parse::<u64>())
        });
        let sum: u64 = microseconds.map(Result::unwrap).sum();
        assert!(sum > 5_000, "{function}, {object}: {sum} us\n{text}");
    }
    let processes = read(&directory).unwrap();
    for object in [Object::Mutex, Object::Once] {
        let waits = processes[0].waits.iter().map(|(_, wait)| wait);
        let long = waits.filter(|wait| wait.object() == Some(object) && wait.took > 2_000_000);
        let unknown: Vec<_> = long.filter(|wait| wait.holder == 0).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}

#[test]
fn a_deadlock_at_contended_locks_of_the_library_is_found() {
    let _watchdog = watch_for(limit(1200));
    let place = tempfile::tempdir().unwrap();
    let program = compile(place.path(), "deadlock");
    // Of the usual kind, recursive, and wait-wake.
    for flags in ["0", "1", "0x20"] {
        let directory = place.path().join(flags);
        std::fs::create_dir(&directory).unwrap();
        let mut command = Command::new(&program);
        command.arg(flags).env("WAITWORD_RECORD", &directory).stdout(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(running.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let threads: Vec<&str> = line.split(' ').take(2).collect();
        let mut deadlock = Command::new(env!("CARGO_BIN_EXE_waitword"));
        let ended = output(deadlock.arg("deadlock").arg("--pid").arg(running.0.id().to_string()));
        let shown = String::from_utf8_lossy(&ended.stdout);
        assert_eq!(ended.status.code(), Some(1), "{flags}: {ended:?}");
        for (waiter, holder) in [(threads[0], threads[1]), (threads[1], threads[0])] {
            let start = format!("thread {waiter} (");
            let line = shown.lines().find(|line| line.starts_with(&start)).expect(&shown);
            assert!(line.contains(&format!(", held by thread {holder} (")), "{line}");
            assert!(line.ends_with("(by the recording)"), "{line}");
        }
    }
}

/// The command sees the call of a thread that it knows to hold a lock.
#[test]
fn the_call_in_which_a_holder_of_a_contended_mutex_sleeps_is_named() {
    let _watchdog = watch_for(limit(1200));
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(compile(place.path(), "convoy"));
    let running = Running(command.spawn().unwrap());
    let mut profile = Command::new(env!("CARGO_BIN_EXE_waitword"));
    profile.args(["profile", "--seconds", "2", "--pid"]).arg(running.0.id().to_string());
    // It is found by looks from time to time, so maybe not at once.
    loop {
        let ended = output(&mut profile);
        if String::from_utf8_lossy(&ended.stdout).contains("% asleep in clock_nanosleep") {
            break;
        }
    }
}
