//! wait, wake, requeue and wake_op on five words of a table that begins with four buckets and
//! grows.

use super::*;
use crate::futex::private;

const WORDS: usize = 5;

/// The words, and the table in which their waiters are queued.
struct Street {
    waiter_table: Arc<WaiterTable>,
    words: [Arc<TestWord>; WORDS],
}

impl Street {
    fn new() -> Arc<Self> {
        Arc::new(Self { waiter_table: waiter_table(), words: core::array::from_fn(TestWord::new) })
    }

    /// One of the first `among` words.
    fn some_word(&self, among: usize) -> &TestWord {
        &self.words[dice(among)]
    }

    /// Some waits, while the words hold 0; returns how many were woken.
    fn wait(&self, among: usize) -> usize {
        let waits = (0..3).map(|_| {
            let word = self.some_word(among);
            let result = match dice(3) {
                0 => word.wait_briefly(&self.waiter_table),
                _ => word.wait(&self.waiter_table),
            };
            usize::from(result.is_ok())
        });
        waits.sum()
    }

    /// One operation that wakes or moves; returns how many threads it reports as woken.
    fn wake_or_move(&self, among: usize) -> usize {
        let (one, other) = (self.some_word(among), self.some_word(among));
        match dice(4) {
            0 => one.wake(&self.waiter_table, 1 + dice(2)),
            1 => {
                let counts = (1 + dice(2), dice(3));
                let change = || dice(2) == 0;
                let words = [(one.key, counts.0), (other.key, counts.1)];
                let sum = |of_one, of_other| of_one + of_other;
                private::wake_op(&self.waiter_table, words, change, sum)
            }
            _ => {
                let (woken, moved) = (dice(2), 1 + dice(3));
                let result =
                    private::requeue(&self.waiter_table, one.key, other.key, woken, moved, || true);
                // It wakes first, and reports the sum of both.
                result.unwrap().min(woken)
            }
        }
    }

    /// From now on no thread can wait; returns how many did.
    fn close(&self) -> usize {
        self.words.iter().for_each(|word| word.set(1));
        let words = self.words.iter();
        words.map(|word| word.wake(&self.waiter_table, WORDS)).sum()
    }

    fn spawn<R: 'static>(
        street: &Arc<Self>,
        work: impl FnOnce(&Self) -> R + 'static,
    ) -> thread::JoinHandle<R> {
        let street = street.clone();
        thread::spawn(move || work(&street))
    }
}

/// However waiters are woken, moved and moved again, or give up: as many waits return as the wakes
/// have counted, and all return.
fn every_waiter_is_found(among: usize, growers: usize) {
    stress(move || {
        let street = Street::new();
        let waiters = [(); 4].map(|()| Street::spawn(&street, move |street| street.wait(among)));
        let wakers = [(); 2].map(|()| {
            let work = move |street: &Street| (0..4).map(|_| street.wake_or_move(among)).sum();
            Street::spawn(&street, work)
        });
        let growers: Vec<_> = (1..=growers)
            .map(|step| {
                let work = move |street: &Street| street.waiter_table.grow(4 << step).unwrap();
                Street::spawn(&street, work)
            })
            .collect();
        let counted: usize = join(wakers).iter().sum();
        join(growers);
        let counted = counted + street.close();
        assert_eq!(join(waiters).iter().sum::<usize>(), counted);
    });
}

#[test]
fn every_waiter_is_found_on_two_words() {
    every_waiter_is_found(2, 0);
}

#[test]
fn every_waiter_is_found_on_five_words() {
    every_waiter_is_found(WORDS, 0);
}

#[test]
fn every_waiter_is_found_while_the_table_grows_twice() {
    every_waiter_is_found(3, 2);
}

/// Takers wait while a heap is empty: five take, two put, and the table grows at the same time.
#[test]
fn no_taker_sleeps_beside_a_token() {
    const TAKES: u32 = 2;
    stress(|| {
        let street = Street::new();
        let take = |street: &Street| {
            let heap = &street.words[0];
            loop {
                let seen = heap.value.load(Ordering::Relaxed);
                if seen > 0 {
                    let taken = heap.value.compare_exchange(
                        seen,
                        seen - 1,
                        Ordering::Acquire,
                        Ordering::Relaxed,
                    );
                    if taken.is_ok() {
                        return;
                    }
                } else if dice(3) == 0 {
                    let _ = heap.wait_briefly(&street.waiter_table);
                } else {
                    let _ = heap.wait(&street.waiter_table);
                }
            }
        };
        let put = |street: &Street| {
            let heap = &street.words[0];
            let mut left = 5 * TAKES / 2;
            while left > 0 {
                let tokens = left.min(1 + dice(2) as u32);
                heap.value.fetch_add(tokens, Ordering::Release);
                heap.wake(&street.waiter_table, tokens as usize);
                left -= tokens;
            }
        };
        let takers = [(); 5]
            .map(|()| Street::spawn(&street, move |street| (0..TAKES).for_each(|_| take(street))));
        let putters = [(); 2].map(|()| Street::spawn(&street, put));
        street.waiter_table.grow(8).unwrap();
        join(putters);
        join(takers);
        assert!(street.words[0].holds(0));
    });
}
