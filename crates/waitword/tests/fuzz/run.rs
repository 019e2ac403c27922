//! Runs a program on one side, and records what happened, step by step.

use super::kinds::Kinds;
use super::memory::Memory;
use super::program::{Address, Call, Program, Step, Time, Value, WORDS};
use super::sides::Side;
use rustix::time::Timespec;
use std::fmt::Write as _;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;
use waitword_testkit::{
    Answer, Crew,
    event::{self, pick},
};

type Event = event::Event<[u32; WORDS]>;

/// Runs `program`, then wakes all remaining waiters one by one.
pub(crate) fn run(
    program: &Program,
    side: &Arc<dyn Side>,
    memory: &Memory,
    crew: &mut Crew,
) -> Vec<Event> {
    for (word, value) in program.initial.into_iter().enumerate() {
        memory.store(word, value);
    }
    let mut scene = Scene { side, memory, crew, kinds: Kinds::default() };
    let mut events: Vec<Event> = program.steps.iter().map(|step| scene.take(step)).collect();
    for word in 0..WORDS {
        for private in [128, 0] {
            events.push(scene.take(&wake_all(word, private)));
        }
    }
    scene.end();
    events
}

fn wake_all(word: usize, private: i32) -> Step {
    const WAKE: i32 = 1;
    Step::Do(Call::Futex {
        op: WAKE | private,
        word: Address::Word(word),
        val: Value::Is(i32::MAX as u64),
        time: Time::None,
        second: Address::Null,
        val3: Value::Is(0),
    })
}

fn unlock(word: usize) -> Call {
    const UNLOCK_PI: i32 = 7;
    Call::Futex {
        op: UNLOCK_PI | 128,
        word: Address::Word(word),
        val: Value::Is(0),
        time: Time::None,
        second: Address::Null,
        val3: Value::Is(0),
    }
}

/// The ID of the thread that holds a word with this value.
fn holder(value: u32) -> i32 {
    const TID_MASK: u32 = 0x3fff_ffff;
    (value & TID_MASK) as i32
}

/// One run.
struct Scene<'a> {
    side: &'a Arc<dyn Side>,
    memory: &'a Memory,
    crew: &'a mut Crew,
    kinds: Kinds,
}

/// The outcome of a step: the answer of the test's own call, and which threads came back.
type Outcome = (Option<Answer>, Option<Vec<(usize, Answer)>>);

impl Scene<'_> {
    fn take(&mut self, step: &Step) -> Event {
        let (answer, came_back) = self.outcome(step);
        let came_back = came_back.unwrap_or_else(|| self.crew.settle());
        for (thread, _) in &came_back {
            self.kinds.ends(*thread);
        }
        Event { answer, came_back, words: self.memory.load() }
    }

    fn outcome(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Wait(thread, call) if self.kinds.allow(call) => {
                let thread = pick(&self.crew.idle(), *thread);
                (None, thread.map(|thread| self.order(thread, call)))
            }
            Step::Do(call) if self.kinds.allow(call) => (Some(self.call(call)), None),
            Step::Wait(..) | Step::Do(_) => (None, None),
            Step::Store(word, value) => {
                self.memory.store(*word, *value);
                (None, None)
            }
            Step::Unlock(word) => self.unlock(*word),
            Step::Interrupt(waiting) => {
                let mut busy = self.crew.busy();
                busy.retain(|&thread| self.kinds.ends_by_signal(thread));
                let came_back = pick(&busy, *waiting).map(|thread| {
                    self.crew.interrupt(thread);
                    self.crew.settle_with(thread)
                });
                (None, came_back)
            }
        }
    }

    /// Makes a thread make the call.
    fn order(&mut self, thread: usize, call: &Call) -> Vec<(usize, Answer)> {
        let prepared = call.prepare(self.memory);
        let entries = if self.side.in_our_table() { call.private_words() } else { 0 };
        let held = self.held_by(self.crew.id(thread));
        self.kinds.begins(thread, held, call, prepared.time());
        let job = {
            let side = self.side.clone();
            // Captured as a whole, which keeps alive what the arguments point to.
            move || {
                let prepared = prepared;
                side.call(prepared.call, prepared.arguments)
            }
        };
        self.crew.order(thread, entries, job);
        if call.ends_soon() { self.crew.settle_with(thread) } else { self.crew.settle() }
    }

    /// Makes the call.
    fn call(&mut self, call: &Call) -> Answer {
        let before = self.memory.load();
        let prepared = call.prepare(self.memory);
        let unknown = call.compares_in_an_unknown_way(self.memory);
        let answer = self.side.call(prepared.call, prepared.arguments);
        if unknown {
            for (word, value) in before.into_iter().enumerate() {
                self.memory.store(word, value);
            }
        }
        self.kinds.moves(call);
        answer
    }

    /// The words that hold the ID of this thread.
    fn held_by(&self, id: i32) -> Vec<Address> {
        let words = self.memory.load().map(holder);
        let held = (0..WORDS).filter(|&word| words[word] == id);
        held.map(Address::Word).collect()
    }

    fn unlock(&mut self, word: usize) -> Outcome {
        let holder = holder(self.memory.load()[word]);
        let mut idle = self.crew.idle();
        idle.retain(|&thread| self.crew.id(thread) == holder);
        match idle.first() {
            Some(&thread) => (None, Some(self.order(thread, &unlock(word)))),
            // Made by the test itself, or refused.
            None => (Some(self.call(&unlock(word))), None),
        }
    }

    /// Ends the waits of threads that were moved to unmapped memory, and of those that wait for a
    /// word that no thread unlocks.
    fn end(self) {
        for time in self.kinds.times() {
            let time = with_exposed_provenance_mut::<Timespec>(time);
            // SAFETY: its thread waits, which keeps alive what the call was made with. Only the
            // kernel reads it.
            unsafe { time.write_volatile(PAST) };
        }
        self.crew.release();
    }
}

/// On either clock. A wait that begins again after a signal reads its time again.
const PAST: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Both runs side by side, for a human reader.
pub(crate) fn difference(
    program: &Program,
    expected: &[Event],
    name: &str,
    found: &[Event],
) -> String {
    let mut text = format!("{name} differs from the kernel:\n");
    let steps = program.steps.iter().map(|step| format!("{step:?}"));
    let last = (0..WORDS).flat_map(|word| {
        ["private", "shared"].map(|scope| format!("wake all who wait on {scope} word {word}"))
    });
    for (number, step) in steps.chain(last).enumerate() {
        let (expected, found) = (&expected[number], &found[number]);
        if number >= program.steps.len() && expected == found {
            continue;
        }
        let mark = if expected == found { ' ' } else { '!' };
        let _ = writeln!(text, "{mark} {step}\n       {expected}");
        if expected != found {
            let _ = writeln!(text, "  but  {found}");
        }
    }
    text
}
