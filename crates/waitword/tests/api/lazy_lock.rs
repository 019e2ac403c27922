//! `LazyLock`: like std's; with many threads, with panics, and in forked children.

use crate::{Drops, all_answers, fail, unwinds, waiters_in};
use std::sync::Arc;
use std::sync::LazyLock as StdLazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use waitword::{LazyLock, Semaphore};
use waitword_testkit::{Crew, Way, in_child, until, watch};

/// Everything that a single thread can observe.
macro_rules! answers {
    ($LazyLock:ident) => {{
        let mut said = Vec::new();
        let mut say = |what: String| said.push(what);
        let lazy = $LazyLock::new(|| String::from("a"));
        say(format!("{lazy:?}"));
        say(format!("{:?} {:?} {}", $LazyLock::force(&lazy), lazy, lazy.len()));
        let poisoned = $LazyLock::<u32, _>::new(|| fail());
        say(format!("{}", unwinds(|| assert_eq!($LazyLock::force(&poisoned), &1))));
        say(format!("{}", unwinds(|| assert_eq!(*poisoned, 1))));
        say(format!("{poisoned:?}"));
        say(format!("{:?}", *$LazyLock::<u32>::default()));
        said
    }};
}

#[test]
fn says_what_std_s_says() {
    assert_eq!(answers!(LazyLock), answers!(StdLazyLock));
}

#[test]
fn an_exclusive_reference_makes_and_changes_it() {
    let mut lazy = LazyLock::new(|| vec![1]);
    assert_eq!(LazyLock::get(&lazy), None);
    assert_eq!(LazyLock::get_mut(&mut lazy), None);
    lazy.push(2);
    LazyLock::force_mut(&mut lazy).push(3);
    LazyLock::get_mut(&mut lazy).unwrap().push(4);
    assert_eq!(LazyLock::get(&lazy), Some(&vec![1, 2, 3, 4]));
    let mut poisoned = LazyLock::<u32, _>::new(|| fail());
    assert!(unwinds(|| *poisoned = 1));
    assert!(unwinds(|| *LazyLock::force_mut(&mut poisoned) = 1));
    assert_eq!(LazyLock::get_mut(&mut poisoned), None);
}

#[test]
fn racing_threads_have_it_made_once() {
    let _watchdog = watch();
    for _ in 0..200 {
        let runs = AtomicUsize::new(0);
        let lazy = LazyLock::new(|| runs.fetch_add(1, SeqCst) + 7);
        std::thread::scope(|scope| {
            let threads = [0; 6].map(|_| scope.spawn(|| *lazy));
            for thread in threads {
                assert_eq!(thread.join().unwrap(), 7);
            }
        });
        assert_eq!(runs.load(SeqCst), 1);
    }
}

/// Threads that wait for the value panic along with the one that fails to make it.
#[test]
fn a_panic_poisons_it_for_the_waiters() {
    static GATE: Semaphore = Semaphore::new(0);
    static LAZY: LazyLock<u32> = LazyLock::new(|| {
        GATE.wait();
        fail()
    });
    let mut crew = Crew::new(3);
    for worker in 0..3 {
        crew.order(worker, 1, || Ok(unwinds(|| assert_eq!(*LAZY, 0)).into()));
        assert_eq!(crew.settle(), []);
    }
    GATE.post().unwrap();
    let answers = all_answers(&crew, 3);
    assert_eq!(answers, [(0, Ok(1)), (1, Ok(1)), (2, Ok(1))]);
    assert_eq!(LazyLock::get(&LAZY), None);
}

/// std does not specify what happens. Ours waits, as std's does today.
#[test]
fn an_initialiser_that_uses_its_own_value_waits_for_itself() {
    let _watchdog = watch();
    static LAZY: LazyLock<u32> = LazyLock::new(|| *LazyLock::force(&LAZY));
    // Left behind until the process ends.
    std::thread::spawn(|| *LAZY);
    until(|| waiters_in(&LAZY) == 1);
    assert_eq!(LazyLock::get(&LAZY), None);
}

#[test]
fn the_initialiser_and_the_value_are_dropped_once() {
    let (of_makers, of_values) = (Drops::default(), Drops::default());
    let lazy = |fails: bool| {
        let (maker, values) = (of_makers.counted(), of_values.clone());
        LazyLock::new(move || {
            let _maker = maker;
            if fails { fail() } else { values.counted() }
        })
    };
    let dropped = || (of_makers.count(), of_values.count());
    drop(lazy(false));
    assert_eq!(dropped(), (1, 0));
    let made = lazy(false);
    LazyLock::force(&made);
    assert_eq!(dropped(), (2, 0));
    drop(made);
    assert_eq!(dropped(), (2, 1));
    let poisoned = lazy(true);
    assert!(unwinds(|| _ = LazyLock::force(&poisoned)));
    assert_eq!(dropped(), (3, 1));
    drop(poisoned);
    assert_eq!(dropped(), (3, 1));
}

/// What the initialiser owns may already be consumed in the child, so it does not run again.
#[test]
fn a_child_does_not_run_an_initialiser_that_a_thread_of_the_parent_ran() {
    let _watchdog = watch();
    let (begun, may_end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let lazy = {
        let (begun, may_end, owned) = (begun.clone(), may_end.clone(), Box::new(5));
        Arc::new(LazyLock::new(move || {
            let value = *owned;
            drop(owned);
            begun.store(true, SeqCst);
            until(|| may_end.load(SeqCst));
            value
        }))
    };
    let user = {
        let lazy = lazy.clone();
        std::thread::spawn(move || **lazy)
    };
    until(|| begun.load(SeqCst));
    in_child(Way::Fork, || {
        // No message: another thread of the parent may hold the lock of what prints it.
        std::panic::set_hook(Box::new(|_| ()));
        let poisoned = unwinds(|| _ = LazyLock::force(&lazy));
        poisoned && LazyLock::get(&lazy).is_none()
    });
    may_end.store(true, SeqCst);
    assert_eq!(user.join().unwrap(), 5);
}
