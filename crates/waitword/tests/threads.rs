//! Many threads: threads that end leave nothing behind, thousands of sleepers are all woken, in
//! order of arrival, and real-time threads first.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::{Builder, Scope};
use std::time::Duration;
use waitword::{Deadline, Error, Futex, RawPosixMutex, table};
use waitword_testkit::{in_fresh_process, until, until_waiting, watch};

/// A thread with a small stack, because there will be thousands.
fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl FnOnce() + Send + 'scope) {
    let builder = Builder::new().stack_size(64 << 10);
    builder.spawn_scoped(scope, work).expect("a thread");
}

fn waiting() -> usize {
    table::snapshot(&mut []).waiters
}

#[test]
fn threads_that_end_leave_nothing_behind() {
    in_fresh_process(|| {
        let _watchdog = watch();
        const THREADS: usize = 10_000;
        const AT_ONCE: usize = 100;
        let word = AtomicU64::new(0);
        let mut after_first = 0;
        for batch in 0..THREADS / AT_ONCE {
            std::thread::scope(|scope| {
                for index in 0..AT_ONCE {
                    let word = &word;
                    start(scope, move || {
                        let futex = Futex::private(word);
                        // Some are woken, some time out.
                        if index % 4 == 0 {
                            let soon = Deadline::after(Duration::from_micros(100));
                            let ended = futex.wait_until(batch as u64, soon);
                            assert_ne!(ended, Err(Error::Interrupted));
                        } else {
                            while word.load(SeqCst) == batch as u64 {
                                let _ = futex.wait(batch as u64);
                            }
                        }
                    });
                }
                word.fetch_add(1, SeqCst);
                Futex::private(&word).wake(usize::MAX).expect("a private wake");
            });
            assert_eq!(waiting(), 0);
            if batch == 0 {
                after_first = table::mapped_bytes();
            }
        }
        // The memory that one batch needs, which varies; not that of a hundred batches.
        let bytes = table::mapped_bytes();
        assert!(bytes <= (64 << 10) + 512 * AT_ONCE, "{bytes} bytes, {after_first} at first");
    });
}

#[test]
fn two_thousand_asleep_on_one_word_are_all_woken() {
    in_fresh_process(|| {
        let _watchdog = watch();
        const THREADS: usize = 2_000;
        let (word, other) = (AtomicU16::new(0), AtomicU8::new(0));
        let woken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                start(scope, || {
                    assert_eq!(Futex::private(&word).wait(0), Ok(()));
                    woken.fetch_add(1, SeqCst);
                });
            }
            until(|| waiting() == THREADS);
            let (from, to) = (Futex::private(&word), Futex::private(&other));
            assert_eq!(from.wake(1), Ok(1));
            assert_eq!(from.wake(499), Ok(499));
            until(|| woken.load(SeqCst) == 500);
            assert_eq!(from.requeue(to, 100, 900), Ok(1_000));
            until(|| woken.load(SeqCst) == 600);
            assert_eq!(waiting(), 1_400);
            assert_eq!(from.wake(usize::MAX), Ok(500));
            assert_eq!(to.wake(usize::MAX), Ok(900));
        });
        assert_eq!(woken.load(SeqCst), THREADS);
        assert_eq!(waiting(), 0);
    });
}

#[test]
fn two_thousand_asleep_on_as_many_words_are_all_woken() {
    in_fresh_process(|| {
        let _watchdog = watch();
        const THREADS: usize = 2_000;
        let words: Vec<AtomicU8> = (0..THREADS).map(|_| AtomicU8::new(0)).collect();
        std::thread::scope(|scope| {
            for word in &words {
                start(scope, || assert_eq!(Futex::private(word).wait(0), Ok(())));
            }
            until(|| waiting() == THREADS);
            assert!(table::buckets() >= THREADS, "{} buckets", table::buckets());
            // Each word has its own waiter: its neighbour's wake is not for it.
            for word in words.iter().step_by(2).chain(words.iter().skip(1).step_by(2)) {
                assert_eq!(Futex::private(word).wake(usize::MAX), Ok(1));
                assert_eq!(Futex::private(word).wake(usize::MAX), Ok(0));
            }
        });
        assert_eq!(waiting(), 0);
    });
}

/// Starts threads that wait on `word` one after another, each once its predecessor is queued in the
/// table. Each notes its number once it is awake.
fn queue_up<'scope>(
    scope: &'scope Scope<'scope, '_>,
    word: &'scope AtomicU32,
    numbers: std::ops::Range<usize>,
    awake: &'scope Mutex<Vec<usize>>,
    prepare: impl Fn(usize) + Copy + Send + 'scope,
) {
    let already = waitword_testkit::waiters_at(word);
    for (position, number) in numbers.enumerate() {
        start(scope, move || {
            prepare(number);
            assert_eq!(Futex::private(word).wait(0), Ok(()));
            awake.lock().expect("the list").push(number);
        });
        until_waiting(word, already + position + 1);
    }
}

