//! The library's locks against models of them: random programs, executed by four threads and one
//! that never waits.
//!
//! ```text
//!   program ──► the lock:  one call at a time, until all are back or asleep  ─┐ which return,
//!           ──► its model: which thread holds it, which wait, what each returns ─┘ and what
//! ```
//!
//! A model is a page of plain code (`lock_model/`, one or two files per family) that states exactly
//! what is promised. Where the promise is that one of the waiters is let in, any of them will do.
//! Where it is the oldest waiter, it must be that one. A waiter that must come back but sleeps, one
//! that comes too early, a wrong answer, a second holder: each is an error. The program is then
//! shortened as long as it still fails, and printed as a test to paste into `lock_model/found.rs`.
//!
//! `WAITWORD_FUZZ_SECONDS` (2, which the five families share) and `WAITWORD_FUZZ_SEED` as for
//! `fuzz`. `scripts/fuzz` runs the tests longer.
//!
//! # What is left out
//!
//! * Threads that run at the same time: `waitword torture` and the models under loom test those.
//! * Visible readers of a rwlock, if two CPUs are not free at the same moment: the lock cannot be
//!   biased then.
//! * Robust mutexes, which have tests of their own (`robust`).

mod family;
mod found;
mod gates;
mod mutexes;
mod onces;
mod planted;
mod program;
mod run;
mod rwlocks;
mod tokens;

use family::{Family, programs};
use program::{Program, THREADS};
use run::{Defect, run};
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use waitword::abi_support::Interrupter;
use waitword_testkit::{
    Crew, Watchdog,
    fuzz::{Failure, Fuzz},
    watch,
};

/// The threads that run programs.
struct Bench {
    users: RefCell<Users>,
    watchdog: Watchdog,
    _alone: MutexGuard<'static, ()>,
}

struct Users {
    crew: Crew,
    /// Never freed, because threads of a failed run may never come back.
    interrupters: &'static [Interrupter; THREADS + 1],
}

impl Users {
    fn new() -> Self {
        let interrupters = [const { Interrupter::signalled() }; THREADS + 1];
        Self { crew: Crew::new(THREADS + 1), interrupters: Box::leak(Box::new(interrupters)) }
    }
}

/// Serialises the tests. A thread that waits for the allocator, because another test's threads use
/// it, looks asleep like one that waits for a lock.
static ALONE: Mutex<()> = Mutex::new(());

impl Bench {
    fn new() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let watchdog = watch();
        // A waiter must be asleep.
        waitword::spin::set_budget(Duration::ZERO);
        Self { users: RefCell::new(Users::new()), watchdog, _alone: alone }
    }

    fn run<F: Family>(
        &self,
        program: &Program<F>,
        defect: Option<Defect<F>>,
    ) -> Result<(), String> {
        self.watchdog.pat();
        let mut users = self.users.borrow_mut();
        let interrupters = users.interrupters;
        let result = run(program, &mut users.crew, interrupters, defect);
        if !users.crew.busy().is_empty() {
            *users = Users::new();
        }
        result
    }

    fn fuzz<F: Family>(
        &self,
        fuzz: Fuzz,
        defect: Option<Defect<F>>,
    ) -> Result<(), Failure<Program<F>>> {
        fuzz.run(&programs::<F>(), |program| self.run(program, defect))
    }
}

/// How many families share the time.
const FAMILIES: u32 = 5;

fn fuzz<F: Family>() {
    let asked = Fuzz::from_environment();
    let fuzz = Fuzz { time: asked.time / FAMILIES, ..asked };
    if let Err(failure) = Bench::new().fuzz::<F>(fuzz, None) {
        panic!("{}", failure.text(Program::source));
    }
}

#[test]
fn fuzz_mutexes() {
    fuzz::<mutexes::Mutexes>();
}

#[test]
fn fuzz_rwlocks() {
    fuzz::<rwlocks::RwLocks>();
}

#[test]
fn fuzz_tokens() {
    fuzz::<tokens::Tokens>();
}

#[test]
fn fuzz_gates() {
    fuzz::<gates::Gates>();
}

#[test]
fn fuzz_onces() {
    fuzz::<onces::Onces>();
}
