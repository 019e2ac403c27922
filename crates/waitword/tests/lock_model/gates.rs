//! Events, latches and barriers, of both scopes.
//!
//! The model contains what is promised: all threads that wait when a gate opens get through, and
//! none before; each round of a barrier has one leader, the last thread to arrive.

use super::family::{Caller, Family, Model, expect, limits};
use super::mutexes::scopes;
use super::program::{HAND, Limit};
use super::run::may_wait;
use libc::{EAGAIN, EBUSY, EINVAL, ETIMEDOUT};
use proptest::prelude::*;
use std::collections::BTreeMap;
use waitword::{Barrier, BarrierWaitResult, CountError, Event, Latch, Scope};
use waitword_testkit::Answer;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gates;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    pub(crate) of: Of,
    pub(crate) scope: Scope,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// Set or not.
    Event(bool),
    /// With this count.
    Latch(u32),
    /// For this many threads.
    Barrier(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Sets an event.
    Set,
    /// Resets an event.
    Reset,
    /// Counts down a latch.
    CountDown(u32),
    /// Counts down a latch by one, and waits.
    ArriveAndWait,
    /// Queries an event or a latch.
    IsOpen,
    Wait(Limit),
    /// Destroys a barrier, which can be used again after it.
    Destroy,
}
use Call::*;

pub(crate) enum Object {
    Event(Event),
    Latch(Latch),
    Barrier(Barrier),
}

impl Family for Gates {
    type Made = Sort;
    type Call = Call;
    type Object = Object;
    type Model = Modelled;

    const NAME: &'static str = "Gates";

    fn made() -> BoxedStrategy<Sort> {
        let of = prop_oneof![
            1 => any::<bool>().prop_map(Of::Event),
            1 => (0u32..6).prop_map(Of::Latch),
            2 => (1u32..4).prop_map(Of::Barrier),
        ];
        (of, scopes()).prop_map(|(of, scope)| Sort { of, scope }).boxed()
    }

    fn calls() -> BoxedStrategy<Call> {
        prop_oneof![
            2 => Just(Set),
            2 => Just(Reset),
            3 => (0u32..3).prop_map(CountDown),
            2 => Just(ArriveAndWait),
            1 => Just(IsOpen),
            8 => limits().prop_map(Wait),
            1 => Just(Destroy),
        ]
        .boxed()
    }

    fn make(made: &Sort) -> Object {
        match made.of {
            Of::Event(is_set) => Object::Event(Event::with_scope(is_set, made.scope)),
            Of::Latch(count) => Object::Latch(Latch::with_scope(count, made.scope)),
            Of::Barrier(count) => Object::Barrier(Barrier::with_scope(count, made.scope)),
        }
    }

    fn call(object: &Object, _caller: &Caller, call: &Call) -> Answer {
        match object {
            Object::Event(event) => on_event(event, call),
            Object::Latch(latch) => on_latch(latch, call),
            Object::Barrier(barrier) => on_barrier(barrier, call),
        }
    }
}

fn or(done: bool, error: i32) -> Answer {
    done.then_some(0).ok_or(error)
}

fn on_event(event: &Event, call: &Call) -> Answer {
    match *call {
        Set => event.set(),
        Reset => event.reset(),
        Wait(limit) => match limit.deadline() {
            None => event.wait(),
            Some(deadline) => return or(event.wait_until(deadline), ETIMEDOUT),
        },
        _ => return or(event.is_set(), EAGAIN),
    }
    Ok(0)
}

fn on_latch(latch: &Latch, call: &Call) -> Answer {
    let counted = match *call {
        CountDown(count) => latch.count_down(count),
        ArriveAndWait => latch.arrive_and_wait(),
        Wait(limit) => match limit.deadline() {
            None => {
                latch.wait();
                Ok(())
            }
            Some(deadline) => return or(latch.wait_until(deadline), ETIMEDOUT),
        },
        _ => return or(latch.try_wait(), EAGAIN),
    };
    counted.map(|()| 0).map_err(CountError::raw_os_error)
}

fn on_barrier(barrier: &Barrier, call: &Call) -> Answer {
    let passed = match *call {
        Wait(limit) => match limit.deadline() {
            None => Some(barrier.wait()),
            Some(deadline) => barrier.wait_until(deadline),
        },
        _ => return or(barrier.destroy(), EBUSY),
    };
    let leads = passed.map(BarrierWaitResult::is_leader);
    leads.map(usize::from).ok_or(ETIMEDOUT)
}

