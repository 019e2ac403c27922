//! Runs a program on a real lock and on its model at the same time.

use super::family::{Caller, Family, Model};
use super::program::{HAND, Program, Step, THREADS};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use waitword::abi_support::Interrupter;
use waitword_testkit::{Answer, Crew, event::pick, show};

/// The planted replacement of a call; `None`: it is not made, and answers 0.
pub(crate) type Defect<F> = fn(<F as Family>::Call) -> Option<<F as Family>::Call>;

/// Used in place of an answer.
const PANICKED: Answer = Err(i32::MIN);

/// How long threads may run before they must come to rest.
const RESTLESS: Duration = Duration::from_secs(30);

/// A lock, its model, and the threads that use them.
struct Run<'a, F: Family> {
    object: Arc<F::Object>,
    model: F::Model,
    crew: &'a mut Crew,
    interrupters: &'static [Interrupter; THREADS + 1],
    defect: Option<Defect<F>>,
    /// For a human reader.
    log: String,
}

/// Runs `program`, then releases all remaining waiters. An error says what went wrong, with all
/// steps before.
///
/// After an error, threads may be left in the lock forever.
pub(crate) fn run<F: Family>(
    program: &Program<F>,
    crew: &mut Crew,
    interrupters: &'static [Interrupter; THREADS + 1],
    defect: Option<Defect<F>>,
) -> Result<(), String> {
    interrupters.iter().for_each(Interrupter::clear);
    let mut run = Run::<F> {
        object: Arc::new(F::make(&program.made)),
        model: F::Model::new(&program.made),
        crew,
        interrupters,
        defect,
        log: format!("{:?}\n", program.made),
    };
    let steps = program.steps.iter().try_for_each(|step| run.take(step));
    steps.and_then(|()| run.end()).map_err(|reason| {
        // A thread that still holds it may be recorded under its address.
        std::mem::forget(run.object);
        let log = run.log;
        format!("{log}but {reason}")
    })
}

impl<F: Family> Run<'_, F> {
    fn take(&mut self, step: &Step<F::Call>) -> Result<(), String> {
        match step {
            Step::By(number, call) => {
                let mut idle = self.crew.idle();
                let first = usize::from(*number) % idle.len();
                idle.rotate_left(first);
                idle.retain(|&thread| self.model.allows(thread, call));
                let is_good = |thread: &&usize| !self.model.is_misuse(**thread, call);
                let good = idle.iter().find(is_good);
                let chosen = good.filter(|_| number % 8 != 0).or(idle.first());
                match chosen.copied() {
                    Some(thread) => self.begin(thread, call),
                    None => Ok(()),
                }
            }
            Step::Signal(number) => {
                let Some(thread) = pick(&self.crew.busy(), *number) else {
                    return Ok(());
                };
                if !self.model.is_signalled(thread) {
                    return Ok(());
                }
                let _ = writeln!(self.log, "a signal to {thread}");
                self.crew.interrupt(thread);
                self.settle(None)
            }
            Step::Interrupt(number) => {
                let thread = usize::from(*number) % THREADS;
                self.model.is_interrupted(thread);
                let _ = writeln!(self.log, "{thread} is interrupted");
                let crew = &self.crew;
                self.interrupters[thread].interrupt_with(|_| crew.interrupt(thread));
                self.settle(None)
            }
        }
    }

    fn begin(&mut self, thread: usize, call: &F::Call) -> Result<(), String> {
        self.model.begins(thread, call);
        let _ = writeln!(self.log, "{thread}: {call:?}");
        let made = match self.defect {
            Some(defect) => defect(call.clone()),
            None => Some(call.clone()),
        };
        let object = self.object.clone();
        let caller = Caller { thread, interrupter: &self.interrupters[thread] };
        self.crew.order(thread, 0, move || {
            let call = || made.map_or(Ok(0), |call| F::call(&object, &caller, &call));
            catch_unwind(AssertUnwindSafe(call)).unwrap_or(PANICKED)
        });
        self.settle(Some(thread))
    }

    /// Waits until all threads that must return are back, and the others sleep.
    fn settle(&mut self, caller: Option<usize>) -> Result<(), String> {
        let begin = Instant::now();
        let mut quiet = (u64::MAX, begin);
        loop {
            if let Some(mut rest) = self.crew.at_rest() {
                // The caller's answer follows from the state before; the other threads' answers
                // follow from what the caller did.
                rest.came_back.sort_by_key(|&(thread, _)| Some(thread) != caller);
                for &(thread, answer) in &rest.came_back {
                    self.returned(thread, answer)?;
                }
                let Err(reason) = self.model.rests(&self.object) else {
                    return self.model.agrees(&self.object);
                };
                if !rest.came_back.is_empty() || rest.sleeps != quiet.0 {
                    quiet = (rest.sleeps, Instant::now());
                }
                if quiet.1.elapsed() > F::QUIET {
                    return Err(reason);
                }
            }
            if begin.elapsed() > RESTLESS {
                return Err("they never rest".to_owned());
            }
            std::thread::yield_now();
        }
    }

    fn returned(&mut self, thread: usize, answer: Answer) -> Result<(), String> {
        let _ = writeln!(self.log, "        {thread} is back: {}", show(answer));
        if answer == PANICKED {
            return Err(format!("thread {thread} has panicked"));
        }
        self.model.returns(thread, answer)
    }

    fn end(&mut self) -> Result<(), String> {
        const ENOUGH: usize = 100;
        for _ in 0..ENOUGH {
            match self.model.ends() {
                None => {
                    let busy = self.crew.busy();
                    assert!(busy.is_empty(), "the model forgets {busy:?}");
                    return Ok(());
                }
                Some((thread, call)) => {
                    let allowed = self.model.allows(thread, &call);
                    assert!(allowed, "{thread} may not {call:?}:\n{}", self.log);
                    self.begin(thread, &call)?;
                }
            }
        }
        panic!("the model finds no end:\n{}", self.log)
    }
}

/// The last thread of the crew is reserved for calls that do not wait.
pub(crate) fn may_wait(thread: usize) -> bool {
    thread != HAND
}
