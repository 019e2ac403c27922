//! Makes the calls in child processes, which may crash, and checks the memory afterwards.

use super::arena::{Arena, Bytes, contents, fill};
use super::cases::Case;
use super::harm::{Left, Next, Outcome, outcomes};
use super::library::{Library, MOST};
use super::values::{Kind, LIST, State, Value, size};

/// Makes all calls.
pub(crate) fn run(library: &Library, cases: &[Case<'_>]) -> Vec<Outcome> {
    outcomes(cases.len(), Arena::new, |arena, index, left| {
        let case = &cases[index];
        one(library, arena, case, index % 2 == 0, left);
        if leaves_something(case) { Next::NewChild } else { Next::SameChild }
    })
}

/// The time limit of a call that must return, in milliseconds.
const PATIENCE: i64 = 3000;
/// The same for a call that may wait forever: longer than a call that does not wait takes.
const PATIENCE_WITH_WAITS: i64 = 30;

/// Whether something outside the object may still refer to it: the kernel's list of robust mutexes,
/// or a waiter.
fn leaves_something(case: &Case<'_>) -> bool {
    case.arguments.iter().any(|value| {
        matches!(value, Value::Object(Kind::RobustMutex, _) | Value::Object(_, State::Busy))
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
    let before = contents(&places);
    left.begin(if case.may_wait { PATIENCE_WITH_WAITS } else { PATIENCE });
    // SAFETY: this process may crash.
    let answer = unsafe { library.call(&case.function.name, &numbers[..case.arguments.len()]) };
    left.answered(if case.function.returns_int() { i64::from(answer as i32) } else { answer });
    let changed = before != contents(&places);
    left.end(changed, !arena.is_untouched_beside(&places));
}

extern "C" fn nothing() {}

const WW_PROCESS_SHARED: u64 = 256;

/// The purpose of an object.
#[derive(Clone, Copy)]
struct With {
    /// The caller must hold the mutex.
    condvar: bool,
    /// The condition variable must be shared.
    robust: bool,
    /// A busy lock is held upgradably by the caller, and for reading by another thread.
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

/// Writes a value to its memory, and returns the argument to pass.
fn put(library: &Library, arena: &Arena, value: Value, memory: Option<*mut u8>, with: With) -> u64 {
    let address = memory.map_or(0, |memory| memory as u64);
    match value {
        Value::Null => 0,
        Value::Number(number) => number,
        Value::Kernels => 0xffff_8000_0000_0000,
        Value::Untouchable => arena.untouchable() as u64,
        Value::Routine => nothing as extern "C" fn() as usize as u64,
        Value::Text(text) => text.as_ptr() as u64,
        Value::Object(kind, state) => {
            let memory = memory.expect("an object takes memory");
            fill(memory, kind.size(), state.bytes());
            make(library, kind, state, address, with);
            address
        }
        Value::Into(_, bytes) | Value::IntoWord(bytes) => {
            let size = size(value).expect("it takes memory");
            fill(memory.expect("as above"), size, Bytes::Zeros);
            address + bytes as u64
        }
        Value::Word => {
            fill(memory.expect("as above"), 16, Bytes::Zeros);
            address
        }
        Value::Time(seconds, nanoseconds) => {
            let memory = memory.expect("as above").cast::<i64>();
            // SAFETY: the memory has 16 bytes.
            unsafe {
                memory.write_unaligned(seconds);
                memory.add(1).write_unaligned(nanoseconds);
            }
            address
        }
        Value::List(bytes) => {
            let memory = memory.expect("as above");
            fill(memory, LIST + 8, Bytes::Zeros);
            for entry in 0..2 {
                // SAFETY: the memory has room for two entries of 24 bytes: value, address, flags.
                // Both addresses are that of the memory itself, where the word is 0.
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

/// Brings an object into a state with the library's own functions.
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
        // SAFETY: `object` is an object of that kind.
        let answer = unsafe { library.call(&format!("{prefix}{name}"), &arguments) } as i32;
        assert_eq!(answer, 0, "{prefix}{name}");
    };
    let flags = if kind == Kind::Cond && with.robust { WW_PROCESS_SHARED } else { 0 };
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
                // Locked by another thread: a caller that holds it gets a different error.
                let lock = if with.upgrade {
                    call("_upgradable_lock", &[]);
                    "ww_rwlock_rdlock"
                } else {
                    "ww_rwlock_wrlock"
                };
                std::thread::scope(|threads| {
                    // SAFETY: `object` is a lock.
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
