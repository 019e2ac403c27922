//! Runs a program on one side, and records what happened, step by step.

use super::program::{Expect, Limit, Mask, Program, Step, WORDS, Width};
use super::sides::Side;
use std::fmt::Write as _;
use std::sync::Arc;
use waitword_testkit::{
    Answer, Crew,
    event::{self, pick},
};

pub(crate) type Event = event::Event<[u64; WORDS]>;

/// The same event as it must look at another width.
pub(crate) fn at(event: &Event, width: Width) -> Event {
    Event { words: event.words.map(|value| width.of_32(value)), ..event.clone() }
}

/// Runs `program`, then wakes all remaining waiters, word by word.
pub(crate) fn run(program: &Program, side: &Arc<dyn Side>, crew: &mut Crew) -> Vec<Event> {
    for (word, value) in program.initial.iter().enumerate() {
        side.store(word, value.at(side.width()));
    }
    let mut events: Vec<Event> = Vec::new();
    for step in &program.steps {
        events.push(take(step, side, crew));
    }
    for word in 0..WORDS {
        let all = Step::Wake { word, count: i32::MAX, mask: Mask::Any };
        events.push(take(&all, side, crew));
    }
    // No waiter is left, unless the side has a defect.
    crew.release();
    events
}

fn take(step: &Step, side: &Arc<dyn Side>, crew: &mut Crew) -> Event {
    let width = side.width();
    let expected = |word: usize, expect: Expect| match expect {
        Expect::Current => side.load(word),
        Expect::Exactly(value) => value.at(width),
    };
    let mut answer = None;
    let mut came_back = None;
    match *step {
        Step::Wait { worker, word, expect, mask, limit } => {
            if let Some(worker) = pick(&crew.idle(), worker) {
                let value = expected(word, expect);
                let job = {
                    let side = side.clone();
                    move || side.wait(word, value, mask.at(width), limit)
                };
                crew.order(worker, usize::from(side.in_our_table()), job);
                came_back = Some(settled(crew, worker, limit));
            }
        }
        Step::WaitAny { worker, ref entries, limit } => {
            if let Some(worker) = pick(&crew.idle(), worker) {
                let entries: Vec<_> =
                    entries.iter().map(|&(word, expect)| (word, expected(word, expect))).collect();
                let in_table = if side.in_our_table() { entries.len() } else { 0 };
                let job = {
                    let side = side.clone();
                    move || side.wait_any(&entries, limit)
                };
                crew.order(worker, in_table, job);
                came_back = Some(settled(crew, worker, limit));
            }
        }
        Step::Wake { word, count, mask } => answer = Some(side.wake(word, count, mask.at(width))),
        Step::Requeue { from, to, wake, moved, expect } => {
            let expect = expect.map(|expect| expected(from, expect));
            answer = Some(side.requeue(from, to, wake, moved, expect));
        }
        Step::WakeOp { first, count, second, second_count, change } => {
            answer = Some(side.wake_op(first, count, second, second_count, change));
        }
        Step::Store { word, value } => side.store(word, value.at(width)),
        Step::Interrupt { waiting } => {
            if let Some(worker) = pick(&crew.busy(), waiting) {
                crew.interrupt(worker);
                came_back = Some(crew.settle_with(worker));
            }
        }
    }
    Event {
        answer,
        came_back: came_back.unwrap_or_else(|| crew.settle()),
        words: std::array::from_fn(|word| side.load(word)),
    }
}

/// Settles after `worker` has begun to wait. Whatever it waits for, a limit that comes soon ends
/// the wait.
fn settled(crew: &Crew, worker: usize, limit: Limit) -> Vec<(usize, Answer)> {
    match limit {
        Limit::Soon(_) | Limit::Past(_) => crew.settle_with(worker),
        Limit::Forever | Limit::Far(_) => crew.settle(),
    }
}

/// Both runs side by side, for a human reader.
pub(crate) fn compare(
    program: &Program,
    reference: (&str, &[Event]),
    other: (&str, &[Event]),
) -> String {
    let mut text = format!("{} and {} differ\n", reference.0, other.0);
    let steps = program.steps.iter().map(|step| format!("{step:?}"));
    let last = (0..WORDS).map(|word| format!("wake all on word {word}"));
    for (number, step) in steps.chain(last).enumerate() {
        let (left, right) = (&reference.1[number], &other.1[number]);
        let mark = if left == right { ' ' } else { '!' };
        let _ = writeln!(text, "{mark} {number:2} {step}");
        let _ = writeln!(text, "       {left}");
        if left != right {
            let _ = writeln!(text, "  but  {right}");
        }
    }
    text
}
