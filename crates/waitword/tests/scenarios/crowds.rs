//! One harness and a table of scenarios, after parking_lot_core's own tests: the number of words,
//! the number of threads on each, how many of these are let through one by one before the rest are
//! let through at once, and whether all have time to fall asleep.

use crate::{futex, scopes};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use waitword::{Error, Scope};
use waitword_testkit::{Atomic, for_every_width, watch};

/// See the module documentation.
struct Scenario {
    name: &'static str,
    repeats: usize,
    words: usize,
    /// Threads that wait on each word.
    waiters: usize,
    /// How many of them are let through one by one.
    one_by_one: usize,
    /// Before the first one is let through.
    delay: Duration,
}

/// A turnstile: a word that counts what happened to it, and how many threads may pass.
#[derive(Default)]
struct Turnstile<A> {
    word: A,
    tickets: AtomicUsize,
    open: AtomicBool,
    passed: AtomicUsize,
}

impl<A: Atomic> Turnstile<A> {
    fn may_pass(&self) -> bool {
        let take = |tickets: usize| tickets.checked_sub(1);
        self.open.load(SeqCst) || self.tickets.fetch_update(SeqCst, SeqCst, take).is_ok()
    }

    fn pass(&self, scope: Scope) {
        loop {
            let seen = self.word.get();
            if self.may_pass() {
                self.passed.fetch_add(1, SeqCst);
                return;
            }
            match futex(&self.word, scope).wait(A::value(seen)) {
                Ok(()) | Err(Error::Mismatch | Error::Interrupted) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Lets one thread through, and waits until it is.
    fn let_one_through(&self, scope: Scope) {
        let passed = self.passed.load(SeqCst);
        self.tickets.fetch_add(1, SeqCst);
        self.word.add(1);
        let woken = futex(&self.word, scope).wake(1).unwrap();
        assert!(woken <= 1);
        while self.passed.load(SeqCst) == passed {
            std::thread::yield_now();
        }
    }

    fn open(&self, scope: Scope, at_most: usize) {
        self.open.store(true, SeqCst);
        self.word.add(1);
        let woken = futex(&self.word, scope).wake(usize::MAX).unwrap();
        assert!(woken <= at_most, "{woken} of {at_most} were woken");
    }
}

fn run<A: Atomic>(scenario: &Scenario) {
    for scope in scopes::<A>() {
        for _ in 0..scenario.repeats {
            let turnstiles: Vec<Turnstile<A>> = (0..scenario.words)
                .map(|_| Turnstile {
                    word: A::default(),
                    tickets: AtomicUsize::new(0),
                    open: AtomicBool::new(false),
                    passed: AtomicUsize::new(0),
                })
                .collect();
            std::thread::scope(|threads| {
                for _ in 0..scenario.waiters {
                    for turnstile in &turnstiles {
                        threads.spawn(|| turnstile.pass(scope));
                    }
                }
                std::thread::sleep(scenario.delay);
                for _ in 0..scenario.one_by_one {
                    for turnstile in &turnstiles {
                        turnstile.let_one_through(scope);
                    }
                }
                for turnstile in &turnstiles {
                    turnstile.open(scope, scenario.waiters - scenario.one_by_one);
                }
            });
            for turnstile in &turnstiles {
                assert_eq!(turnstile.passed.load(SeqCst), scenario.waiters, "{}", scenario.name);
            }
        }
    }
}

macro_rules! scenarios {
    ($($name:ident: $repeats:literal times, $words:literal x $waiters:literal waiters,
        $one_by_one:literal one by one, $delay:literal ms;)*) => {$(
        #[test]
        fn $name() {
            let _watchdog = watch();
            let scenario = Scenario {
                name: stringify!($name),
                repeats: $repeats,
                words: $words,
                waiters: $waiters,
                one_by_one: $one_by_one,
                delay: Duration::from_millis($delay),
            };
            for_every_width!(run(&scenario));
        }
    )*};
}

scenarios! {
    all_of_one_at_once: 150 times, 1 x 1 waiters, 0 one by one, 0 ms;
    all_of_one_asleep: 2 times, 1 x 1 waiters, 0 one by one, 10 ms;
    all_of_a_hundred_at_once: 3 times, 1 x 100 waiters, 0 one by one, 0 ms;
    all_of_a_hundred_asleep: 1 times, 1 x 100 waiters, 0 one by one, 20 ms;
    one_of_one_at_once: 150 times, 1 x 1 waiters, 1 one by one, 0 ms;
    one_of_one_asleep: 2 times, 1 x 1 waiters, 1 one by one, 10 ms;
    one_of_fifty_at_once: 4 times, 1 x 50 waiters, 1 one by one, 0 ms;
    one_of_fifty_asleep: 1 times, 1 x 50 waiters, 1 one by one, 20 ms;
    half_of_a_hundred_at_once: 2 times, 1 x 100 waiters, 50 one by one, 0 ms;
    half_of_a_hundred_asleep: 1 times, 1 x 100 waiters, 50 one by one, 20 ms;
    a_hundred_one_by_one_at_once: 2 times, 1 x 100 waiters, 100 one by one, 0 ms;
    a_hundred_one_by_one_asleep: 1 times, 1 x 100 waiters, 100 one by one, 20 ms;
    many_words_at_once: 2 times, 50 x 2 waiters, 1 one by one, 0 ms;
    many_words_asleep: 1 times, 50 x 2 waiters, 1 one by one, 20 ms;
}
