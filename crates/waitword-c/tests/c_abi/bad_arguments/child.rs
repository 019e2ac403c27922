//! Makes the calls in children, which may come to harm, and looks at what is left.

use super::arena::{Arena, fill, size};
use super::cases::Case;
use super::library::{Library, MOST};
use super::values::{Kind, LIST, State, Value};
use std::ffi::c_int;
use std::ptr;

/// What came of a call.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Left {
    state: u32,
    errno: i32,
    answer: i64,
    changed: bool,
}

const NOT_BEGUN: u32 = 0;
const BEGUN: u32 = 1;
const DONE: u32 = 2;
const DONE_AND_TOUCHED_OTHERS: u32 = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Answered {
        answer: i64,
        errno: i32,
        /// Whether a byte of an object is another one than before.
        changed: bool,
    },
    /// By this signal.
    Crashed(c_int),
    Hung,
    TouchedOthers,
}

/// Makes all calls, in children one after the other.
pub(crate) fn run(library: &Library, cases: &[Case<'_>]) -> Vec<Outcome> {
    let left = shared::<Left>(cases.len());
    let mut outcomes = Vec::with_capacity(cases.len());
    while outcomes.len() < cases.len() {
        let first = outcomes.len();
        // SAFETY: the child makes calls and ends by `_exit`.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "fork");
        if child == 0 {
            make_calls(library, cases, first, left);
        }
        let mut status = 0;
        // SAFETY: our own child.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        while outcomes.len() < cases.len() {
            // SAFETY: in the mapping; the child, which has ended, wrote it.
            let left = unsafe { left.add(outcomes.len()).read() };
            let outcome = match left.state {
                NOT_BEGUN => break,
                BEGUN if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGALRM => {
                    Outcome::Hung
                }
                BEGUN => Outcome::Crashed(libc::WTERMSIG(status)),
                DONE_AND_TOUCHED_OTHERS => Outcome::TouchedOthers,
                _ => Outcome::Answered {
                    answer: left.answer,
                    errno: left.errno,
                    changed: left.changed,
                },
            };
            outcomes.push(outcome);
        }
        assert!(outcomes.len() > first, "a child has ended without a call");
    }
    outcomes
}

/// Zeroed memory that children share.
fn shared<T>(count: usize) -> *mut T {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let length = count * size_of::<T>();
    // SAFETY: a new mapping.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.cast()
}

/// Milliseconds. For a call that may wait for ever: longer than one that does not takes.
const PATIENCE: i64 = 3000;
const PATIENCE_WITH_WAITS: i64 = 30;

fn make_calls(library: &Library, cases: &[Case<'_>], first: usize, left: *mut Left) -> ! {
    let arena = Arena::new();
    for (index, case) in cases.iter().enumerate().skip(first) {
        // SAFETY: in the mapping, and nobody else writes.
        let left = unsafe { &mut *left.add(index) };
        one(library, &arena, case, index % 2 == 0, left);
        if leaves_something(case) {
            break;
        }
    }
    // SAFETY: ends the child at once.
    unsafe { libc::_exit(0) }
}

/// Whether something outside of the object may know of it still: the kernel's list of robust mutexes, a waiter.
fn leaves_something(case: &Case<'_>) -> bool {
    case.arguments.iter().any(|value| {
        matches!(
            value,
            Value::Object(Kind::RobustMutex, _) | Value::Object(_, State::Busy)
        )
    })
}

fn one(library: &Library, arena: &Arena, case: &Case<'_>, at_end: bool, left: &mut Left) {
    arena.clear();
    let mut numbers = [0; MOST];
    let mut places = [None; MOST];
    let mut place = 0;
    for (index, &value) in case.arguments.iter().enumerate() {
        let memory = size(value).map(|size| {
            let start = arena.at(place, size, at_end);
            places[place] = Some((start, size));
            place += 1;
            start
        });
        numbers[index] = put(library, arena, value, memory, With::of(case));
    }
    let bytes = |at: &Option<(*mut u8, usize)>| -> Vec<u8> {
        at.map_or_else(Vec::new, |(start, size)| {
            // SAFETY: a place of the arena.
            unsafe { std::slice::from_raw_parts(start, size) }.to_vec()
        })
    };
    let before: Vec<_> = places.iter().map(bytes).collect();
    set_alarm(if case.may_wait {
        PATIENCE_WITH_WAITS
    } else {
        PATIENCE
    });
    left.state = BEGUN;
    // SAFETY: this process may come to harm.
    unsafe {
        *libc::__errno_location() = 0;
        left.answer = library.call(&case.function.name, &numbers[..case.arguments.len()]);
        left.errno = *libc::__errno_location();
    }
    if case.function.returns_int() {
        left.answer = i64::from(left.answer as i32);
    }
    set_alarm(0);
    left.changed = before != places.iter().map(bytes).collect::<Vec<_>>();
    left.state = if arena.is_untouched_beside(&places) {
        DONE
    } else {
        DONE_AND_TOUCHED_OTHERS
    };
}

fn set_alarm(milliseconds: i64) {
    let timer = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: milliseconds / 1000,
            tv_usec: milliseconds % 1000 * 1000,
        },
    };
    // SAFETY: a complete structure; SIGALRM ends the process.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

