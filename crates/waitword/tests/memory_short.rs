//! Without memory for a table, for parkers, or for growth: waits and wakes continue, and nothing is
//! lost.
//!
//! Each test is a process of its own, whose address space is limited once its threads have started
//! (which takes memory, for their stacks).

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, table, wait_any};
use waitword_testkit::{in_fresh_process, until, watch};

/// No mapping can be made until this is dropped.
struct NoMemory(libc::rlimit);

impl NoMemory {
    fn begin() -> Self {
        // SAFETY: whole structures; the hard limit stays.
        unsafe {
            let mut usual: libc::rlimit = std::mem::zeroed();
            assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut usual), 0);
            let none = libc::rlimit { rlim_cur: 0, ..usual };
            assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const none), 0);
            Self(usual)
        }
    }
}

impl Drop for NoMemory {
    fn drop(&mut self) {
        // SAFETY: a whole structure.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const self.0) };
    }
}

fn waiting() -> usize {
    table::snapshot(&mut []).waiters
}

#[test]
fn the_first_use_without_memory() {
    in_fresh_process(|| {
        let _watchdog = watch();
        static WORDS: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
        const EACH: usize = 6;
        let started = Barrier::new(WORDS.len() * EACH + 2);
        let barrier = Barrier::new(WORDS.len() * EACH + 1);
        std::thread::scope(|scope| {
            let (late_order, late_orders) = mpsc::channel::<()>();
            let (started, barrier) = (&started, &barrier);
            scope.spawn(move || {
                started.wait();
                let _ = late_orders.recv();
                assert_eq!(Futex::private(&WORDS[0]).wait(0), Ok(()));
            });
            for word in &WORDS {
                for _ in 0..EACH {
                    scope.spawn(|| {
                        started.wait();
                        barrier.wait();
                        assert_eq!(Futex::private(word).wait(0), Ok(()));
                        barrier.wait();
                        assert_eq!(Futex::private(word).wait(0), Ok(()));
                    });
                }
            }
            started.wait();
            // No thread has used the table yet.
            assert_eq!(table::buckets(), 0);
            let no_memory = NoMemory::begin();
            barrier.wait();
            until(|| waiting() == WORDS.len() * EACH);
            assert_eq!(table::mapped_bytes(), 0);
            assert!(table::buckets() > 0, "there is a reserve");
            assert_eq!(table::reserve(1 << 16), Err(Error::OutOfMemory));
            let [a, b, c] = WORDS.each_ref().map(Futex::private);
            assert_eq!(a.wake(1), Ok(1));
            assert_eq!(a.requeue(b, 1, 2), Ok(3));
            assert_eq!(b.wake(usize::MAX), Ok(EACH + 2));
            assert_eq!(a.wake(usize::MAX), Ok(EACH - 4));
            assert_eq!(c.wake(usize::MAX), Ok(EACH));
            let soon = Deadline::after(Duration::from_millis(1));
            assert_eq!(a.wait_until(0, soon), Err(Error::TimedOut));
            let both = [a.expecting(0), c.expecting(0)];
            assert_eq!(wait_any(&both, Some(soon)), Err(Error::TimedOut));
            let mixed = [a.expecting(0), Futex::shared(&WORDS[1]).expecting(0)];
            assert_eq!(wait_any(&mixed, Some(soon)), Err(Error::OutOfMemory));

            // They wait in the reserve table; then there is memory again, and one more thread
            // waits.
            barrier.wait();
            until(|| waiting() == WORDS.len() * EACH);
            drop(no_memory);
            late_order.send(()).expect("the late one");
            until(|| waiting() == WORDS.len() * EACH + 1);
            assert!(table::mapped_bytes() > 0, "the reserve has been left");
            assert_eq!(a.wake(usize::MAX), Ok(EACH + 1));
            assert_eq!(b.wake(usize::MAX), Ok(EACH));
            assert_eq!(c.wake(usize::MAX), Ok(EACH));
        });
        assert_eq!(waiting(), 0);
    });
}

#[test]
fn growth_without_memory() {
    in_fresh_process(|| {
        let _watchdog = watch();
        const THREADS: usize = 200;
        static WORDS: [AtomicU8; 8] = [const { AtomicU8::new(0) }; 8];
        let barrier = Barrier::new(THREADS + 1);
        std::thread::scope(|scope| {
            for index in 0..THREADS {
                let barrier = &barrier;
                scope.spawn(move || {
                    let word = Futex::private(&WORDS[index % WORDS.len()]);
                    barrier.wait();
                    for _ in 0..2 {
                        barrier.wait();
                        assert_eq!(word.wait(0), Ok(()));
                    }
                });
            }
            barrier.wait();
            // The usual table, and parkers for a few threads.
            let soon = Deadline::after(Duration::from_millis(1));
            assert_eq!(Futex::private(&WORDS[0]).wait_until(0, soon), Err(Error::TimedOut));
            let (buckets, bytes) = (table::buckets(), table::mapped_bytes());
            let no_memory = NoMemory::begin();
            barrier.wait();
            until(|| waiting() == THREADS);
            assert_eq!((table::buckets(), table::mapped_bytes()), (buckets, bytes));
            assert_eq!(table::reserve(1 << 16), Err(Error::OutOfMemory));
            for word in &WORDS {
                assert_eq!(Futex::private(word).wake(usize::MAX), Ok(THREADS / WORDS.len()));
            }
            // Again, and memory becomes available while they sleep.
            barrier.wait();
            until(|| waiting() == THREADS);
            drop(no_memory);
            assert!(table::reserve(1 << 12).is_ok_and(|buckets| buckets >= 1 << 12));
            for word in &WORDS {
                assert_eq!(Futex::private(word).wake(usize::MAX), Ok(THREADS / WORDS.len()));
            }
        });
        assert_eq!(waiting(), 0);
    });
}

/// Hand-offs between threads that have no parkers: each wake must be noticed.
#[test]
fn traffic_without_memory() {
    in_fresh_process(|| {
        let _watchdog = watch();
        static TOKENS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
        const PAIRS: usize = 4;
        const TURNS: usize = 50;
        let (barrier, woken, counted) =
            (Barrier::new(2 * PAIRS + 1), AtomicUsize::new(0), AtomicUsize::new(0));
        let take = |own: &AtomicU32| {
            while own.fetch_update(SeqCst, SeqCst, |tokens| tokens.checked_sub(1)).is_err() {
                match Futex::private(own).wait(0) {
                    Ok(()) => _ = woken.fetch_add(1, SeqCst),
                    Err(error) => assert_eq!(error, Error::Mismatch),
                }
            }
        };
        let give = |other: &AtomicU32| {
            other.fetch_add(1, SeqCst);
            let woken = Futex::private(other).wake(1).expect("a private wake");
            counted.fetch_add(woken, SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..PAIRS {
                for side in 0..2 {
                    let (barrier, take, give) = (&barrier, &take, &give);
                    scope.spawn(move || {
                        barrier.wait();
                        barrier.wait();
                        for _ in 0..TURNS {
                            if side == 0 {
                                give(&TOKENS[1]);
                                take(&TOKENS[0]);
                            } else {
                                take(&TOKENS[1]);
                                give(&TOKENS[0]);
                            }
                        }
                        barrier.wait();
                    });
                }
            }
            barrier.wait();
            let _no_memory = NoMemory::begin();
            barrier.wait();
            barrier.wait();
        });
        assert_eq!(woken.load(SeqCst), counted.load(SeqCst));
        assert_eq!(waiting(), 0);
    });
}
