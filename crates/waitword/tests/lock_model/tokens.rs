//! Semaphores, and events that reset themselves, of both scopes.
//!
//! The model contains what is promised: each token is taken once, by the thread that has waited
//! longest; none is left while a thread waits; what ends a wait.

use super::family::{Caller, Family, Model, expect, limits};
use super::mutexes::scopes;
use super::program::{HAND, Limit, THREADS};
use super::run::may_wait;
use libc::{EAGAIN, EINTR, EOVERFLOW, ETIMEDOUT};
use proptest::prelude::*;
use std::collections::BTreeMap;
use waitword::abi_support::SemaphoreHooks as _;
use waitword::{AutoEvent, CountError, Error, Scope, Semaphore};
use waitword_testkit::Answer;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) of: Of,
    pub(crate) scope: Scope,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    Semaphore(u32),
    AutoEvent(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Posts this many tokens; an event is set once.
    Post(u32),
    /// Resets an event.
    Reset,
    TryWait,
    Wait(EndedBy, Limit),
    Value,
}
use Call::*;

/// What ends a wait, apart from tokens and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    Nothing,
    Signals,
    Interrupters,
}

pub(crate) enum Object {
    Semaphore(Semaphore),
    AutoEvent(AutoEvent),
}

impl Family for Tokens {
    type Made = Sort;
    type Call = Call;
    type Object = Object;
    type Model = Modelled;

    const NAME: &'static str = "Tokens";

    fn made() -> BoxedStrategy<Sort> {
        let of = prop_oneof![
            3 => (0u32..3).prop_map(Of::Semaphore),
            1 => Just(Of::Semaphore(Semaphore::MAX_VALUE)),
            3 => any::<bool>().prop_map(Of::AutoEvent),
        ];
        (of, scopes()).prop_map(|(of, scope)| Sort { of, scope }).boxed()
    }

    fn calls() -> BoxedStrategy<Call> {
        let count = prop_oneof![
            8 => Just(1),
            4 => 0u32..4,
            1 => prop_oneof![Just(Semaphore::MAX_VALUE), Just(u32::MAX)],
        ];
        let ends = prop_oneof![
            2 => Just(EndedBy::Nothing),
            1 => Just(EndedBy::Signals),
            1 => Just(EndedBy::Interrupters),
        ];
        prop_oneof![
            4 => count.prop_map(Post),
            1 => Just(Reset),
            1 => Just(TryWait),
            6 => (ends, limits()).prop_map(|(ends, limit)| Wait(ends, limit)),
            1 => Just(Value),
        ]
        .boxed()
    }

    fn make(made: &Sort) -> Object {
        match made.of {
            Of::Semaphore(value) => Object::Semaphore(Semaphore::with_scope(value, made.scope)),
            Of::AutoEvent(is_set) => Object::AutoEvent(AutoEvent::with_scope(is_set, made.scope)),
        }
    }

    fn call(object: &Object, caller: &Caller, call: &Call) -> Answer {
        let or = |done: bool, error| done.then_some(0).ok_or(error);
        match object {
            Object::Semaphore(semaphore) => match *call {
                Post(1) => in_errno(semaphore.post()),
                Post(count) => in_errno(semaphore.post_many(count)),
                TryWait => or(semaphore.try_wait(), EAGAIN),
                Wait(EndedBy::Nothing, limit) => match limit.deadline() {
                    None => {
                        semaphore.wait();
                        Ok(0)
                    }
                    Some(deadline) => or(semaphore.wait_until(deadline), ETIMEDOUT),
                },
                Wait(EndedBy::Signals, limit) => {
                    waited(semaphore.wait_interruptible(limit.deadline()))
                }
                Wait(EndedBy::Interrupters, limit) => {
                    let by = caller.interrupter;
                    let waited = waited(semaphore.wait_interruptible_by(limit.deadline(), by));
                    if waited == Err(EINTR) {
                        by.clear();
                    }
                    waited
                }
                Value => Ok(semaphore.value() as usize),
                Reset => unreachable!("a semaphore is not reset"),
            },
            Object::AutoEvent(event) => match *call {
                Post(_) => {
                    event.set();
                    Ok(0)
                }
                Reset => {
                    event.reset();
                    Ok(0)
                }
                TryWait => or(event.try_wait(), EAGAIN),
                Wait(_, limit) => match limit.deadline() {
                    None => {
                        event.wait();
                        Ok(0)
                    }
                    Some(deadline) => or(event.wait_until(deadline), ETIMEDOUT),
                },
                Value => Ok(usize::from(event.is_set())),
            },
        }
    }
}

fn in_errno(posted: Result<(), CountError>) -> Answer {
    posted.map(|()| 0).map_err(CountError::raw_os_error)
}

fn waited(waited: Result<(), Error>) -> Answer {
    waited.map(|()| 0).map_err(|error| match error {
        Error::TimedOut => ETIMEDOUT,
        Error::Interrupted => EINTR,
        other => panic!("a wait that ends so: {other}"),
    })
}

/// What a thread that has not returned is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Answers(Answer),
    Waits(EndedBy),
}

/// See the module documentation.
pub(crate) struct Modelled {
    sort: Sort,
    value: u32,
    doing: BTreeMap<usize, Doing>,
    line: Vec<usize>,
    /// The waiters that take the available tokens, where that is known. It is not known in the
    /// kernel, nor after a signal handler: the interrupted waiter checks by itself, and is then
    /// queued behind the others.
    due: Vec<usize>,
    line_is_known: bool,
    interrupted: [bool; THREADS + 1],
}

