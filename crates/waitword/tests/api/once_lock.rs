//! `OnceLock`: like std's; with many threads, with panics, and in forked children.

use crate::{Drops, all_answers, fail, unwinds, waiters_in};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, OnceLock as StdOnceLock};
use waitword::{OnceLock, Semaphore};
use waitword_testkit::{BareThread, Child, Crew, Way, in_child, until, watch};

/// Everything that a single thread can observe.
macro_rules! answers {
    ($OnceLock:ident) => {{
        let mut said = Vec::new();
        let mut say = |what: String| said.push(what);
        let mut cell = $OnceLock::<String>::new();
        say(format!("{cell:?} {:?}", cell.get()));
        say(format!("{:?}", cell.get_mut()));
        say(format!("{:?}", unwinds(|| assert_eq!(cell.get_or_init(|| fail()), ""))));
        say(format!("{:?}", cell.set("a".into())));
        say(format!("{:?}", cell.set("b".into())));
        say(format!("{:?} {cell:?}", cell.get_or_init(|| unreachable!())));
        cell.get_mut().unwrap().push('c');
        let copy = cell.clone();
        say(format!("{:?} {copy:?} {}", cell.get(), copy == cell));
        say(format!("{:?} {cell:?} {}", cell.take(), copy == cell));
        say(format!("{:?}", cell.get_or_init(|| "d".into())));
        say(format!("{:?} {:?}", copy.into_inner(), $OnceLock::<u8>::default().into_inner()));
        say(format!("{:?} {}", $OnceLock::from(7), $OnceLock::from(7) == $OnceLock::new()));
        said
    }};
}

#[test]
fn says_what_std_s_says() {
    assert_eq!(answers!(OnceLock), answers!(StdOnceLock));
}

#[test]
fn racing_initialisers_run_once() {
    let _watchdog = watch();
    for _ in 0..200 {
        let (cell, runs, start) = (OnceLock::new(), AtomicUsize::new(0), Barrier::new(6));
        let made: Vec<usize> = std::thread::scope(|scope| {
            let threads = [0; 6].map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let value = cell.get_or_init(|| runs.fetch_add(1, SeqCst) + 100);
                    (&raw const *value).addr() + *value
                })
            });
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(runs.load(SeqCst), 1);
        assert!(made.iter().all(|seen| *seen == made[0]));
        assert_eq!(cell.get(), Some(&100));
    }
}

/// A cell, and a gate before the end of its initialiser.
#[derive(Default)]
struct Gated {
    cell: OnceLock<usize>,
    gate: Option<Semaphore>,
}

/// One thread makes the value, and other threads come: by `get_or_init`, `set` and `wait`. All
/// sleep.
fn all_wait_for_the_first(crew: &mut Crew, fails: bool) -> Arc<Gated> {
    let gated = Arc::new(Gated { cell: OnceLock::new(), gate: Some(Semaphore::new(0)) });
    let cells = [(); 4].map(|()| gated.clone());
    let [first, second, third, fourth] = cells;
    // Also before the first has begun.
    crew.order(3, 1, move || Ok(*fourth.cell.wait()));
    assert_eq!(crew.settle(), []);
    crew.order(0, 1, move || {
        let make = || {
            first.gate.as_ref().unwrap().wait();
            if fails { fail() } else { 10 }
        };
        let made = catch_unwind(AssertUnwindSafe(|| *first.cell.get_or_init(make)));
        made.map_err(|_| 0)
    });
    assert_eq!(crew.settle(), []);
    crew.order(1, 1, move || Ok(*second.cell.get_or_init(|| 11)));
    assert_eq!(crew.settle(), []);
    crew.order(2, 1, move || third.cell.set(12).map(|()| 2).map_err(|value| value as i32));
    assert_eq!(crew.settle(), []);
    assert_eq!(gated.cell.get(), None);
    gated.gate.as_ref().unwrap().post().unwrap();
    gated
}

#[test]
fn later_callers_wait_for_the_first() {
    let mut crew = Crew::new(4);
    let gated = all_wait_for_the_first(&mut crew, false);
    let answers = all_answers(&crew, 4);
    assert_eq!(answers, [(0, Ok(10)), (1, Ok(10)), (2, Err(12)), (3, Ok(10))]);
    assert_eq!(gated.cell.get(), Some(&10));
}

/// It is the only sleeper, and slept before there was anything to wait for.
#[test]
fn a_thread_that_waits_first_is_woken() {
    let mut crew = Crew::new(1);
    let cell = Arc::new(OnceLock::new());
    let waits = cell.clone();
    crew.order(0, 1, move || Ok(*waits.wait()));
    assert_eq!(crew.settle(), []);
    cell.set(3).unwrap();
    assert_eq!(crew.settle_with(0), [(0, Ok(3))]);
    assert_eq!(*cell.wait(), 3);
}

