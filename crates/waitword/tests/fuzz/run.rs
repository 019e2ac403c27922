//! A program, run on one side; what happened, step by step.

use super::memory::Memory;
use super::program::{Call, Program, Step, WORDS};
use super::sides::Side;
use crate::support::crew::Crew;
use crate::support::event::{self, pick};
use std::fmt::Write as _;
use std::sync::Arc;

type Event = event::Event<[u32; WORDS]>;

/// Runs `program` and then wakes, one by one, all who still wait.
pub(crate) fn run(
    program: &Program,
    side: &Arc<dyn Side>,
    memory: &Memory,
    crew: &mut Crew,
) -> Vec<Event> {
    for (word, value) in program.initial.into_iter().enumerate() {
        memory.store(word, value);
    }
    let mut events: Vec<Event> = program
        .steps
        .iter()
        .map(|step| take(step, side, memory, crew))
        .collect();
    for word in 0..WORDS {
        for private in [128, 0] {
            events.push(take(&wake_all(word, private), side, memory, crew));
        }
    }
    // Those who were moved to where nothing is.
    crew.release();
    events
}

fn wake_all(word: usize, private: i32) -> Step {
    use super::program::{Address, Time, Value};
    Step::Do(Call::Futex {
        op: 1 | private,
        word: Address::Word(word),
        val: Value::Is(i32::MAX as u64),
        time: Time::None,
        second: Address::Null,
        val3: Value::Is(0),
    })
}

fn take(step: &Step, side: &Arc<dyn Side>, memory: &Memory, crew: &mut Crew) -> Event {
    let mut answer = None;
    let mut came_back = None;
    match step {
        Step::Wait(thread, call) => {
            if let Some(thread) = pick(&crew.idle(), *thread) {
                let prepared = call.prepare(memory);
                let entries = if side.in_our_table() {
                    call.private_words()
                } else {
                    0
                };
                let job = {
                    let side = side.clone();
                    // The whole of it, which keeps alive what the arguments point to.
                    move || {
                        let prepared = prepared;
                        side.call(prepared.call, prepared.arguments)
                    }
                };
                crew.order(thread, entries, job);
                came_back = Some(if call.ends_soon() {
                    crew.settle_with(thread)
                } else {
                    crew.settle()
                });
            }
        }
        Step::Do(call) => {
            let before = memory.load();
            let prepared = call.prepare(memory);
            let unknown = call.compares_in_an_unknown_way(memory);
            answer = Some(side.call(prepared.call, prepared.arguments));
            if unknown {
                for (word, value) in before.into_iter().enumerate() {
                    memory.store(word, value);
                }
            }
        }
        Step::Store(word, value) => memory.store(*word, *value),
        Step::Interrupt(waiting) => {
            if let Some(thread) = pick(&crew.busy(), *waiting) {
                crew.interrupt(thread);
                came_back = Some(crew.settle_with(thread));
            }
        }
    }
    Event {
        answer,
        came_back: came_back.unwrap_or_else(|| crew.settle()),
        words: memory.load(),
    }
}

/// Both runs side by side, for people.
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
