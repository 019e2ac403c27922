//! Random sequences of pthread calls must give the same answers on glibc alone and under the
//! drop-in.
//!
//! The calls cover mutexes of all 32 kinds (type, protocol, robustness, scope), reader/writer
//! locks, condition variables, semaphores, barriers, spin locks and once. Three threads make one
//! call at a time. No call waits forever, and threads may end with robust mutexes held.
//! `pthread_fuzz/calls.c` makes the calls and leaves out undefined ones. A sequence with a
//! difference is shrunk, and printed as the lines that `calls.c` reads.
//!
//! `WAITWORD_FUZZ_SECONDS` (default 2) and `WAITWORD_FUZZ_SEED` work as for the fuzzer of the futex
//! calls.

#[path = "pthread_fuzz/child.rs"]
mod child;
#[path = "raw_futex/support.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod support;

use child::Child;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::RefCell;
use std::fmt;
use std::process::Command;
use waitword_testkit::fuzz::Fuzz;

/// The length of the longest sequence.
const LONGEST: usize = 40;

/// A line for `calls.c`.
#[derive(Clone)]
struct Call {
    thread: u8,
    name: &'static str,
    object: u8,
    argument: u8,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, name, object, argument } = self;
        write!(f, "{thread} {name} {object} {argument}")
    }
}

/// The calls' names, and the number of different arguments of each.
const MUTEX: &[(&str, u8)] = &[
    ("mutex_init", 32),
    ("mutex_trylock", 1),
    ("mutex_lock", 1),
    ("mutex_unlock", 1),
    ("mutex_timedlock", 6),
    ("mutex_clocklock", 18),
    ("mutex_consistent", 1),
    ("mutex_destroy", 1),
    ("exit", 1),
    ("cond_init", 4),
    ("cond_timedwait", 6),
    ("cond_clockwait", 18),
    ("cond_signal", 1),
    ("cond_broadcast", 1),
    ("cond_destroy", 1),
];
const RWLOCK: &[(&str, u8)] = &[
    ("rwlock_init", 6),
    ("rwlock_tryrdlock", 1),
    ("rwlock_trywrlock", 1),
    ("rwlock_unlock", 1),
    ("rwlock_timedrdlock", 6),
    ("rwlock_timedwrlock", 6),
    ("rwlock_clockrdlock", 18),
    ("rwlock_clockwrlock", 18),
    ("rwlock_destroy", 1),
];
const OTHERS: &[(&str, u8)] = &[
    ("sem_init", 10),
    ("sem_post", 1),
    ("sem_trywait", 1),
    ("sem_timedwait", 6),
    ("sem_clockwait", 18),
    ("sem_getvalue", 1),
    ("sem_destroy", 1),
    ("barrier_init", 3),
    ("barrier_wait", 1),
    ("barrier_destroy", 1),
    ("spin_init", 2),
    ("spin_trylock", 1),
    ("spin_unlock", 1),
    ("once", 1),
];

fn call(of: &'static [(&'static str, u8)]) -> impl Strategy<Value = Call> {
    (0u8..3, 0..of.len(), 0u8..2, any::<u8>()).prop_map(move |(thread, index, object, argument)| {
        let (name, arguments) = of[index];
        Call { thread, name, object, argument: argument % arguments }
    })
}

/// Sequences of calls on one family. Mixing families would only dilute the calls.
fn sequences() -> impl Strategy<Value = Vec<Call>> {
    prop_oneof![
        3 => vec(call(MUTEX), 1..=LONGEST),
        1 => vec(call(RWLOCK), 1..=LONGEST),
        1 => vec(call(OTHERS), 1..=LONGEST),
    ]
}

/// Whether ours may differ from glibc here: because `conformance/better.txt` lists the difference,
/// or because a time is wrong in two ways and either error is allowed.
fn is_right_too(call: &Call, glibc: &str, ours: &str) -> bool {
    let is = |glibc_s: i32, ours_s: i32| glibc == glibc_s.to_string() && ours == ours_s.to_string();
    // Seconds and nanoseconds are both below 0. No other kind of argument gets this number.
    if call.argument % 6 == 5 && is(libc::ETIMEDOUT, libc::EINVAL) {
        return true;
    }
    match call.name {
        // POSIX: EBUSY for a locked mutex, whichever thread holds it.
        "mutex_trylock" => is(libc::EDEADLK, libc::EBUSY),
        // A time before 1970 is past.
        "mutex_timedlock" | "mutex_clocklock" => is(libc::EINVAL, libc::ETIMEDOUT),
        _ => false,
    }
}

/// Sequences that gave different answers in the past.
const FOUND: [&str; 1] = [
    // The holder does not wait for its own mutex: EDEADLK, even with an invalid time (10^9
    // nanoseconds).
    "0 mutex_init 1 2
     0 mutex_trylock 1 0
     0 mutex_timedlock 1 3
     0 mutex_clocklock 1 3",
];

struct Both {
    glibc: Child,
    ours: Child,
}

impl Both {
    /// Returns the first difference, as text.
    fn compare(&mut self, calls: &[Call]) -> Result<(), String> {
        let lines: Vec<String> = calls.iter().map(|call| format!("{call:?}")).collect();
        let glibc = self.glibc.answers(&lines)?;
        let ours = self.ours.answers(&lines)?;
        for (number, call) in calls.iter().enumerate() {
            let (glibc, ours) = (&glibc[number], &ours[number]);
            if glibc != ours && !is_right_too(call, glibc, ours) {
                return Err(format!("`{call:?}` is {glibc} on glibc and {ours} under the drop-in"));
            }
        }
        Ok(())
    }
}

fn both() -> (support::Program, Both) {
    let compiler = &["gcc", "-O2", "-Wall", "-Werror", "-pthread"];
    let program = support::compile(compiler, "../pthread_fuzz/calls.c");
    let path = program.path().to_owned();
    let glibc = Child::new("on glibc", {
        let path = path.clone();
        move || Command::new(&path)
    });
    let ours = Child::new("under the drop-in", move || support::under(&[], &path, &[]));
    (program, Both { glibc, ours })
}

#[test]
fn what_was_found_is_answered_as_by_glibc() {
    let (_program, mut both) = both();
    for lines in FOUND {
        let lines: Vec<String> = lines.lines().map(|line| line.trim().to_owned()).collect();
        let answers = [&mut both.glibc, &mut both.ours].map(|child| child.answers(&lines));
        assert_eq!(answers[0], answers[1], "{lines:#?}");
    }
}

#[test]
fn random_calls_are_answered_as_by_glibc() {
    let (_program, both) = both();
    let both = RefCell::new(both);
    let found =
        Fuzz::from_environment().run(&sequences(), |calls| both.borrow_mut().compare(calls));
    if let Err(failure) = found {
        let lines = |calls: &Vec<Call>| {
            let lines: Vec<String> = calls.iter().map(|call| format!("{call:?}\n")).collect();
            lines.concat()
        };
        panic!("{}", failure.text(lines));
    }
}