impl Modelled {
    fn is_event(&self) -> bool {
        matches!(self.sort.of, Of::AutoEvent(_))
    }

    fn post(&mut self, count: u32) -> Answer {
        let sum = self.value.checked_add(count);
        self.value = match sum {
            _ if self.is_event() => 1,
            Some(sum) if sum <= Semaphore::MAX_VALUE => sum,
            _ => return Err(EOVERFLOW),
        };
        let count = self.line.len().min(self.value as usize);
        self.due = self.line[..count].to_vec();
        Ok(0)
    }

    fn wait(&mut self, thread: usize, ends: EndedBy, limit: Limit) -> Doing {
        if self.value > 0 {
            self.value -= 1;
            return Doing::Answers(Ok(0));
        }
        if limit.passes() {
            return Doing::Answers(Err(ETIMEDOUT));
        }
        if self.is_ended(thread, ends) {
            self.interrupted[thread] = false;
            return Doing::Answers(Err(EINTR));
        }
        self.line_is_known |= self.line.is_empty();
        self.line.push(thread);
        Doing::Waits(ends)
    }

    /// Whether an interrupter has ended, or would end, such a wait.
    fn is_ended(&self, thread: usize, ends: EndedBy) -> bool {
        let can = ends == EndedBy::Interrupters && self.sort.scope == Scope::Private;
        can && !self.is_event() && self.interrupted[thread]
    }

    fn interrupt(&mut self, thread: usize) {
        self.line.retain(|&other| other != thread);
        self.doing.insert(thread, Doing::Answers(Err(EINTR)));
    }
}

impl Model<Tokens> for Modelled {
    fn new(sort: &Sort) -> Self {
        Self {
            sort: *sort,
            value: match sort.of {
                Of::Semaphore(value) => value,
                Of::AutoEvent(is_set) => is_set.into(),
            },
            doing: BTreeMap::new(),
            line: Vec::new(),
            due: Vec::new(),
            line_is_known: sort.scope == Scope::Private,
            interrupted: [false; THREADS + 1],
        }
    }

    fn allows(&self, thread: usize, call: &Call) -> bool {
        match *call {
            Post(count) => !self.is_event() || count == 1,
            Reset => self.is_event(),
            TryWait | Value => true,
            // Not a wait that two things end at once.
            Wait(ends, limit) => {
                may_wait(thread) && !(limit.passes() && self.is_ended(thread, ends))
            }
        }
    }

    fn begins(&mut self, thread: usize, call: &Call) {
        let doing = match *call {
            Post(count) => Doing::Answers(self.post(count)),
            Reset => {
                self.value = 0;
                Doing::Answers(Ok(0))
            }
            TryWait if self.value == 0 => Doing::Answers(Err(EAGAIN)),
            TryWait => {
                self.value -= 1;
                Doing::Answers(Ok(0))
            }
            Wait(ends, limit) => self.wait(thread, ends, limit),
            Value => Doing::Answers(Ok(self.value as usize)),
        };
        self.doing.insert(thread, doing);
    }

    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String> {
        match self.doing.remove(&thread).expect("it was away") {
            Doing::Answers(right) => expect(thread, answer, right),
            Doing::Waits(_) => {
                expect(thread, answer, Ok(0))?;
                if self.value == 0 {
                    return Err(format!("thread {thread} takes what is not there"));
                }
                let known = self.line_is_known && self.sort.scope == Scope::Private;
                if known && !self.due.contains(&thread) {
                    return Err(format!("{:?} were to take it, not {thread}", self.due));
                }
                self.value -= 1;
                self.line.retain(|&other| other != thread);
                Ok(())
            }
        }
    }

    fn rests(&mut self, _object: &Object) -> Result<(), String> {
        let answers = |doing: &Doing| matches!(doing, Doing::Answers(_));
        if let Some((thread, doing)) = self.doing.iter().find(|(_, doing)| answers(doing)) {
            return Err(format!("thread {thread} does not come back: {doing:?}"));
        }
        if self.value > 0 && !self.line.is_empty() {
            let (value, line) = (self.value, &self.line);
            return Err(format!("{line:?} do not take the {value} that are there"));
        }
        Ok(())
    }

    fn agrees(&self, object: &Object) -> Result<(), String> {
        let value = match object {
            Object::Semaphore(semaphore) => semaphore.value(),
            Object::AutoEvent(event) => event.is_set().into(),
        };
        if value != self.value {
            return Err(format!("the value is {value}, not {}", self.value));
        }
        Ok(())
    }

    fn is_signalled(&mut self, thread: usize) -> bool {
        let ends = match self.doing.get(&thread) {
            Some(Doing::Waits(ends)) if !self.is_event() => *ends,
            _ => EndedBy::Nothing,
        };
        match ends {
            EndedBy::Nothing => self.line_is_known = false,
            EndedBy::Signals | EndedBy::Interrupters => self.interrupt(thread),
        }
        true
    }

    fn is_interrupted(&mut self, thread: usize) {
        self.interrupted[thread] = true;
        if let Some(&Doing::Waits(ends)) = self.doing.get(&thread) {
            if self.is_ended(thread, ends) {
                self.interrupted[thread] = false;
                self.interrupt(thread);
            }
        }
    }

    fn ends(&self) -> Option<(usize, Call)> {
        (!self.line.is_empty()).then_some((HAND, Post(1)))
    }
}