#[test]
fn after_a_panic_a_waiter_makes_the_value() {
    let mut crew = Crew::new(4);
    let gated = all_wait_for_the_first(&mut crew, true);
    let answers = all_answers(&crew, 4);
    let value = *gated.cell.get().unwrap();
    let set = if value == 12 { Ok(2) } else { Err(12) };
    assert!(value == 11 || value == 12);
    assert_eq!(answers, [(0, Err(0)), (1, Ok(value)), (2, set), (3, Ok(value))]);
}

/// std does not specify what happens. Ours waits, as std's does today.
#[test]
fn an_initialiser_that_asks_its_own_cell_waits_for_itself() {
    let _watchdog = watch();
    static CELL: OnceLock<u32> = OnceLock::new();
    // Left behind until the process ends.
    std::thread::spawn(|| CELL.get_or_init(|| *CELL.get_or_init(|| 1)));
    until(|| waiters_in(&CELL) == 1);
    assert_eq!(CELL.get(), None);
}

#[test]
fn the_value_is_dropped_once_if_there_is_one() {
    let drops = Drops::default();
    drop(OnceLock::from(drops.counted()));
    assert_eq!(drops.count(), 1);
    let mut cell = OnceLock::new();
    assert!(unwinds(|| {
        cell.get_or_init(|| {
            let _made = drops.counted();
            fail()
        });
    }));
    assert_eq!((drops.count(), cell.get().is_none()), (2, true));
    assert!(cell.set(drops.counted()).is_ok());
    // The refused value comes back, and is dropped here.
    assert!(cell.set(drops.counted()).is_err());
    assert_eq!(drops.count(), 3);
    drop(cell.take());
    assert_eq!((drops.count(), cell.into_inner().is_none()), (4, true));
    std::mem::forget(OnceLock::from(drops.counted()));
    assert_eq!(drops.count(), 4);
}

/// As with std's, the value may borrow what is dropped before the cell, unless its own drop uses it
/// (`does_not_compile/once_lock_borrows.rs`).
#[test]
fn the_value_may_borrow_from_what_is_dropped_first() {
    let cell = OnceLock::new();
    let text = String::from("text");
    cell.set(&text).unwrap();
    assert_eq!(cell.get().map(|text| text.len()), Some(4));
}

#[test]
fn a_child_makes_what_a_thread_of_the_parent_was_making() {
    let _watchdog = watch();
    static CELL: OnceLock<String> = OnceLock::new();
    let (begun, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let maker = {
        let (begun, may_end) = (begun.clone(), may_end.clone());
        std::thread::spawn(move || {
            CELL.get_or_init(|| {
                begun.store(true, SeqCst);
                until(|| may_end.load(SeqCst));
                "parent".into()
            })
        })
    };
    until(|| begun.load(SeqCst));
    in_child(Way::Fork, || CELL.get().is_none() && CELL.get_or_init(|| "child".into()) == "child");
    may_end.store(true, SeqCst);
    assert_eq!(maker.join().unwrap(), "parent");
}

/// An initialiser forks, and continues in the child, where another thread makes the value again.
/// There is one value, and a thread that has borrowed it sees it unchanged.
#[test]
fn an_initialiser_that_has_forked_does_not_replace_another_s_value() {
    let _watchdog = watch();
    for other_is_faster in [true, false] {
        let cell: &'static OnceLock<usize> = Box::leak(Box::new(OnceLock::new()));
        static BORROWED: AtomicUsize = AtomicUsize::new(0);
        static RETURNS: AtomicBool = AtomicBool::new(false);
        let (mut child, mut other) = (0, None);
        let value = cell.get_or_init(|| {
            // SAFETY: the child continues below, and ends there.
            child = unsafe { libc::fork() };
            if child == 0 {
                static BEGUN: Semaphore = Semaphore::new(0);
                let thread = BareThread::start(move || {
                    let value = cell.get_or_init(|| {
                        BEGUN.post().unwrap();
                        if !other_is_faster {
                            until(|| RETURNS.load(SeqCst));
                        }
                        2
                    });
                    BORROWED.store((&raw const *value).addr(), SeqCst);
                    i32::from(*value != 2)
                });
                match other_is_faster {
                    true => assert_eq!(thread.join(), 0),
                    false => {
                        BEGUN.wait();
                        other = Some(thread);
                    }
                }
                RETURNS.store(true, SeqCst);
            }
            1
        });
        if child == 0 {
            let status = other.map_or(0, BareThread::join);
            let is_same = (&raw const *value).addr() == BORROWED.load(SeqCst);
            let right = *value == 2 && is_same && status == 0;
            // SAFETY: ends the child at once.
            unsafe { libc::_exit((!right).into()) };
        }
        Child::new(child).succeeds();
        assert_eq!(*value, 1);
    }
}
