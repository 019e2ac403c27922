//! Operations with priority inheritance: which calls there are, and each pair of a call that leaves
//! a waiter and a call that finds it.
//!
//! The words of such programs hold thread IDs that the calls put there, or nothing. An invented
//! number might be the ID of an unrelated process, to which a priority would be lent.

use super::Comparison;
use super::program::{Address, Call, Entry, List, Program, Said, Step, Time, Value, WORDS};
use super::sides;
use super::strategies::{any_number, expected, futex, key, mostly, number_for_time};
use proptest::prelude::*;
use waitword_testkit::raw::{has_futex2, op::*};

const PRIVATE_U32: u32 = 130;

/// FUTEX_OWNER_DIED.
const OWNER_DIED: u32 = 1 << 30;
/// A number that is no thread's ID.
const NO_THREAD: u32 = 0x3fff_ffff;

/// The initial values of a word.
pub(super) fn value() -> BoxedStrategy<u32> {
    prop_oneof![16 => Just(0), 1 => Just(OWNER_DIED), 1 => Just(NO_THREAD)].boxed()
}

/// For WAKE_OP: a change that does nothing, or sets the word to 0.
pub(super) fn change() -> BoxedStrategy<Value> {
    const ADD_0: u64 = 1 << 28;
    const SET_0: u64 = 0;
    (prop_oneof![4 => Just(ADD_0), 1 => Just(SET_0)], 0u64..6)
        .prop_map(|(op, cmp)| Value::Is(op | cmp << 24))
        .boxed()
}

fn unread() -> BoxedStrategy<Time> {
    Just(Time::None).boxed()
}

/// A wait must end when its time is moved to the past, so it must have one.
fn time() -> BoxedStrategy<Time> {
    let right = prop_oneof![1 => Just(Time::Past), 1 => Just(Time::Soon), 5 => Just(Time::Far)];
    let wrong = prop_oneof![
        Just(Time::Wrong(0, 1_000_000_000)),
        Just(Time::Wrong(-1, 0)),
        Just(Time::At(Address::Kernels)),
    ];
    mostly(right, wrong)
}

pub(super) fn step() -> BoxedStrategy<Step> {
    let lock_op = prop_oneof![
        4 => Just(LOCK_PI),
        2 => Just(LOCK_PI2),
        1 => Just(LOCK_PI2 | CLOCK_REALTIME),
        1 => Just(LOCK_PI | CLOCK_REALTIME),
    ];
    let lock = futex(lock_op, key(), any_number(), time(), key(), any_number());
    let wait_op = prop_oneof![
        3 => Just(WAIT_REQUEUE_PI),
        1 => Just(WAIT_REQUEUE_PI | CLOCK_REALTIME)
    ];
    let wait = futex(wait_op, key(), expected(), time(), key(), any_number());
    let try_op = || prop_oneof![3 => Just(TRYLOCK_PI), 1 => Just(UNLOCK_PI)];
    let at_once = || futex(try_op(), key(), any_number(), unread(), key(), any_number());
    let one = mostly(Just(Value::Is(1)), any_number());
    let requeue = futex(Just(CMP_REQUEUE_PI), key(), one, number_for_time(), key(), expected());
    let waiting = prop_oneof![4 => lock, 4 => wait, 1 => at_once()];
    prop_oneof![
        6 => (any::<u8>(), waiting).prop_map(|(thread, call)| Step::Wait(thread, call)),
        3 => requeue.prop_map(Step::Do),
        2 => at_once().prop_map(Step::Do),
        2 => (0..WORDS).prop_map(Step::Unlock),
    ]
    .boxed()
}

/// futex(2) on private words 0 and 1.
fn call(op: i32, (word, second): (usize, usize), val: Value, time: Time, val3: Value) -> Call {
    Call::Futex {
        op: op | PRIVATE,
        word: Address::Word(word),
        val,
        time,
        second: Address::Word(second),
        val3,
    }
}

fn entry(word: usize) -> Entry {
    Entry { word: Address::Word(word), val: Value::Current, flags: PRIVATE_U32, reserved: 0 }
}

fn list(words: &[usize]) -> List {
    List { entries: words.iter().copied().map(entry).collect(), said: Said::Truth }
}

const ALL: Value = Value::Is(i32::MAX as u64);
const ZERO: Value = Value::Is(0);
const ONE: Value = Value::Is(1);
const BOTH_BITS: Value = Value::Is(3);

