//! A deadline that passes while a waker is on its way: the waiter is woken or timed out, and the
//! waker's count agrees.

use super::*;

#[test]
fn a_timeout_and_a_wake_agree_on_which_was_first() {
    check(3, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let waiter = spawn_on(&waiter_table, &word, |table, word| word.wait_briefly(table));
        let counted = word.wake(&waiter_table, 1);
        let woken = waiter.join().unwrap().is_ok();
        assert_eq!(counted == 1, woken);
    });
}

#[test]
fn a_timeout_does_not_take_a_wake_with_it() {
    check(2, || {
        let (waiter_table, word) = (waiter_table(), TestWord::new(0));
        let impatient =
            spawn_on(&waiter_table, &word, |table, word| word.wait_briefly(table).is_ok());
        let patient = spawn_on(&waiter_table, &word, |table, word| word.wait(table).is_ok());
        word.set(1);
        let counted = word.wake(&waiter_table, 1);
        // This wakes any thread still queued; otherwise loom reports a deadlock.
        let rest = word.wake(&waiter_table, usize::MAX);
        let woken = impatient.join().unwrap() as usize + patient.join().unwrap() as usize;
        assert_eq!(counted + rest, woken);
    });
}

#[test]
fn a_timeout_follows_a_requeue_to_the_other_word() {
    check(3, || {
        let waiter_table = waiter_table();
        let words = [TestWord::new(0), TestWord::new(1)];
        let waiter =
            spawn_on(&waiter_table, &words[0], |table, word| word.wait_briefly(table).is_ok());
        let mover = {
            let (waiter_table, [from, to]) = (waiter_table.clone(), words.clone());
            thread::spawn(move || super::requeue::move_all(&waiter_table, &from, &to))
        };
        let counted = words[1].wake(&waiter_table, 1);
        mover.join().unwrap();
        assert_eq!(waiter.join().unwrap(), counted == 1);
    });
}
