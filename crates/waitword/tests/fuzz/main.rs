//! Random system calls, argument by argument, made to the kernel's futex and to ours. Both must
//! give the same answers, and wake the same threads in the same order.
//!
//! `tests/differential` compares what a program *means*, at every width and through every
//! interface. Here a call is its bare numbers (futex(2) and the four calls of futex2, 32 bits). One
//! in eight is wrong in some way: misaligned, unmapped, null or kernel addresses; unknown
//! operations, flags, clocks and comparisons; counts below 0; values wider than the word; invalid
//! times; lists with a wrong length.
//!
//! ```text
//!   program ──► a side: fn(number, six arguments) -> answer ──► events ─┐
//!                 the kernel                                            │
//!                 waitword::raw                                        ├── the same
//!                 libwaitword.so             (if named)                 │
//!                 `syscall` of the drop-in   (if named)                ─┘
//! ```
//!
//! A difference is shrunk, and printed as a test to paste into `fuzz/found.rs`.
//!
//! | variable | |
//! |---|---|
//! | `WAITWORD_FUZZ_SECONDS` | how long each test here runs (2) |
//! | `WAITWORD_FUZZ_SEED` | the first programs' seed; a failure names its own |
//! | `WAITWORD_FUZZ_C`, `WAITWORD_FUZZ_DROP_IN` | the built libraries, named by `scripts/fuzz` |
//!
//! # What is not compared
//!
//! * FUTEX_WAKE_OP with an unknown comparison: the kernel changes the word before it returns
//!   ENOSYS, ours does not. The word is restored on every side.
//! * Unmapped memory that ours reads: a SIGSEGV, as documented. The drop-in returns EFAULT, and is
//!   compared.
//! * Plain waiters and waiters with priority inheritance on one word at the same time (`kinds.rs`).

mod arguments;
mod found;
mod inheriting;
mod kinds;
mod memory;
mod planted;
mod program;
mod run;
mod sides;
mod strategies;

use memory::Memory;
use program::Program;
use run::{difference, run};
use sides::Side;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use strategies::{Contents, programs};
use waitword_testkit::{Crew, Watchdog, fuzz::Fuzz, raw::To, watch};

/// Threads that wait.
const THREADS: usize = 5;

/// The kernel, the sides that are compared with it, and the threads that make the calls.
struct Comparison {
    others: Vec<Arc<dyn Side>>,
    memory: Memory,
    crew: RefCell<Crew>,
    watchdog: Watchdog,
    _alone: MutexGuard<'static, ()>,
}

/// Serialises the tests. A thread that waits for the allocator, because another test's threads use
/// it, looks asleep like one that waits for a word.
static ALONE: Mutex<()> = Mutex::new(());

impl Comparison {
    fn new(others: Vec<Arc<dyn Side>>) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let watchdog = watch();
        // A queued thread must be asleep too: only then does a signal end the wait.
        waitword::spin::set_budget(Duration::ZERO);
        let mut crew = Crew::new(THREADS);
        let memory = Memory::new(&mut crew);
        Self { others, memory, crew: RefCell::new(crew), watchdog, _alone: alone }
    }

    /// The first difference, for a human reader.
    fn compare(&self, program: &Program) -> Result<(), String> {
        self.watchdog.pat();
        let crew = &mut self.crew.borrow_mut();
        let kernel: Arc<dyn Side> = Arc::new(To::Kernel);
        let expected = run(program, &kernel, &self.memory, crew);
        for side in &self.others {
            let found = run(program, side, &self.memory, crew);
            if found != expected {
                return Err(difference(program, &expected, side.name(), &found));
            }
        }
        Ok(())
    }
}

fn fuzz(others: Vec<Arc<dyn Side>>, contents: Contents) {
    if others.is_empty() {
        println!("nothing to compare with: no library is named");
        return;
    }
    let comparison = Comparison::new(others);
    let found =
        Fuzz::from_environment().run(&programs(contents), |program| comparison.compare(program));
    if let Err(failure) = found {
        panic!("{}", failure.text(Program::source));
    }
}

#[test]
fn fuzz_the_raw_interface() {
    let raw: Arc<dyn Side> = Arc::new(To::Ours);
    let sides = [raw].into_iter().chain(sides::c_library());
    fuzz(sides.collect(), Contents::default());
}

#[test]
fn fuzz_the_drop_in_with_bad_memory() {
    let contents = Contents { bad_memory: true, ..Contents::default() };
    fuzz(sides::drop_in().into_iter().collect(), contents);
}

/// With priority-inheriting operations among the others.
#[test]
fn fuzz_inheriting() {
    let contents = Contents { inheriting: true, ..Contents::default() };
    fuzz(sides::ours(), contents);
}