/// Calls that leave a waiter on word 0 in some way.
fn leaving() -> Vec<Vec<Step>> {
    let wait = |call| Step::Wait(0, call);
    let plain = call(WAIT, (0, 0), Value::Current, Time::Far, ZERO);
    let elsewhere = call(WAIT, (2, 2), Value::Current, Time::Far, ZERO);
    let lock = |op| call(op, (0, 0), ZERO, Time::Far, ZERO);
    let take = |thread| Step::Wait(thread, call(TRYLOCK_PI, (0, 0), ZERO, Time::None, ZERO));
    let test_takes = || Step::Do(call(TRYLOCK_PI, (0, 0), ZERO, Time::None, ZERO));
    let wait_requeue = |pair| call(WAIT_REQUEUE_PI, pair, Value::Current, Time::Far, ZERO);
    let masked = call(WAIT_BITSET, (0, 0), Value::Current, Time::Far, BOTH_BITS);
    let moved = call(REQUEUE, (2, 0), ZERO, Time::Number(1), ZERO);
    let moved_inheriting = call(CMP_REQUEUE_PI, (2, 0), ONE, Time::Number(0), Value::Current);
    let mut leaving = vec![
        vec![wait(plain.clone())],
        // The word is held by the thread that looks for waiters, or by another.
        vec![test_takes(), wait(plain.clone())],
        vec![take(3), wait(plain)],
        vec![wait(masked)],
        vec![wait(elsewhere), Step::Do(moved)],
        vec![test_takes(), wait(lock(LOCK_PI))],
        vec![take(3), wait(lock(LOCK_PI))],
        vec![test_takes(), wait(lock(LOCK_PI2))],
        vec![wait(wait_requeue((0, 1)))],
        vec![test_takes(), wait(wait_requeue((2, 0))), Step::Do(moved_inheriting)],
    ];
    if has_futex2() {
        leaving.push(vec![wait(Call::Futex2Wait {
            word: Address::Word(0),
            val: Value::Current,
            mask: u32::MAX.into(),
            flags: PRIVATE_U32,
            time: Time::Far,
            clock: libc::CLOCK_MONOTONIC,
        })]);
        leaving.push(vec![wait(Call::Futex2Waitv {
            list: list(&[1, 0]),
            flags: 0,
            time: Time::Far,
            clock: libc::CLOCK_MONOTONIC,
        })]);
    }
    leaving
}

