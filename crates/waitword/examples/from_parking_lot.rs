//! How do I move from parking_lot?
//!
//! Change two lines. One is in Cargo.toml:
//!
//! ```toml
//! -parking_lot = "0.12"
//! +waitword = "0.1"
//! ```
//!
//! The other one is the `use` below. Names, methods and guards stay the same.
//!
//! ```sh
//! cargo run --example from_parking_lot
//! ```

// use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockUpgradableReadGuard};
use waitword::{Condvar, Mutex, MutexGuard, RwLock, RwLockUpgradableReadGuard};

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

static CACHE: RwLock<BTreeMap<u64, u64>> = RwLock::new(BTreeMap::new());
static DONE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static ONE_MORE: Condvar = Condvar::new();

fn square(number: u64) -> u64 {
    let cache = CACHE.upgradable_read();
    if let Some(&square) = cache.get(&number) {
        return square;
    }
    let mut cache = RwLockUpgradableReadGuard::upgrade(cache);
    *cache.entry(number).or_insert(number * number)
}

fn main() {
    const THREADS: usize = 4;
    for thread in 0..THREADS as u32 {
        thread::spawn(move || {
            assert_eq!((0..100).map(square).sum::<u64>(), 328_350);
            DONE.lock().push(thread);
            ONE_MORE.notify_one();
        });
    }
    let mut done = DONE.lock();
    while done.len() < THREADS {
        let waited = ONE_MORE.wait_for(&mut done, Duration::from_secs(10));
        assert!(!waited.timed_out());
    }
    assert!(DONE.try_lock().is_none());
    MutexGuard::unlocked(&mut done, || assert!(DONE.try_lock().is_some()));
    let first = MutexGuard::map(done, |done| &mut done[0]);
    println!("thread {first} was the first to end");
    assert_eq!(CACHE.read().len(), 100);
}
