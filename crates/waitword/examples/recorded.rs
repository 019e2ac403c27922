//! Records why its own threads wait: `cargo run --example recorded --features record ROUNDS DIR`,
//! then `waitword explain DIR`. Without a directory, `waitword profile` may record it.

use std::path::PathBuf;
use std::thread::{scope, sleep};
use std::time::Duration;
use waitword::{Mutex, RwLock};

static MUTEX: Mutex<u32> = Mutex::new(0);
static RWLOCK: RwLock<u32> = RwLock::new(0);

#[inline(never)]
fn sleeps_with_the_mutex() {
    let mut count = MUTEX.lock();
    sleep(Duration::from_millis(5));
    *count += 1;
}

#[inline(never)]
fn wants_the_mutex() {
    *MUTEX.lock() += 1;
}

#[inline(never)]
fn sleeps_with_the_rwlock() {
    let mut count = RWLOCK.write();
    sleep(Duration::from_millis(5));
    *count += 1;
}

#[inline(never)]
fn wants_to_read() {
    assert_ne!(*RWLOCK.read(), u32::MAX);
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let rounds = arguments.next().and_then(|it| it.to_str()?.parse().ok()).unwrap_or(100);
    if let Some(directory) = arguments.next().map(PathBuf::from) {
        std::fs::create_dir_all(&directory)?;
        waitword::record::start(&std::path::absolute(directory)?, Duration::from_micros(10))?;
    }
    scope(|scope| {
        let steps = [sleeps_with_the_mutex, wants_the_mutex, sleeps_with_the_rwlock, wants_to_read];
        for step in steps {
            scope.spawn(move || {
                for _ in 0..rounds {
                    step();
                    sleep(Duration::from_micros(500));
                }
            });
        }
    });
    waitword::record::stop();
    Ok(())
}
