//! Counts of 0 and below, with a waiter to wake: for 0, futex(2) wakes one, futex2 none.

use std::sync::Arc;
use std::time::Duration;
use syscalls::Sysno;
use waitword::raw::{PRIVATE, SIZE_U32};
use waitword_testkit::raw::{
    To,
    op::{REQUEUE, WAIT, WAKE, WAKE_OP},
};
use waitword_testkit::{Answer, Crew, Mapping, kernel_has};

/// The kernel's or our calls on two 32-bit words that hold 0.
#[derive(Clone)]
struct Side {
    to: To,
    private: u32,
    memory: Arc<Mapping>,
}

/// Offsets of the words.
const WORDS: [usize; 2] = [0, 64];

impl Side {
    fn futex(&self, op: i32, count: i32, second_count: i32) -> Answer {
        let [first, second] = WORDS.map(|offset| self.word(offset));
        let (op, count) = ((op | self.private as i32) as usize, count as usize);
        let arguments = [first, op, count, second_count as usize, second, 0];
        self.to.call(Sysno::futex, arguments)
    }

    fn futex2_wake(&self, count: i32) -> Answer {
        let (mask, flags) = (u32::MAX as usize, (SIZE_U32 | self.private) as usize);
        let arguments = [self.word(0), mask, count as usize, flags, 0, 0];
        self.to.call(Sysno::futex_wake, arguments)
    }

    /// Wakes all waiters of the word there.
    fn wake_all(&self, offset: usize) -> usize {
        let op = (WAKE | self.private as i32) as usize;
        let arguments = [self.word(offset), op, i32::MAX as usize, 0, 0, 0];
        self.to.call(Sysno::futex, arguments).unwrap()
    }

    fn word(&self, offset: usize) -> usize {
        self.memory.at::<u32>(offset).expose_provenance()
    }
}

/// A call, made while three threads wait for the first word, after its answer.
type Row = (&'static str, Answer, fn(&Side) -> Answer);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("futex(2): wake 0 wakes one", Ok(1), |side| side.futex(WAKE, 0, 0)),
    ("futex(2): wake -1 wakes one", Ok(1), |side| side.futex(WAKE, -1, 0)),
    ("futex(2): wake the least number wakes one", Ok(1), |side| side.futex(WAKE, i32::MIN, 0)),
    ("futex(2): wake two", Ok(2), |side| side.futex(WAKE, 2, 0)),
    ("futex(2): requeue none, move none", Ok(0), |side| side.futex(REQUEUE, 0, 0)),
    ("futex(2): requeue counts who moves", Ok(2), |side| side.futex(REQUEUE, 1, 1)),
    ("futex(2): wake_op 0 wakes one", Ok(1), |side| side.futex(WAKE_OP, 0, 0)),
    ("futex(2): wake_op -1 wakes one", Ok(1), |side| side.futex(WAKE_OP, -1, -1)),
];

#[rustfmt::skip]
const FUTEX2_ROWS: &[Row] = &[
    ("futex2: wake 0 wakes no thread", Ok(0), |side| side.futex2_wake(0)),
    ("futex2: wake -1 wakes one", Ok(1), |side| side.futex2_wake(-1)),
    ("futex2: wake finds waiters of futex(2)", Ok(3), |side| side.futex2_wake(3)),
];

#[test]
fn counts_of_nothing() {
    waitword::spin::set_budget(Duration::ZERO);
    let mut crew = Crew::new(3);
    for to in [To::Kernel, To::Ours] {
        for private in [PRIVATE, 0] {
            let side = Side { to, private, memory: Arc::new(Mapping::anonymous(4096)) };
            for row in ROWS {
                check(&side, &mut crew, row);
            }
            if to == To::Ours || kernel_has(Sysno::futex_wake) {
                for row in FUTEX2_ROWS {
                    check(&side, &mut crew, row);
                }
            } else {
                println!("not compared: this kernel has no futex_wake");
            }
        }
    }
}

fn check(side: &Side, crew: &mut Crew, &(name, expected, call): &Row) {
    let to = side.to;
    let in_table = usize::from(side.to == To::Ours && side.private != 0);
    for worker in 0..3 {
        let side = side.clone();
        crew.order(worker, in_table, move || side.futex(WAIT, 0, 0));
        assert_eq!(crew.settle(), []);
    }
    let world = if side.private == 0 { "shared" } else { "private" };
    assert_eq!(call(side), expected, "{name}: {to:?}, {world}");
    let woken = crew.settle().len();
    // Moved, not woken.
    let moved = side.wake_all(WORDS[1]);
    assert_eq!(Ok(woken + moved), expected, "{name}: {to:?}, {world}");
    let left = side.wake_all(WORDS[0]);
    assert_eq!(woken + moved + left, 3, "{name}: {to:?}, {world}");
    crew.settle();
    assert_eq!(crew.busy(), []);
}
