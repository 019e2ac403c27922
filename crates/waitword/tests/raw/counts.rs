//! Counts of 0 and below, with a waiter to wake: for 0, futex(2) wakes one, futex2 none.

use crate::support::crew::Crew;
use crate::support::memory::Mapping;
use crate::support::watchdog::watch;
use crate::support::{Answer, kernel, kernel_has};
use std::sync::Arc;
use std::time::Duration;
use syscalls::Sysno;
use waitword::raw::{self, Errno, PRIVATE, SIZE_U32};

const WAIT: i32 = 0;
const WAKE: i32 = 1;
const REQUEUE: i32 = 3;
const WAKE_OP: i32 = 5;

/// The kernel's or our calls on two 32-bit words that hold 0.
#[derive(Clone)]
struct Side {
    ours: bool,
    private: u32,
    memory: Arc<Mapping>,
}

impl Side {
    fn futex(&self, op: i32, count: i32, second_count: i32, val3: u32) -> Answer {
        let [first, second] = [0, 64].map(|offset| self.memory.at::<u32>(offset));
        let op = op | self.private as i32;
        if self.ours {
            // SAFETY: mapped words.
            let answer =
                unsafe { raw::futex(first, op, count as u32, second_count as usize, second, val3) };
            return answer.map_err(Errno::raw_os_error);
        }
        let [first, second] = [first, second].map(|word| word.expose_provenance());
        let (count, second_count) = (count as usize, second_count as usize);
        kernel(
            Sysno::futex,
            [
                first,
                op as usize,
                count,
                second_count,
                second,
                val3 as usize,
            ],
        )
    }

    fn futex2_wake(&self, count: i32) -> Answer {
        let word = self.memory.at::<u32>(0);
        let (mask, flags) = (u32::MAX.into(), SIZE_U32 | self.private);
        if self.ours {
            // SAFETY: a mapped word.
            let answer = unsafe { raw::futex_wake(word.cast(), mask, count, flags) };
            return answer.map_err(Errno::raw_os_error);
        }
        let word = word.expose_provenance();
        kernel(
            Sysno::futex_wake,
            [word, mask as usize, count as usize, flags as usize, 0, 0],
        )
    }
}

/// A call, made while three threads wait for the first word, and its answer.
type Row = (&'static str, fn(&Side) -> Answer, Answer);

const ROWS: &[Row] = &[
    (
        "futex(2): wake 0 wakes one",
        |side| side.futex(WAKE, 0, 0, 0),
        Ok(1),
    ),
    (
        "futex(2): wake -1 wakes one",
        |side| side.futex(WAKE, -1, 0, 0),
        Ok(1),
    ),
    (
        "futex(2): wake the least number wakes one",
        |side| side.futex(WAKE, i32::MIN, 0, 0),
        Ok(1),
    ),
    (
        "futex(2): wake two",
        |side| side.futex(WAKE, 2, 0, 0),
        Ok(2),
    ),
    (
        "futex(2): requeue none, move none",
        |side| side.futex(REQUEUE, 0, 0, 0),
        Ok(0),
    ),
    (
        "futex(2): requeue counts who moves",
        |side| side.futex(REQUEUE, 1, 1, 0),
        Ok(2),
    ),
    (
        "futex(2): wake_op 0 wakes one",
        |side| side.futex(WAKE_OP, 0, 0, 0),
        Ok(1),
    ),
    (
        "futex(2): wake_op -1 wakes one",
        |side| side.futex(WAKE_OP, -1, -1, 0),
        Ok(1),
    ),
];

const FUTEX2_ROWS: &[Row] = &[
    (
        "futex2: wake 0 wakes nobody",
        |side| side.futex2_wake(0),
        Ok(0),
    ),
    (
        "futex2: wake -1 wakes one",
        |side| side.futex2_wake(-1),
        Ok(1),
    ),
    (
        "futex2: wake finds waiters of futex(2)",
        |side| side.futex2_wake(3),
        Ok(3),
    ),
];

#[test]
fn counts_of_nothing() {
    let _watchdog = watch("raw::counts::counts_of_nothing");
    waitword::spin::set_budget(Duration::ZERO);
    let mut crew = Crew::new(3);
    for ours in [false, true] {
        for private in [PRIVATE, 0] {
            let side = Side {
                ours,
                private,
                memory: Arc::new(Mapping::anonymous(4096)),
            };
            for row in ROWS {
                check(&side, &mut crew, row);
            }
            if ours || kernel_has(Sysno::futex_wake) {
                for row in FUTEX2_ROWS {
                    check(&side, &mut crew, row);
                }
            } else {
                println!("not compared: this kernel has no futex_wake");
            }
        }
    }
}

fn check(side: &Side, crew: &mut Crew, &(name, call, expected): &Row) {
    let in_table = usize::from(side.ours && side.private != 0);
    for worker in 0..3 {
        let side = side.clone();
        crew.order(worker, in_table, move || side.futex(WAIT, 0, 0, 0));
        assert_eq!(crew.settle(), []);
    }
    let world = if side.private == 0 {
        "shared"
    } else {
        "private"
    };
    let who = if side.ours { "ours" } else { "the kernel" };
    assert_eq!(call(side), expected, "{name}: {who}, {world}");
    let woken = crew.settle().len();
    // Moved, not woken.
    let moved = side.memory.at::<u32>(64);
    let mover = Side {
        memory: side.memory.clone(),
        ..*side
    };
    let moved = wake_all(&mover, moved);
    assert_eq!(Ok(woken + moved), expected, "{name}: {who}, {world}");
    let left = wake_all(&mover, side.memory.at::<u32>(0));
    assert_eq!(woken + moved + left, 3, "{name}: {who}, {world}");
    crew.settle();
    assert_eq!(crew.busy(), []);
}

fn wake_all(side: &Side, word: *mut u32) -> usize {
    let op = WAKE | side.private as i32;
    let count = i32::MAX as u32;
    if side.ours {
        // SAFETY: a mapped word.
        return unsafe { raw::futex(word, op, count, 0, word, 0) }.unwrap();
    }
    let word = word.expose_provenance();
    kernel(
        Sysno::futex,
        [word, op as usize, count as usize, 0, word, 0],
    )
    .unwrap()
}
