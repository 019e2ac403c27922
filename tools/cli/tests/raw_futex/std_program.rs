//! Uses Rust's std: mutex, condvar, rwlock, once, parking, channels, scoped threads. Its locks call
//! futexes through `syscall`.

use std::sync::{Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use std::thread;
use std::time::Duration;

fn main() {
    let counter = Mutex::new(0u64);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    *counter.lock().unwrap() += 1;
                }
            });
        }
    });
    println!("counted {}", counter.into_inner().unwrap());

    let (queue, filled) = (Mutex::new(Vec::new()), Condvar::new());
    let taken = Mutex::new(0u64);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let mut queue = filled
                        .wait_while(queue.lock().unwrap(), |queue: &mut Vec<u64>| queue.is_empty())
                        .unwrap();
                    let item = queue.pop().unwrap();
                    drop(queue);
                    if item == 0 {
                        return;
                    }
                    *taken.lock().unwrap() += item;
                }
            });
        }
        for item in 1..=5_000 {
            queue.lock().unwrap().push(item);
            filled.notify_one();
        }
        while !queue.lock().unwrap().is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..4 {
            queue.lock().unwrap().push(0);
        }
        filled.notify_all();
    });
    println!("taken {}", taken.into_inner().unwrap());

    let waited = Condvar::new();
    let (_guard, timeout) = waited
        .wait_timeout(queue.lock().unwrap(), Duration::from_millis(20))
        .unwrap();
    println!("timed out: {}", timeout.timed_out());
    drop(_guard);

    let shared = RwLock::new(0u64);
    thread::scope(|scope| {
        for writer in 0..6 {
            let shared = &shared;
            scope.spawn(move || {
                for _ in 0..5_000 {
                    if writer < 2 {
                        *shared.write().unwrap() += 1;
                    } else {
                        let seen = *shared.read().unwrap();
                        assert!(seen <= 10_000);
                    }
                }
            });
        }
    });
    println!("written {}", shared.into_inner().unwrap());

    let sleeper = thread::spawn(|| {
        let mut times = 0;
        while times < 1000 {
            thread::park();
            times += 1;
        }
        times
    });
    while !sleeper.is_finished() {
        sleeper.thread().unpark();
    }
    println!("parked {}", sleeper.join().unwrap());

    static ONCE: Once = Once::new();
    let ran = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                ONCE.call_once(|| {
                    thread::sleep(Duration::from_millis(50));
                    *ran.lock().unwrap() += 1;
                });
            });
        }
    });
    println!("once {}", ran.into_inner().unwrap());

    let barrier = Barrier::new(5);
    let leaders = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if barrier.wait().is_leader() {
                        *leaders.lock().unwrap() += 1;
                    }
                }
            });
        }
    });
    println!("rounds {}", leaders.into_inner().unwrap());

    let (sender, receiver) = mpsc::sync_channel(2);
    let sum = thread::spawn(move || receiver.iter().sum::<u64>());
    for number in 0..10_000u64 {
        sender.send(number).unwrap();
    }
    drop(sender);
    println!("sum {}", sum.join().unwrap());
}
