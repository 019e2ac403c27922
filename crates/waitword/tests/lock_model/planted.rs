//! Tests that the fuzzer finds defects: they are planted between it and the locks. Each must be
//! found within seconds and shrunk to a program of a few steps.

use super::family::Family;
use super::gates::{self, Gates};
use super::mutexes::{self, Mutexes};
use super::onces::{self, Onces};
use super::program::{Limit, Program};
use super::run::Defect;
use super::rwlocks::{self, Hold, RwLocks};
use super::tokens::{self, Tokens};
use super::{Bench, Fuzz};
use std::time::Duration;

fn is_found<F: Family>(bench: &Bench, name: &str, steps: usize, defect: Defect<F>) {
    let fuzz = Fuzz { time: Duration::from_secs(60), seed: 1 };
    let Err(failure) = bench.fuzz::<F>(fuzz, Some(defect)) else {
        panic!("{name}: not found");
    };
    println!("{name}:\n{}", failure.text(Program::source));
    let found = &failure.smallest;
    assert!(found.steps.len() <= steps, "{name}: {} steps:\n{}", found.steps.len(), found.source());
}

#[test]
fn each_planted_defect_is_found_and_shrunk() {
    let bench = &Bench::new();
    is_found::<Mutexes>(bench, "a timed lock waits forever", 2, |call| {
        use mutexes::Call::*;
        Some(match call {
            Lock(Limit::Past) => Lock(Limit::Forever),
            call => call,
        })
    });
    is_found::<Mutexes>(bench, "a broadcast signals one", 8, |call| {
        use mutexes::Call::*;
        Some(match call {
            NotifyAll => NotifyOne,
            call => call,
        })
    });
    is_found::<RwLocks>(bench, "one reads beside a writer", 2, |call| {
        use rwlocks::Call::*;
        (call != Try(Hold::Read)).then_some(call)
    });
    is_found::<RwLocks>(bench, "an unlock is forgotten", 3, |call| {
        (call != rwlocks::Call::Unlock).then_some(call)
    });
    is_found::<Tokens>(bench, "two posts are one", 1, |call| {
        use tokens::Call::*;
        Some(match call {
            Post(2) => Post(1),
            call => call,
        })
    });
    is_found::<Tokens>(bench, "a reset is forgotten", 2, |call| {
        (call != tokens::Call::Reset).then_some(call)
    });
    is_found::<Gates>(bench, "a set is forgotten", 1, |call| {
        (call != gates::Call::Set).then_some(call)
    });
    is_found::<Gates>(bench, "a barrier in use is destroyed", 2, |call| {
        (call != gates::Call::Destroy).then_some(call)
    });
    is_found::<Onces>(bench, "poison lasts forever", 3, |call| {
        use onces::Call::*;
        Some(match call {
            Force => Plain,
            call => call,
        })
    });
}
