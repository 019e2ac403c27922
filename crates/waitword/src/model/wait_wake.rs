//! wait against wake.

use super::*;

#[test]
fn a_waiter_is_never_left_asleep() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let waiter =
            spawn_on(
                &waiter_table,
                &word,
                |table, word| {
                    while word.holds(0) && word.wait(table).is_err() {}
                },
            );
        word.set(1);
        word.wake(&waiter_table, 1);
        waiter.join().unwrap();
    });
}

#[test]
fn the_count_is_the_number_of_waits_that_return() {
    check(2, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let waiters = [(); 2]
            .map(|()| spawn_on(&waiter_table, &word, |table, word| word.wait(table).is_ok()));
        word.set(1);
        let counted = word.wake(&waiter_table, usize::MAX);
        let woken = waiters.map(|waiter| waiter.join().unwrap() as usize);
        assert_eq!(counted, woken.iter().sum::<usize>());
    });
}

#[test]
fn two_wakers_wake_two_waiters() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let waker = |waiter_table: Arc<WaiterTable>, word: Arc<TestWord>| {
            move || {
                word.set(1);
                word.wake(&waiter_table, 1)
            }
        };
        let waiter =
            spawn_on(&waiter_table, &word, |table, word| word.wait(table).is_ok() as usize);
        let other = thread::spawn(waker(waiter_table.clone(), word.clone()));
        let mine = waker(waiter_table.clone(), word.clone())();
        let counted = mine + other.join().unwrap();
        assert_eq!(counted, waiter.join().unwrap());
    });
}

#[test]
fn the_waker_s_writes_are_visible_to_the_woken_thread() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let data = Arc::new(crate::checker::cell::UnsafeCell::new(0));
        let waiter = {
            let (waiter_table, word, data) = (waiter_table.clone(), word.clone(), data.clone());
            thread::spawn(move || {
                if word.wait(&waiter_table).is_ok() {
                    // SAFETY: the wake orders the write before this; loom checks exactly that.
                    assert_eq!(data.with(|data| unsafe { *data }), 7);
                }
            })
        };
        // SAFETY: written once, before the wake.
        data.with_mut(|data| unsafe { *data = 7 });
        word.set(1);
        word.wake(&waiter_table, 1);
        waiter.join().unwrap();
    });
}