/// Wakes one after another, each once its predecessor has noted its number.
fn wake_one_by_one(word: &AtomicU32, count: usize, awake: &Mutex<Vec<usize>>) {
    let already = awake.lock().expect("the list").len();
    for position in 0..count {
        assert_eq!(Futex::private(word).wake(1), Ok(1));
        until(|| awake.lock().expect("the list").len() == already + position + 1);
    }
}

#[test]
fn waiters_are_woken_in_order_of_arrival() {
    let _watchdog = watch();
    let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
    let awake = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        queue_up(scope, &first, 0..10, &awake, |_| ());
        queue_up(scope, &second, 10..15, &awake, |_| ());
        wake_one_by_one(&first, 3, &awake);
        // 3 is woken, 4 to 7 go behind 10 to 14.
        let moved = Futex::private(&first).requeue(Futex::private(&second), 1, 4);
        assert_eq!(moved, Ok(5));
        until(|| awake.lock().expect("the list").len() == 4);
        wake_one_by_one(&second, 9, &awake);
        wake_one_by_one(&first, 2, &awake);
    });
    let order = awake.into_inner().expect("the list");
    assert_eq!(order, [0, 1, 2, 3, 10, 11, 12, 13, 14, 4, 5, 6, 7, 8, 9]);
}

/// Runs the calling thread on this CPU only.
fn pin(cpu: usize) {
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).unwrap();
}

/// A mutex's waiter that was woken, and found that another thread had taken the lock past it, parks
/// in front of those that came later.
#[test]
fn a_woken_waiter_keeps_its_place_in_the_queue() {
    let _watchdog = watch();
    let allowed = sched_getaffinity(None).unwrap();
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let (Some(ours), Some(theirs)) = (cpus.next(), cpus.next()) else {
        eprintln!("SKIPPED: on one CPU a woken thread runs before its waker can take the lock");
        return;
    };
    // The waiters share a CPU: an unlock prefers one that last ran on its own.
    pin(ours);
    // At the back of the queue, a waiter that parks again would be the second and then the first.
    let round = |times: usize| {
        let mutex = RawPosixMutex::new();
        let served = Mutex::new(Vec::new());
        let lock = |number: usize| {
            pin(theirs);
            mutex.lock();
            served.lock().unwrap().push(number);
            // SAFETY: locked just above.
            unsafe { mutex.unlock() };
        };
        let is_taken_each_time = std::thread::scope(|scope| {
            mutex.lock();
            for number in 0..2 {
                let lock = &lock;
                start(scope, move || lock(number));
                until_waiting(&mutex, number + 1);
            }
            let is_taken_each_time = (0..times).all(|_| {
                // SAFETY: this thread holds it.
                unsafe { mutex.unlock() };
                let is_taken = mutex.try_lock();
                let is_first = served.lock().unwrap().is_empty();
                if is_taken && is_first {
                    until_waiting(&mutex, 2);
                } else if is_taken {
                    // SAFETY: this thread holds it.
                    unsafe { mutex.unlock() };
                }
                is_taken && is_first
            });
            if is_taken_each_time {
                // SAFETY: this thread holds it.
                unsafe { mutex.unlock() };
            }
            is_taken_each_time
        });
        is_taken_each_time.then(|| served.into_inner().unwrap())
    };
    for times in [1, 2] {
        let served = (0..1000).find_map(|_| round(times));
        assert_eq!(served, Some(vec![0, 1]), "taken {times} times past its waiters");
    }
}

/// Makes the calling thread a real-time one. Returns whether that is permitted.
fn become_real_time(priority: i32) -> bool {
    waitword_testkit::thread::set_policy(libc::SCHED_FIFO, priority)
}

#[test]
fn real_time_waiters_go_first() {
    let _watchdog = watch();
    let permitted = std::thread::spawn(|| become_real_time(1)).join();
    if !permitted.expect("a thread that asks") {
        eprintln!("SKIPPED real_time_waiters_go_first: SCHED_FIFO is not permitted here");
        return;
    }
    // By number: the real-time priority of a waiter.
    const PRIORITIES: [i32; 8] = [0, 5, 0, 9, 5, 1, 0, 9];
    let (word, other) = (AtomicU32::new(0), AtomicU32::new(0));
    let awake = Mutex::new(Vec::new());
    let prepare = |number: usize| {
        if PRIORITIES[number % 8] > 0 {
            assert!(become_real_time(PRIORITIES[number % 8]));
        }
    };
    std::thread::scope(|scope| {
        queue_up(scope, &word, 0..8, &awake, prepare);
        wake_one_by_one(&word, 8, &awake);
        // The same after a requeue.
        queue_up(scope, &word, 8..12, &awake, prepare);
        queue_up(scope, &other, 12..16, &awake, prepare);
        let (from, to) = (Futex::private(&word), Futex::private(&other));
        assert_eq!(from.requeue(to, 0, usize::MAX), Ok(4));
        wake_one_by_one(&other, 8, &awake);
    });
    let order = awake.into_inner().expect("the list");
    assert_eq!(order[..8], [3, 7, 1, 4, 5, 0, 2, 6]);
    assert_eq!(order[8..], [15, 11, 12, 9, 13, 14, 8, 10]);
}
