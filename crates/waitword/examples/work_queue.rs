//! How do I hand work to a few threads?
//!
//! With a queue behind a mutex, and a condition variable for the workers that find it empty.
//! Closing the queue ends the workers once no jobs are left.
//!
//! ```sh
//! cargo run --example work_queue
//! ```

use std::collections::VecDeque;
use std::thread;
use waitword::{Condvar, Mutex};

struct WorkQueue<T> {
    state: Mutex<State<T>>,
    /// Signalled when there is a job or the queue was closed.
    changed: Condvar,
}

struct State<T> {
    jobs: VecDeque<T>,
    closed: bool,
}

impl<T> WorkQueue<T> {
    const fn new() -> Self {
        Self {
            state: Mutex::new(State { jobs: VecDeque::new(), closed: false }),
            changed: Condvar::new(),
        }
    }

    fn push(&self, job: T) {
        self.state.lock().jobs.push_back(job);
        // The mutex is free again, so the woken worker need not wait for it.
        self.changed.notify_one();
    }

    /// Takes the oldest job. `None`: the queue is closed and empty.
    fn pop(&self) -> Option<T> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.jobs.is_empty() && !state.closed);
        state.jobs.pop_front()
    }

    fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }
}

static QUEUE: WorkQueue<u64> = WorkQueue::new();

fn main() {
    let workers: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                let mut sum = 0;
                while let Some(number) = QUEUE.pop() {
                    sum += number;
                }
                sum
            })
        })
        .collect();
    (1..=100_000).for_each(|number| QUEUE.push(number));
    QUEUE.close();
    let sums: Vec<u64> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    println!("four workers have summed up {sums:?}");
    assert_eq!(sums.iter().sum::<u64>(), 5_000_050_000);
}
