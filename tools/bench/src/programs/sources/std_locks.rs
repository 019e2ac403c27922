//! Every kind of lock in Rust's standard library. They use raw futexes, through the C library's
//! `syscall`. Prints the same in every run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 4;

fn all(body: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        for number in 0..THREADS {
            let body = &body;
            scope.spawn(move || body(number));
        }
    });
}

fn main() {
    let turns: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("turns");
    let started = Instant::now();

    let counted = Mutex::new(0);
    all(|_| (0..turns).for_each(|_| *counted.lock().unwrap() += 1));
    println!("mutex {}", counted.lock().unwrap());

    let (turn, changed) = (Mutex::new(0), Condvar::new());
    all(|number| {
        for _ in 0..turns / 10 {
            let mut turn = changed
                .wait_while(turn.lock().unwrap(), |turn| *turn % THREADS != number)
                .unwrap();
            *turn += 1;
            changed.notify_all();
        }
    });
    let late = changed.wait_timeout(turn.lock().unwrap(), Duration::from_millis(20)).unwrap();
    println!("condition {}, timeout {}", late.0, late.1.timed_out());
    drop(late);

    let copies = RwLock::new([0, 0]);
    all(|_| {
        for turn in 0..turns {
            if turn % 10 == 0 {
                copies.write().unwrap().iter_mut().for_each(|copy| *copy += 1);
            } else {
                let copies = copies.read().unwrap();
                assert_eq!(copies[0], copies[1]);
            }
        }
    });
    println!("rwlock {:?}", copies.read().unwrap());

    let (leaders, barrier) = (AtomicU64::new(0), Barrier::new(THREADS));
    all(|_| {
        for _ in 0..turns / 10 {
            leaders.fetch_add(barrier.wait().is_leader().into(), SeqCst);
        }
    });
    println!("barrier {}", leaders.load(SeqCst));

    let (sender, receiver) = mpsc::sync_channel::<usize>(16);
    let sum = thread::scope(|scope| {
        for _ in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || (0..turns).for_each(|item| sender.send(item).unwrap()));
        }
        drop(sender);
        let mut sum = 0;
        while let Ok(item) = receiver.recv_timeout(Duration::from_secs(60)) {
            sum += item;
        }
        sum
    });
    println!("channel {sum}");

    let ready = Arc::new(AtomicBool::new(false));
    let seen = ready.clone();
    let parked = thread::spawn(move || {
        while !seen.load(SeqCst) {
            thread::park();
        }
        thread::park_timeout(Duration::from_millis(5));
    });
    thread::sleep(Duration::from_millis(5));
    ready.store(true, SeqCst);
    parked.thread().unpark();
    parked.join().unwrap();

    static ONCE: Once = Once::new();
    static LAZY: LazyLock<u64> = LazyLock::new(|| 42);
    let (times, cell) = (AtomicU64::new(0), OnceLock::new());
    all(|_| {
        ONCE.call_once(|| {
            times.fetch_add(1, SeqCst);
        });
        cell.get_or_init(|| times.fetch_add(*LAZY, SeqCst));
    });
    println!("once {}", times.load(SeqCst));

    let starts = AtomicU64::new(0);
    for _ in 0..turns / 100 {
        all(|_| {
            starts.fetch_add(1, SeqCst);
        });
    }
    println!("threads {}", starts.load(SeqCst));
    eprintln!("seconds {}", started.elapsed().as_secs_f64());
}
