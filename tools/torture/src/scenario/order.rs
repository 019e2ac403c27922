//! Tortured: the order of arrival, through wakes, masks, requeues and wake_ops, one operation at a
//! time.
//!
//! Checked: each operation against a model of the queues: the number that it returns, and which
//! threads wake up. A waiter enters the model only once it is seen in the table, so its place in
//! the queue is known.

use crate::actor::{Actor, Verdict};
use crate::context::{Context, Round};
use crate::nap::let_others_run;
use crate::spot::{How, SIZES, Spot};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use waitword::{Cmp, Op, table};

const OPERATIONS: usize = 400;
/// At most this many of a round's threads wait.
const MOST_WAITERS: usize = 48;
const MASKS: [u64; 4] = [1, 2, 3, 0xff];

/// A waiter in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiter {
    thread: usize,
    mask: u64,
}

/// An order to a waiting thread: where to wait, and with what mask. If the channel closes, none
/// follows.
type Order = (Spot, u64);

struct Model {
    words: Vec<Spot>,
    queues: Vec<VecDeque<Waiter>>,
    idle: Vec<usize>,
    orders: Vec<Sender<Order>>,
    woken: Receiver<Result<usize, String>>,
}

pub(crate) fn run(context: &'static Context) -> Verdict {
    let mut words = context.colliding_words("queue", &SIZES);
    words.extend(SIZES.map(|bits| context.private_word("queue apart", bits)));
    while let Some(round) = context.next_round() {
        run_round(context, round, &words)?;
    }
    Ok(())
}

fn run_round(context: &'static Context, round: Round, words: &[Spot]) -> Verdict {
    let before = context.totals();
    let waiters = round.threads.clamp(4, MOST_WAITERS);
    context.crew(round, |crew| {
        let (report, woken) = channel();
        let mut model = Model {
            words: words.to_vec(),
            queues: vec![VecDeque::new(); words.len()],
            idle: (0..waiters).collect(),
            orders: Vec::new(),
            woken,
        };
        for index in 0..waiters {
            let (order, orders) = channel();
            let report = report.clone();
            model.orders.push(order);
            crew.spawn("waiter", index, move |actor| {
                for (spot, mask) in orders {
                    let ended = actor.wait(spot, 0, How { mask, deadline: None });
                    let result = ended.map(|()| index).map_err(|error| error.to_string());
                    // An error means that no one receives any more: the master has complained and
                    // ended.
                    let _ = report.send(result);
                }
                Ok(())
            });
        }
        crew.spawn("master", 0, move |actor| {
            for _ in 0..OPERATIONS {
                model.operate(actor)?;
                actor.step();
            }
            model.finish(actor)
        });
        Ok(())
    })?;
    context.balance(&before)
}

impl Model {
    fn operate(&mut self, actor: &mut Actor) -> Verdict {
        let from = actor.dice.usize(0..self.words.len());
        let to = actor.dice.usize(0..self.words.len());
        let mask = MASKS[actor.dice.usize(0..MASKS.len())];
        let (few, some) = (actor.dice.usize(0..3), actor.dice.usize(0..5));
        match actor.dice.u32(0..11) {
            0..6 => self.queue_one(from, mask),
            10 => self.wake_op(actor, (from, few), (to, some)),
            6 | 7 => self.wake(actor, from, few, mask),
            8 => self.requeue(actor, from, to, (few, some), None),
            _ => {
                let expected = u64::from(actor.dice.u32(0..4) == 0);
                self.requeue(actor, from, to, (few, some), Some(expected))
            }
        }
    }

    /// Makes an idle thread wait, until it is seen in its queue.
    fn queue_one(&mut self, word: usize, mask: u64) -> Verdict {
        let Some(thread) = self.idle.pop() else {
            return Ok(());
        };
        let queued = self.queues.iter().map(VecDeque::len).sum::<usize>();
        let gone = |_| "a waiter has ended".to_owned();
        self.orders[thread].send((self.words[word], mask)).map_err(gone)?;
        while table::snapshot(&mut []).waiters != queued + 1 {
            let_others_run();
        }
        self.queues[word].push_back(Waiter { thread, mask });
        Ok(())
    }

