//! Nothing grows: after many operations of every kind, with threads and objects that come and go
//! and with addresses that were never used before, the process is as large as after the first
//! tenth.
//!
//! ```text
//!   cargo test -p waitword --test long_run
//!       a million
//!   cargo test -p waitword --test long_run --release -- --ignored --nocapture
//!       a hundred million: some minutes
//! ```
//!
//! The test compares memory and mappings as the kernel counts them, the table, the parkers, the
//! kernel's own hash table of this process, and whether any thread is still counted or has a parker
//! when all threads have ended.
//!
//! A test that cannot fail shows nothing. So the same is run with something left behind on purpose,
//! and must complain.

mod size;
mod team;

use size::Size;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use team::{Ground, Leak};
use waitword_testkit::{in_fresh_process, limit, watch_for};

/// How many teams run at the same time.
const TEAMS: usize = 3;
/// One team in this many has many threads, the others have two.
const CROWD_EVERY: u64 = 64;
const CROWD: usize = 30;

/// Runs teams until there were this many operations.
fn operate(ground: &Ground, operations: u64, leak: Option<Leak>) -> u64 {
    let done = AtomicU64::new(0);
    let number = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..TEAMS {
            scope.spawn(|| {
                while done.load(Relaxed) < operations {
                    let number = number.fetch_add(1, Relaxed);
                    let size = if number % CROWD_EVERY == 0 { CROWD } else { 2 };
                    done.fetch_add(ground.team(size, number, leak), Relaxed);
                }
            });
        }
    });
    done.into_inner()
}

/// What has grown after the first tenth of this many operations.
fn growth(operations: u64, leak: Option<Leak>) -> Vec<String> {
    let ground = Ground::new();
    // All threads that can ever exist at once meet, at a barrier.
    let mut done = ground.team(TEAMS * CROWD, 1, None);
    done += operate(&ground, operations / 10, leak);
    let before = Size::now();
    eprintln!("{done:>12} operations: {before}");
    for _ in 1..10 {
        done += operate(&ground, operations / 10, leak);
        eprintln!("{done:>12} operations: {}", Size::now());
    }
    before.growth(&Size::now())
}

fn nothing_grows(operations: u64, seconds: u64) {
    in_fresh_process(|| {
        let _watchdog = watch_for(limit(seconds));
        assert_eq!(growth(operations, None), Vec::<String>::new());
    });
}

#[test]
fn nothing_grows_in_a_million_operations() {
    nothing_grows(1_000_000, 300);
}

#[test]
#[ignore = "takes some minutes; the short form is above"]
fn nothing_grows_in_a_hundred_million_operations() {
    nothing_grows(100_000_000, 7200);
}

#[test]
fn planted_leaks_are_noticed() {
    in_fresh_process(|| {
        let _watchdog = watch_for(limit(300));
        for (leak, complaint) in [
            (Leak::Memory, "resident"),
            (Leak::Mapping, "mappings"),
            (Leak::Waiter, "parkers in use"),
        ] {
            let growth = growth(200_000, Some(leak));
            let noticed = growth.iter().any(|what| what.starts_with(complaint));
            assert!(noticed, "{leak:?}: {growth:?}");
        }
    });
}
