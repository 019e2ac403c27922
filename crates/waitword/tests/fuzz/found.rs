//! Regression tests: programs that the fuzzer found. Each differed once.

use super::Comparison;
#[allow(
    unused_imports,
    reason = "what a program may be made of, for the next one to be pasted"
)]
use super::program::{
    Address::*, Call::*, Entry, List, Program, Said::*, Step, Step::*, Time, Time::*, Value::*,
    WORDS,
};
use super::sides;
use waitword_testkit::raw::has_futex2;

fn same_as_the_kernel(initial: [u32; WORDS], steps: Vec<Step>) {
    let program = Program { initial, steps };
    let comparison = Comparison::new(sides::ours());
    if let Err(difference) = comparison.compare(&program) {
        panic!("{difference}");
    }
}

/// The kernel checks the scopes of both words before it checks either address.
#[test]
fn requeue_between_scopes_and_a_bad_address() {
    if !has_futex2() {
        return;
    }
    let entry = |word, flags| Entry { word, val: Current, flags, reserved: 0 };
    same_as_the_kernel(
        [0, 0, 0],
        vec![Do(Futex2Requeue {
            list: List { entries: vec![entry(Word(0), 2), entry(Kernels, 130)], said: Truth },
            flags: 0,
            wake: 0,
            moved: 0,
        })],
    );
}

/// The kernel copies times and lists, wherever they begin.
#[test]
fn a_time_and_a_list_at_odd_addresses() {
    if !has_futex2() {
        return;
    }
    let entry = |word| Entry { word: Word(word), val: Current, flags: 130, reserved: 0 };
    let list = || List { entries: vec![entry(0), entry(1)], said: Odd };
    let wait =
        |op| Futex { op, word: Word(0), val: Current, time: Askew, second: Null, val3: Is(1) };
    same_as_the_kernel(
        [0, 0, 0],
        vec![
            Wait(0, wait(128)),
            Wait(0, wait(137)),
            Wait(0, Futex2Waitv { list: list(), flags: 0, time: Askew, clock: 1 }),
            Do(Futex2Requeue { list: list(), flags: 0, wake: 0, moved: 1 }),
        ],
    );
}

/// The drop-in passed such a list to the kernel, and the waiter missed the wakes of the drop-in's
/// own table.
#[test]
fn a_wait_on_a_list_at_an_odd_address_is_woken() {
    if !has_futex2() {
        return;
    }
    let list = List {
        entries: vec![Entry { word: Word(0), val: Current, flags: 130, reserved: 0 }],
        said: Odd,
    };
    same_as_the_kernel(
        [0, 0, 0],
        vec![Wait(0, Futex2Waitv { list, flags: 0, time: Time::None, clock: 1 })],
    );
}
