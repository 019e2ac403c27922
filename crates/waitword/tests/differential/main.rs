//! Random programs, run on the kernel's futex and on ours. Both must give the same answers and the
//! same counts, and wake the same threads in the same order.
//!
//! ```text
//!   program ──► the kernel, 32 bits ──────────────► events ─┐ at that width
//!           ──► ours: futex(2) and futex2 interfaces,       ├── the same
//!               typed interface; 8 to 64 bits,              │
//!               private and shared ───────────────► events ─┘
//! ```
//!
//! A program is a list of steps on a few words, executed one after another: a thread starts a wait,
//! or the test itself wakes, requeues, stores, or interrupts a waiter. After each step all threads
//! are back or asleep again (`crew.rs` of the test kit). So a run has one outcome, and can be
//! compared as a whole.
//!
//! `PROPTEST_CASES` sets the number of programs for each test. With `WAITWORD_FUZZ_SECONDS` each
//! test runs for that long (`scripts/fuzz`).
//!
//! # What is not compared
//!
//! * The place of a requeued waiter when both words share a bucket of the kernel. The kernel's
//!   words are chosen to avoid that ([`words_in_different_buckets`]), and so are our shared ones
//!   (`Comparison::place`).
//! * `wait_any` with `wake_op` on shared 64-bit words: there the two wakes are two system calls,
//!   and a thread that waits for both words may be gone before the second. This is documented.
//! * Requeue of shared 8 and 16-bit words, which wakes instead, and masks of shared 64-bit words,
//!   which are refused. Both are documented. `shared` tests them.
//! * `wait_any` on shared 8 and 16-bit words: such a waiter may also receive wakes meant for
//!   neighbouring words. It forwards them to all waiters that they might have been meant for,
//!   spurious ones among them. This is documented.

mod program;
mod run;
mod sides;

use program::{
    Contents, Expect, Limit, Mask, Program, Step, THREADS, Value, WORDS, Width, programs,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use run::{Event, compare, run};
use sides::raw::{Interface, Raw, words_in_different_buckets};
use sides::{ROOM, Side, Words, World, ours};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use syscalls::Sysno;
use waitword_testkit::{
    Crew, Mapping, Watchdog,
    fuzz::Fuzz,
    kernel_has,
    raw::{To, has_futex2},
    watch,
};

/// A test: programs, the kernel's words, and the widths to compare.
struct Comparison {
    world: World,
    widths: &'static [Width],
    crew: RefCell<Crew>,
    memory: Arc<Mapping>,
    kernel_words: Words,
    watchdog: Watchdog,
}

impl Comparison {
    fn new(world: World, widths: &'static [Width]) -> Self {
        let watchdog = watch();
        // A queued thread must be asleep too: only then does a signal end the wait.
        waitword::spin::set_budget(Duration::ZERO);
        let memory = Arc::new(Mapping::anonymous(ROOM + 8));
        let mut crew = Crew::new(THREADS);
        let kernel_words = words_in_different_buckets(&memory, world, &mut crew);
        Self { world, widths, crew: RefCell::new(crew), memory, kernel_words, watchdog }
    }

    /// Runs `program` on every side. Differences are an error.
    fn compare(&self, program: &Program) -> Result<(), TestCaseError> {
        self.watchdog.pat();
        let kernel = |interface| -> Arc<dyn Side> {
            Arc::new(Raw {
                to: To::Kernel,
                interface,
                world: self.world,
                words: self.kernel_words.clone(),
            })
        };
        let reference = kernel(Interface::Classic);
        let expected = self.run(program, &reference);
        let mut others = Vec::new();
        if has_futex2() {
            others.push(kernel(Interface::Futex2));
        }
        for &width in self.widths {
            let words = self.place(program, width);
            others.extend(ours(&words, self.world));
        }
        for side in others {
            let expected: Vec<_> =
                expected.iter().map(|event| run::at(event, side.width())).collect();
            let found = self.run(program, &side);
            if found != expected {
                let reference = (&*reference.name(), &*expected);
                let found = (&*side.name(), &*found);
                return Err(TestCaseError::fail(compare(program, reference, found)));
            }
        }
        Ok(())
    }

    /// Our words for `program`, at its place. Words that wait in the kernel and may be requeued are
    /// put at the next place where they are in different buckets.
    fn place(&self, program: &Program, width: Width) -> Words {
        let at = |place| Words::laid_out(&self.memory, program.dense, place, width);
        let mut place = program.place;
        let in_kernel = self.world == World::Shared && width.0 >= 32;
        while in_kernel && !at(place).are_in_different_buckets(&mut self.crew.borrow_mut()) {
            place = place.wrapping_add(1);
        }
        at(place)
    }

    fn run(&self, program: &Program, side: &Arc<dyn Side>) -> Vec<Event> {
        run(program, side, &mut self.crew.borrow_mut())
    }

    /// Compares as many random programs as the environment asks for, or `cases`.
    fn random(&self, cases: u32, contents: impl Strategy<Value = Contents>) {
        let cases = std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|cases| cases.parse().ok())
            .unwrap_or(cases);
        let config =
            ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let programs = contents.prop_flat_map(programs);
        if let Some(fuzz) = Fuzz::asked_for() {
            let found = fuzz.run(&programs, |program| {
                let compared = self.compare(program);
                compared.map_err(|error| error.to_string())
            });
            if let Err(failure) = found {
                panic!("{}", failure.text(|program| format!("{program:#?}")));
            }
            return;
        }
        if let Err(failure) =
            TestRunner::new(config).run(&programs, |program| self.compare(&program))
        {
            panic!("{failure}");
        }
    }
}

