//! How does a runtime park an idle thread, and wake exactly that thread?
//!
//! With one byte for each thread. A byte that means "work was announced" makes the next `park`
//! return at once, so a wake-up that comes too early is not lost. Neither call enters the kernel
//! while the thread is busy.
//!
//! ```sh
//! cargo run --example park_threads
//! ```

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use waitword::{Futex, Mutex};

const NOTHING: u8 = 0;
const ANNOUNCED: u8 = 1;

struct Parker(AtomicU8);

impl Parker {
    /// Sleeps until `unpark` is called, or returns at once if it was called since the last `park`.
    fn park(&self) {
        // Acquire pairs with the release in `unpark`: this thread sees what was written before it.
        while self.0.swap(NOTHING, Ordering::Acquire) != ANNOUNCED {
            // Whatever ends the wait, a wake-up, a signal or a changed byte: look again.
            let _ = Futex::private(&self.0).wait(NOTHING);
        }
    }

    fn unpark(&self) {
        if self.0.swap(ANNOUNCED, Ordering::Release) != ANNOUNCED {
            Futex::private(&self.0).wake(1).unwrap();
        }
    }
}

struct Worker {
    parker: Parker,
    inbox: Mutex<Vec<u64>>,
}

static STOPPING: AtomicBool = AtomicBool::new(false);

impl Worker {
    const fn new() -> Self {
        Self { parker: Parker(AtomicU8::new(NOTHING)), inbox: Mutex::new(Vec::new()) }
    }

    /// Runs every task that it is given. Returns their sum.
    fn run(&self) -> u64 {
        let mut sum = 0;
        loop {
            // Read before the inbox, so that a task that was sent before the stop is still found.
            let stopping = STOPPING.load(Ordering::Acquire);
            let tasks = std::mem::take(&mut *self.inbox.lock());
            sum += tasks.iter().sum::<u64>();
            match (tasks.is_empty(), stopping) {
                (true, true) => return sum,
                (true, false) => self.parker.park(),
                (false, _) => {}
            }
        }
    }
}

static WORKERS: [Worker; 3] = [const { Worker::new() }; 3];

fn main() {
    let threads = WORKERS.each_ref().map(|w| thread::spawn(move || w.run()));
    for task in 0..30_000 {
        let worker = &WORKERS[task % WORKERS.len()];
        worker.inbox.lock().push(task as u64);
        worker.parker.unpark();
    }
    STOPPING.store(true, Ordering::Release);
    WORKERS.iter().for_each(|worker| worker.parker.unpark());
    let sums = threads.map(|thread| thread.join().unwrap());
    println!("the workers have summed up {sums:?}");
    assert_eq!(sums, [149_985_000, 149_995_000, 150_005_000]);
}