/// Calls that look for waiters on word 0.
fn finding() -> Vec<Vec<Step>> {
    const ADD_0_ALWAYS: Value = Value::Is(1 << 28 | 5 << 24);
    const ADD_0_NEVER: Value = Value::Is(1 << 28 | 2 << 24);
    let mut calls = vec![];
    for count in [ZERO, ONE, ALL] {
        calls.push(call(WAKE, (0, 0), count, Time::None, ZERO));
    }
    for mask in [Value::Is(4), BOTH_BITS] {
        calls.push(call(WAKE_BITSET, (0, 0), ONE, Time::None, mask));
    }
    for (wake, moved) in [(ZERO, 0), (ZERO, 1), (ONE, 0), (ONE, 1)] {
        for pair in [(0, 1), (0, 0), (1, 0)] {
            let moved = Time::Number(moved);
            calls.push(call(REQUEUE, pair, wake, moved, ZERO));
            calls.push(call(CMP_REQUEUE, pair, wake, moved, Value::Current));
        }
    }
    for change in [ADD_0_ALWAYS, ADD_0_NEVER] {
        for pair in [(0, 1), (1, 0), (0, 0)] {
            calls.push(call(WAKE_OP, pair, ONE, Time::Number(1), change));
            calls.push(call(WAKE_OP, pair, ONE, Time::Number(2), change));
        }
    }
    for op in [LOCK_PI, LOCK_PI2, LOCK_PI | CLOCK_REALTIME] {
        calls.push(call(op, (0, 0), ZERO, Time::Past, ZERO));
    }
    for op in [TRYLOCK_PI, UNLOCK_PI, UNLOCK_PI | CLOCK_REALTIME] {
        calls.push(call(op, (0, 0), ZERO, Time::None, ZERO));
    }
    for pair in [(0, 1), (0, 2), (1, 0), (0, 0)] {
        for (wake, others, expected) in [
            (ONE, 0, Value::Current),
            (ONE, i32::MAX, Value::Current),
            (ONE, -1, Value::Current),
            (ZERO, 1, Value::Current),
            (ONE, 0, Value::Is(77)),
        ] {
            let others = Time::Number(others);
            calls.push(call(CMP_REQUEUE_PI, pair, wake, others, expected));
        }
    }
    if has_futex2() {
        for count in [0, 1, -1] {
            calls.push(Call::Futex2Wake {
                word: Address::Word(0),
                mask: 3,
                count,
                flags: PRIVATE_U32,
            });
        }
        for (wake, moved) in [(0, 0), (0, 1), (1, 1)] {
            for words in [&[0, 1], &[1, 0]] {
                calls.push(Call::Futex2Requeue { list: list(words), flags: 0, wake, moved });
            }
        }
    }
    let mut finding: Vec<Vec<Step>> = calls.into_iter().map(|call| vec![Step::Do(call)]).collect();
    // By a thread other than the one that may hold the word.
    for op in [LOCK_PI, TRYLOCK_PI, UNLOCK_PI] {
        let time = if op == LOCK_PI { Time::Past } else { Time::None };
        finding.push(vec![Step::Wait(3, call(op, (0, 0), ZERO, time, ZERO))]);
        finding.push(vec![Step::Wait(2, call(op, (0, 0), ZERO, time, ZERO))]);
    }
    // A waiter that is to be moved to word 0, by a call that uses both words.
    let wait_requeue = call(WAIT_REQUEUE_PI, (2, 0), Value::Current, Time::Far, ZERO);
    for others in [0, 1] {
        let others = Time::Number(others);
        let requeue = call(CMP_REQUEUE_PI, (2, 0), ONE, others, Value::Current);
        finding.push(vec![Step::Wait(1, wait_requeue.clone()), Step::Do(requeue)]);
    }
    // A waiter on the second word, which WAKE_OP does not reach if the first word refuses it.
    let wait = call(WAIT, (1, 1), Value::Current, Time::Far, ZERO);
    let change = call(WAKE_OP, (0, 1), ONE, Time::Number(1), ADD_0_ALWAYS);
    finding.push(vec![Step::Wait(1, wait), Step::Do(change)]);
    // And a waiter that waits in vain.
    for op in [WAIT, WAIT_REQUEUE_PI] {
        let wait = call(op, (0, 1), Value::Current, Time::Past, ZERO);
        finding.push(vec![Step::Wait(1, wait)]);
    }
    finding
}

/// Each pair of a call that leaves a waiter on a private word and a call that finds it.
#[test]
fn each_pair_answers_as_the_kernel() {
    let comparison = Comparison::new(sides::ours());
    let mut differences = vec![];
    let mut pairs = 0;
    for leaving in leaving() {
        for finding in finding() {
            pairs += 1;
            let steps = [leaving.clone(), finding].concat();
            let program = Program { initial: [0; WORDS], steps };
            if let Err(difference) = comparison.compare(&program) {
                differences.push(difference);
            }
        }
    }
    let count = differences.len();
    let differences = differences.join("\n");
    assert!(count == 0, "{count} of {pairs} pairs:\n{differences}");
}

/// A waiter can be moved to unmapped memory.
#[test]
fn a_word_that_cannot_be_read_answers_as_the_kernel() {
    let comparison = Comparison::new(sides::ours());
    let nowhere = |op, val, time, val3| Call::Futex {
        op: op | PRIVATE,
        word: Address::Unmapped,
        val,
        time,
        second: Address::Unmapped,
        val3,
    };
    let to_nowhere = |op, val| Call::Futex {
        op: op | PRIVATE,
        word: Address::Word(2),
        val,
        time: Time::Number(1),
        second: Address::Unmapped,
        val3: Value::Current,
    };
    let steps = vec![
        Step::Wait(0, call(WAIT, (2, 2), Value::Current, Time::Far, ZERO)),
        Step::Do(to_nowhere(REQUEUE, ZERO)),
        Step::Do(nowhere(LOCK_PI, ZERO, Time::Past, ZERO)),
        Step::Do(nowhere(TRYLOCK_PI, ZERO, Time::None, ZERO)),
        Step::Do(nowhere(UNLOCK_PI, ZERO, Time::None, ZERO)),
        Step::Do(to_nowhere(CMP_REQUEUE_PI, ONE)),
        Step::Do(nowhere(CMP_REQUEUE_PI, ONE, Time::Number(1), ZERO)),
        Step::Do(nowhere(WAKE, ONE, Time::None, ZERO)),
    ];
    let initial = [0; WORDS];
    let compared = comparison.compare(&Program { initial, steps });
    compared.unwrap_or_else(|difference| panic!("{difference}"));
}
