//! Makes the calls in a process that is started with or without a drop-in in front of the C
//! library.
//!
//! The process is this test again. An environment variable names the file with its orders, in which
//! it stores the outcome of each call.

use super::arena::{Arena, Bytes, PAGE, contents, fill};
use super::calls::{MOST, another_thread, call, file_of, make, nothing};
use super::cases::Case;
use super::functions::Answers;
use super::harm::{Left, Next, Outcome, outcomes};
use super::values::{State, Thread, Value};
use std::fmt::Write as _;
use std::process::Command;
use waitword_testkit::command::{output, texts};

/// The calls to make, and how long each may take.
pub(crate) struct Order {
    /// The libraries to load first; empty for glibc alone.
    pub(crate) preload: String,
    /// The numbers of the cases.
    pub(crate) cases: Vec<usize>,
    /// How many milliseconds each may take.
    pub(crate) patience: i64,
}

const ORDER: &str = "WAITWORD_BAD_ARGUMENTS";

impl Order {
    /// Starts the process that makes the calls, and returns the outcomes.
    pub(crate) fn carry_out(&self, test: &str) -> Vec<Outcome> {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let numbers: Vec<String> = self.cases.iter().map(usize::to_string).collect();
        std::fs::write(&path, format!("{}\n{}", self.patience, numbers.join(" "))).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(ORDER, path.as_os_str());
        if !self.preload.is_empty() {
            command.env("LD_PRELOAD", &self.preload);
        }
        texts(output(&mut command));
        let text = std::fs::read_to_string(&path).unwrap();
        let (library, lines) = text.split_once('\n').expect("a first line");
        assert_eq!(
            library.contains("libwaitword_pthread"),
            self.preload.contains("libwaitword_pthread"),
            "sem_post comes from {library}"
        );
        lines.lines().map(parse).collect()
    }
}

/// If this process was started to make calls, makes them and returns `true`.
pub(crate) fn works(cases: &[Case]) -> bool {
    let Some(path) = std::env::var_os(ORDER) else {
        return false;
    };
    let text = std::fs::read_to_string(&path).unwrap();
    let (patience, numbers) = text.split_once('\n').expect("two lines");
    let patience = patience.parse().unwrap();
    let numbers: Vec<usize> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    let begin = || {
        become_harmless();
        Arena::new()
    };
    let made = outcomes(numbers.len(), begin, |arena, index, left| {
        let number = numbers[index];
        let case = &cases[number];
        // Derived from the number, so that a case is always in the same place.
        one(arena, case, number.is_multiple_of(2), patience, left);
        if leaves_something(case) { Next::NewChild } else { Next::SameChild }
    });
    let mut text = file_of("sem_post");
    for outcome in made {
        let _ = match outcome {
            Outcome::Answered { answer, errno, .. } => write!(text, "\n{answer} {errno}"),
            Outcome::Crashed(signal) => write!(text, "\ncrashed {signal}"),
            Outcome::Hung => write!(text, "\nhung"),
            Outcome::TouchedOthers => write!(text, "\ntouched"),
        };
    }
    std::fs::write(&path, text).unwrap();
    true
}

fn parse(line: &str) -> Outcome {
    let (first, second) = line.split_once(' ').unwrap_or((line, ""));
    match first {
        "hung" => Outcome::Hung,
        "touched" => Outcome::TouchedOthers,
        "crashed" => Outcome::Crashed(second.parse().unwrap()),
        _ => Outcome::Answered {
            answer: first.parse().unwrap(),
            errno: second.parse().unwrap(),
            changed: false,
        },
    }
}

/// Drops privileges, so that a random priority ceiling does not take effect on this machine, and
/// disables core files.
fn become_harmless() {
    const NOBODY: libc::uid_t = 65_534;
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is complete. (Without root, the user does not change.)
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::setresuid(NOBODY, NOBODY, NOBODY);
    }
}

/// Whether something may still refer to an object after the case: a thread, or the kernel's list of
/// robust mutexes.
fn leaves_something(case: &Case) -> bool {
    case.arguments.iter().any(|value| match value {
        Value::Object(_, State::Bytes(bytes)) => *bytes != Bytes::Zeros,
        Value::Object(_, State::Free(sort) | State::Destroyed(sort)) => *sort > 3,
        Value::Object(..) | Value::Thread(_) | Value::Attributes(..) => true,
        _ => false,
    })
}

fn one(arena: &Arena, case: &Case, at_end: bool, patience: i64, left: &mut Left) {
    arena.clear();
    let mut numbers = [0; MOST];
    let mut places = [None; MOST];
    let mut place = 0;
    for (index, &value) in case.arguments.iter().enumerate() {
        let memory = value.size().map(|size| {
            let start = arena.at(place, size, at_end);
            places[index] = Some((start, size));
            place += 1;
            start
        });
        numbers[index] = put(arena, value, memory);
    }
    let only_read: Vec<_> = (case.arguments.iter().zip(&places))
        .map(|(value, place)| place.filter(|_| value.is_only_read()))
        .collect();
    let before = contents(&only_read);
    left.begin(patience);
    // SAFETY: this process may come to harm.
    let answer = unsafe { call(case.function.name, &numbers[..case.arguments.len()]) };
    left.answered(match case.function.answers {
        Answers::Nothing => 0,
        _ => answer.into(),
    });
    let has_written = before != contents(&only_read);
    let is_untouched = arena.is_untouched_beside(&in_order(&places));
    left.end(false, has_written || !is_untouched);
}

/// The places in use, in the arena's order.
fn in_order(places: &[Option<(*mut u8, usize)>]) -> Vec<Option<(*mut u8, usize)>> {
    places.iter().copied().filter(Option::is_some).collect()
}

/// Puts a value into its memory, and returns the argument to pass.
fn put(arena: &Arena, value: Value, memory: Option<*mut u8>) -> u64 {
    let address = memory.map_or(0, |memory| memory as u64);
    let memory = || memory.expect("it takes memory");
    let zeros = || {
        fill(memory(), value.size().expect("it takes memory"), Bytes::Zeros);
    };
    match value {
        Value::Null => 0,
        Value::Number(number) => number as u64,
        Value::Untouchable => arena.untouchable() as u64,
        Value::Routine => nothing as *const () as u64,
        Value::Object(kind, state) => {
            make(kind, state, memory());
            address
        }
        Value::Misaligned(bytes) => {
            zeros();
            address + bytes as u64
        }
        Value::Attributes(size, bytes) => {
            fill(memory(), size, bytes);
            address
        }
        Value::AttributesWord(_, word) => {
            zeros();
            // SAFETY: the memory has at least four bytes.
            unsafe { memory().cast::<u32>().write_unaligned(word) };
            address
        }
        Value::Time(seconds, nanoseconds) => {
            // SAFETY: the memory has 16 bytes and is aligned for them.
            unsafe { memory().cast::<[i64; 2]>().write([seconds, nanoseconds]) };
            address
        }
        Value::OddTime => {
            zeros();
            address + u64::from(address.is_multiple_of(2))
        }
        Value::Room => {
            zeros();
            address
        }
        // SAFETY: it cannot fail.
        Value::Thread(Thread::Myself) => unsafe { libc::pthread_self() },
        Value::Thread(Thread::Another) => another_thread(),
        Value::Thread(Thread::Zeros) => {
            fill(memory(), PAGE, Bytes::Zeros);
            address
        }
    }
}