extern "C" fn nothing() {}

const WW_PROCESS_SHARED: u64 = 256;

/// What an object is made for.
#[derive(Clone, Copy)]
struct With {
    /// A mutex is to be the caller's.
    condvar: bool,
    /// A condition variable is to be shared.
    robust: bool,
    /// A lock that is busy is the caller's but for a reader.
    upgrade: bool,
}

impl With {
    fn of(case: &Case<'_>) -> Self {
        let name = &case.function.name;
        Self {
            condvar: name.contains("_cond_"),
            robust: name.ends_with("_robust"),
            upgrade: name.ends_with("upgrade"),
        }
    }
}

/// Puts a value into its memory, and gives what is passed for it.
fn put(library: &Library, arena: &Arena, value: Value, memory: Option<*mut u8>, with: With) -> u64 {
    let address = memory.map_or(0, |memory| memory as u64);
    match value {
        Value::Null => 0,
        Value::Number(number) => number,
        Value::Kernels => 0xffff_8000_0000_0000,
        Value::Untouchable => arena.untouchable() as u64,
        Value::Routine => nothing as extern "C" fn() as usize as u64,
        Value::Object(kind, state) => {
            let memory = memory.expect("an object takes memory");
            fill(memory, kind.size(), state);
            make(library, kind, state, address, with);
            address
        }
        Value::Into(_, bytes) | Value::IntoWord(bytes) => {
            let size = size(value).expect("it takes memory");
            fill(memory.expect("as above"), size, State::Zeros);
            address + bytes as u64
        }
        Value::Word => {
            fill(memory.expect("as above"), 16, State::Zeros);
            address
        }
        Value::Time(seconds, nanoseconds) => {
            let memory = memory.expect("as above").cast::<i64>();
            // SAFETY: 16 bytes.
            unsafe {
                memory.write_unaligned(seconds);
                memory.add(1).write_unaligned(nanoseconds);
            }
            address
        }
        Value::List(bytes) => {
            let memory = memory.expect("as above");
            fill(memory, LIST + 8, State::Zeros);
            for entry in 0..2 {
                // SAFETY: two entries of 24 bytes: value, address, flags. Their words are what follows them, which is 0.
                unsafe {
                    let start = memory.add(bytes + 24 * entry).cast::<u64>();
                    start.add(1).write_unaligned(memory as u64);
                    start.add(2).write_unaligned(130);
                }
            }
            address + bytes as u64
        }
    }
}

/// Brings an object into a state by the library's own functions.
fn make(library: &Library, kind: Kind, state: State, object: u64, with: With) {
    let (prefix, extra): (&str, &[u64]) = match kind {
        Kind::Mutex => ("ww_mutex", &[]),
        Kind::Cond => ("ww_cond", &[]),
        Kind::RobustMutex => ("ww_robust_mutex", &[]),
        Kind::Rwlock => ("ww_rwlock", &[]),
        Kind::Sem => ("ww_sem", &[1]),
        Kind::Barrier => ("ww_barrier", &[1]),
        Kind::Latch => ("ww_latch", &[1]),
        Kind::Event => ("ww_event", &[]),
        Kind::AutoEvent => ("ww_auto_event", &[]),
        Kind::Once => return,
    };
    let call = |name: &str, more: &[u64]| {
        let arguments = [&[object], more].concat();
        // SAFETY: an object of that kind.
        let answer = unsafe { library.call(&format!("{prefix}{name}"), &arguments) } as i32;
        assert_eq!(answer, 0, "{prefix}{name}");
    };
    let flags = if kind == Kind::Cond && with.robust {
        WW_PROCESS_SHARED
    } else {
        0
    };
    match state {
        State::Zeros | State::Ones | State::Chance(_) => {}
        State::Ready => {
            call("_init", &[&[flags], extra].concat());
            if with.condvar && matches!(kind, Kind::Mutex | Kind::RobustMutex) {
                call("_lock", &[]);
            }
        }
        State::Destroyed => {
            call("_init", &[&[flags], extra].concat());
            call("_destroy", &[]);
        }
        State::Busy => match kind {
            Kind::Mutex | Kind::RobustMutex => {
                call("_init", &[flags]);
                call("_lock", &[]);
            }
            Kind::Rwlock => {
                call("_init", &[flags]);
                // By another thread: whoever holds it itself is told so.
                let lock = if with.upgrade {
                    call("_upgradable_lock", &[]);
                    "ww_rwlock_rdlock"
                } else {
                    "ww_rwlock_wrlock"
                };
                std::thread::scope(|threads| {
                    // SAFETY: a lock.
                    let locker = threads.spawn(|| unsafe { library.call(lock, &[object]) });
                    let _ = locker.join();
                });
            }
            Kind::Sem => call("_init", &[flags, 0]),
            Kind::Barrier => call("_init", &[flags, 2]),
            _ => call("_init", &[&[flags], extra].concat()),
        },
    }
}