const NARROW: &[Width] = &[Width(8), Width(16)];
const ONLY_32: &[Width] = &[Width(32)];
const ONLY_64: &[Width] = &[Width(64)];

#[test]
fn private_words_of_every_width() {
    let contents = Contents { wait_any: kernel_has(Sysno::futex_waitv), ..Contents::ALL };
    Comparison::new(World::Private, &Width::ALL).random(800, Just(contents));
}

#[test]
fn shared_words_of_32_bits() {
    Comparison::new(World::Shared, ONLY_32).random(500, Just(Contents::ALL));
}

#[test]
fn shared_words_of_64_bits() {
    let test = "shared_words_of_64_bits";
    if !kernel_has(Sysno::futex_waitv) {
        println!(
            "{test}: not compared, since no thread can wait on such words without futex_waitv"
        );
        return;
    }
    let contents = any::<bool>().prop_map(|wait_any| Contents {
        masks: false,
        wait_any,
        wake_op: !wait_any,
        ..Contents::ALL
    });
    Comparison::new(World::Shared, ONLY_64).random(500, contents);
}

/// A program that shows the place of a requeued waiter, at places where two of the words would
/// share a bucket. It failed in CI once, when words 1 and 2 did.
#[test]
fn words_that_would_share_a_bucket_are_moved() {
    let comparison = Comparison::new(World::Shared, ONLY_64);
    let wait = |word| Step::Wait {
        worker: 0,
        word,
        expect: Expect::Current,
        mask: Mask::Any,
        limit: Limit::Forever,
    };
    let requeue = |from, to, wake, moved| Step::Requeue { from, to, wake, moved, expect: None };
    let program = |place| Program {
        initial: vec![Value::Small(0); WORDS],
        steps: vec![wait(1), wait(2), wait(1), requeue(2, 1, 0, 1), requeue(1, 0, 2, 0)],
        dense: true,
        place,
    };
    let would_share = |&place: &u16| {
        comparison.watchdog.pat();
        let words = Words::laid_out(&comparison.memory, true, place, ONLY_64[0]);
        !words.are_in_different_buckets(&mut comparison.crew.borrow_mut())
    };
    // About one place in a hundred; in one of six of those, the words are 1 and 2.
    let places: Vec<_> = (0..4000).filter(would_share).take(24).collect();
    assert!(!places.is_empty(), "no two words share a bucket anywhere");
    for place in places {
        comparison.compare(&program(place)).unwrap();
    }
}

#[test]
fn shared_words_of_8_and_16_bits() {
    let contents = Contents { requeue: false, wait_any: false, ..Contents::ALL };
    Comparison::new(World::Shared, NARROW).random(500, Just(contents));
}

#[test]
fn values_mean_the_same_at_every_width() {
    // The program's numbers, at 32 bits and as they must be at 8.
    let pairs = [
        (0, 0),
        (3, 3),
        (0xffff_ffff, 0xff),
        (0x8000_0000, 0x80),
        (0x7fff_ffff, 0x7f),
        (0x8000_0002, 0x82),
        (0xffff_fffe, 0xfe),
    ];
    for (at_32, at_8) in pairs {
        assert_eq!(Width(8).of_32(at_32), at_8);
        assert_eq!(Width(32).of_32(at_32), at_32);
    }
    assert_eq!(Width(64).of_32(0x8000_0002), 0x8000_0000_0000_0002);
    assert_eq!([program::Value::TopBit; WORDS].map(|value| value.at(Width(16))), [0x8000; WORDS]);
}
