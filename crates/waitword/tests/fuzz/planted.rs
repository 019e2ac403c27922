//! Tests that the fuzzer finds defects: they are planted between it and the raw futex interface.
//! Each must be found within seconds and shrunk to a program of a few steps.

use super::Comparison;
use super::program::Program;
use super::sides::Side;
use super::strategies::{Contents, programs};
use std::sync::Arc;
use std::time::Duration;
use syscalls::Sysno;
use waitword_testkit::{
    Answer,
    fuzz::Fuzz,
    raw::{To, has_futex2},
};

/// Changes the arguments of a call.
type Defect = fn(Sysno, [usize; 6]) -> [usize; 6];

/// The raw futex interface, with a defect in front of it.
struct Defective {
    raw: Arc<dyn Side>,
    defect: Defect,
}

impl Side for Defective {
    fn name(&self) -> &'static str {
        "the defective side"
    }

    fn in_our_table(&self) -> bool {
        true
    }

    fn call(&self, call: Sysno, arguments: [usize; 6]) -> Answer {
        self.raw.call(call, (self.defect)(call, arguments))
    }
}

const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const WAKE_BITSET: usize = 10;

fn operation(call: Sysno, arguments: [usize; 6]) -> Option<usize> {
    (call == Sysno::futex).then_some(arguments[1] & !128)
}

const DEFECTS: [(&str, usize, Defect); 4] = [
    ("a wake takes one too few", 4, |call, mut arguments| {
        if operation(call, arguments) == Some(WAKE) && arguments[2] == 2 {
            arguments[2] = 1;
        }
        arguments
    }),
    ("a wake looks at no mask", 4, |call, mut arguments| {
        if operation(call, arguments) == Some(WAKE_BITSET) && arguments[5] != 0 {
            arguments[5] = u32::MAX as usize;
        }
        arguments
    }),
    ("a requeue compares nothing", 4, |call, mut arguments| {
        if operation(call, arguments) == Some(CMP_REQUEUE) {
            arguments[1] = arguments[1] & 128 | REQUEUE;
        }
        arguments
    }),
    ("greater is also equal", 4, |call, mut arguments| {
        if operation(call, arguments) == Some(WAKE_OP) && arguments[5] >> 24 & 15 == 4 {
            arguments[5] |= 1 << 24;
        }
        arguments
    }),
];

/// In calls that not every kernel has.
const DEFECTS_IN_FUTEX2: [(&str, usize, Defect); 2] = [
    ("a requeue wakes and does not move", 4, |call, mut arguments| {
        if call == Sysno::futex_requeue && arguments[2] as i32 == 0 && arguments[3] as i32 == 1 {
            arguments.swap(2, 3);
        }
        arguments
    }),
    ("a misaligned word is taken for one", 1, |call, mut arguments| {
        if call == Sysno::futex_wake {
            arguments[0] &= !3;
        }
        arguments
    }),
];

#[test]
fn each_planted_defect_is_found_and_shrunk() {
    let in_futex2 = has_futex2().then_some(DEFECTS_IN_FUTEX2);
    for (name, steps, defect) in DEFECTS.into_iter().chain(in_futex2.into_iter().flatten()) {
        let side = Defective { raw: Arc::new(To::Ours), defect };
        let comparison = Comparison::new(vec![Arc::new(side)]);
        let fuzz = Fuzz { time: Duration::from_secs(60), seed: 1 };
        let found = fuzz
            .run(&programs(Contents::default()), |program: &Program| comparison.compare(program));
        let Err(failure) = found else {
            panic!("{name}: not found");
        };
        let program = &failure.smallest;
        println!("{name}:\n{}", failure.text(Program::source));
        assert!(
            program.steps.len() <= steps,
            "{name}: {} steps:\n{}",
            program.steps.len(),
            program.source()
        );
    }
}
