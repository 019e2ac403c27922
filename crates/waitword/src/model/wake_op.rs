//! wake_op against waiters of both words.

use super::requeue::move_all;
use super::*;
use crate::futex::private;

/// Wakes up to one waiter of each word; returns the count for each.
fn wake_one_each(
    waiter_table: &WaiterTable,
    first: Key,
    second: Key,
    change: impl FnOnce() -> bool,
) -> [usize; 2] {
    let each = |of_first, of_second| [of_first, of_second];
    private::wake_op(waiter_table, [(first, 1), (second, 1)], change, each)
}

/// One thread waits on the condition and then for the lock, another for the lock. A signal and
/// unlock in one call leaves neither asleep.
#[test]
fn signal_and_unlock_in_one_step_wakes_both() {
    check(2, || {
        let waiter_table = waiter_table();
        let (condition, lock) = (TestWord::new(0), TestWord::new(1));
        let spawn_waiter = |word: &Arc<TestWord>| {
            spawn_on(&waiter_table, word, |table, word| word.wait(table).is_ok() as usize)
        };
        let waiters = [spawn_waiter(&condition), spawn_waiter(&lock)];
        condition.set(1);
        let change = || {
            lock.set(1);
            true
        };
        let counted = wake_one_each(&waiter_table, condition.key, lock.key, change);
        assert_eq!(counted, waiters.map(|waiter| waiter.join().unwrap()));
    });
}

#[test]
fn an_old_value_that_does_not_compare_leaves_the_second_word_s_waiters_alone() {
    check(3, || {
        let waiter_table = waiter_table();
        let words = [TestWord::new(0), TestWord::new(1)];
        let waiter = spawn_on(&waiter_table, &words[1], |table, word| word.wait(table).is_ok());
        let change = || {
            words[1].set(1);
            false
        };
        let counted = wake_one_each(&waiter_table, words[0].key, words[1].key, change);
        assert_eq!(counted, [0, 0]);
        let late = words[1].wake(&waiter_table, 1);
        assert_eq!(waiter.join().unwrap(), late == 1);
    });
}

/// A waiter moves from one of the two words to the other at the same time: it is woken wherever it
/// is queued.
fn a_waiter_that_moves_is_not_missed(from: usize, to: usize, preemptions: usize) {
    check(preemptions, move || {
        let waiter_table = waiter_table();
        let words = [TestWord::new(0), TestWord::new(1)];
        let waiter = spawn_on(&waiter_table, &words[from], |table, word| word.wait(table).is_ok());
        let mover = {
            let (waiter_table, words) = (waiter_table.clone(), words.clone());
            thread::spawn(move || move_all(&waiter_table, &words[from], &words[to]))
        };
        let [first, second] = &words;
        let change = || {
            words[from].set(1);
            true
        };
        let counted = wake_one_each(&waiter_table, first.key, second.key, change);
        let counted: usize = counted.iter().sum();
        assert_eq!(waiter.join().unwrap(), counted == 1);
        mover.join().unwrap();
    });
}

#[test]
fn a_waiter_that_moves_from_the_first_word_to_the_second_is_not_missed() {
    a_waiter_that_moves_is_not_missed(0, 1, 2);
}

#[test]
fn a_waiter_that_moves_from_the_second_word_to_the_first_is_not_missed() {
    a_waiter_that_moves_is_not_missed(1, 0, 2);
}
