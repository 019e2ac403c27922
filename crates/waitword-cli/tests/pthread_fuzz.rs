//! Random sequences of pthread calls, made on glibc alone and under the drop-in: the same answers.
//!
//! Mutexes of all 32 kinds (type, protocol, robustness, scope), reader/writer locks, condition variables, semaphores, barriers, spin
//! locks and once; three threads, one call at a time, none that waits for ever; threads that end with robust mutexes held. The calls
//! are made by `pthread_fuzz/calls.c`, which leaves out what is undefined. A difference is shrunk, and printed as the lines that
//! it reads.
//!
//! `WAITWORD_FUZZ_SECONDS` (2) and `WAITWORD_FUZZ_SEED` as for the fuzzer of the futex calls.

#[path = "pthread_fuzz/child.rs"]
mod child;
#[path = "../../waitword/tests/support/fuzz.rs"]
mod fuzz;
#[path = "raw_futex/support.rs"]
#[allow(dead_code, reason = "of what the raw futexes' tests need, a part")]
mod support;

use child::Child;
use fuzz::Fuzz;
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::RefCell;
use std::fmt;
use std::process::Command;

/// Calls of the longest sequence.
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
        let Self {
            thread,
            name,
            object,
            argument,
        } = self;
        write!(f, "{thread} {name} {object} {argument}")
    }
}

/// Names, and how many different arguments each has.
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
        Call {
            thread,
            name,
            object,
            argument: argument % arguments,
        }
    })
}

/// Calls on one family: those on others would only dilute them.
fn sequences() -> impl Strategy<Value = Vec<Call>> {
    prop_oneof![
        3 => vec(call(MUTEX), 1..=LONGEST),
        1 => vec(call(RWLOCK), 1..=LONGEST),
        1 => vec(call(OTHERS), 1..=LONGEST),
    ]
}

/// Whether ours may answer so where glibc answers otherwise: as `conformance/better.txt` has it, or where a time is wrong in
/// two ways and either may be said.
fn is_right_too(call: &Call, glibc: &str, ours: &str) -> bool {
    let is = |glibc_s: i32, ours_s: i32| glibc == glibc_s.to_string() && ours == ours_s.to_string();
    // Both seconds and nanoseconds below 0. No other argument has this number.
    if call.argument % 6 == 5 && is(libc::ETIMEDOUT, libc::EINVAL) {
        return true;
    }
    match call.name {
        // POSIX: a mutex that is locked, by whomever, is EBUSY.
        "mutex_trylock" => is(libc::EDEADLK, libc::EBUSY),
        // A time before 1970 is past.
        "mutex_timedlock" | "mutex_clocklock" => is(libc::EINVAL, libc::ETIMEDOUT),
        _ => false,
    }
}

/// Sequences that differed once.
const FOUND: [&str; 1] = [
    // Who has it does not wait for it: EDEADLK, whatever the time. (10^9 nanoseconds)
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
    /// The first difference, for people.
    fn compare(&mut self, calls: &[Call]) -> Result<(), String> {
        let lines: Vec<String> = calls.iter().map(|call| format!("{call:?}")).collect();
        let glibc = self.glibc.answers(&lines)?;
        let ours = self.ours.answers(&lines)?;
        for (number, call) in calls.iter().enumerate() {
            let (glibc, ours) = (&glibc[number], &ours[number]);
            if glibc != ours && !is_right_too(call, glibc, ours) {
                return Err(format!(
                    "`{call:?}` is {glibc} on glibc and {ours} under the drop-in"
                ));
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
