//! `Once`: the initialiser returns, or unwinds, when another thread requests it. Meanwhile other
//! threads come.
//!
//! The model contains what is promised: one thread runs it at a time. Once it has returned, no
//! thread runs it again. If it unwinds, the waiters get an error, or one of them runs it, depending
//! on what they called.

use super::family::{Caller, Family, Model, expect};
use super::program::HAND;
use super::run::may_wait;
use libc::{ECANCELED, ENOTRECOVERABLE};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, Once as StdOnce, PoisonError};
use waitword::{Once, OnceState};
use waitword_testkit::Answer;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Onces;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// `call_once`.
    Plain,
    /// `call_once_force`.
    Force,
    Execute,
    /// The thread that runs it continues, and ends in this way.
    Ends(End),
}
use Call::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Returns,
    Unwinds,
}

pub(crate) struct Object {
    once: Once,
    stage: Mutex<Stage>,
    said: Condvar,
}

/// Between the thread that runs it and the one that decides how that ends.
#[derive(Default)]
struct Stage {
    runs: Option<usize>,
    /// The state that it found.
    found: Option<OnceState>,
    end: Option<End>,
}

/// It ran, and unwound.
struct Unwound;

impl Object {
    /// The initialiser: does nothing until another thread decides how it ends.
    fn run(&self, thread: usize, found: Option<OnceState>) {
        let mut stage = self.stage.lock().unwrap();
        assert_eq!(stage.runs, None, "two run it");
        stage.runs = Some(thread);
        stage.found = found;
        let mut stage = self
            .said
            .wait_while(stage, |stage| stage.end.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        stage.runs = None;
        let end = stage.end.take();
        drop(stage);
        if end == Some(End::Unwinds) {
            resume_unwind(Box::new(Unwound));
        }
    }
}

thread_local! {
    static MAY_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// The message of a panic that is an expected answer is not useful.
fn without_messages() {
    static INSTALLED: StdOnce = StdOnce::new();
    INSTALLED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !MAY_PANIC.get() {
                usual(panic);
            }
        }));
    });
}

impl Family for Onces {
    type Made = ();
    type Call = Call;
    type Object = Object;
    type Model = Modelled;

    const NAME: &'static str = "Onces";

    fn made() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn calls() -> BoxedStrategy<Call> {
        prop_oneof![
            3 => Just(Plain),
            2 => Just(Force),
            2 => Just(Execute),
            1 => Just(Ends(End::Returns)),
            4 => Just(Ends(End::Unwinds)),
        ]
        .boxed()
    }

    fn make((): &()) -> Object {
        without_messages();
        Object { once: Once::new(), stage: Mutex::default(), said: Condvar::new() }
    }

    fn call(object: &Object, caller: &Caller, call: &Call) -> Answer {
        let ran = Cell::new(false);
        let run = |found| {
            ran.set(true);
            object.run(caller.thread, found);
        };
        let call_it = || match call {
            Plain => object.once.call_once(|| run(None)),
            Force => object.once.call_once_force(|found| run(Some(found))),
            Execute => object.once.execute(|| run(None)),
            Ends(end) => {
                object.stage.lock().unwrap().end = Some(*end);
                object.said.notify_one();
            }
        };
        MAY_PANIC.set(true);
        let called = catch_unwind(AssertUnwindSafe(call_it));
        MAY_PANIC.set(false);
        match called {
            Ok(()) => Ok(usize::from(ran.get())),
            Err(panic) if panic.is::<Unwound>() => Err(ECANCELED),
            // Without having run it: it is poisoned.
            Err(_) if !ran.get() => Err(ENOTRECOVERABLE),
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// See the module documentation.
pub(crate) struct Modelled {
    /// Its state while no thread runs it.
    state: OnceState,
    /// The thread that runs it.
    runs: Option<(usize, Call)>,
    /// The answers of threads that come now.
    answers: BTreeMap<usize, Answer>,
    line: Vec<(usize, Call)>,
}

impl Modelled {
    fn end(&mut self, end: End) {
        let (thread, call) = self.runs.take().expect("a thread runs it");
        let answer = match end {
            End::Returns => Ok(1),
            End::Unwinds => Err(ECANCELED),
        };
        self.answers.insert(thread, answer);
        self.state = match (end, call) {
            (End::Returns, _) => OnceState::Done,
            (End::Unwinds, Execute) => OnceState::New,
            (End::Unwinds, _) => OnceState::Poisoned,
        };
    }

    /// Whether such a call would run it now if no other thread does.
    fn would_run(&self, call: Call) -> bool {
        match self.state {
            OnceState::New => true,
            OnceState::Poisoned => call != Plain,
            _ => false,
        }
    }

    /// The answer of such a call that does not run it.
    fn answer(&self) -> Answer {
        match self.state {
            OnceState::Poisoned => Err(ENOTRECOVERABLE),
            _ => Ok(0),
        }
    }
}

impl Model<Onces> for Modelled {
    fn new((): &()) -> Self {
        Self { state: OnceState::New, runs: None, answers: BTreeMap::new(), line: Vec::new() }
    }

    fn allows(&self, thread: usize, call: &Call) -> bool {
        match call {
            Ends(_) => self.runs.is_some(),
            _ => may_wait(thread),
        }
    }

    fn begins(&mut self, thread: usize, call: &Call) {
        match *call {
            Ends(end) => {
                self.end(end);
                self.answers.insert(thread, Ok(0));
            }
            call => self.line.push((thread, call)),
        }
    }

    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String> {
        if let Some(right) = self.answers.remove(&thread) {
            return expect(thread, answer, right);
        }
        let place = self.line.iter().position(|&(other, _)| other == thread);
        let (_, call) = self.line.remove(place.ok_or("who runs it has come back")?);
        if self.runs.is_some() || self.would_run(call) {
            return Err(format!("thread {thread} comes back before it is done"));
        }
        expect(thread, answer, self.answer())
    }

    fn rests(&mut self, object: &Object) -> Result<(), String> {
        if let Some((thread, _)) = self.answers.first_key_value() {
            return Err(format!("thread {thread} does not come back"));
        }
        let stage = object.stage.lock().unwrap();
        if let Some(thread) = stage.runs.filter(|_| self.runs.is_none()) {
            // One of the waiters, whichever.
            let mut line = self.line.iter();
            let place = line.position(|&(other, _)| other == thread);
            let place = place.ok_or("a stranger runs it")?;
            let (_, call) = self.line[place];
            if !self.would_run(call) {
                return Err(format!("thread {thread} runs it"));
            }
            if call == Force && stage.found != Some(self.state) {
                return Err(format!("found {:?}, not {:?}", stage.found, self.state));
            }
            self.line.remove(place);
            self.runs = Some((thread, call));
        }
        if let (None, Some((thread, _))) = (self.runs, self.line.first()) {
            return Err(format!("thread {thread} waits, and no thread runs it"));
        }
        Ok(())
    }

    fn agrees(&self, object: &Object) -> Result<(), String> {
        let state = match self.runs {
            Some(_) => OnceState::InProgress,
            None => self.state,
        };
        if object.once.state() != state {
            return Err(format!("it is {:?}, not {state:?}", object.once.state()));
        }
        Ok(())
    }

    fn is_signalled(&mut self, _thread: usize) -> bool {
        true
    }

    fn is_interrupted(&mut self, _thread: usize) {}

    fn ends(&self) -> Option<(usize, Call)> {
        self.runs.map(|_| (HAND, Ends(End::Returns)))
    }
}