    fn wake(&mut self, actor: &mut Actor, word: usize, count: usize, mask: u64) -> Verdict {
        if actor.overtakes() {
            self.send_back(actor, word)?;
        }
        let woken = actor.wake(self.words[word], count, mask)?;
        let mut due = Vec::new();
        self.queues[word].retain(|waiter| {
            let is_due = due.len() < count && waiter.mask & mask != 0;
            if is_due {
                due.push(waiter.thread);
            }
            !is_due
        });
        self.expect_woken(due, woken)
    }

    /// Sabotage: moves the first waiter behind the others, without changing the model.
    fn send_back(&self, actor: &mut Actor, word: usize) -> Verdict {
        let empty = self.queues.iter().position(VecDeque::is_empty);
        if let Some(aside) = empty.filter(|_| self.queues[word].len() > 1) {
            let (there, aside) = (self.words[word], self.words[aside]);
            actor.requeue(there, None, aside, (0, 1))?;
            actor.requeue(aside, None, there, (0, 1))?;
        }
        Ok(())
    }

    fn requeue(
        &mut self,
        actor: &mut Actor,
        from: usize,
        to: usize,
        (wake, moved): (usize, usize),
        expected: Option<u64>,
    ) -> Verdict {
        let spots = (self.words[from], self.words[to]);
        let done = actor.requeue(spots.0, expected, spots.1, (wake, moved))?;
        let Some((woken, over)) = done else {
            return match expected {
                // All words hold 0, always.
                Some(1) => Ok(()),
                _ => Err("a requeue was refused though the value was right".to_owned()),
            };
        };
        if expected == Some(1) {
            return Err("a requeue was made though the value was wrong".to_owned());
        }
        let due = self.drain(from, wake);
        let queue = &mut self.queues[from];
        let movers = moved.min(queue.len());
        if over != movers {
            return Err(format!("{over} were moved, not {movers}"));
        }
        if from != to {
            let moving: Vec<_> = queue.drain(..movers).collect();
            self.queues[to].extend(moving);
        }
        self.expect_woken(due, woken)
    }

    fn wake_op(
        &mut self,
        actor: &mut Actor,
        (first, count): (usize, usize),
        (second, second_count): (usize, usize),
    ) -> Verdict {
        // All words hold 0, before and after.
        let op = [Op::Set, Op::Add, Op::Or, Op::AndNot, Op::Xor][actor.dice.usize(0..5)];
        let (when, holds) = [
            (None, true),
            (Some((Cmp::Eq, 0)), true),
            (Some((Cmp::Gt, 0)), false),
            (Some((Cmp::Ne, 0)), false),
        ][actor.dice.usize(0..4)];
        let spots = (self.words[first], self.words[second]);
        let woken = actor.wake_op((spots.0, count), (spots.1, second_count), (op, 0), when)?;
        let mut due = self.drain(first, count);
        if holds {
            due.extend(self.drain(second, second_count));
        }
        self.expect_woken(due, woken)
    }

    /// Takes the first waiters out of a queue of the model.
    fn drain(&mut self, word: usize, count: usize) -> Vec<usize> {
        let queue = &mut self.queues[word];
        let due = queue.drain(..count.min(queue.len()));
        due.map(|waiter| waiter.thread).collect()
    }

    /// Checks that these threads wake up, and no others. (In which order they run is up to the
    /// scheduler.)
    fn expect_woken(&mut self, mut due: Vec<usize>, counted: usize) -> Verdict {
        if counted != due.len() {
            return Err(format!("{counted} were woken, not {due:?}"));
        }
        let mut came = Vec::new();
        for _ in 0..counted {
            // If one does not come, the watchdog ends the run.
            let result = self.woken.recv();
            came.push(result.map_err(|_| "all waiters have ended".to_owned())??);
        }
        self.idle.extend(&came);
        came.sort_unstable();
        due.sort_unstable();
        if came != due {
            return Err(format!("threads {came:?} were woken instead of {due:?}"));
        }
        Ok(())
    }

    /// Wakes all waiters, and checks that none has woken up unasked.
    fn finish(&mut self, actor: &mut Actor) -> Verdict {
        for word in 0..self.words.len() {
            while !self.queues[word].is_empty() {
                self.wake(actor, word, 1, u64::MAX)?;
            }
        }
        match self.woken.recv_timeout(Duration::ZERO) {
            Ok(result) => Err(format!("a thread returned that was not woken: {result:?}")),
            Err(_) => Ok(()),
        }
    }
}
