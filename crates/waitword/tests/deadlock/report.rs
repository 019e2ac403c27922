//! The contents of a report.

use super::{alone, deadlock, leaked, part};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use waitword::deadlock::{self as detection, LockKind};
use waitword::{Mutex, RwLock};

#[test]
fn it_names_threads_locks_and_places() {
    static LINES: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
    let note = |index: usize, line: u32| LINES[index].store(line + 1, SeqCst);
    alone(|| {
        let (a, b) = (leaked(Mutex::new(())), leaked(RwLock::new(())));
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let found = deadlock([
            part("left", move |barrier| {
                NUMBER.store(waitword::thread_number(), SeqCst);
                note(0, line!());
                let _a = a.lock();
                barrier.wait();
                note(1, line!());
                let _b = b.read();
            }),
            part("right", move |barrier| {
                note(2, line!());
                let _b = b.write();
                barrier.wait();
                note(3, line!());
                let _a = a.lock();
            }),
        ]);
        let [left, right] = &found[..] else { panic!("{found:#?}") };
        let [a_locked, b_waited, b_locked, a_waited] =
            LINES.each_ref().map(|line| line.load(SeqCst));

        // SAFETY: it is not locked or unlocked through these references.
        let (raw_a, raw_b) = unsafe { (a.raw(), b.raw()) };
        let (raw_a, raw_b) = ((&raw const *raw_a).addr(), (&raw const *raw_b).addr());
        assert_eq!((left.lock_kind(), right.lock_kind()), (LockKind::RwLock, LockKind::Mutex));
        assert_eq!((left.lock_address(), right.lock_address()), (raw_b, raw_a));
        assert_eq!((left.waits_at().line(), right.waits_at().line()), (b_waited, a_waited));
        assert_eq!((left.locked_at().line(), right.locked_at().line()), (b_locked, a_locked));
        assert_eq!(left.waits_at().file(), file!());
        assert_eq!(left.thread_number(), NUMBER.load(SeqCst));
        assert_eq!(
            (left.thread_number(), left.thread_id()),
            (right.holder_number(), right.holder_id())
        );
        assert_ne!(left.thread_id(), right.thread_id());

        let (file, waited, locked) = (file!(), left.waits_at().column(), left.locked_at().column());
        let (number, other) = (left.thread_number(), right.thread_number());
        assert_eq!(
            left.to_string(),
            format!(
                "thread 'left' ({number}) waits at {file}:{b_waited}:{waited} to read the rwlock \
                 {raw_b:#x}, which thread 'right' ({other}) has locked for writing at \
                 {file}:{b_locked}:{locked}"
            )
        );
        let text = right.to_string();
        assert!(
            text.contains(&format!(" for the mutex {raw_a:#x}, which thread 'left'")),
            "{text}"
        );
        let end = format!("has locked at {file}:{a_locked}:{}", right.locked_at().column());
        assert!(text.ends_with(&end), "{text}");
    });
}

/// Run by the test below as a process of its own, which deadlocks and reports it.
#[test]
#[ignore = "ends its process"]
fn a_program_that_deadlocks() {
    // SAFETY: starts the timer of a signal that ends the process.
    unsafe { libc::alarm(100) };
    detection::watch(Duration::from_millis(1), |deadlock| {
        detection::print(deadlock);
        std::process::exit(41);
    });
    let mutex = Mutex::new(());
    let _first = mutex.lock();
    the_function_that_deadlocks(&mutex);
}

#[inline(never)]
fn the_function_that_deadlocks(mutex: &Mutex<()>) {
    let _second = mutex.lock();
    // Not in tail position: the frame must exist while the call above waits.
    thread::yield_now();
}

#[test]
fn the_background_check_prints_it_with_backtraces_if_the_environment_asks_for_them() {
    for with_backtraces in [false, true] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "report::a_program_that_deadlocks", "--ignored", "--nocapture"])
            .env_remove("RUST_LIB_BACKTRACE")
            .env("RUST_BACKTRACE", if with_backtraces { "1" } else { "0" })
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(41), "{text}");
        let start =
            "deadlock: a thread waits for itself\n  thread 'report::a_program_that_deadlocks' (";
        assert!(text.contains(start), "{text}");
        assert!(text.contains(", which it has locked at "), "{text}");
        let function = "the_function_that_deadlocks";
        assert_eq!(text.contains(function), with_backtraces, "{text}");
    }
}

/// With this test program's allocator, a backtrace would take a lock that the thread may hold.
#[test]
fn an_allocator_on_these_locks_goes_without_backtraces() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "innocent::a_second_of_contention"])
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