/// See the module documentation.
pub(crate) struct Modelled {
    of: Of,
    /// The answers of threads that have not returned, and need not wait for other threads.
    answers: BTreeMap<usize, Answer>,
    line: Vec<usize>,
}

impl Modelled {
    fn is_open(&self) -> bool {
        match self.of {
            Of::Event(is_set) => is_set,
            Of::Latch(left) => left == 0,
            Of::Barrier(_) => false,
        }
    }

    fn let_all_pass(&mut self) {
        for thread in self.line.drain(..) {
            self.answers.insert(thread, Ok(0));
        }
    }

    fn count_off(&mut self, count: u32) -> Answer {
        if let Of::Latch(left) = &mut self.of {
            *left = left.checked_sub(count).ok_or(EINVAL)?;
            if *left == 0 {
                self.let_all_pass();
            }
        }
        Ok(0)
    }

    /// The answer of a thread that waits; `None` if it must wait.
    fn wait(&mut self, limit: Limit) -> Option<Answer> {
        if self.is_open() {
            return Some(Ok(0));
        }
        if matches!(self.of, Of::Barrier(count) if self.line.len() + 1 == count as usize) {
            self.let_all_pass();
            return Some(Ok(1));
        }
        limit.passes().then_some(Err(ETIMEDOUT))
    }
}

impl Model<Gates> for Modelled {
    fn new(sort: &Sort) -> Self {
        Self { of: sort.of, answers: BTreeMap::new(), line: Vec::new() }
    }

    fn allows(&self, thread: usize, call: &Call) -> bool {
        let has_it = match call {
            Set | Reset => matches!(self.of, Of::Event(_)),
            CountDown(_) | ArriveAndWait => matches!(self.of, Of::Latch(_)),
            IsOpen => !matches!(self.of, Of::Barrier(_)),
            Destroy => matches!(self.of, Of::Barrier(_)),
            Wait(_) => true,
        };
        has_it && (may_wait(thread) || !matches!(call, Wait(_) | ArriveAndWait))
    }

    fn begins(&mut self, thread: usize, call: &Call) {
        let answer = match *call {
            Set => {
                self.of = Of::Event(true);
                self.let_all_pass();
                Some(Ok(0))
            }
            Reset => {
                self.of = Of::Event(false);
                Some(Ok(0))
            }
            CountDown(count) => Some(self.count_off(count)),
            ArriveAndWait => match self.count_off(1) {
                Ok(_) => self.wait(Limit::Forever),
                error => Some(error),
            },
            IsOpen => Some(or(self.is_open(), EAGAIN)),
            Wait(limit) => self.wait(limit),
            Destroy => Some(or(self.line.is_empty(), EBUSY)),
        };
        match answer {
            Some(answer) => drop(self.answers.insert(thread, answer)),
            None => self.line.push(thread),
        }
    }

    fn returns(&mut self, thread: usize, answer: Answer) -> Result<(), String> {
        match self.answers.remove(&thread) {
            Some(right) => expect(thread, answer, right),
            None => Err(format!("thread {thread} is let through")),
        }
    }

    fn rests(&mut self, _object: &Object) -> Result<(), String> {
        if let Some((thread, _)) = self.answers.first_key_value() {
            return Err(format!("thread {thread} does not come back"));
        }
        Ok(())
    }

    fn agrees(&self, object: &Object) -> Result<(), String> {
        let is_open = match object {
            Object::Event(event) => event.is_set(),
            Object::Latch(latch) => latch.try_wait(),
            Object::Barrier(_) => false,
        };
        if is_open != self.is_open() {
            return Err(format!("it is open: {is_open}"));
        }
        Ok(())
    }

    fn is_signalled(&mut self, _thread: usize) -> bool {
        true
    }

    fn is_interrupted(&mut self, _thread: usize) {}

    fn ends(&self) -> Option<(usize, Call)> {
        if self.line.is_empty() {
            return None;
        }
        Some(match self.of {
            Of::Event(_) => (HAND, Set),
            Of::Latch(left) => (HAND, CountDown(left)),
            Of::Barrier(_) => {
                let idle = (0..HAND).find(|thread| !self.line.contains(thread));
                (idle.expect("fewer than all wait"), Wait(Limit::Forever))
            }
        })
    }
}
