//! How does one thread wait for the first of many things to happen?
//!
//! With `wait_any`: up to 128 words, of different sizes, and a deadline. Here three threads count,
//! each in a word of its own. A fourth gathers their counts and waits for a byte that tells it to
//! stop.
//!
//! ```sh
//! cargo run --example wait_on_many
//! ```

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use waitword::{Deadline, Error, Futex, wait_any};

static COUNTS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
static WIDE_COUNT: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicU8 = AtomicU8::new(0);
const TURNS: u32 = 100;
const PAUSE: Duration = Duration::from_micros(100);

/// Gathers the counts until told to stop. Returns the final counts and how often it slept and was
/// woken.
fn gather() -> ([u32; 2], u64, u64) {
    let mut wake_ups = 0;
    loop {
        // Stop is read first: no count changes after it is set.
        let stop = STOP.load(Ordering::Acquire);
        let counts = COUNTS.each_ref().map(|count| count.load(Ordering::Acquire));
        let wide = WIDE_COUNT.load(Ordering::Acquire);
        if stop != 0 {
            return (counts, wide, wake_ups);
        }
        // Sleeps only while all four words hold what was just seen.
        let words = [
            Futex::private(&COUNTS[0]).expecting(counts[0]),
            Futex::private(&COUNTS[1]).expecting(counts[1]),
            Futex::private(&WIDE_COUNT).expecting(wide),
            Futex::private(&STOP).expecting(stop),
        ];
        match wait_any(&words, None) {
            // The index of a word that was woken. The loop looks at all words anyway.
            Ok(index) => {
                assert!(index < words.len());
                wake_ups += 1;
            }
            Err(Error::Mismatch | Error::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn main() {
    let idle = AtomicU32::new(0);
    let words = [Futex::private(&idle).expecting(0)];
    let soon = Deadline::after(Duration::from_millis(1));
    assert_eq!(wait_any(&words, Some(soon)), Err(Error::TimedOut));

    let gatherer = thread::spawn(gather);
    thread::scope(|scope| {
        for count in &COUNTS {
            scope.spawn(|| {
                for _ in 0..TURNS {
                    count.fetch_add(1, Ordering::Release);
                    Futex::private(count).wake(1).unwrap();
                    thread::sleep(PAUSE);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..TURNS {
                WIDE_COUNT.fetch_add(1 << 32, Ordering::Release);
                Futex::private(&WIDE_COUNT).wake(1).unwrap();
                thread::sleep(PAUSE);
            }
        });
    });
    STOP.store(1, Ordering::Release);
    Futex::private(&STOP).wake(1).unwrap();
    let (counts, wide, wake_ups) = gatherer.join().unwrap();
    println!("{counts:?} and {wide:#x}, in {wake_ups} wake-ups");
    assert_eq!((counts, wide), ([TURNS; 2], u64::from(TURNS) << 32));
}
